"""The checkpointer: one object for sync and async, one file, one run of a thread at a time."""

from __future__ import annotations

import asyncio
import builtins
import json
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import cache, partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from uuid import UUID, uuid4, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import INPUT
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from everthread.errors import Conflict, StoreError, UsageError
from everthread.stores.checkpoints import fence, lease
from everthread.stores.checkpoints.files import connect, path_of, translated
from everthread.stores.checkpoints.redaction import Redaction, said_by
from everthread.stores.checkpoints.retention import Node, lineage, nearest_kept
from everthread.stores.checkpoints.serializer import CompactSerializer
from everthread.stores.contract import Finding
from everthread.stores.traces import spellings

__all__ = ["Saver", "open_checkpointer"]

T = TypeVar("T")

KEPT_OF_CONFIG = ("source", "step", "parents", "run_id", "counters_since_delta_snapshot")
"""What LangGraph itself reads. It copies all of `configurable` into the metadata, its server the context too, in plain
text; a user's name or a token among them would outlive every erasure. What `put` is given as metadata is kept whole."""

_COUNTERS = "counters_since_delta_snapshot"

_HEAD = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_LAST_WRITE = "SELECT run, writes FROM writers WHERE thread_id = ? AND checkpoint_ns = ?"
_NOTE_WRITE = """
INSERT INTO writers (thread_id, checkpoint_ns, run, writes) VALUES (?, ?, ?, 1)
ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET run = excluded.run, writes = writes + 1
"""
_RETIRE_WRITERS = "UPDATE writers SET run = ?, writes = writes + 1 WHERE thread_id = ?"
_THREAD_ROWS = (
    "DELETE FROM writes WHERE thread_id = ?",
    "DELETE FROM checkpoints WHERE thread_id = ?",
    "DELETE FROM writers WHERE thread_id = ?",
)
_COPY_CHECKPOINTS = """
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT ?, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = ?
"""
_COPY_WRITES = """
INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
SELECT ?, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
FROM writes WHERE thread_id = ?
"""
_NAMESPACES = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_METADATA = """
SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
"""
_CHECKPOINT = """
SELECT type, checkpoint, parent_checkpoint_id FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_DELETE_CHECKPOINT = "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_DELETE_WRITES = "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_DELETE_TASK_WRITES = f"{_DELETE_WRITES} AND task_id = ?"
_SET_PARENT = """
UPDATE checkpoints SET parent_checkpoint_id = ? WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_STORED_CHECKPOINTS = "SELECT rowid, type, checkpoint, metadata FROM checkpoints WHERE thread_id = ?"
_STORED_WRITES = "SELECT rowid, type, value, channel FROM writes WHERE thread_id = ?"
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
                super().setup()
                self.conn.execute(lease.SCHEMA)
                self.conn.execute(fence.SCHEMA)
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

    def doctor(self) -> builtins.list[Finding]:
        """Look at the file's integrity; changes nothing."""
        with self.cursor(transaction=False) as cursor:
            (found,) = cursor.execute("PRAGMA quick_check(1)").fetchone()
            count = _one(cursor, "SELECT count(DISTINCT thread_id) FROM checkpoints", ())
        if found != "ok":
            return [Finding(check="threads are intact", ok=False, detail=str(found), remedy="restore a backup")]
        return [Finding(check="threads are intact", ok=True, detail=f"{count} threads")]

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
        with self.cursor(transaction=False) as cursor:
            found = super().get_tuple(config)
            if found is None:
                return None
            if get_checkpoint_id(config):
                return _marked(found, None)
            namespace = found.config["configurable"]["checkpoint_ns"]
            key = (str(config["configurable"]["thread_id"]), namespace)
            return _marked(found, fence.mark(_last_write(cursor, key), namespace))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that match, the newest first. Read at once: an iterator that is left alone holds no lock."""
        found = super().list(config, filter=filter, before=before, limit=limit)
        return iter([_marked(each, None) for each in found])

    # ---------------------------------------------------------------- writes

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, if no other run has written to the thread since this one loaded it; else Conflict."""
        with self.cursor() as cursor:
            self._pass(cursor, config["configurable"], checkpoint["id"])
            return super().put(_coordinates(config), checkpoint, _essential(config, metadata), new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; Conflict as for `put`."""
        with self.cursor() as cursor:
            self._pass(cursor, config["configurable"], None)
            super().put_writes(config, writes, task_id, task_path)

    def _pass(self, cursor: sqlite3.Cursor, configurable: Mapping[str, Any], new: str | None) -> None:
        """Let this writer through and note it; `new` is the id of the checkpoint that it saves, if it saves one."""
        writer = fence.writer_of(configurable)
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
            with self.cursor() as cursor:
                undone.changed = self._rewrite(cursor, thread_id, message_ids, words)
                raise undone
        except _Undone as rolled_back:
            return rolled_back.changed

    def holds(self, words: Sequence[str], thread_ids: Sequence[str]) -> builtins.list[str]:
        """Which of these threads still have one of `words` (whatever its case) in a checkpoint or pending write.

        Each value is decoded and written out plainly to be searched, so that neither compression, encryption nor what
        `redact` overlooks can hide a word.
        """
        spelled = {spelling.casefold() for word in words if word.strip() for spelling in spellings(word)}
        with self.cursor(transaction=False) as cursor:
            return [
                thread_id
                for thread_id in dict.fromkeys(thread_ids)
                if any(any(word in text for word in spelled) for text in self._plain_texts(cursor, thread_id))
            ]

    def _plain_texts(self, cursor: sqlite3.Cursor, thread_id: str) -> Iterator[str]:
        """What is stored of a thread, decoded, row by row."""
        plain = JsonPlusSerializer()
        for _, kind, stored, metadata in cursor.execute(_STORED_CHECKPOINTS, (thread_id,)).fetchall():
            yield _readable(plain.dumps_typed(self.serde.loads_typed((kind, stored)))[1] + (metadata or b""))
        for _, kind, stored, _ in cursor.execute(_STORED_WRITES, (thread_id,)).fetchall():
            yield _readable(plain.dumps_typed(self.serde.loads_typed((kind, stored)))[1])

    def _redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        with self.cursor() as cursor:
            changed = self._rewrite(cursor, thread_id, message_ids, words)
            # A run that is still under way, without a lease, must not write the words back.
            cursor.execute(_RETIRE_WRITERS, (uuid4().hex, thread_id))
        self.scrub()
        return changed

    def _rewrite(self, cursor: sqlite3.Cursor, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        redaction = Redaction(message_ids, words, said=self._said(cursor, thread_id, set(message_ids)))
        return self._redact_checkpoints(cursor, thread_id, redaction) + self._redact_writes(
            cursor, thread_id, redaction
        )

    def _said(self, cursor: sqlite3.Cursor, thread_id: str, message_ids: set[str]) -> set[str]:
        """What these messages say: a turn's input is stored as it was given, before its messages had ids."""
        return {
            text
            for statement in (_STORED_CHECKPOINTS, _STORED_WRITES)
            for _, kind, stored, *_ in cursor.execute(statement, (thread_id,)).fetchall()
            for text in said_by(message_ids, self.serde.loads_typed((kind, stored)))
        }

    def _redact_checkpoints(self, cursor: sqlite3.Cursor, thread_id: str, redaction: Redaction) -> int:
        changed = 0
        rows = cursor.execute(_STORED_CHECKPOINTS, (thread_id,)).fetchall()
        for rowid, kind, stored, metadata in rows:
            checkpoint = self.serde.loads_typed((kind, stored))
            values = {name: redaction.of(name, value) for name, value in checkpoint["channel_values"].items()}
            plain = json.loads(metadata) if metadata else {}
            clean = {key: value if key in KEPT_OF_CONFIG else redaction(value) for key, value in plain.items()}
            if clean == plain and all(value is checkpoint["channel_values"][name] for name, value in values.items()):
                continue
            kind, stored = self.serde.dumps_typed({**checkpoint, "channel_values": values})
            cursor.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ? WHERE rowid = ?",
                (kind, stored, json.dumps(clean, ensure_ascii=False).encode("utf-8", "ignore"), rowid),
            )
            changed += 1
        return changed

    def _redact_writes(self, cursor: sqlite3.Cursor, thread_id: str, redaction: Redaction) -> int:
        changed = 0
        rows = cursor.execute(_STORED_WRITES, (thread_id,)).fetchall()
        for rowid, kind, stored, channel in rows:
            value = self.serde.loads_typed((kind, stored))
            clean = redaction.of(channel, value)
            if clean is value:
                continue
            cursor.execute(
                "UPDATE writes SET type = ?, value = ? WHERE rowid = ?", (*self.serde.dumps_typed(clean), rowid)
            )
            changed += 1
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
        with self.cursor() as cursor:
            for statement in _THREAD_ROWS:
                cursor.execute(statement, (thread_id,))
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
        with self.cursor() as cursor:
            for (namespace,) in cursor.execute(_NAMESPACES, (thread_id,)).fetchall():
                key = (thread_id, namespace)
                self._keep(cursor, key, lineage(_one(cursor, _HEAD, key), self._history(cursor, key)))

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
        with self.cursor() as cursor:
            for (namespace,) in cursor.execute(_NAMESPACES, (thread_id,)).fetchall():
                key = (thread_id, namespace)
                rows = cursor.execute(_METADATA, key).fetchall()
                kept = {row[0] for row in rows if json.loads(row[2] or b"{}").get("run_id") not in run_ids}
                history = self._history(cursor, key)
                self._keep(cursor, key, {needed for start in kept for needed in lineage(start, history)})

    def _history(self, cursor: sqlite3.Cursor, key: tuple[str, str]) -> Callable[[str], Node | None]:
        """How to look at one checkpoint of a namespace for what it holds and what it lacks."""
        delta_channels = frozenset(
            channel
            for _, _, metadata in cursor.execute(_METADATA, key).fetchall()
            for channel in json.loads(metadata or b"{}").get(_COUNTERS, {})
        )

        @cache
        def load(checkpoint_id: str) -> Node | None:
            row = cursor.execute(_CHECKPOINT, (*key, checkpoint_id)).fetchone()
            if row is None:
                return None
            checkpoint = self.serde.loads_typed((row[0], row[1]))
            holds = frozenset(checkpoint["channel_values"])
            return Node(checkpoint_id, row[2], holds, (delta_channels & set(checkpoint["channel_versions"])) - holds)

        return load

    def _keep(self, cursor: sqlite3.Cursor, key: tuple[str, str], kept: set[str]) -> None:
        """Delete every checkpoint of a namespace but `kept`, and link what is left."""
        parents = {row[0]: row[1] for row in cursor.execute(_METADATA, key).fetchall()}
        continued = {parent for each, parent in parents.items() if each in kept}
        for each, parent in parents.items():
            if each not in kept:
                cursor.execute(_DELETE_WRITES, (*key, each))
                cursor.execute(_DELETE_CHECKPOINT, (*key, each))
                if parent in kept and parent not in continued:
                    # The input of the deleted run lies on the checkpoint that it began from.
                    cursor.execute(_DELETE_TASK_WRITES, (*key, parent, str(uuid5(UUID(parent), INPUT))))
            elif (relinked := nearest_kept(parent, parents, kept)) != parent:
                cursor.execute(_SET_PARENT, (relinked, *key, each))
        if not kept:
            cursor.execute("DELETE FROM writers WHERE thread_id = ? AND checkpoint_ns = ?", key)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's whole history. Raises UsageError when there is none, or when the target has one."""
        with self.cursor() as cursor:
            count = "SELECT count(*) FROM checkpoints WHERE thread_id = ?"
            if not _one(cursor, count, (source_thread_id,)):
                raise UsageError(f"thread {source_thread_id!r} has no checkpoints to copy; check its id")
            if _one(cursor, count, (target_thread_id,)):
                raise UsageError(f"thread {target_thread_id!r} has checkpoints already; copy to a new id")
            cursor.execute(_COPY_CHECKPOINTS, (target_thread_id, source_thread_id))
            cursor.execute(_COPY_WRITES, (target_thread_id, source_thread_id))

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


def _readable(stored: bytes) -> str:
    return stored.decode("utf-8", "ignore").casefold()


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


def _coordinates(config: RunnableConfig) -> RunnableConfig:
    """The config with nothing but the checkpoint's place, since LangGraph stores the rest as metadata."""
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {"configurable": {name: config["configurable"][name] for name in names if name in config["configurable"]}}


def _essential(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    beside = {**config["configurable"], **config.get("metadata", {})}
    return cast(CheckpointMetadata, {name: beside[name] for name in KEPT_OF_CONFIG if name in beside} | {**metadata})


def _check_strategy(strategy: str) -> None:
    if strategy not in ("keep_latest", "delete"):
        raise UsageError(f"strategy={strategy!r} is none; write keep_latest or delete")
