"""The channel that a thread's messages are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import PendingWrite

__all__ = ["ThreadChannel"]


class ThreadChannel(DeltaChannel[list[AnyMessage]]):
    """A `DeltaChannel` that knows which messages it has: to add some, its reducer would look at all of them, several
    times a turn. What it holds after an update is what the reducer makes of it."""

    __slots__ = ("_ids",)
    _ids: set[str | None]
    """Of the messages that are held; as many as they are, or else not known."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ids = set()

    def copy(self) -> Self:
        """The same channel for another reader."""
        new = super().copy()
        new._ids = self._ids.copy()
        return new

    def update(self, values: Sequence[Any]) -> bool:
        """Take what the nodes of a step wrote; whether there was anything."""
        if not values:  # each step is told to each channel
            return super().update(values)
        added = self._added(values)
        if added:
            self.value = [*self.value, *added]
            return True
        self._ids = set()
        return super().update(values)

    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        """Take what was written since a snapshot, oldest first."""
        added = self._added([value for _, _, value in writes])
        if added:
            self.value = [*self.value, *added]
        else:
            self._ids = set()
            super().replay_writes(writes)

    def _added(self, values: Sequence[Any]) -> list[AnyMessage]:
        """The messages of these writes when they are to be added and no more; else none."""
        held = self.value
        added = [message for write in values for message in (write if isinstance(write, list) else [write])]
        if not isinstance(held, list) or not all(_is_plain(message) for message in added):
            return []
        if len(self._ids) != len(held):
            self._ids = {getattr(message, "id", None) for message in held} - {None}
        named = [message.id for message in added if message.id is not None]
        new = set(named)
        if len(self._ids) != len(held) or len(new) != len(named) or not self._ids.isdisjoint(new):
            return []
        self._ids |= new
        return added


def _is_plain(value: Any) -> bool:
    return isinstance(value, BaseMessage) and not isinstance(value, RemoveMessage)
