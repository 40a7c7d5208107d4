"""One schema of a PostgreSQL database: a pool of connections, one writer at a time, numbered migrations."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from everthread.errors import StoreError, UsageError
from everthread.stores.database import Connection as AnyConnection
from everthread.stores.database import Lane, one
from everthread.stores.origin import Origin
from everthread.stores.postgres.address import SCHEMA, schema_named, where, without_ours
from everthread.stores.postgres.connection import IN_LANE, MIGRATING, OURS, WIDE, WRITING, Connection, lock
from everthread.stores.postgres.samples import forget_samples
from everthread.stores.postgres.vacuum import vacuum

__all__ = ["Database", "is_there", "migrations", "translated"]

PARTITIONS = 16
"""Into how many parts a table is divided by its rows' tenant, when a schema is made."""
MOST_PARTITIONS = 1_000
OLDEST = 160000
"""PostgreSQL 16: the first whose `IS JSON` the migrations use."""
PATIENT = """
SELECT set_config('idle_in_transaction_session_timeout', '60s', false)
WHERE current_setting('idle_in_transaction_session_timeout') = '0'
"""
"""A client that is stopped or cut off in the middle of a transaction holds up its tenant for no longer than this."""
WITH_WORDS = """
SELECT relname FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
CROSS JOIN regexp_match(pg_get_expr(relpartbound, pg_class.oid), 'modulus (\\d+), remainder (\\d+)') AS part
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r' AND relname <> ALL (%(without)s)
    AND (
        NOT relispartition OR %(tenant)s::text IS NULL
        OR satisfies_hash_partition(inhparent, part[1]::int, part[2]::int, %(tenant)s::text)
    )
ORDER BY relname
"""
"""Whole tables, and of the others the partitions that a tenant's rows are in; all of them for no tenant."""
WITHOUT_WORDS = (OURS, "meta", "embedders", "tombstones")
"""Whole tables in which nobody's words have ever been."""


class Database:
    """A store's schema. `read()` gives a connection of this thread, `write()` a transaction; a tenant has one at a
    time, among all processes, as a SQLite file has.

    The schema is made when it is not there, and migrated when it is older. Raises StoreError when the server cannot be
    reached or refuses, and UsageError when the schema is something else's, or of a newer version.
    """

    apart = True

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        synchronous: str = "FULL",
        pool_size: int = 10,
        timeout: float = 30.0,
        partitions: int | None = None,
    ) -> None:
        url, named = without_ours(url)
        self.schema = schema_named(schema or named.get("schema") or SCHEMA)
        self._url = url
        self._synchronous = synchronous == "FULL"
        self._partitions = _partitions(partitions or named.get("partitions") or PARTITIONS)
        self._local = threading.local()
        self._snapshots: list[psycopg.Connection[Any]] = []
        self._closed = False
        self._origin = Origin()
        self._has_wide = False
        self.pgvector: str | None = None
        """The schema of pgvector; None where it is missing."""
        self.path = where(url, self.schema)
        with translated(self.path):
            with self._connected() as connection:
                self._migrate(connection)
                self.pgvector = _pgvector(connection)
            self._pool = ConnectionPool(
                url,
                kwargs={"autocommit": True},
                configure=self._pooled,
                min_size=0,
                max_size=pool_size,
                timeout=timeout,
                reconnect_timeout=timeout,  # a server that is back is found by the next who asks
                open=True,
                name=f"everthread {self.schema}",
            )

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("SET client_encoding = 'UTF8'")
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self.schema)))
        if not self._synchronous:
            connection.execute("SET synchronous_commit = off")

    def _pooled(self, connection: psycopg.Connection[Any]) -> None:
        self._configure(connection)
        connection.execute(PATIENT)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that is not the pool's."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            self._configure(connection)
            yield connection

    # -------------------------------------------------------------------------------------------------------- schema

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Run the numbered scripts that this schema has not seen. Several processes may start at once."""
        if connection.info.server_version < OLDEST:
            raise StoreError(f"PostgreSQL {connection.info.server_version // 10000} is too old; everthread needs 16")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.path}: its encoding is {encoding}; make one with ENCODING 'UTF8'")
        newest = max(migrations())
        if self._version(connection) == newest:
            return
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({lock(MIGRATING, self.schema)})".encode())
            version = self._version(connection)
            if version > newest:
                raise UsageError(
                    f"{self.path} was written by a newer everthread (schema {version}); upgrade everthread"
                )
            if version == 0:
                self._make(connection)
            connection.execute("SELECT set_config('everthread.partitions', %s, true)", (str(self._partitions),))
            for number, script in migrations().items():
                if number > version:
                    connection.execute(script.encode())
                    connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        """The newest migration that was run; 0 for none."""
        ((there,),) = connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchall()
        if not there:
            return 0
        ((version,),) = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchall()
        return int(version)

    def _make(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
        ((others,),) = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = quote_ident(current_schema())::regnamespace"
        ).fetchall()
        if others:
            raise UsageError(f"{self.path} holds tables of another program; name a schema of its own: ?schema=memory")
        connection.execute(
            f"CREATE TABLE {OURS} (number int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())".encode()
        )

    def about(self, connection: AnyConnection) -> str:
        """The versions of the schema and of PostgreSQL."""
        schema, server = one(connection, "SELECT max(number) FROM migrations"), one(connection, "SHOW server_version")
        exact = "no pgvector of 0.8 or newer (CREATE EXTENSION vector): every scope is searched exactly"
        found = exact if self.pgvector is None else f"pgvector {one(connection, PGVECTOR)}"
        return f"schema {schema}, PostgreSQL {server}, {found}"

    # -------------------------------------------------------------------------------------------- tables made later

    def has_wide(self, connection: AnyConnection) -> bool:
        """Whether there are tables for large spaces. Once they are there, they stay."""
        if not self._has_wide:
            self._has_wide = bool(one(connection, "SELECT to_regclass('search_wide') IS NOT NULL"))
        return self._has_wide

    def run(self, connection: AnyConnection, script: str) -> None:
        """Run statements that are PostgreSQL's own."""
        assert isinstance(connection, Connection)
        # as one command: a pipeline takes no more at a time
        connection.raw.execute(f"DO $run$ BEGIN EXECUTE $script${script}$script$; END $run$".encode())

    def partitions(self, connection: AnyConnection) -> int:
        """Into how many parts tables are divided here."""
        sql = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('search')"
        return int(one(connection, sql))

    def damage(self, connection: AnyConnection) -> list[str]:
        """Nothing: whether its files are sound is the server's to check (`data_checksums`, `pg_amcheck`)."""
        return []

    # ----------------------------------------------------------------------------------------------- reads and writes

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:
        """A connection to read with; everything read inside one `with` is one consistent state."""
        with translated(self.path):
            using = getattr(self._local, "connection", None)
            if using is not None:
                with using.of(tenant):
                    yield using
                return
            with self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", tenant) as connection:
                yield connection

    @contextmanager
    def write(self, lane: str | None = None, *, of: str | None = None) -> Iterator[Connection]:
        """A transaction: committed when the block ends, rolled back whole on any exception. Nested calls join it.
        Writers of different lanes write beside each other; one without a lane writes alone."""
        tenant = of if lane is None or isinstance(lane, Lane) else lane
        with translated(self.path):
            using = getattr(self._local, "connection", None)
            if using is not None and self._local.writes:
                with using.of(tenant):
                    yield using
                return
            whole = lock(WRITING, self.schema)
            locks = f"pg_advisory_xact_lock({whole})"
            if lane is not None:
                locks = (
                    f"pg_advisory_xact_lock_shared({whole}), pg_advisory_xact_lock({lock(IN_LANE, self.schema, lane)})"
                )
            # What follows the locks sees what the writer before has committed.
            with self._begun(
                f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT {locks}", tenant, writes=True
            ) as connection:
                yield connection

    @contextmanager
    def beside(self) -> Iterator[Connection]:
        """A transaction that holds no lock but those of the rows it changes. Nested calls join the one that writes."""
        with translated(self.path):
            using = getattr(self._local, "connection", None)
            if using is not None and self._local.writes:
                with using.of(None):
                    yield using
                return
            with self._begun("BEGIN ISOLATION LEVEL READ COMMITTED", None, writes=True) as connection:
                yield connection

    @contextmanager
    def _begun(self, begin: str, tenant: str | None, *, writes: bool = False) -> Iterator[Connection]:
        """A connection of the pool with a transaction begun, for this thread; committed at the end if it `writes`."""
        self._check_open()
        raw, begun = self._taken(begin, waits=writes)
        before = getattr(self._local, "connection", None), getattr(self._local, "writes", False)
        ending = False
        try:
            with raw.pipeline() as pipeline:
                if not begun:
                    raw.execute(begin.encode())
                connection = Connection(raw, schema=self.schema, tenant=tenant, pipeline=pipeline)
                self._local.connection, self._local.writes = connection, writes
                yield connection
                ending = writes
                ended = raw.execute("COMMIT" if writes else "ROLLBACK")
            if writes and ended.statusmessage != "COMMIT":
                raise psycopg.OperationalError("the transaction was rolled back")
        except BaseException as error:
            _roll_back(raw)
            if ending and isinstance(error, psycopg.OperationalError) and raw.closed:
                raise StoreError(
                    f"{self.path}: the connection was lost at the end of a write, and whether it was written is not "
                    "known; try again with the same key"
                ) from error
            raise
        finally:
            self._local.connection, self._local.writes = before
            self._pool.putconn(raw)

    def _taken(self, begin: str, *, waits: bool) -> tuple[psycopg.Connection[Any], bool]:
        """A connection, and whether a transaction is begun: where nobody `waits` for that, it may begin in one trip
        with what is asked. One that had broken in the pool is replaced: nothing was done yet."""
        while True:
            raw = self._free()
            if not waits and _is_quiet(raw):
                return raw, False
            try:
                raw.execute(begin.encode())
                return raw, True
            except BaseException:
                broken = raw.broken
                self._pool.putconn(raw)
                if not broken:
                    raise
                self._pool.check()  # the others may have broken with it

    def _free(self) -> psycopg.Connection[Any]:
        """A connection of the pool. Where it has none, the server says why, unless all are in use."""
        try:
            return self._pool.getconn()
        except PoolTimeout:
            with self._connected():
                raise

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection of its own to one consistent state, to be read at length, whatever is read and written
        meanwhile."""
        self._check_open()
        with translated(self.path), self._connected() as raw:
            self._snapshots.append(raw)
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection = Connection(raw, streams=True)
            try:
                yield connection
            except psycopg.Error as error:
                if self._closed:
                    raise UsageError(
                        f"{self.path} was closed while it was being read; read it to its end first"
                    ) from error
                raise
            finally:
                connection.close()
                self._snapshots = [each for each in self._snapshots if each is not raw]

    def scrub(self, tenant: str | None = None) -> None:
        """Remove the dead versions of rows that were deleted or changed, from the partitions of one tenant or of all
        and from tables that are whole, and the planner's samples of words. StoreError when a session that began before
        still sees them. The server's log and copies, and the unused space of its pages, are not ours to see to."""
        with translated(self.path), self._connected() as raw:
            using = Connection(raw)
            forget_samples(raw, [*using.tables(), *(WIDE if self.has_wide(using) else ())])
            found = raw.execute(WITH_WORDS, {"tenant": tenant, "without": list(WITHOUT_WORDS)})
            vacuum(raw, [table for (table,) in found])

    def files(self) -> list[Path]:
        """None: they are the server's."""
        return []

    def backups(self) -> list[Path]:
        """None: copies are the server's (`pg_dump`, base backups)."""
        return []

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self.path} is closed; open the store again")
        self._origin.check(self.path)

    def close(self) -> None:
        """Close every connection. Closing twice is allowed; in a fork, the connections are left to who opened them."""
        if not self._closed:
            self._closed = True
            if not self._origin.is_here:
                return
            for snapshot in self._snapshots:
                snapshot.close()
            self._pool.close()


def _is_quiet(raw: psycopg.Connection[Any]) -> bool:
    """Whether the server has said nothing on a connection since it was used: no end of it, for one. False where the
    system cannot tell."""
    if raw.closed or not hasattr(select, "poll"):
        return False
    waiting = select.poll()
    waiting.register(raw.fileno(), select.POLLIN)
    return not waiting.poll(0)


def _roll_back(raw: psycopg.Connection[Any]) -> None:
    """Undo what was done; a connection that is broken has undone it, and is not used again."""
    try:
        raw.execute("ROLLBACK")
    except psycopg.Error:
        raw.close()


def migrations() -> dict[int, str]:
    """The scripts that make a schema what it is, by number, in order. New ones are appended, none is ever changed."""
    folder = files("everthread.stores.postgres").joinpath("migrations")
    scripts = {int(entry.name[:4]): entry for entry in folder.iterdir() if entry.name.endswith(".sql")}
    return {number: scripts[number].read_text(encoding="utf-8") for number in sorted(scripts)}


def _partitions(asked: int | str) -> int:
    if not (str(asked).isdecimal() and 1 <= int(asked) <= MOST_PARTITIONS):
        raise UsageError(f"partitions is {asked!r}; give a number from 1 to {MOST_PARTITIONS}")
    return int(asked)


def is_there(url: str) -> bool:
    """Whether there is a store at this URL. StoreError when the server cannot be reached."""
    plain, ours = without_ours(url)
    asked = f"SELECT to_regclass(quote_ident(%s) || '.{OURS}') IS NOT NULL".encode()
    with translated(where(url)), psycopg.connect(plain) as connection:
        ((there,),) = connection.execute(asked, (schema_named(ours.get("schema") or SCHEMA),)).fetchall()
    return bool(there)


PGVECTOR = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
PGVECTOR_AT = """
SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= ARRAY[0, 8]
"""


def _pgvector(connection: psycopg.Connection[Any]) -> str | None:
    """The schema that pgvector is in, which is put into the database if that is allowed; None where it is not."""
    found = connection.execute(PGVECTOR_AT).fetchone()
    if found is None and connection.execute(PGVECTOR).fetchone() is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile, errors.UniqueViolation):
            pass  # a store without it answers the same, from its tables
        except errors.InvalidSchemaName:
            return None
        found = connection.execute(PGVECTOR_AT).fetchone()
    return None if found is None else str(found[0])


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the driver's errors into ours, once, at the edge; the driver's error stays as the cause."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError("an id, key or name has a lone surrogate, which is not valid Unicode; leave it out") from error
    except errors.QueryCanceled as error:
        raise StoreError(f"{path}: a statement took longer than the server allows; nothing was written") from error
    except errors.IdleInTransactionSessionTimeout as error:
        raise StoreError(f"{path}: a transaction stood still for longer than the server waits; try again") from error
    except errors.DiskFull as error:
        raise StoreError(f"{path}: the server's disk is full; nothing was written") from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreError(f"{path} is read-only; name the primary server, not a replica") from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(f"{path}: the server's user may not do this ({_first_line(error)}); grant it") from error
    except (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure) as error:
        raise StoreError(f"{path} is locked by another writer; nothing was written, try again") from error
    except (PoolTimeout, PoolClosed, errors.TooManyConnections) as error:
        raise StoreError(f"{path}: no connection is free; raise pool_size, or try again") from error
    except psycopg.DataError as error:
        if "NUL" in str(error):
            raise UsageError("an id, key or name has a NUL character, which PostgreSQL cannot hold") from error
        raise StoreError(f"{path}: {_first_line(error)}") from error
    except psycopg.OperationalError as error:
        refused = _refusal(error)
        if refused is not None:
            raise StoreError(
                f"{path}: the server refuses the connection ({refused}); check user, password and database"
            ) from error
        raise StoreError(
            f"{path} cannot be reached ({_first_line(error)}); nothing was written if it was in the middle"
        ) from error
    except psycopg.Error as error:
        raise StoreError(f"{path}: {_first_line(error)}") from error


def _refusal(error: psycopg.Error) -> str | None:
    """Why a server that was reached lets nobody in; None when that is not so. libpq gives no code for it."""
    if error.sqlstate is not None:
        return None
    answered, _, said = str(error).partition("FATAL:")
    if said:
        return said.strip().split("\n", 1)[0]
    return "no password supplied" if "no password supplied" in answered else None


def _first_line(error: BaseException) -> str:
    """What the driver says; the lines after the first may quote values."""
    return str(error).strip().split("\n", 1)[0][:200]
