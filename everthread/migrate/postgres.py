"""Memory that another system keeps in PostgreSQL: LangGraph's PostgresStore (langmem's too), and mem0's pgvector.

    with postgres_items("postgresql://ana@localhost/agents", "langgraph") as source:
        report = migrate(store, source.items, maps, layout="langgraph", identity_for=..., dry_run=True)

One read-only transaction sees the source as it is at its start, and takes rows from the server a few at a time, so that
a source of any size fits. A password in the URL is used to connect and is in no message, record or log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from everthread.errors import StoreError, UsageError
from everthread.migrate.items import Item, Layout, Skipped, json_object, mem0_item, stored_item
from everthread.stores.open import is_postgres

try:
    import psycopg
    from psycopg import errors, sql
    from psycopg.rows import dict_row

    from everthread.stores.postgres.address import FORM, parts_of
except ImportError as error:  # psycopg raises it too when libpq is missing
    raise UsageError("PostgreSQL needs psycopg; pip install 'everthread[postgres]'") from error

__all__ = ["PostgresSource", "postgres_items"]

_COLLECTION = "mem0"
"""The table in which mem0 keeps its memories when nothing else is configured."""
_ROWS = 200
"""Rows that come from the server at once: a value may be large."""
_WAIT = "10"
"""Seconds to wait for a server, when the URL does not say."""


class PostgresSource(NamedTuple):
    """What a database holds, while it is open."""

    total: int
    """How many items."""
    items: Iterator[Item | Skipped]
    """The items, by namespace and key (mem0's by id). They can be gone through once."""


@contextmanager
def postgres_items(url: str, layout: Layout, *, collection: str | None = None) -> Iterator[PostgresSource]:
    """The items of a PostgreSQL database, in a `with`: the table `store` of LangGraph's PostgresStore (also langmem's),
    or the table of mem0's pgvector, which is `collection` (`mem0` without one).

    What the URL leaves out comes from PGPASSWORD, `~/.pgpass` and the like, as everywhere with PostgreSQL. Nothing is
    written there. Raises UsageError when the URL is none, or the database has no such table; StoreError when the server
    cannot be reached, refuses, or fails on the way.
    """
    if collection is not None and layout != "mem0":
        raise UsageError(f"a collection is mem0's; --from {layout} reads the table 'store'")
    table = (collection or _COLLECTION) if layout == "mem0" else "store"
    with _connected(url) as connection, connection.cursor("everthread_import", row_factory=dict_row) as cursor:
        with _translated(connection, table):
            # times as ISO writes them, whatever the server and the role prefer
            connection.execute("SET LOCAL datestyle = 'ISO'")
            connection.execute("SET LOCAL timezone = 'UTC'")
            if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
                # it holds any bytes; asked for UTF-8, the server would stop at the first that are none
                connection.execute("SET LOCAL client_encoding = 'SQL_ASCII'")
            columns = _columns(connection, table, layout)
            counted = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            cursor.itersize = _ROWS
            cursor.execute(_query(table, columns))
        assert counted is not None  # a count is one row
        yield PostgresSource(counted[0], _items(connection, table, cursor))


def _items(connection: psycopg.Connection[Any], table: str, rows: Any) -> Iterator[Item | Skipped]:
    with _translated(connection, table):
        for row in rows:
            yield _memory(row) if "payload" in row else stored_item(row)


def _memory(row: dict[str, Any]) -> Item | Skipped:
    """A row of mem0's pgvector as mem0 exports it: in the payload the text is `data`."""
    payload = json_object(row["payload"])
    if payload is None:
        return Skipped("its value is not a JSON object")
    return mem0_item({**payload, "id": row["id"], "memory": payload.get("data")})


def _columns(connection: psycopg.Connection[Any], table: str, layout: Layout) -> list[str]:
    """What is read of a table: what orders it, then the rest. Tables of LangGraph's first versions have no expiry."""
    described = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(table))).description
    there = {column.name for column in described or ()}
    needed = ["id", "payload"] if layout == "mem0" else ["prefix", "key", "value"]
    if not there.issuperset(needed):
        raise UsageError(f"the table {table!r} is not as {layout} makes it; choose another --from")
    times = [] if layout == "mem0" else ["created_at", "updated_at", "expires_at"]
    return needed + [name for name in times if name in there]


def _query(table: str, columns: list[str]) -> sql.Composed:
    """Everything as text: a value is parsed here, where one that cannot be is one item's trouble."""
    named = [sql.Identifier(table, name) for name in columns]
    return sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(
            sql.SQL("{}::text AS {}").format(each, sql.Identifier(name))
            for each, name in zip(named, columns, strict=True)
        ),
        sql.Identifier(table),
        sql.SQL(", ").join(named[:1] if "payload" in columns else named[:2]),
    )


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose transactions are read only."""
    parts = _parsed(url)
    wishes = {"connect_timeout": _WAIT, **parts, "client_encoding": "utf8", "application_name": "everthread import"}
    try:
        # no prepared statements: a pooler between us and the server may lose them
        connection = psycopg.connect(**wishes, prepare_threshold=None)
    except psycopg.Error as error:
        said = _one_line(error).replace(parts.get("password") or "\n", "***")
        raise StoreError(
            f"PostgreSQL cannot be read ({said}); check host, port, database, user and password"
        ) from error
    with connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.adapters.register_loader("text", _Forgiving)
        yield connection


def _parsed(url: str) -> dict[str, Any]:
    """The parts of a URL. No complaint quotes it: where it is torn, the password may be anywhere in it."""
    if not is_postgres(url):
        raise UsageError(f"only PostgreSQL is read by URL; write {FORM}")
    return parts_of(url)


class _Forgiving(psycopg.adapt.Loader):
    """Text, with what is torn in it replaced."""

    def load(self, data: Any) -> str:
        return bytes(data).decode("utf-8", "replace")


@contextmanager
def _translated(connection: psycopg.Connection[Any], table: str) -> Iterator[None]:
    """The driver's errors as ours."""
    role = connection.info.user
    try:
        yield
    except errors.UndefinedTable as error:
        raise UsageError(
            f"the database has no table {table!r}; is it another database, or a schema to be named by "
            "?options=-csearch_path%3DSCHEMA"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role {role!r} may not read the table {table!r}; GRANT SELECT on it to that role"
        ) from error
    except psycopg.Error as error:
        raise StoreError(
            f"PostgreSQL failed ({_one_line(error)}); run it again: what is here already is not added twice"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
