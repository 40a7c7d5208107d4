"""What a checkpointer of ours does, whatever database it keeps threads in: one object for sync and async, one run of a
thread at a time, no stale writer, erasure and retention."""

from __future__ import annotations

import asyncio
import builtins
import random
import threading
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from everthread.errors import Conflict, UsageError
from everthread.stores.checkpoints import erasing, fence, lease
from everthread.stores.checkpoints.layout import COUNTERS, Key, Place, ThreadRows
from everthread.stores.checkpoints.recent import Recent
from everthread.stores.checkpoints.retention import drop_runs, keep_latest, last_steps
from everthread.stores.contract import Finding
from everthread.stores.origin import Origin
from everthread.stores.threads import below

__all__ = ["Saver"]

T = TypeVar("T")

KEPT_OF_CONFIG = ("source", "step", "parents", "run_id", COUNTERS)
"""What LangGraph itself reads. It copies all of `configurable` into the metadata, its server the context too, in plain
text; a user's name or a token among them would outlive every erasure. What `put` is given as metadata is kept whole."""


class Saver(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer with leases, a fence, erasure and retention.

    Every method raises StoreError when the database cannot do it; what was begun is rolled back.
    """

    place: str
    """What errors call the database. No password is in it."""

    def _open(self, place: str, leases: lease.Leasing, worker: ThreadPoolExecutor, leasing: ThreadPoolExecutor) -> None:
        """`worker` does what asyncio asks for; `leasing`, of one thread, its leases, each after the other."""
        self.place, self._leases, self._worker, self._leasing = place, leases, worker, leasing
        self._closed, self._recent, self._origin = threading.Event(), Recent(), Origin()

    @abstractmethod
    def _rows(self, *writing: str) -> AbstractContextManager[ThreadRows]:
        """The threads' rows in a transaction in which no one else writes to `writing`: committed at the end, rolled
        back whole on any exception. Without a thread it only reads, and sees one consistent state."""

    @abstractmethod
    def doctor(self) -> builtins.list[Finding]:
        """Look at the database's integrity, and whether every thread has its values; changes nothing."""

    def setup(self) -> None:
        """Nothing is left to do: the tables are made when the database is opened."""

    @abstractmethod
    def _shut(self) -> None:
        """Close the database."""

    def _scrub(self) -> None:
        """What has to be done to the bytes of what was erased."""

    def _after_delete(self) -> None:
        """What has to be done to the bytes of a thread that was deleted."""

    @abstractmethod
    def _bytes(self, thread_id: str | None = None) -> int:
        """What is stored of a thread, or of all. A backend that cannot tell them apart says all, each time."""

    @abstractmethod
    def _after_retention(self) -> None:
        """Give back what was freed."""

    def close(self) -> None:
        """Give every thread back and close the database. Closing twice is allowed; in a fork, all is left to who opened
        it."""
        if self._closed.is_set():
            return
        if not self._origin.is_here:
            self._closed.set()
            return
        self._leases.close()
        self._closed.set()
        for each in (self._leasing, self._worker):
            each.shutdown()
        self._recent.forget()
        self._shut()

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
            while not await self._run(claim.attempt, by=self._leasing):
                await asyncio.sleep(claim.pause())
            yield
        finally:
            # Queued at once, behind an attempt that was cancelled half-way, and done even if this is cancelled too.
            if not self._closed.is_set():
                await asyncio.shield(asyncio.wrap_future(self._leasing.submit(self._release, claim)))

    def _release(self, claim: lease.Claim) -> None:
        if not self._closed.is_set():  # `close` gave every thread back
            claim.release()

    # ---------------------------------------------------------------- reads

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` addresses, or the thread's latest; None when there is none."""
        configurable = config["configurable"]
        key, checkpoint_id = _key(configurable), get_checkpoint_id(config)
        with self._rows() as found:
            if checkpoint_id:
                addressed = found.find(*key, checkpoint_id)
                return None if addressed is None else _marked(addressed, None)
            head, last = found.latest(key)
        return None if head is None else _marked(head, fence.mark(last, key[1]))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that match, the newest first. Read at once: an iterator that is left alone holds no lock."""
        with self._rows() as found:
            return iter([_marked(each, None) for each in found.search(config, filter, before, limit)])

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each DeltaChannel is rebuilt from at the checkpoint that `config` addresses, or at the latest."""
        key, checkpoint_id = _key(config["configurable"]), get_checkpoint_id(config)
        with self._rows() as found:
            at = checkpoint_id or found.head(key)
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
        with self._rows(key.thread_id) as changed:
            self._pass(changed, config, key.checkpoint_id)
            changed.save(key, configurable.get("checkpoint_id"), checkpoint, _essential(config, metadata))
        place = {"thread_id": configurable["thread_id"], "checkpoint_ns": key.namespace}
        return {"configurable": {**place, "checkpoint_id": key.checkpoint_id}}

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; Conflict as for `put`."""
        key = Key(*_key(config["configurable"]), str(config["configurable"]["checkpoint_id"]))
        with self._rows(key.thread_id) as changed:
            self._pass(changed, config, None)
            changed.note(key, writes, task_id, task_path)

    def get_next_version(self, current: str | None, channel: None = None) -> str:
        """A version above `current`, and another one in each fork. Shorter than the stock saver's, and above all of
        those: a file of its goes on."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:010}.{random.getrandbits(32):08x}"

    def _pass(self, rows: ThreadRows, config: RunnableConfig, new: str | None) -> None:
        """Let this writer through and note it; `new` is the id of the checkpoint that it saves, if it saves one."""
        configurable, writer = config["configurable"], fence.writer_of(config)
        place = _key(configurable)
        if self._leases.lost(place[0]):
            raise fence.overtaken(
                place[0], rows.head(place), "is no longer held by this run: the connection that held it was lost"
            )
        if writer.kind == "fork":
            if new is not None:
                rows.note_write(place, uuid4().hex)
            return
        head, last = rows.stand(place, configurable.get("checkpoint_id") if new else None)
        begins_again = new is not None and head is not None and not configurable.get("checkpoint_id")
        fence.check(place[0], writer, last, head=head, new=new, begins_again=begins_again)
        rows.note_write(place, writer.run)

    # ---------------------------------------------------------------- erasure

    def redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str], *, timeout: float = 60.0) -> int:
        """Replace these messages, and any text that contains one of `words`, by "[erased]" in every checkpoint, pending
        write and snapshot of the thread; returns how many rows were rewritten.

        The arguments of the messages' tool calls go too, their ids stay, and the history loads as before. Raises
        Conflict when a run holds the thread for longer than `timeout` seconds. In SQLite the bytes are overwritten in
        the file and its log, and StoreError is raised when another process keeps the old log from that.
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
            with self._rows(thread_id) as changed:
                undone.changed = erasing.rewrite(changed, thread_id, message_ids, words, KEPT_OF_CONFIG)
                raise undone
        except _Undone as rolled_back:
            return rolled_back.changed

    def holds(self, words: Sequence[str], thread_ids: Sequence[str]) -> builtins.list[str]:
        """Which of these threads still have one of `words` (whatever its case) in a checkpoint or pending write."""
        with self._rows() as found:
            return [each for each in dict.fromkeys(thread_ids) if erasing.holds(found, each, words)]

    def _redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        with self._rows(thread_id) as found:
            changed = erasing.rewrite(found, thread_id, message_ids, words, KEPT_OF_CONFIG)
            # A run that is still under way, without a lease, must not write the words back.
            found.retire(thread_id, uuid4().hex)
        self._recent.forget()
        self._scrub()
        return changed

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, and of those of its sub-agents; waits for runs that hold them."""
        with self.turn(thread_id):
            self._delete_thread(str(thread_id))
            for each in self._below(thread_id):
                with self.turn(each):
                    self._delete_thread(each)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread` for asyncio."""
        async with self.aturn(thread_id):
            await self._run(self._delete_thread, str(thread_id))
            for each in await self._run(self._below, thread_id):
                async with self.aturn(each):
                    await self._run(self._delete_thread, each)

    def _below(self, thread_id: str) -> builtins.list[str]:
        """The threads of a thread's sub-agents, and of theirs."""
        with self._rows() as found:
            return found.beginning_with(below(str(thread_id)))

    def _delete_thread(self, thread_id: str) -> None:
        with self._rows(thread_id) as found:
            found.delete(thread_id)
        self._recent.forget()
        self._after_delete()

    # ---------------------------------------------------------------- retention

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`"keep_latest"`: keep each namespace's head, and the ancestors that its DeltaChannels are rebuilt from (at
        most as far as their last snapshot). `"delete"`: delete the threads, as `delete_thread` does. Waits for runs
        that hold them."""
        _check_strategy(strategy)
        _check_listed(thread_ids, "thread_ids")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                with self.turn(thread_id):
                    self._prune(str(thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune` for asyncio."""
        _check_strategy(strategy)
        _check_listed(thread_ids, "thread_ids")
        for thread_id in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread_id)
            else:
                async with self.aturn(thread_id):
                    await self._run(self._prune, str(thread_id))

    def _prune(self, thread_id: str) -> None:
        with self._rows(thread_id) as found:
            keep_latest(found, thread_id)
        self._recent.forget()

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
        gone. A thread that is in a run is left alone. A file is rewritten without its free pages, a server's tables are
        vacuumed. Raises UsageError without a policy, and for one below zero.
        """
        due = self._due(older_than, max_bytes, strategy, now)
        pruned = [thread_id for thread_id in due if self._prune_idle(thread_id, strategy)]
        if pruned:
            self._after_retention()
        return pruned

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
        with self._rows() as found:
            idle = last_steps(found)
        stored = 0 if max_bytes is None else self._bytes()
        for at, thread_id in idle:
            if (before is not None and at < before) or (max_bytes is not None and stored > max_bytes):
                large = 0 if max_bytes is None else self._bytes(thread_id)
                yield thread_id
                stored -= 0 if max_bytes is None else large - self._bytes(thread_id)

    def _prune_idle(self, thread_id: str, strategy: str) -> bool:
        try:
            with ExitStack() as held:
                held.enter_context(self.turn(thread_id, timeout=0.0))
                before = self._length(thread_id)
                if strategy != "delete":
                    self._prune(thread_id)
                    return self._length(thread_id) < before
                threads = [thread_id, *self._below(thread_id)]
                for each in threads[1:]:
                    held.enter_context(self.turn(each, timeout=0.0))
                for each in threads:
                    self._delete_thread(each)
                return before > 0
        except Conflict:  # in a run: not idle after all
            return False

    def _length(self, thread_id: str) -> int:
        with self._rows() as found:
            return found.length(thread_id)

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
        _check_listed(run_ids, "run_ids")
        with self._rows() as found:
            return found.threads_of_runs(run_ids)

    def _delete_for_runs(self, thread_id: str, run_ids: set[str]) -> None:
        with self._rows(thread_id) as found:
            drop_runs(found, thread_id, run_ids)
        self._recent.forget()

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's whole history. Raises UsageError when there is none, or when the target has one."""
        with self._rows(source_thread_id, target_thread_id) as found:
            if not found.length(source_thread_id):
                raise UsageError(f"thread {source_thread_id!r} has no checkpoints to copy; check its id")
            if found.length(target_thread_id):
                raise UsageError(f"thread {target_thread_id!r} has checkpoints already; copy to a new id")
            found.copy(source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread` for asyncio."""
        await self._run(self.copy_thread, source_thread_id, target_thread_id)

    # ---------------------------------------------------------------- asyncio

    async def _run(self, call: Callable[..., T], *args: Any, by: ThreadPoolExecutor | None = None, **options: Any) -> T:
        work = partial(copy_context().run, partial(call, *args, **options))
        try:
            return await asyncio.get_running_loop().run_in_executor(by or self._worker, work)
        except RuntimeError as error:
            if self._closed.is_set():
                raise UsageError(f"{self.place} is closed; open the checkpointer again") from error
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


def _key(configurable: Mapping[str, Any]) -> Place:
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _marked(found: CheckpointTuple, mark: str | None) -> CheckpointTuple:
    config: RunnableConfig = {**found.config, "configurable": {**found.config["configurable"], fence.MARK: mark}}
    return found._replace(config=config)


def _essential(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    beside = {**config["configurable"], **config.get("metadata", {})}
    essential = {name: beside[name] for name in KEPT_OF_CONFIG if name in beside} | {**metadata}
    return get_checkpoint_metadata({}, cast(CheckpointMetadata, essential))


def _check_listed(ids: Sequence[str], what: str) -> None:
    """UsageError for one id alone, whose letters would be taken for ids."""
    if isinstance(ids, str):
        raise UsageError(f"{what}: is one text; give a list of them")


def _check_strategy(strategy: str) -> None:
    if strategy not in ("keep_latest", "delete"):
        raise UsageError(f"strategy={strategy!r} is none; write keep_latest or delete")
