"""A connection to PostgreSQL, as the tables ask for it (`stores/database.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, count
from typing import Any
from zlib import crc32

import psycopg

from everthread.errors import UsageError
from everthread.stores.database import Kept, Rows, Taken
from everthread.stores.postgres.sending import send_all
from everthread.stores.postgres.statements import BELONGING, THIS_TENANT, of_tenant, translate

__all__ = ["IN_LANE", "MIGRATING", "OURS", "WRITING", "Connection", "Cursor", "lock"]

MIGRATING, WRITING, IN_LANE, TRIED = range(0x65767400, 0x65767404)
"""Kinds of advisory locks. A schema is migrated once. Who writes in a lane holds WRITING with others, who writes alone
holds it alone; one writes in a lane. TRIED is never waited for."""
OURS = "migrations"
"""The table that says which schema this is; no part of the memory."""
WIDE = ("search_near", "search_terms", "search_regions", "search_wide")
"""What large spaces have besides, derived from the search table; see `nearest.sql`."""
TABLES = """
SELECT pg_class.relname, string_agg(quote_ident(attname), ', ' ORDER BY array_position(conkey, attnum))
FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid AND contype = 'p'
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum = ANY (conkey)
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
GROUP BY pg_class.relname
"""
COLUMNS = """
SELECT attname, attidentity = 'd' FROM pg_attribute
WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped
    AND attgenerated = '' AND attidentity <> 'a'
ORDER BY attnum
"""
SEQUENCE = "pg_get_serial_sequence(quote_ident(%s), %s)"
NUMBERS = """
SELECT relname, pg_sequence_last_value(pg_get_serial_sequence(quote_ident(relname), 'seq')::regclass)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'seq' AND attidentity = 'd'
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND NOT relispartition
"""
"""By table, which number it gave out last; NULL for none."""
KEEP = "INSERT INTO meta (name, value, number, bytes) VALUES (?, ?, ?, ?)"
PARENTS = {
    "revisions": ("id", "SELECT id, tenant FROM records WHERE id = ANY(%s)"),
    "relations": ("id", "SELECT id, tenant FROM records WHERE id = ANY(%s)"),
    "messages": ("thread_id", "SELECT thread_id, tenant FROM threads WHERE thread_id = ANY(%s)"),
    "inbox": ("thread_id", "SELECT thread_id, tenant FROM threads WHERE thread_id = ANY(%s)"),
}
"""By which column rows that are brought from elsewhere belong to others, and whose those are."""
KNOWN_BY = ("tenant", "user", "id", "thread_id", "message_id", "namespace", "key", "name", "revision", "seq")
"""Columns that tell a person which row is meant."""
FETCH = 500
"""Rows that are fetched at once of what is read at length."""


def lock(kind: int, *names: str) -> str:
    """The two numbers of an advisory lock, as SQL. Names that share a number wait for each other, and no more."""
    number = crc32("/".join(names).encode("utf-8", "surrogatepass"))
    return f"{kind}, {number - 2**31}"


class Cursor:
    """The rows of one statement."""

    def __init__(
        self, cursor: psycopg.Cursor[Any] | psycopg.ServerCursor[Any], settle: Callable[[], None] = lambda: None
    ) -> None:
        self._cursor = cursor
        self._settle = settle

    @cached_property
    def _rows(self) -> Iterator[Any]:
        self._settle()
        if self._cursor.pgresult is None or not self._cursor.pgresult.nfields:
            return iter(())
        # many at a time: the driver takes as long for one as for ten
        return chain.from_iterable(iter(lambda: self._cursor.fetchmany(FETCH), []))

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def getdescription(self) -> Any:
        self._settle()
        return tuple((column.name,) for column in self._cursor.description or ())


class Connection:
    """See `stores.database.Connection`. `streams`: rows of a statement without values are fetched as they are read, not
    all at once. `tenant`: whose rows statements are about; None for those of all.

    With a `pipeline`, statements are sent with the next one that is asked for its rows, in one trip to the server; what
    one of them fails with is raised there, or at the end of the transaction.
    """

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        *,
        schema: str = "",
        streams: bool = False,
        tenant: str | None = None,
        pipeline: psycopg.Pipeline | None = None,
    ) -> None:
        self.raw = raw
        self.tenant = tenant
        self._schema = schema
        self._streams = streams
        self._pipeline = pipeline
        self._sent: list[psycopg.Cursor[Any]] = []
        self._streamed = count()
        self._reading: list[psycopg.ServerCursor[Any]] = []
        # sequences are of no state: what they had given out when the snapshot began is what belongs to it
        self._numbers = dict(raw.execute(NUMBERS).fetchall()) if streams else None
        self._changed = 0
        self._total = 0

    def execute(self, sql: str, values: Any = None, /) -> Cursor:
        told, named = self.translated(sql, values)
        if self._streams and values is None:
            reading = self.raw.cursor(f"reading_{len(self._reading)}")
            reading.itersize = FETCH
            self._reading.append(reading)
            return Cursor(reading.execute(told.encode()))
        cursor = self.raw.execute(told.encode(), named)
        if self._pipeline is not None:
            send_all(self.raw)
        self._sent.append(cursor)
        return Cursor(cursor, self._settle)

    def streamed(self, sql: str, values: Mapping[str, Any], /) -> Iterator[Any]:
        told, named = self.translated(sql, values)
        # not by a cursor of the driver's, which knows no pipeline
        name = f"streamed_{next(self._streamed)}"
        self.raw.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {told}".encode(), named)
        while rows := self.raw.execute(f"FETCH {FETCH} FROM {name}".encode()).fetchall():
            yield from rows
        self.raw.execute(f"CLOSE {name}".encode())

    def unlocked(self, sql: str, values: Sequence[Any], /) -> Rows:
        return self.execute(f"{sql} FOR UPDATE SKIP LOCKED", values).fetchall()

    def try_lock(self, name: str) -> bool:
        tried = self.raw.execute(f"SELECT pg_try_advisory_xact_lock({lock(TRIED, self._schema, name)})".encode())
        ((taken,),) = tried.fetchall()
        return bool(taken)

    def translated(self, sql: str, values: Any = None) -> tuple[str, Any]:
        """A statement and its values as the driver takes them."""
        told = translate(sql if self.tenant is None else of_tenant(sql))
        return told, self._values(told, values)

    def _values(self, told: str, values: Any) -> Any:
        """Values as psycopg takes them: a sequence for `%s`, a mapping for names; `?1` is read by the name `p1`."""
        if "%(" not in told:
            return () if values is None or isinstance(values, Mapping) else tuple(values)
        named = values if isinstance(values, Mapping) else {f"p{n}": value for n, value in enumerate(values or (), 1)}
        return named if self.tenant is None else {**named, THIS_TENANT: self.tenant}

    @contextmanager
    def of(self, tenant: str | None) -> Iterator[None]:
        before, self.tenant = self.tenant, tenant
        try:
            yield
        finally:
            self.tenant = before

    def close(self) -> None:
        """End what is being read."""
        for reading in self._reading:
            reading.close()

    def executemany(self, sql: str, values: Iterable[Any], /) -> None:
        told, _ = self.translated(sql)
        listed = [self._values(told, each) for each in values]
        if listed:
            cursor = self.raw.cursor()
            cursor.executemany(told.encode(), listed)
            if self._pipeline is not None:
                send_all(self.raw)
            self._sent.append(cursor)

    def _settle(self) -> None:
        """Wait for what was sent, and count what it has changed."""
        if self._sent and self._pipeline is not None:
            self._pipeline.sync()
        for cursor in self._sent:
            self._changed = max(cursor.rowcount, 0)
            self._total += self._changed
        self._sent.clear()

    def changes(self) -> int:
        self._settle()
        return self._changed

    def total_changes(self) -> int:
        self._settle()
        return self._total

    def kept(self, name: str) -> Any:
        row = self.execute("SELECT value, number, bytes FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else _of_three(row)

    def keep(self, name: str, value: Kept) -> None:
        self.execute(
            f"{KEEP} ON CONFLICT (name) DO UPDATE SET "
            "value = excluded.value, number = excluded.number, bytes = excluded.bytes",
            (name, *_as_three(value)),
        )

    def keep_first(self, name: str, value: Kept) -> Any:
        # one who keeps something under this name at the same time is waited for, and seen afterwards
        self.execute(f"{KEEP} ON CONFLICT DO NOTHING", (name, *_as_three(value)))
        return self.kept(name)

    def all_kept(self) -> list[tuple[str, Kept]]:
        found = self.execute("SELECT name, value, number, bytes FROM meta ORDER BY name").fetchall()
        return [(name, _of_three(row)) for name, *row in found]

    def tables(self) -> dict[str, str]:
        return {table: key for table, key in self.raw.execute(TABLES) if table not in (OURS, *WIDE)}

    def columns(self, table: str) -> list[str]:
        found = [name for name, _ in self.raw.execute(COLUMNS, (table,))]
        return [name for name in found if name != "tenant"] if table in BELONGING else found

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        numbered = [name for name, is_numbered in self.raw.execute(COLUMNS, (table,)) if is_numbered]
        try:
            if table == "meta":
                rows = [(name, *_as_three(value)) for name, value in rows]
                columns = ("name", "value", "number", "bytes")
            elif table in PARENTS:
                columns, rows = self._with_tenants(table, columns, rows)
            marks = ", ".join("?" * len(columns))
            self.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
            self._settle()
        except psycopg.errors.UniqueViolation as error:
            raise Taken(table) from error
        except psycopg.DataError as error:
            told = _with_nul(table, columns, rows)
            if told is None:
                raise
            raise UsageError(told) from error
        for name in set(numbered) & set(columns):
            highest = max(row[columns.index(name)] for row in rows)
            self.go_on_after(table, max(highest, self._last(table, name) or 0), column=name)

    def _with_tenants(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The rows of a table, each with the tenant of what it belongs to."""
        name, whose = PARENTS[table]
        at = columns.index(name)
        tenants = dict(self.raw.execute(whose.encode(), ([row[at] for row in rows],)).fetchall())
        return ["tenant", *columns], [(tenants.get(row[at], ""), *row) for row in rows]

    def last_numbers(self, tables: Sequence[str]) -> list[tuple[str, int]]:
        numbers = self._numbers if self._numbers is not None else dict(self.raw.execute(NUMBERS).fetchall())
        return [(table, numbers[table]) for table in sorted(tables) if numbers.get(table) is not None]

    def _last(self, table: str, column: str) -> int | None:
        row = self.raw.execute(f"SELECT pg_sequence_last_value({SEQUENCE}::regclass)".encode(), (table, column))
        ((last,),) = row.fetchall()
        return None if last is None else int(last)

    def go_on_after(self, table: str, number: int, *, column: str = "seq") -> None:
        self.raw.execute(f"SELECT setval({SEQUENCE}, %s)".encode(), (table, column, number))


def _as_three(value: Kept) -> tuple[str | None, int | None, bytes | None]:
    return (
        value if isinstance(value, str) else None,
        value if isinstance(value, int) else None,
        value if isinstance(value, bytes) else None,
    )


def _with_nul(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str | None:
    """Which of the rows has a NUL character, and the remedy; None when none has."""
    for values in (dict(zip(columns, row, strict=True)) for row in rows):
        for name, value in values.items():
            if isinstance(value, str) and "\0" in value:
                known = ", ".join(f"{each} {values[each]!r}" for each in KNOWN_BY if values.get(each) is not None)
                return (
                    f"the row of {table} with {known} has a NUL character in {name}, which PostgreSQL cannot hold; "
                    "erase it where it comes from or take the character out there, and copy again"
                )
    return None


def _of_three(row: Sequence[Any]) -> Any:
    return next(value for value in row if value is not None)
