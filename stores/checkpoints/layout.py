"""What a thread's rows can do, whatever database they are in: reading, saving, erasing and retention rest on this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.stores.checkpoints.fence import Last

__all__ = ["BLOBS", "COUNTERS", "SMALL", "Kept", "Key", "Link", "Place", "ThreadRows", "Value", "is_small"]

BLOBS = "blobs"
"""In a stored checkpoint: where the value of a channel is, of each that has a row of its own: its place, or a list of
those of its parts."""
COUNTERS = "counters_since_delta_snapshot"
"""In metadata: how long each DeltaChannel that is not in the checkpoint has not been in one."""
SMALL = 100
"""Bytes of a value that a checkpoint repeats: a row of its own would take a third of that."""

Place = tuple[str, str]
"""A thread and one of its namespaces."""


class Key(NamedTuple):
    """Where a checkpoint is."""

    thread_id: str
    namespace: str
    checkpoint_id: str


class Kept(NamedTuple):
    """A checkpoint as its row has it: the values of `checkpoint[BLOBS]` are elsewhere."""

    key: Key
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]


class Link(NamedTuple):
    """A checkpoint's place in its thread's history."""

    id: str
    parent: str | None
    metadata: dict[str, Any]


class Value(NamedTuple):
    """A channel's value in a row of its own."""

    channel: str
    value: Any
    key: Sequence[Any]
    """Where it is, as its backend knows."""


class ThreadRows(ABC):
    """A thread's rows, in one transaction."""

    serde: SerializerProtocol

    # ---------------------------------------------------------------- checkpoints and writes

    @abstractmethod
    def find(self, thread_id: str, namespace: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        """The checkpoint of this id, or the latest; None when there is none."""

    def latest(self, place: Place) -> tuple[CheckpointTuple | None, Last]:
        """The latest checkpoint, and who wrote last: no later than the checkpoint was, so that nobody is let through
        who has not seen what was written."""
        last = self.last_write(place)
        return self.find(*place, None), last

    @abstractmethod
    def search(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> list[CheckpointTuple]:
        """The checkpoints that match, the newest first."""

    @abstractmethod
    def history(self, key: Key, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """For each DeltaChannel, the nearest ancestor's value, if there is one, and the writes since, oldest first."""

    @abstractmethod
    def save(self, key: Key, parent_id: str | None, checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> None:
        """Store a checkpoint; what it has in common with its parent is there already."""

    @abstractmethod
    def note(self, key: Key, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> None:
        """Store what a task wrote. What it wrote before stays, unless all of it is about how the task went."""

    # ---------------------------------------------------------------- the fence

    @abstractmethod
    def head(self, place: Place) -> str | None:
        """The id of the latest checkpoint; None when there is none."""

    @abstractmethod
    def last_write(self, place: Place) -> Last:
        """Who wrote last, and how often anyone has."""

    def stand(self, place: Place, parent_id: str | None) -> tuple[str | None, Last]:
        """`head` and `last_write`. `parent_id`: what `save` will save a checkpoint upon, if it will."""
        return self.head(place), self.last_write(place)

    @abstractmethod
    def note_write(self, place: Place, run: str) -> None:
        """Count a write of this run."""

    @abstractmethod
    def retire(self, thread_id: str, run: str) -> None:
        """Let whoever has loaded the thread no longer write: `run`, which nobody is, wrote last."""

    @abstractmethod
    def forget_writers(self, place: Place) -> None:
        """Forget who wrote: nothing is left there."""

    # ---------------------------------------------------------------- what is stored

    @abstractmethod
    def kept(self, key: Key) -> dict[str, Any] | None:
        """The checkpoint as its row has it; None when there is none."""

    @abstractmethod
    def all_kept(self, thread_id: str) -> list[Kept]:
        """Every checkpoint of a thread as its row has it."""

    @abstractmethod
    def put_back(self, kept: Kept) -> None:
        """Store a checkpoint as it is now, in its row."""

    @abstractmethod
    def writes_of(self, thread_id: str) -> list[Value]:
        """Every write of a thread whose value is in its own row."""

    @abstractmethod
    def set_write(self, written: Value, value: Any) -> None:
        """Store another value in a write's row."""

    @abstractmethod
    def all_blobs(self, thread_id: str) -> Iterator[Any]:
        """Every value that has a row of its own, whether or not anything leads to it."""

    @abstractmethod
    def shared(self, thread_id: str, checkpoints: Sequence[Kept]) -> Iterator[Value]:
        """The values in rows of their own that these checkpoints, all of the thread, or its writes lead to."""

    @abstractmethod
    def set_shared(self, thread_id: str, shared: Value, value: Any) -> None:
        """Store another value in its row, for all that lead to it."""

    @abstractmethod
    def sweep(self, thread_id: str) -> None:
        """Delete the values that nothing in the thread leads to any more."""

    # ---------------------------------------------------------------- whole threads

    @abstractmethod
    def length(self, thread_id: str) -> int:
        """How many checkpoints the thread has."""

    @abstractmethod
    def heads(self) -> list[tuple[str, str]]:
        """Of each thread its id and that of its latest checkpoint, those of subgraphs left out."""

    @abstractmethod
    def threads_of_runs(self, run_ids: Collection[str]) -> list[str]:
        """The threads in which these runs left a checkpoint, sorted."""

    @abstractmethod
    def beginning_with(self, prefix: str) -> list[str]:
        """The threads whose ids begin so, sorted."""

    @abstractmethod
    def namespaces(self, thread_id: str) -> list[str]:
        """The namespaces of a thread that have a checkpoint."""

    @abstractmethod
    def links(self, place: Place) -> list[Link]:
        """How the checkpoints of a namespace are linked."""

    @abstractmethod
    def drop(self, place: Place, checkpoint_ids: Sequence[str]) -> None:
        """Delete these checkpoints and the writes on them."""

    @abstractmethod
    def drop_task(self, key: Key, task_id: str) -> None:
        """Delete what a task wrote on a checkpoint."""

    @abstractmethod
    def relink(self, key: Key, parent_id: str | None) -> None:
        """Give a checkpoint another parent."""

    @abstractmethod
    def delete(self, thread_id: str) -> None:
        """Delete everything of a thread."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Copy a thread, to one that has nothing."""


def is_small(value: Any) -> bool:
    """Whether a value is known to be small without encoding it."""
    if isinstance(value, str | list | dict):
        return len(value) <= (SMALL // 4 if isinstance(value, str) else 0)
    return value is None or isinstance(value, bool | int | float)
