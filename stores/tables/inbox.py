"""Inputs that were admitted and wait to become part of a thread (R34)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from everthread.stores.database import Connection, Database, Rows
from everthread.stores.door import guarded
from everthread.stores.identity import Identity, thread_name_check
from everthread.stores.tables.threads import bind_thread, owns_thread
from everthread.stores.tables.values import as_blob, as_text

__all__ = ["Inbox", "erase_inputs"]

WAITING = "SELECT message_id, delivery, text FROM inbox WHERE thread_id = ? AND text IS NOT NULL ORDER BY seq"


@guarded
class Inbox:
    """The inputs of a store's threads. An input is on disk when `admit` returns. Each method does what
    `stores/inbox.py` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def admit(
        self,
        identity: Identity,
        thread_id: str,
        message_id: str,
        text: str,
        *,
        delivery: Literal["queue", "steer"] = "queue",
    ) -> bool:
        with self._database.write(identity.tenant) as connection:
            bind_thread(connection, identity, thread_id)
            connection.execute(
                "INSERT INTO inbox (thread_id, message_id, delivery, text) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (thread_id, thread_name_check(message_id), delivery, as_blob(text)),
            )
            return connection.changes() == 1

    def pending(self, identity: Identity, thread_id: str, *, steers_only: bool = False) -> list[tuple[str, str]]:
        with self._database.read(identity.tenant) as connection:
            if not owns_thread(connection, identity, thread_id):
                return []
            waiting: Rows = connection.execute(WAITING, (thread_id,)).fetchall()
        steers = [entry for entry in waiting if entry[1] == "steer"]
        return [(message_id, as_text(text)) for message_id, _, text in steers or waiting[: 0 if steers_only else 1]]

    def promote(self, identity: Identity, thread_id: str, message_ids: Sequence[str]) -> None:
        with self._database.write(identity.tenant) as connection:
            if owns_thread(connection, identity, thread_id):
                connection.execute(
                    "UPDATE inbox SET text = NULL "
                    "WHERE thread_id = ? AND message_id IN (SELECT value FROM json_each(?))",
                    (thread_id, json.dumps(list(message_ids))),
                )


def erase_inputs(connection: Connection, thread_id: str) -> int:
    """Drop the texts that wait for a thread; returns how many there were. Their ids stay, so none comes back."""
    connection.execute("UPDATE inbox SET text = NULL WHERE thread_id = ? AND text IS NOT NULL", (thread_id,))
    return int(connection.changes())
