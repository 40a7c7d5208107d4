"""`SqliteStore`: the whole store in one file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from os import PathLike, fspath
from typing import TYPE_CHECKING, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, TTLConfig

from everthread.stores.embedding import Embedder
from everthread.stores.identity import Memory
from everthread.stores.record import now_utc
from everthread.stores.sqlite.database import BACKUP_DAYS, Database
from everthread.stores.tables.opening import Opening
from everthread.stores.tables.store import TableStore

if TYPE_CHECKING:
    from everthread.stores.sqlite.aio import AsyncSqliteStore

__all__ = ["SqliteStore"]


class SqliteStore(TableStore):
    """A MemoryStore in one SQLite file, or in memory for the path `:memory:`.

    `embedder` makes records and messages searchable by meaning: None is the built-in one (loaded at first use), "none"
    is keywords only, "provider:model" or LangChain `Embeddings` any other. `index` and `ttl` configure plain items
    as in LangGraph's own SqliteStore. `synchronous="FULL"` survives a power cut, "NORMAL" a crash of the process.
    `busy_timeout` is how many seconds a write waits for another process's. `backup_days` is how long the copy is kept
    that a migration makes of an older file. `audit_reads` notes in the audit log who read which records and messages.
    `default_consent` holds for a user who has not chosen: with "off" nothing is learnt or recalled until they agree.

    Raises StoreError when the file cannot be used, UsageError when it is another program's.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        embedder: str | Embeddings | Embedder | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        synchronous: str = "FULL",
        busy_timeout: float = 30.0,
        backup_days: float = BACKUP_DAYS,
        audit_reads: bool = False,
        default_consent: Memory = "on",
        clock: Callable[[], datetime] = now_utc,
    ) -> None:
        self.path = fspath(path)
        super().__init__(
            Database(self.path, busy_timeout=busy_timeout, synchronous=synchronous, backup_days=backup_days),
            embedder=embedder,
            index=index,
            ttl=ttl,
            audit_reads=audit_reads,
            default_consent=default_consent,
            clock=clock,
        )

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Opening[Self, AsyncSqliteStore]:
        """A store that is open for the length of a `with`: the signature of LangGraph's own SqliteStore.

        With `async with` it is an `AsyncSqliteStore`, which stands in for LangGraph's class of that name.
        """
        from everthread.stores.sqlite.aio import AsyncSqliteStore

        return Opening(
            lambda: cls(conn_string, index=index, ttl=ttl), lambda: AsyncSqliteStore(conn_string, index=index, ttl=ttl)
        )
