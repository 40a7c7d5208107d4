"""A checkpointer of each kind, for tests of what both promise."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from everthread.stores.checkpoints import Saver, SqliteSaver
from everthread.stores.checkpoints.postgres import PostgresSaver
from support.postgres import Postgres

__all__ = ["lose_leases", "put_clock_ahead", "threads_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def threads_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a checkpointer keeps threads: in a file, and on a server."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}"
    database: Postgres = request.getfixturevalue("postgres")
    return database.url


def lose_leases(saver: Saver) -> None:
    """Take every thread away from the runs that hold it, as if the process had hung, or its connection were cut."""
    if isinstance(saver, SqliteSaver):
        with saver.cursor() as cursor:
            cursor.execute("DELETE FROM leases")
    if isinstance(saver, PostgresSaver):
        with saver.pool.connection() as connection:
            cut = connection.execute(
                """
                SELECT pg_terminate_backend(pid, 10000) FROM (SELECT DISTINCT pid FROM pg_locks
                WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) owners
                """
            ).fetchall()
        assert cut and all(each for (each,) in cut)


def put_clock_ahead(saver: Saver) -> None:
    """Make the only thread's head what a machine with a clock far ahead would have written."""
    ahead = (
        "UPDATE {} SET checkpoint_id = 'f' || substr(checkpoint_id, 2)"
        " WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"
    )
    if isinstance(saver, SqliteSaver):
        with saver.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                cursor.execute(ahead.format(table))
    if isinstance(saver, PostgresSaver):
        with saver.pool.connection() as connection, connection.transaction():
            for table in ("checkpoint_writes", "checkpoints"):
                connection.execute(psycopg.sql.SQL(ahead).format(psycopg.sql.Identifier(table)))
