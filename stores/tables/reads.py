"""The log of reads, where a host asks for one: who read which records and messages, in the audit chain (R283)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from everthread.stores.database import Database
from everthread.stores.identity import Identity
from everthread.stores.record import Hit, Record
from everthread.stores.tables import audit

__all__ = ["ReadLog"]


class ReadLog:
    """Notes reads by ids; what was asked for, and what was read, are not in it. It costs a durable write a read: off by
    default. A read that cannot be noted is not answered."""

    def __init__(self, database: Database, clock: Callable[[], datetime], *, on: bool) -> None:
        self._database = database
        self._clock = clock
        self._on = on

    def records(self, identity: Identity, call: str, records: Iterable[Record | None]) -> None:
        """Note a read of these records; None stands for one that was not found."""
        if self._on:
            self._note(identity, call, {record.id for record in records if record is not None}, ())

    def hits(self, identity: Identity, hits: Iterable[Hit]) -> None:
        """Note a recall of these hits."""
        if self._on:
            found = list(hits)
            said = {f"{hit.thread_id}#{id}" for hit in found if hit.source == "evidence" for id in hit.message_ids}
            self._note(identity, "recall", {hit.record_id for hit in found if hit.record_id}, said)

    def _note(self, identity: Identity, call: str, records: Iterable[str], messages: Iterable[str]) -> None:
        detail = {"call": call, "records": sorted(records), "messages": sorted(messages)}
        with self._database.write(identity.tenant) as connection:
            audit.append(connection, identity, "read", detail, at=self._clock())
