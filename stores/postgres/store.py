"""`PostgresStore`: the whole store in one schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, TTLConfig

from everthread.stores.embedding import Embedder
from everthread.stores.identity import Memory
from everthread.stores.jobs import Job
from everthread.stores.postgres.database import Database
from everthread.stores.postgres.nearest import EXACT_UP_TO, Nearest
from everthread.stores.record import now_utc
from everthread.stores.tables.opening import Opening
from everthread.stores.tables.store import TableStore

__all__ = ["PostgresStore"]


class PostgresStore(TableStore):
    """A MemoryStore in a schema of a PostgreSQL database: `postgresql://user@host/database`, with `?schema=NAME` for
    another schema than "everthread". The schema and its tables are made when they are not there.

    `synchronous="FULL"` waits until a write is on the server's disk; with "NORMAL" a crash of the server may cost the
    last ones, and breaks nothing. `pool_size` is how many connections it opens at most, `timeout` how many seconds a
    call waits for one of them. `partitions` (or `?partitions=N` in the URL) is into how many parts tables are divided
    by the hash of the tenant when the schema is made, 16 by default; it stays so. The other settings are those of
    `SqliteStore`.

    A scope of more than `exact_up_to` records is searched by pgvector's HNSW index (`half_precision`: of half the size;
    `iterative_scan`: `hnsw.iterative_scan`) and an index of terms, once a job has made them; a smaller one, and any
    where pgvector is missing, is read and scored whole.

    Raises StoreError when the server cannot be reached or refuses, UsageError when the schema is another program's.
    """

    def __init__(
        self,
        url: str,
        *,
        embedder: str | Embeddings | Embedder | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        synchronous: str = "FULL",
        schema: str | None = None,
        pool_size: int = 10,
        timeout: float = 30.0,
        partitions: int | None = None,
        exact_up_to: int = EXACT_UP_TO,
        half_precision: bool = False,
        iterative_scan: Literal["strict_order", "relaxed_order"] = "strict_order",
        audit_reads: bool = False,
        default_consent: Memory = "on",
        clock: Callable[[], datetime] = now_utc,
    ) -> None:
        database = Database(
            url,
            schema=schema,
            synchronous=synchronous,
            pool_size=pool_size,
            timeout=timeout,
            partitions=partitions,
        )
        self._nearest: Nearest | None = None

        def nearest(embedder_id: str | None) -> Nearest:
            self._nearest = Nearest(
                database,
                exact_up_to=exact_up_to,
                half_precision=half_precision,
                iterative_scan=iterative_scan,
                embedder_id=embedder_id,
            )
            return self._nearest

        super().__init__(
            database,
            embedder=embedder,
            index=index,
            ttl=ttl,
            audit_reads=audit_reads,
            default_consent=default_consent,
            clock=clock,
            nearest=nearest,
        )

    def handlers(self) -> Mapping[str, Callable[[Job], None]]:
        assert self._nearest is not None
        return {**super().handlers(), "index": self._nearest.build}

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Opening[Self, Self]:
        """A store that is open for the length of a `with` or `async with`: the signature of LangGraph's own
        PostgresStore."""
        return Opening(lambda: cls(conn_string, index=index, ttl=ttl), lambda: cls(conn_string, index=index, ttl=ttl))
