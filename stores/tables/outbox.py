"""The outbox: what happened to records and tasks, written in the transaction in which it happened, read by cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Literal

from everthread.errors import UsageError
from everthread.stores.access import may_read
from everthread.stores.contract import Event
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity, owners_of
from everthread.stores.record import Record
from everthread.stores.tables.rows import BODY, Stored
from everthread.stores.tables.times import micros, moment

__all__ = ["Kind", "Outbox", "append", "append_task", "prune"]

Kind = Literal["memory.updated", "memory.ended", "memory.erased"]
TaskKind = Literal["task.due", "task.ended"]

APPEND = "INSERT INTO outbox (at, tenant, kind, record_id, revision, author) VALUES (?, ?, ?, ?, ?, ?)"
READ = f"""
SELECT outbox.seq, outbox.kind, outbox.record_id, outbox.revision, outbox.at, {BODY}, records.author
FROM outbox LEFT JOIN records ON records.id = outbox.record_id AND records.tenant = outbox.tenant
WHERE outbox.tenant = :tenant AND outbox.seq > :after AND (
    :admin
    OR (records.id IS NULL AND outbox.author = :user)
    OR (records.owner = 'session' AND records.author = :user)
    OR EXISTS (
        SELECT 1 FROM json_each(:owners) AS readable
        WHERE json_extract(readable.value, '$[0]') = records.owner
            AND json_extract(readable.value, '$[1]') = records.owner_id
    )
)
ORDER BY outbox.seq
"""


PRUNED = "events_pruned_to"
"""Under this name the store keeps how far events are gone."""


def append(connection: Connection, tenant: str, events: Iterable[tuple[Kind, Stored]], *, at: datetime) -> None:
    """Note what happened to records, in order; of an erased one neither the revision nor a word is kept. The
    transaction is in the tenant's lane, or alone: so no event appears behind one that was read."""
    connection.executemany(
        APPEND,
        [
            (micros(at), tenant, kind, record.id, None if kind == "memory.erased" else record.revision, author)
            for kind, (record, author) in events
        ],
    )


def append_task(connection: Connection, tenant: str, user: str, kind: TaskKind, task_id: str, *, at: datetime) -> None:
    """Note what happened to a task of this user, who alone reads it there."""
    connection.execute(APPEND, (micros(at), tenant, kind, task_id, None, user))


def prune(connection: Connection, *, before: datetime) -> int:
    """Take out what happened before that time, and note how far; returns how many events are gone."""
    newest = one(connection, "SELECT max(seq) FROM outbox WHERE at < ?", micros(before))
    if newest is None:
        return 0
    connection.execute("DELETE FROM outbox WHERE seq <= ?", (newest,))
    gone = connection.changes()
    connection.keep(PRUNED, newest)
    return gone


class Outbox:
    """Answers `MemoryStore.events`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, identity: Identity, after: int, limit: int) -> list[Event]:
        """See `MemoryStore.events`."""
        if limit < 1:
            raise UsageError(f"events: limit must be at least 1, not {limit}")
        admin = "admin" in identity.roles
        values = {
            "tenant": identity.tenant,
            "after": after,
            "admin": admin,
            "user": identity.user,
            "owners": json.dumps(owners_of(identity)),
        }
        with self._database.read(identity.tenant) as connection:
            pruned = connection.kept(PRUNED) or 0
            if 0 < after < pruned:
                raise UsageError(
                    f"events: what happened after {after} is not kept any more; read the records again, then go on "
                    f"after {pruned}"
                )
            rows = connection.execute(READ, values)
            seen = (row for row in rows if admin or _is_seen(identity, *row[5:]))
            return [
                Event(
                    cursor=seq,
                    kind=kind,
                    record_id=record_id,
                    revision=revision,
                    tenant=identity.tenant,
                    at=moment(at),
                )
                for seq, kind, record_id, revision, at, *_ in islice(seen, limit)
            ]


def _is_seen(identity: Identity, body: str | None, author: str | None) -> bool:
    """The part of the access rules that the query leaves open: who is named as a reader, and what narrows a scope."""
    if body is None or author is None:
        return True
    return may_read(identity, Record.model_validate_json(body), author=author)
