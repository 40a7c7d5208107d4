"""The server that threads are on: its address, its connections, its tables, and what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver as StockSaver
from psycopg import errors
from psycopg.pq import ConnStatus
from psycopg.sql import SQL, Identifier
from psycopg_pool import PoolClosed, PoolTimeout

from everthread.errors import StoreError, UsageError
from everthread.stores.checkpoints.postgres.keys import number_of
from everthread.stores.postgres.address import schema_named

__all__ = [
    "NO_SAMPLES",
    "TABLES",
    "address_of",
    "connect",
    "end_when_idle",
    "in_schema",
    "is_alive",
    "schema_of",
    "set_up",
    "translated",
]

TABLES = "checkpoints, checkpoint_blobs, checkpoint_writes, checkpoint_writers"

Connection = psycopg.Connection[Any]

_WAIT = "10"
"""Seconds to wait for a server, when the URL does not say."""
_PATIENCE = 60.0
"""Seconds to wait for another process that makes the tables."""

# A session that dies gives its locks back at once; one whose machine is gone, when the server finds that out.
_SESSION = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
}
_CONFIGURE = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s"

NO_SAMPLES = """
DO $$ DECLARE place text; word text; BEGIN
    FOR place, word IN
        SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attrelid IN (
            to_regclass('checkpoints'), to_regclass('checkpoint_blobs'), to_regclass('checkpoint_writes')
        ) AND attname IN ('checkpoint', 'metadata', 'blob') AND attstattarget IS DISTINCT FROM 0
            AND pg_has_role(relowner, 'USAGE')
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', place, word);
    END LOOP;
END $$
"""
"""The server keeps no samples of values for its planner: an erasure would not reach them."""

# The last is the one by which it is known that all is there.
_SCHEMA = (
    NO_SAMPLES,
    """
CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_run_id_idx
ON checkpoints ((metadata ->> 'run_id')) WHERE metadata ? 'run_id'
""",
    """
CREATE TABLE IF NOT EXISTS checkpoint_writers (
    thread_id     TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    run           TEXT NOT NULL,     -- who wrote last
    writes        BIGINT NOT NULL,   -- how often anyone has written
    PRIMARY KEY (thread_id, checkpoint_ns)
)
""",
)

# A role that may not create needs not to: the tables may be another's.
_MEANINGS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (PoolTimeout, "has no connection free; raise pool_size, look for runs that hang, or see whether it is up"),
    (errors.InvalidPassword, "refuses user or password"),
    (errors.InvalidAuthorizationSpecification, "refuses the user"),
    (errors.InvalidCatalogName, "is not there; create the database, or correct its name"),
    (errors.TooManyConnections, "has too many connections; lower pool_size, or raise the server's max_connections"),
    (errors.ReadOnlySqlTransaction, "is read-only; connect to the primary server"),
    (errors.DiskFull, "cannot grow: the server's disk is full; nothing was written"),
    (errors.OutOfMemory, "is out of memory; nothing was written"),
    (errors.QueryCanceled, "took longer than its statement_timeout; nothing was written: try again, or raise it"),
    (errors.LockNotAvailable, "kept a lock for longer than its lock_timeout; nothing was written: try again"),
    (errors.TransactionRollback, "let another transaction go first; nothing was written: try again"),
    (errors.UndefinedTable, "has lost a table; open the checkpointer again, or restore a backup"),
)


def in_schema(parts: Mapping[str, Any], store: str | None) -> dict[str, Any]:
    """The parts of a URL with the schema of the threads beside the schema of a store, if one is named."""
    if not store:
        return dict(parts)
    path = Identifier(_beside(store)).as_string().replace("\\", "\\\\").replace(" ", "\\ ")
    return {**parts, "options": f"{parts.get('options') or ''} -csearch_path={path}".strip()}


def _beside(store: str) -> str:
    """The schema of the threads: no table of theirs is in the store's own."""
    return schema_named(f"{schema_named(store)}_threads")


def address_of(parts: Mapping[str, Any]) -> str:
    """How errors call a database: without password and options."""
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def connect(parts: Mapping[str, Any]) -> Connection:
    """A connection of its own, in autocommit mode, that finds out soon when the other side is gone."""
    wishes = {
        "connect_timeout": _WAIT,
        "application_name": "everthread threads",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "25000",
        **parts,
        "client_encoding": "utf8",
    }
    connection: Connection = psycopg.connect(**wishes, autocommit=True)
    try:
        for name, value in _SESSION.items():
            connection.execute(_CONFIGURE, (value, name))
    except BaseException:
        connection.close()
        raise
    return connection


def is_alive(connection: Connection) -> bool:
    """Whether a connection that nobody uses is open on both sides, as far as this side has heard. Asks no one."""
    if connection.closed:
        return False
    try:
        # Twice: a server that ends a session says so first, and then closes.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return connection.pgconn.status == ConnStatus.OK


def end_when_idle(connection: Connection, seconds: float) -> None:
    """Let the server end this session, and give back its locks, when nothing came from it for so long; never, with 0.
    A server before version 14 cannot."""
    connection.execute(_CONFIGURE, (str(int(seconds * 1_000)), "idle_session_timeout"))


def schema_of(connection: Connection, store: str | None = None) -> str:
    """The schema that the tables are in, or will be; beside that of a store it is made. UsageError where there is none,
    or text cannot be kept whole."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UsageError(f"the database is encoded in {encoding}; create one with ENCODING 'UTF8' TEMPLATE template0")
    if store and connection.execute("SELECT current_schema()").fetchone() == (None,):
        make = SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(_beside(store)))
        with suppress(errors.UniqueViolation):  # another process has just made it
            connection.execute(make)
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise UsageError("the search_path names no schema that exists; create it, or correct the URL's options")
    return str(row[0])


def set_up(connection: Connection) -> None:
    """Make the tables, or give those of an older version what they lack. Of many processes one does it."""
    if _is_ready(connection):
        return
    lock, until = number_of("set up", schema_of(connection)), time.monotonic() + _PATIENCE
    # Tried, not waited for: CREATE INDEX CONCURRENTLY waits for every statement that runs, such as a wait.
    while not _one(connection, "SELECT pg_try_advisory_lock(%s)", lock):
        if time.monotonic() > until:
            raise StoreError("another process has been making the tables for a minute; try again")
        time.sleep(0.05)
    try:
        if not _is_ready(connection):
            StockSaver(connection).setup()
            for statement in _SCHEMA:
                connection.execute(statement)
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (lock,))


def _is_ready(connection: Connection) -> bool:
    if not _one(connection, "SELECT to_regclass(%s) IS NOT NULL", "checkpoint_writers"):
        return False
    newest = connection.execute("SELECT max(v) FROM checkpoint_migrations").fetchone()
    return newest is not None and newest[0] is not None and newest[0] >= len(StockSaver.MIGRATIONS) - 1


def _one(connection: Connection, statement: str, value: Any) -> Any:
    row = connection.execute(statement, (value,)).fetchone()
    return row[0] if row else None


@contextmanager
def translated(place: str, password: str = "") -> Iterator[None]:
    """Turn the driver's errors into ours, once, at the edge; the driver's error stays as the cause."""
    try:
        yield
    except PoolClosed as error:
        raise UsageError(f"{place} is closed; open the checkpointer again") from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{place}: {_said(error, password)}; open it once as a role that may create tables in the schema, then "
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLES} and SELECT ON checkpoint_migrations to this one"
        ) from error
    except psycopg.DataError as error:
        raise UsageError(f"{place}: {_said(error, password)}; check ids and metadata") from error
    except psycopg.Error as error:
        for kind, meaning in _MEANINGS:
            if isinstance(error, kind):
                raise StoreError(f"{place} {meaning}") from error
        raise StoreError(
            f"{place} failed ({_said(error, password)}); check host, port, database, user and password, then try again"
        ) from error


def _said(error: psycopg.Error, password: str) -> str:
    said = " ".join((error.diag.message_primary or str(error)).split())
    return said.replace(password, "***") if password else said
