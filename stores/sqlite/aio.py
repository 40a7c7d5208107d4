"""The same store for code that was written for LangGraph's AsyncSqliteStore."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future

from langgraph.store.base import Op, Result

from everthread.stores.sqlite.store import SqliteStore

__all__ = ["AsyncSqliteStore"]


class AsyncSqliteStore(SqliteStore):
    """A SqliteStore whose upkeep is awaited, and whose items are not read or written on the event loop's own thread.

    Every asynchronous method of a SqliteStore works on this one and the other way round: choose it only where
    `await store.setup()` is written already.
    """

    async def setup(self) -> None:  # type: ignore[override]
        """Nothing is left to do: the tables are made when the store is opened."""

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Delete expired items; returns how many there were."""
        return await asyncio.to_thread(super().sweep_ttl)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:  # type: ignore[override]
        """See `SqliteStore.start_ttl_sweeper`."""
        return super().start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        """See `SqliteStore.stop_ttl_sweeper`."""
        return await asyncio.to_thread(super().stop_ttl_sweeper, timeout)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """`SqliteStore.batch`, from any other thread. Raises asyncio.InvalidStateError where an event loop runs, which
        it would hold up: `put`, `get`, `search` and the others have their asynchronous twin."""
        if asyncio._get_running_loop() is not None:
            raise asyncio.InvalidStateError("this would hold up the event loop; use abatch, aput, aget or asearch")
        return super().batch(ops)
