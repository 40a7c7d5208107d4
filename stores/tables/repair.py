"""`everthread doctor --fix`: what is derived is derived again, what nothing leads to goes, each with a word about it.

The history is the truth here; nothing that was said or learnt is invented or changed. The audit log is never touched
(a chain that was broken and mended would prove nothing), only the index over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from everthread.errors import StoreError
from everthread.stores.contract import Finding
from everthread.stores.database import Connection, Database
from everthread.stores.record import Record
from everthread.stores.tables import audit
from everthread.stores.tables.doctor import LEFT_OVER, RELATIONS, TORN, drifted_fields, unreadable
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.reindexing import Reindexer
from everthread.stores.tables.rows import SAVE, Rows, Stored, columns_of, stored_records

__all__ = ["Repair"]

NEWEST = "SELECT body FROM revisions WHERE id = ? ORDER BY revision DESC"
OWNER = "SELECT tenant, author FROM records WHERE id = ?"
FILL_RELATIONS = f"""
INSERT INTO relations (id, kind, target)
SELECT DISTINCT id, kind, target FROM ({RELATIONS} WHERE records.tenant = :tenant)
"""


class Repair:
    """Answers `MemoryStore.repair`."""

    def __init__(self, database: Database, rows: Rows, indexer: Indexer, reindexer: Reindexer) -> None:
        self._database = database
        self._rows = rows
        self._indexer = indexer
        self._reindexer = reindexer

    def run(self) -> list[Finding]:
        """See `MemoryStore.repair`."""
        with self._database.write() as connection:
            done = [
                *self._remove_left_over(connection),
                *self._catch_up(connection),
                *self._name_damaged(connection),
                *self._rewrite_fields(connection),
                *self._relate(connection),
                *self._find_audited(connection),
            ]
        self._rows.forget()
        return [*done, *self._reindex(), *self._embed()]

    def _remove_left_over(self, connection: Connection) -> Iterator[Finding]:
        # twice: what an orphan leads to is one as well
        for table, nothing in [*LEFT_OVER.items(), *LEFT_OVER.items()]:
            connection.execute(f"DELETE FROM {table} WHERE {nothing}")
            if count := connection.changes():
                yield _done("orphans", f"removed {count} rows of {table} that nothing leads to")

    def _catch_up(self, connection: Connection) -> Iterator[Finding]:
        """A record stands at the newest revision of its history."""
        for id, revision in _torn(connection):
            record = _newest(connection, id)
            if record is not None and record.revision > revision:
                _put_back(connection, record)
                yield _done("history", f"record {id} is at its revision {record.revision} again")
        for id, _ in _torn(connection):
            yield _lost("history", f"revisions of {id} are lost")

    def _name_damaged(self, connection: Connection) -> Iterator[Finding]:
        """What a record said last is nowhere else. An older revision is not put in its place: it may be what was
        corrected, or hidden."""
        for id in unreadable(connection):
            yield _lost("fields", f"what {id} says is damaged")

    def _rewrite_fields(self, connection: Connection) -> Iterator[Finding]:
        drifted = set(drifted_fields(connection))
        for tenant, stored in [found for found in stored_records(connection, "true") if found[1].record.id in drifted]:
            connection.execute(SAVE, columns_of(tenant, stored))
        if drifted:
            yield _done("fields", f"{len(drifted)} records are filtered by what they say again")

    def _relate(self, connection: Connection) -> Iterator[Finding]:
        before = set(connection.execute("SELECT id, kind, target FROM relations"))
        connection.execute("DELETE FROM relations")
        for (tenant,) in connection.execute("SELECT DISTINCT tenant FROM records").fetchall():
            with connection.of(str(tenant)):
                connection.execute(FILL_RELATIONS, {"tenant": tenant})
        changed = before ^ set(connection.execute("SELECT id, kind, target FROM relations"))
        if changed:
            yield _done("relations", f"{len(changed)} relations are what the records say again")

    def _find_audited(self, connection: Connection) -> Iterator[Finding]:
        if audit.first_broken(connection) is not None:
            return
        if drifted := audit.index_drift(connection):
            audit.reindex(connection)
            yield _done("audit", f"{drifted} entries are found by the records they name again")

    def _reindex(self) -> Iterator[Finding]:
        missing, stray = self._reindexer.drift()
        if missing or stray:
            self._reindexer.rebuild({space for space, _ in (*missing, *stray)})
            yield _done("index", f"added {len(missing)} texts and removed {len(stray)}")

    def _embed(self) -> Iterator[Finding]:
        """What lacks vectors gets them; a job that had given up on it has nothing left to do."""
        if self._indexer.embedder_id is None:
            return
        try:
            embedded = self._reindexer.embed_rest()
        except StoreError as error:
            yield Finding(check="vectors", ok=False, detail=str(error), remedy="mend the embedder, then run it again")
            return
        if embedded:
            yield _done("vectors", f"embedded {embedded} texts by {self._indexer.embedder_id}")
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE kind = 'embed' AND status = 'failed'")
            if count := connection.changes():
                yield _done("jobs", f"removed {count} embed jobs that were given up: their work is done")


def _torn(connection: Connection) -> list[tuple[Any, ...]]:
    """(id, revision) of the records whose history is not whole."""
    return connection.execute(TORN).fetchall()


def _put_back(connection: Connection, record: Record) -> None:
    """Make this revision of a record the one that stands."""
    for tenant, author in connection.execute(OWNER, (record.id,)).fetchall():
        connection.execute(SAVE, columns_of(str(tenant), Stored(record, str(author))))


def _newest(connection: Connection, id: str) -> Record | None:
    """The newest revision that can be read."""
    for (body,) in connection.execute(NEWEST, (id,)).fetchall():
        try:
            return Record.model_validate_json(str(body))
        except ValidationError:
            continue
    return None


def _lost(check: str, what: str) -> Finding:
    return Finding(check=check, ok=False, detail=what, remedy="restore a backup")


def _done(check: str, what: str) -> Finding:
    return Finding(check=check, ok=True, detail=what)
