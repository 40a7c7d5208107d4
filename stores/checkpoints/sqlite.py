"""The checkpointer of a home: one file, opened by the `sqlite3` module."""

from __future__ import annotations

import builtins
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self

from langgraph.checkpoint import sqlite as stock
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.errors import StoreError
from everthread.stores.checkpoints import fence, lease, rows
from everthread.stores.checkpoints.files import connect, translated
from everthread.stores.checkpoints.rows import Rows
from everthread.stores.checkpoints.saver import Saver
from everthread.stores.checkpoints.serializer import CompactSerializer
from everthread.stores.contract import Finding

__all__ = ["SqliteSaver"]

_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"


class SqliteSaver(Saver, stock.SqliteSaver):
    """LangGraph's `SqliteSaver` with asynchronous methods, leases, a fence, erasure and retention.

    Every method raises StoreError when the file is full, read-only, corrupt or locked for longer than `busy_timeout`
    seconds; what was begun is rolled back.
    """

    def __init__(
        self,
        path: str,
        *,
        synchronous: str = "NORMAL",
        lease_seconds: float = 10.0,
        busy_timeout: float = 30.0,
        serde: SerializerProtocol | None = None,
    ) -> None:
        self.path = path
        lease.checked_seconds(lease_seconds)
        super().__init__(
            connect(path, synchronous=synchronous, busy_timeout=busy_timeout), serde=serde or CompactSerializer()
        )
        # Re-entrant, since a write is one transaction around the stock saver's own.
        self.lock = threading.RLock()  # type: ignore[assignment]
        # One worker, as there is one connection. Its own, so that a host that fills asyncio's pool with runs that wait
        # for a thread does not keep the run that holds it from saving.
        worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everthread-threads")
        self._open(path, lease.Leases(self.cursor, lease_seconds), worker, worker)
        try:
            with translated(path):
                rows.set_up(self.conn)
                for statement in (lease.SCHEMA, fence.SCHEMA):
                    self.conn.execute(statement)
                stock.SqliteSaver.setup(self)  # what a file of an older stock saver lacks
        except BaseException:
            self.conn.close()
            raise

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:  # type: ignore[override]
        """A saver for the file of this name, or for `:memory:`: the signature of LangGraph's own. Open until its `with`
        or `async with` ends."""
        return cls(conn_string)

    def _shut(self) -> None:
        with self.lock:
            self.conn.close()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor in a transaction: committed at the end, rolled back whole on any exception, joined when nested.

        `transaction=False` only reads, and sees one consistent state.
        """
        with self.lock, translated(self.path):
            outermost = not self.conn.in_transaction
            if outermost:
                self.conn.execute("BEGIN IMMEDIATE" if transaction else "BEGIN")
            cursor = self.conn.cursor()
            try:
                yield cursor
                if outermost:
                    self.conn.execute("COMMIT")
            except BaseException:
                if outermost and self.conn.in_transaction:
                    self.conn.execute("ROLLBACK")
                raise
            finally:
                cursor.close()

    @contextmanager
    def _rows(self, *writing: str) -> Iterator[Rows]:
        """The file's rows in a transaction, as `cursor`: SQLite has one writer at a time."""
        self._origin.check(self.place)
        with self.cursor(transaction=bool(writing)) as cursor:
            yield Rows(cursor, self.serde, self._recent)

    def doctor(self) -> builtins.list[Finding]:
        """Look at the file's integrity, and whether every thread has its values; changes nothing."""
        check, remedy = "threads are intact", "restore a backup"
        with self._rows() as found:
            (state,) = found.cursor.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                return [Finding(check=check, ok=False, detail=str(state), remedy=remedy)]
            threads = [row[0] for row in found.cursor.execute(_THREADS).fetchall()]
            torn = [thread_id for thread_id in threads if not found.is_whole(thread_id)]
        if torn:
            detail = f"values of {len(torn)} of {len(threads)} threads are gone: {', '.join(torn[:5])}"
            return [Finding(check=check, ok=False, detail=detail, remedy=remedy)]
        return [Finding(check=check, ok=True, detail=f"{len(threads)} threads")]

    def scrub(self) -> None:
        """Rewrite the file without its free pages and empty its log, so that deleted bytes are nowhere in it."""
        with self.lock, translated(self.path):
            self.conn.execute("VACUUM")
        if not self._empty_log():
            raise StoreError(
                f"{self.path}: what was erased is gone from the threads, but another process is reading the old log; "
                "end it, then erase again"
            )

    def _empty_log(self) -> bool:
        with self.lock, translated(self.path):
            busy, *_ = self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def _scrub(self) -> None:
        self.scrub()

    def _after_retention(self) -> None:
        with self.lock, translated(self.path):
            self.conn.execute("VACUUM")
        self._empty_log()

    def _bytes(self, thread_id: str | None = None) -> int:
        """Bytes of the pages in use, whichever thread they are of."""
        with self.lock, translated(self.path):
            pages, free, size = (
                self.conn.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def _after_delete(self) -> None:
        self._empty_log()  # the file's own pages are overwritten as they are freed (secure_delete)
