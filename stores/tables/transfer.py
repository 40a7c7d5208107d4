"""What moves memory in and out of one SQLite file: the rows of its tables, as `stores/transfer.py` says."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, Literal

from everthread.errors import UsageError
from everthread.stores.bound import private_root
from everthread.stores.database import Connection, Database, Taken
from everthread.stores.identity import Identity
from everthread.stores.tables import audit
from everthread.stores.tables.restoring import Restoring
from everthread.stores.transfer import COUNTERS, Mark, Outcome, Part, Row

__all__ = ["DERIVED", "IN_PART", "NOBODYS", "Dump", "Transfer"]

DERIVED = frozenset({"search", "search_versions", "embedders"})
"""Tables that are built anew from the others."""
PARENTS = ("threads", "records", "artifacts", "items")
"""Tables that others refer to; they come first."""
LOG = {"audit_records": None, "audit": "tenant = 'everthread', tenant, seq"}
"""Tables that grow by every act, and the order of their rows where it is not that of the key. They come last, and last
of all what is noted of copies themselves: so that one goes on where another was stopped."""
KEPT = {"jobs": "kind NOT IN ('embed', 'index')"}
"""What of a table is not derived, where that is not all of it."""
OWN = ("embedder", "unfinished_copy")
"""What a store keeps about itself and is not copied."""
COUNTED = ("messages", "outbox")
"""Tables whose numbers are given out once and for all: messages are ordered by them, events are read by them."""

RECORDS = """
SELECT {columns} FROM records WHERE tenant = :tenant AND iif(
    :owner IS NULL,
    author = :user OR (owner = 'user' AND owner_id = :user),
    owner = :owner AND owner_id = :owner_id
)
ORDER BY (SELECT recorded_at FROM revisions WHERE revisions.id = records.id AND revision = 1), id
"""
REVISIONS = "SELECT {columns} FROM revisions WHERE id = ? ORDER BY revision"
RECEIPTS_OF_SCOPE = """
SELECT {columns} FROM receipts WHERE tenant = :tenant AND user = :user AND id IN (
    SELECT receipt FROM revisions JOIN records USING (id)
    WHERE records.tenant = :tenant AND owner = :owner AND owner_id = :owner_id
)
ORDER BY id
"""
USES = """
SELECT {columns} FROM artifact_uses WHERE tenant = :tenant AND user = :user AND artifact_id = :id ORDER BY seq
"""
OF_USER = "tenant = :tenant AND user = :user"
IN_THREADS = f"thread_id IN (SELECT thread_id FROM threads WHERE {OF_USER})"
IN_PART = {
    "threads": f"{OF_USER} ORDER BY thread_id",
    "messages": f"{IN_THREADS} ORDER BY thread_id, seq",
    "records": "",
    "revisions": "",
    "receipts": f"{OF_USER} ORDER BY id",
    "tasks": f"{OF_USER} ORDER BY seq",
    "artifacts": f"{OF_USER} ORDER BY created_at, id",
    "artifact_uses": "",
    "inbox": f"{IN_THREADS} ORDER BY seq",
    "jobs": f"{OF_USER} AND {KEPT['jobs']} ORDER BY seq",
    "items": "substr(namespace, 1, length(:private)) = :private ORDER BY namespace, key",
    "consents": OF_USER,
}
"""The tables of one user's part, and which rows of them; records and their revisions have queries of their own."""
NOBODYS = frozenset({"meta", "relations", "audit", "audit_records", "outbox", "tombstones", "item_vectors", "gates"})
"""Tables that are in no part: they are the store's own, follow from what is in it, or are asked for by `audit`."""


class Dump:
    """One state of a file; see `transfer.Snapshot`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def dump(self, part: Part | None = None) -> Iterator[Row]:
        """See `transfer.Snapshot.dump`."""
        return self._whole() if part is None else self._part(part)

    def _whole(self) -> Iterator[Row]:
        for name, value in self._connection.all_kept():
            if name not in OWN:
                yield Row("meta", {"name": name, "value": value})
        for table, order in _tables(self._connection).items():
            columns = self._connection.columns(table)
            sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {KEPT.get(table, 'true')} ORDER BY {order}"
            for values in self._connection.execute(sql):
                yield Row(table, dict(zip(columns, values, strict=True)))
        for name, last in self._connection.last_numbers(COUNTED):
            yield Row(COUNTERS, {"name": name, "last": last})

    def _part(self, part: Part) -> Iterator[Row]:
        owner, owner_id = part.owner or (None, None)
        private = "".join(f"{label}." for label in private_root(part.tenant, part.user))
        values = {
            "tenant": part.tenant,
            "user": part.user,
            "owner": owner,
            "owner_id": owner_id,
            "private": private,
        }
        if part.owner is not None:
            yield from self._records(values)
            yield from self._select("receipts", RECEIPTS_OF_SCOPE, values)
            return
        for table, condition in IN_PART.items():
            if table == "records":
                yield from self._records(values)
            elif condition:
                for row in self._select(table, f"SELECT {{columns}} FROM {table} WHERE {condition}", values):
                    yield row
                    if table == "artifacts":
                        yield from self._select("artifact_uses", USES, values | {"id": row.values["id"]})

    def _records(self, values: Mapping[str, Any]) -> Iterator[Row]:
        for row in self._select("records", RECORDS, values):
            yield row
            yield from self._select("revisions", REVISIONS, (row.values["id"],))

    def _select(self, table: str, sql: str, values: Any) -> Iterator[Row]:
        columns = self._connection.columns(table)
        # a cursor of its own each: several are read at once
        for found in self._connection.execute(sql.format(columns=", ".join(columns)), values):
            yield Row(table, dict(zip(columns, found, strict=True)))


class Transfer:
    """See `transfer.Transfer`."""

    def __init__(self, database: Database, restoring: Restoring, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._restoring = restoring
        self._clock = clock

    def id(self) -> str:
        """See `transfer.Transfer.id`."""
        return sha256(b"everthread store " + self.key()).hexdigest()[:32]

    def key(self) -> bytes:
        """See `transfer.Transfer.key`."""
        with self._database.read() as connection:
            key: bytes | None = connection.kept(KEY)
        if key is not None:
            return key
        with self._database.write() as connection:
            key = connection.keep_first(KEY, secrets.token_bytes(32))  # another process may have been first
            return key

    @contextmanager
    def snapshot(self) -> Iterator[Dump]:
        """See `transfer.Transfer.snapshot`."""
        with self._database.snapshot() as connection:
            yield Dump(connection)

    def unfinished(self) -> Mark | None:
        """See `transfer.Transfer.unfinished`."""
        with self._database.read() as connection:
            return _mark(connection)

    def load(self, rows: Sequence[Row], mark: Mark) -> None:
        """See `transfer.Transfer.load`."""
        with self._database.write() as connection:
            for table, group in groupby(rows, key=lambda row: row.table):
                _insert(connection, table, [row.values for row in group])
            connection.keep(UNFINISHED, mark.model_dump_json())

    def clear(self) -> None:
        """See `transfer.Transfer.clear`."""
        with self._database.write() as connection:
            if _mark(connection) is None:
                raise UsageError("this store holds no unfinished copy; what it holds is erased with `erase`")
            for table in (*reversed(_tables(connection)), *DERIVED, "meta"):
                connection.execute(f"DELETE FROM {table}")

    def finish(self) -> None:
        """See `transfer.Transfer.finish`."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM meta WHERE name = ?", (UNFINISHED,))

    def restore(self, identity: Identity, entries: Sequence[Sequence[Row]], *, dry_run: bool = False) -> list[Outcome]:
        """See `transfer.Transfer.restore`."""
        return self._restoring.restore(identity, entries, dry_run=dry_run)

    def note(self, identity: Identity, action: Literal["export", "import", "copy"], detail: Mapping[str, Any]) -> None:
        """See `transfer.Transfer.note`."""
        with self._database.write(identity.tenant) as connection:
            audit.append(connection, identity, action, detail, at=self._clock())


KEY = "store_key"
UNFINISHED = "unfinished_copy"


def _mark(connection: Connection) -> Mark | None:
    found = connection.kept(UNFINISHED)
    return None if found is None else Mark.model_validate_json(found)


def _tables(connection: Connection) -> dict[str, str]:
    """What is not derived, each with the order of its rows: a table before those that refer to it, the log last. A
    table of a newer version is among them without being named here."""
    known = connection.tables()
    middle = sorted(known.keys() - DERIVED - {"meta", *PARENTS, *LOG})
    return {table: LOG.get(table) or known[table] for table in (*PARENTS, *middle, *LOG) if table in known}


def _insert(connection: Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows as they are; names come from another store, so they are looked for among our own first."""
    if table == COUNTERS:
        for row in rows:
            connection.go_on_after(str(row["name"]), int(row["last"]))
        return
    columns = ["name", "value"] if table == "meta" else connection.columns(table)
    if table not in ("meta", *_tables(connection)) or not set(rows[0]) <= set(columns):
        raise UsageError(f"table {table} of the source is not known here as it is there; upgrade everthread")
    names = [name for name in columns if name in rows[0]]
    try:
        connection.insert(table, names, [tuple(row[name] for name in names) for row in rows])
    except Taken as error:
        raise UsageError(f"the target holds other memory in {table}; copy into an empty store") from error
