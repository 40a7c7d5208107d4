"""The checkpointer of a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self
from uuid import uuid4

import psycopg
from langgraph.checkpoint import postgres as stock
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg_pool import ConnectionPool

from everthread.errors import UsageError
from everthread.stores.checkpoints.lease import checked_seconds
from everthread.stores.checkpoints.postgres.keys import number_of
from everthread.stores.checkpoints.postgres.lease import Leases
from everthread.stores.checkpoints.postgres.rows import Rows, threads_and_torn
from everthread.stores.checkpoints.postgres.server import (
    NO_SAMPLES,
    TABLES,
    address_of,
    connect,
    in_schema,
    is_alive,
    schema_of,
    set_up,
    translated,
)
from everthread.stores.checkpoints.saver import Saver
from everthread.stores.checkpoints.serializer import CompactSerializer
from everthread.stores.contract import Finding
from everthread.stores.postgres.address import parts_of, without_ours
from everthread.stores.postgres.samples import forget_samples
from everthread.stores.postgres.vacuum import vacuum

__all__ = ["PostgresSaver"]


_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""A writer sees what was committed before it got its locks."""
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""A reader sees one state."""


class PostgresSaver(Saver, stock.PostgresSaver):
    """LangGraph's `PostgresSaver` with asynchronous methods, leases, a fence, erasure and retention.

    Every method raises StoreError when the server is gone, refuses or is full, or when none of `pool_size` connections
    is free for `pool_timeout` seconds; what was begun is rolled back.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pool_timeout: float = 30.0,
        lease_seconds: float = 10.0,
        serde: SerializerProtocol | None = None,
    ) -> None:
        checked_seconds(lease_seconds)
        if pool_size < 1:
            raise UsageError(f"pool_size={pool_size} is too few; write 1 or more")
        url, ours = without_ours(url)
        parts = in_schema(parts_of(url), ours.get("schema"))
        place, self._password = address_of(parts), str(parts.get("password") or "")
        with translated(place, self._password):
            connection = connect(parts)
            try:
                self._schema = schema_of(connection, ours.get("schema"))
                set_up(connection)
            except BaseException:
                connection.close()
                raise
        pool = ConnectionPool(
            min_size=1,
            max_size=pool_size,
            timeout=pool_timeout,
            kwargs=pooled(parts),
            check=refuse_dead,
            name="everthread-threads",
            open=True,
        )
        self.pool = pool
        super().__init__(pool, serde=serde or CompactSerializer())
        # Threads of its own, one for each connection, so that a host that fills asyncio's pool with runs that wait for
        # a thread does not keep the run that holds it from saving.
        self._open(
            place,
            Leases(connection, lambda: connect(parts), place, self._schema, self._retire, lease_seconds),
            ThreadPoolExecutor(pool_size, thread_name_prefix="everthread-threads"),
            ThreadPoolExecutor(1, thread_name_prefix="everthread-leases"),
        )

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:  # type: ignore[override]
        """A saver for the database of this URL: the signature of LangGraph's own. Open until its `with` or `async with`
        ends."""
        return cls(conn_string)

    def _shut(self) -> None:
        self.pool.close()

    @contextmanager
    def _rows(self, *writing: str) -> Iterator[Rows]:
        """As `Saver._rows`. What is written goes to the server together, at the end."""
        self._origin.check(self.place)
        with translated(self.place, self._password), self.pool.connection() as connection:
            try:
                with connection.pipeline():
                    found = Rows(connection, self.serde, self._recent)
                    # Said plainly, since `transaction()` would wait for the server at either end.
                    found.tell(_WRITE if writing else _READ)
                    for thread_id in sorted(set(writing)):
                        found.lock(number_of("write", self._schema, thread_id))
                    yield found
                    found.tell("COMMIT")
            except BaseException:
                if is_alive(connection):
                    connection.rollback()
                raise

    def _retire(self, thread_id: str) -> None:
        with self._rows(thread_id) as rows:
            rows.retire(thread_id, uuid4().hex)

    def doctor(self) -> builtins.list[Finding]:
        """Look whether every thread has its values; changes nothing. It reads all checkpoints."""
        check, remedy = "threads are intact", "restore a backup"
        with self._rows() as found:
            threads, torn = threads_and_torn(found)
        if torn:
            detail = f"values of {len(torn)} of {threads} threads are gone: {', '.join(torn[:5])}"
            return [Finding(check=check, ok=False, detail=detail, remedy=remedy)]
        return [Finding(check=check, ok=True, detail=f"{threads} threads")]

    def _bytes(self, thread_id: str | None = None) -> int:
        with self._rows() as found:
            return found.bytes_of(thread_id)

    def _after_retention(self) -> None:
        with self._without_samples() as connection:
            connection.execute(f"VACUUM {TABLES}")

    def scrub(self) -> None:
        """Let the server reuse the rows that were deleted or rewritten, now and not when autovacuum comes to them, and
        let it forget the samples that its planner has of them. Only `VACUUM FULL`, and the end of old backups and
        write-ahead logs, takes their bytes from the disk. Of tables of another role it does nothing.

        Raises StoreError when a session that began before, here or on a replica, still sees those rows.
        """
        with self._without_samples() as connection:
            vacuum(connection, TABLES.split(", "))

    @contextmanager
    def _without_samples(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection, once the server has forgotten the samples of values."""
        with translated(self.place, self._password), self.pool.connection() as connection:
            connection.execute(NO_SAMPLES)
            forget_samples(connection, TABLES.split(", "))
            yield connection


def pooled(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What the connections of a pool are made with."""
    return {
        "connect_timeout": "10",
        "application_name": "everthread threads",
        **parts,
        "client_encoding": "utf8",
        "autocommit": True,
    }


def refuse_dead(connection: psycopg.Connection[Any]) -> None:
    """Raise when a pooled connection was cut while it lay idle: the server started anew, or a failover."""
    if not is_alive(connection):
        raise psycopg.OperationalError("the connection was lost")
