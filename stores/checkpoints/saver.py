"""The checkpointer: one object for sync and async, one file, one run of a thread at a time."""

from __future__ import annotations

import asyncio
import builtins
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.utils import search_where

from everthread.errors import Conflict, StoreError, UsageError
from everthread.stores.checkpoints import erasing, fence, lease, rows
from everthread.stores.checkpoints.files import connect, path_of, translated
from everthread.stores.checkpoints.retention import drop_runs, keep_latest, last_steps
from everthread.stores.checkpoints.rows import COUNTERS, Key, Rows
from everthread.stores.checkpoints.serializer import CompactSerializer
from everthread.stores.contract import Finding

__all__ = ["Saver", "open_checkpointer"]

T = TypeVar("T")

KEPT_OF_CONFIG = ("source", "step", "parents", "run_id", COUNTERS)
"""What LangGraph itself reads. It copies all of `configurable` into the metadata, its server the context too, in plain
text; a user's name or a token among them would outlive every erasure. What `put` is given as metadata is kept whole."""

_HEAD = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_LAST_WRITE = "SELECT run, writes FROM writers WHERE thread_id = ? AND checkpoint_ns = ?"
_NOTE_WRITE = """
INSERT INTO writers (thread_id, checkpoint_ns, run, writes) VALUES (?, ?, ?, 1)
ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET run = excluded.run, writes = writes + 1
"""
_LENGTH = "SELECT count(*) FROM checkpoints WHERE thread_id = ?"
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_RETIRE_WRITERS = "UPDATE writers SET run = ?, writes = writes + 1 WHERE thread_id = ?"
_THREADS_OF_RUN = """
SELECT DISTINCT thread_id FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') = ?
"""


def open_checkpointer(
    url: str,
    *,
    synchronous: str = "NORMAL",
    lease_seconds: float = 10.0,
    serde: SerializerProtocol | None = None,
) -> Saver:
    """The checkpointer of a home: `"sqlite:DIR"` or a plain directory means `DIR/threads.db`; or `"sqlite::memory:"`.

    Use it as a context manager, plain or async, or call `close()`. With `synchronous="NORMAL"` a killed process loses
    nothing and a power cut at most the last checkpoints; `"FULL"` loses nothing and waits for the disk at every step.
    `lease_seconds`: how long a process that hangs keeps its threads. `serde`: another serializer, such as LangGraph's
    `EncryptedSerializer`.

    Raises UsageError for an address that is none and for another program's database, StoreError when the file is
    corrupt, locked, read-only or cannot be made.
    """
    return Saver(path_of(url), synchronous=synchronous, lease_seconds=lease_seconds, serde=serde)


class Saver(SqliteSaver):
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
        super().__init__(
            connect(path, synchronous=synchronous, busy_timeout=busy_timeout), serde=serde or CompactSerializer()
        )
        # Re-entrant, since a write is one transaction around the stock saver's own.
        self.lock = threading.RLock()  # type: ignore[assignment]
        # One worker, as there is one connection. Its own, so that a host that fills asyncio's pool with runs that wait
        # for a thread does not keep the run that holds it from saving.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everthread-threads")
        self._leases = lease.Leases(self.cursor, lease_seconds)
        self._closed = threading.Event()
        try:
            with translated(path):
                rows.set_up(self.conn)
                for statement in (lease.SCHEMA, fence.SCHEMA):
                    self.conn.execute(statement)
                super().setup()  # what a file of an older stock saver lacks
        except BaseException:
            self.conn.close()
            raise

    def setup(self) -> None:
        """Nothing is left to do: the tables are made when the file is opened."""

    def close(self) -> None:
        """Give every thread back and close the file. Closing twice is allowed."""
        if self._closed.is_set():
            return
        self._leases.close()
        self._closed.set()
        self._worker.shutdown()
        with self.lock:
            self.conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

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
    def _rows(self, transaction: bool = True) -> Iterator[Rows]:
        """The file's rows in a transaction, as `cursor`."""
        with self.cursor(transaction) as cursor:
            yield Rows(cursor, self.serde)

    def doctor(self) -> builtins.list[Finding]:
        """Look at the file's integrity, and whether every thread has its values; changes nothing."""
        check, remedy = "threads are intact", "restore a backup"
        with self._rows(transaction=False) as found:
            (state,) = found.cursor.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                return [Finding(check=check, ok=False, detail=str(state), remedy=remedy)]
            threads = [row[0] for row in found.cursor.execute(_THREADS).fetchall()]
            torn = [thread_id for thread_id in threads if not found.is_whole(thread_id)]
        if torn:
            detail = f"values of {len(torn)} of {len(threads)} threads are gone: {', '.join(torn[:5])}"
            return [Finding(check=check, ok=False, detail=detail, remedy=remedy)]
        return [Finding(check=check, ok=True, detail=f"{len(threads)} threads")]

    # ---------------------------------------------------------------- lease

    @contextmanager
    def turn(self, thread_id: str, timeout: float = 60.0) -> Iterator[None]:
        """Hold the thread for one run; others wait. Raises Conflict when it is still busy after `timeout` seconds."""
        claim = lease.Claim(self._leases, str(thread_id), timeout)
        try:
            while not claim.attempt():
                time.sleep(claim.pause())
            yield
        finally:
            self._release(claim)

    @asynccontextmanager
    async def aturn(self, thread_id: str, timeout: float = 60.0) -> AsyncIterator[None]:
        """`turn` for asyncio: waits in the event loop, never in a thread."""
        claim = lease.Claim(self._leases, str(thread_id), timeout)
        try:
            while not await self._run(claim.attempt):
                await asyncio.sleep(claim.pause())
            yield
        finally:
            # Queued at once, behind an attempt that was cancelled half-way, and done even if this is cancelled too.
            if not self._closed.is_set():
                await asyncio.shield(asyncio.wrap_future(self._worker.submit(self._release, claim)))

    def _release(self, claim: lease.Claim) -> None:
        if not self._closed.is_set():  # `close` gave every thread back
            claim.release()

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:  # type: ignore[override]
        """A saver for the file of this name, or for `:memory:`: the signature of LangGraph's own. Open until its `with`
        or `async with` ends."""
        return cls(conn_string)

    # ---------------------------------------------------------------- reads

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` addresses, or the thread's latest; None when there is none."""
        configurable = config["configurable"]
        key, checkpoint_id = _key(configurable), get_checkpoint_id(config)
        with self._rows(transaction=False) as found:
            tuple_ = found.find(*key, checkpoint_id)
            if tuple_ is None:
                return None
            return _marked(tuple_, None if checkpoint_id else fence.mark(_last_write(found.cursor, key), key[1]))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that match, the newest first. Read at once: an iterator that is left alone holds no lock."""
        where, values = search_where(config, filter, before)
        with self._rows(transaction=False) as found:
            return iter([_marked(each, None) for each in found.search(where, values, limit)])

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each DeltaChannel is rebuilt from at the checkpoint that `config` addresses, or at the latest."""
        key, checkpoint_id = _key(config["configurable"]), get_checkpoint_id(config)
        with self._rows(transaction=False) as found:
            at = checkpoint_id or _one(found.cursor, _HEAD, key)
            return found.history(Key(*key, at or ""), channels)

    # ---------------------------------------------------------------- writes

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, if no other run has written to the thread since this one loaded it; else Conflict."""
        configurable = config["configurable"]
        key = Key(*_key(configurable), checkpoint["id"])
        with self._rows() as changed:
            self._pass(changed.cursor, config, key.checkpoint_id)
            changed.save(key, configurable.get("checkpoint_id"), checkpoint, _essential(config, metadata))
        place = {"thread_id": configurable["thread_id"], "checkpoint_ns": key.namespace}
        return {"configurable": {**place, "checkpoint_id": key.checkpoint_id}}

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; Conflict as for `put`."""
        configurable = config["configurable"]
        with self._rows() as changed:
            self._pass(changed.cursor, config, None)
            changed.note(Key(*_key(configurable), str(configurable["checkpoint_id"])), writes, task_id, task_path)

    def get_next_version(self, current: str | None, channel: None = None) -> str:
        """A version above `current`, and another one in each fork. Shorter than the stock saver's, and above all of
        those: a file of its goes on."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:010}.{random.getrandbits(32):08x}"

    def _pass(self, cursor: sqlite3.Cursor, config: RunnableConfig, new: str | None) -> None:
        """Let this writer through and note it; `new` is the id of the checkpoint that it saves, if it saves one."""
        configurable, writer = config["configurable"], fence.writer_of(config)
        if writer.kind == "fork":
            if new is not None:
                cursor.execute(_NOTE_WRITE, (*_key(configurable), uuid4().hex))
            return
        key = _key(configurable)
        head, last = _one(cursor, _HEAD, key), _last_write(cursor, key)
        begins_again = new is not None and head is not None and not configurable.get("checkpoint_id")
        if not fence.passes(writer, last, begins_again=begins_again):
            raise Conflict(
                f"thread {key[0]!r} was continued by another run, up to checkpoint {head}; nothing more of this run "
                "was stored: run its input again, or compile with everthread.graphs.gate so that runs wait",
                winner=head,
                thread_id=key[0],
            )
        if new is not None and head is not None and new < head:
            # Ids are times. Stored, this checkpoint would be older than the head, and never seen again.
            raise StoreError(
                f"thread {key[0]!r}: this machine's clock is behind the thread's head checkpoint {head}; "
                "set the clock, then run the input again"
            )
        cursor.execute(_NOTE_WRITE, (*key, writer.run))

    # ---------------------------------------------------------------- erasure

    def redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str], *, timeout: float = 60.0) -> int:
        """Replace these messages, and any text that contains one of `words`, by "[erased]" in every checkpoint, pending
        write and snapshot of the thread; returns how many rows were rewritten.

        The arguments of the messages' tool calls go too, their ids stay, and the history loads as before. The bytes are
        overwritten in the file and its log. Raises Conflict when a run holds the thread for longer than `timeout`
        seconds, and StoreError when another process keeps the old log from being overwritten.
        """
        with self.turn(thread_id, timeout):
            return self._redact(thread_id, message_ids, words)

    async def aredact(
        self, thread_id: str, message_ids: Sequence[str], words: Sequence[str], *, timeout: float = 60.0
    ) -> int:
        """`redact` for asyncio."""
        async with self.aturn(thread_id, timeout):
            return await self._run(self._redact, thread_id, message_ids, words)

    def affected(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        """How many rows `redact` would rewrite. Nothing is changed."""
        undone = _Undone()
        try:
            with self._rows() as changed:
                undone.changed = erasing.rewrite(changed, thread_id, message_ids, words, KEPT_OF_CONFIG)
                raise undone
        except _Undone as rolled_back:
            return rolled_back.changed

    def holds(self, words: Sequence[str], thread_ids: Sequence[str]) -> builtins.list[str]:
        """Which of these threads still have one of `words` (whatever its case) in a checkpoint or pending write."""
        with self._rows(transaction=False) as found:
            return [each for each in dict.fromkeys(thread_ids) if erasing.holds(found, each, words)]

    def _redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        with self._rows() as found:
            changed = erasing.rewrite(found, thread_id, message_ids, words, KEPT_OF_CONFIG)
            # A run that is still under way, without a lease, must not write the words back.
            found.cursor.execute(_RETIRE_WRITERS, (uuid4().hex, thread_id))
        self.scrub()
        return changed

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

    def delete_thread(self, thread_id: str) -> None:
        """Delete every checkpoint and write of a thread, and its bytes; waits for a run that holds it."""
        with self.turn(thread_id):
            self._delete_thread(str(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread` for asyncio."""
        async with self.aturn(thread_id):
            await self._run(self._delete_thread, str(thread_id))

    def _delete_thread(self, thread_id: str) -> None:
        with self._rows() as found:
            found.delete(thread_id)
        self._empty_log()  # the file's own pages are overwritten as they are freed (secure_delete)

    # ---------------------------------------------------------------- retention

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`"keep_latest"`: keep each namespace's head, and the ancestors that its DeltaChannels are rebuilt from (at
        most as far as their last snapshot). `"delete"`: delete the threads. Waits for runs that hold them."""
        _check_strategy(strategy)
        for thread_id in thread_ids:
            with self.turn(thread_id):
                self._prune(str(thread_id), strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune` for asyncio."""
        _check_strategy(strategy)
        for thread_id in thread_ids:
            async with self.aturn(thread_id):
                await self._run(self._prune, str(thread_id), strategy)

    def _prune(self, thread_id: str, strategy: str) -> None:
        if strategy == "delete":
            self._delete_thread(thread_id)
            return
        with self._rows() as found:
            keep_latest(found, thread_id)

    def retain(
        self,
        *,
        older_than: timedelta | None = None,
        max_bytes: int | None = None,
        strategy: str = "keep_latest",
        now: datetime | None = None,
    ) -> builtins.list[str]:
        """Apply a retention policy to all threads (R41, R47); returns those that were pruned, the longest idle first.

        `older_than`: threads whose last step is older. `max_bytes`: as many more, the longest idle first, as it takes
        to bring what is stored below it. `strategy` as in `prune`: a thread goes on from its last checkpoint, or is
        gone. A thread that is in a run is left alone. The file is rewritten without its free pages. Raises UsageError
        without a policy, and for one below zero.
        """
        due = self._due(older_than, max_bytes, strategy, now)
        return self._rewritten([thread_id for thread_id in due if self._prune_idle(thread_id, strategy)])

    async def aretain(
        self,
        *,
        older_than: timedelta | None = None,
        max_bytes: int | None = None,
        strategy: str = "keep_latest",
        now: datetime | None = None,
    ) -> builtins.list[str]:
        """`retain` for asyncio."""
        return await self._run(self.retain, older_than=older_than, max_bytes=max_bytes, strategy=strategy, now=now)

    def _due(
        self, older_than: timedelta | None, max_bytes: int | None, strategy: str, now: datetime | None
    ) -> Iterator[str]:
        """The threads to prune, the longest idle first; asked for the next one only when the last was pruned."""
        _check_strategy(strategy)
        if (
            (older_than, max_bytes) == (None, None)
            or (older_than or timedelta(1)) < timedelta(0)
            or (max_bytes or 0) < 0
        ):
            raise UsageError("retention needs a policy; say older_than=timedelta(days=30), or max_bytes=1_000_000_000")
        before = None if older_than is None else (now or datetime.now(UTC)) - older_than
        with self._rows(transaction=False) as found:
            idle = last_steps(found)
        for at, thread_id in idle:
            if (before is not None and at < before) or (max_bytes is not None and self._stored() > max_bytes):
                yield thread_id

    def _prune_idle(self, thread_id: str, strategy: str) -> bool:
        try:
            with self.turn(thread_id, timeout=0.0):
                before = self._length(thread_id)
                self._prune(thread_id, strategy)
                return self._length(thread_id) < before
        except Conflict:  # in a run: not idle after all
            return False

    def _length(self, thread_id: str) -> int:
        with self.cursor(transaction=False) as cursor:
            return int(_one(cursor, _LENGTH, (thread_id,)))

    def _stored(self) -> int:
        """Bytes of the pages in use."""
        with self.lock, translated(self.path):
            pages, free, size = (
                self.conn.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def _rewritten(self, pruned: builtins.list[str]) -> builtins.list[str]:
        if pruned:
            with self.lock, translated(self.path):
                self.conn.execute("VACUUM")
            self._empty_log()
        return pruned

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, except those that later ones are rebuilt from. Waits for runs that hold
        their threads. A run has an id when its config has one: `{"metadata": {"run_id": ...}}`."""
        for thread_id in self._threads_of(run_ids):
            with self.turn(thread_id):
                self._delete_for_runs(thread_id, set(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs` for asyncio."""
        for thread_id in await self._run(self._threads_of, run_ids):
            async with self.aturn(thread_id):
                await self._run(self._delete_for_runs, thread_id, set(run_ids))

    def _threads_of(self, run_ids: Sequence[str]) -> builtins.list[str]:
        with self.cursor(transaction=False) as cursor:
            return sorted({row[0] for run in run_ids for row in cursor.execute(_THREADS_OF_RUN, (run,)).fetchall()})

    def _delete_for_runs(self, thread_id: str, run_ids: set[str]) -> None:
        with self._rows() as found:
            drop_runs(found, thread_id, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's whole history. Raises UsageError when there is none, or when the target has one."""
        with self._rows() as found:
            cursor = found.cursor
            if not _one(cursor, _LENGTH, (source_thread_id,)):
                raise UsageError(f"thread {source_thread_id!r} has no checkpoints to copy; check its id")
            if _one(cursor, _LENGTH, (target_thread_id,)):
                raise UsageError(f"thread {target_thread_id!r} has checkpoints already; copy to a new id")
            found.copy(source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread` for asyncio."""
        await self._run(self.copy_thread, source_thread_id, target_thread_id)

    # ---------------------------------------------------------------- asyncio

    async def _run(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        work = partial(copy_context().run, partial(call, *args, **options))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except RuntimeError as error:
            if self._closed.is_set():
                raise UsageError(f"{self.path} is closed; open the checkpointer again") from error
            raise

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple` for asyncio."""
        return await self._run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list` for asyncio."""
        for each in await self._run(self.list, config, filter=filter, before=before, limit=limit):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put` for asyncio."""
        return await self._run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes` for asyncio."""
        await self._run(self.put_writes, config, writes, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history` for asyncio."""
        return await self._run(self.get_delta_channel_history, config=config, channels=channels)


class _Undone(Exception):
    """Ends a transaction that was only to be counted."""

    changed = 0


def _one(cursor: sqlite3.Cursor, sql: str, values: Sequence[Any]) -> Any:
    """The single value of a query's first row; None when it has no row."""
    row = cursor.execute(sql, values).fetchone()
    return row[0] if row is not None else None


def _last_write(cursor: sqlite3.Cursor, key: tuple[str, str]) -> fence.Last:
    row = cursor.execute(_LAST_WRITE, key).fetchone()
    return fence.Last(*row) if row is not None else fence.Last()


def _key(configurable: Mapping[str, Any]) -> tuple[str, str]:
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _marked(found: CheckpointTuple, mark: str | None) -> CheckpointTuple:
    config: RunnableConfig = {**found.config, "configurable": {**found.config["configurable"], fence.MARK: mark}}
    return found._replace(config=config)


def _essential(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    beside = {**config["configurable"], **config.get("metadata", {})}
    essential = {name: beside[name] for name in KEPT_OF_CONFIG if name in beside} | {**metadata}
    return get_checkpoint_metadata({}, cast(CheckpointMetadata, essential))


def _check_strategy(strategy: str) -> None:
    if strategy not in ("keep_latest", "delete"):
        raise UsageError(f"strategy={strategy!r} is none; write keep_latest or delete")
