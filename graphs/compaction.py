"""Compaction on request: what a turn does when its request is too long, done between two turns."""

from __future__ import annotations

import copy
import sys
from collections.abc import Generator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateUpdate

from everthread.errors import ModelReplyError, UsageError
from everthread.graphs.gate import GatedGraph
from everthread.nodes import Compact, Flush
from everthread.nodes.compact.cut import checked_turns
from everthread.nodes.node import Ask, adrive, drive, runtime_for
from everthread.nodes.state import MemoryState, MemoryUpdate
from everthread.stores.aside import aside
from everthread.stores.identity import memory_context

__all__ = ["acompact_now", "compact_now"]


def compact_now(
    agent: GatedGraph,
    config: RunnableConfig,
    *,
    context: Any,
    keep_tokens: int | None = None,
    keep_turns: int | None = None,
) -> bool:
    """Flush and compact a thread of `create_memory_agent` now, down to `keep_tokens`, or to the last `keep_turns` turns
    of the user; whether its view changed.

    With neither, or 0 tokens, the last turn alone stays. The thread is held meanwhile, and keeps every message. Raises
    AccessDenied for another user's thread, Conflict when it stays busy, UsageError when a turn of it is not over, or
    the graph compacts nothing, ModelReplyError when there is no usable summary: then the view is as it was.
    """
    request = Request(agent, config, context, keep_tokens, keep_turns)
    request.entry.bind()
    with request.entry.hold():
        update = drive(request.steps(agent.get_state(config)))
        request.save(update)
    return request.has_moved(update)


async def acompact_now(
    agent: GatedGraph,
    config: RunnableConfig,
    *,
    context: Any,
    keep_tokens: int | None = None,
    keep_turns: int | None = None,
) -> bool:
    """`compact_now` for asyncio."""
    request = Request(agent, config, context, keep_tokens, keep_turns)
    await aside(request.entry.bind)
    async with request.entry.ahold():
        update = await adrive(request.steps(await agent.aget_state(config)))
        await aside(request.save, update)
    return request.has_moved(update)


class Request:
    """A compaction that was asked for."""

    def __init__(
        self,
        agent: GatedGraph,
        config: RunnableConfig,
        context: Any,
        keep_tokens: int | None,
        keep_turns: int | None,
    ) -> None:
        entry = agent._entry(config, context)
        if entry is None or entry.thread_id is None:
            raise UsageError(
                "name the thread to compact, outside of a run: config={'configurable': {'thread_id': ...}}"
            )
        found = [agent.nodes[name].bound for name in ("flush", "compact", "consolidate") if name in agent.nodes]
        if len(found) < 3 or not (isinstance(found[0], Flush) and isinstance(found[1], Compact)):
            raise UsageError("this graph compacts nothing; compact_now is for what create_memory_agent makes")
        self.agent, self.config, self.entry = agent, config, entry
        self.flush, self.compact = copy.copy(found[0]), copy.copy(found[1])
        if keep_tokens is None:
            keep_tokens = 0 if keep_turns is None else sys.maxsize
        self.flush.keep_tokens = self.compact.keep_tokens = keep_tokens
        self.flush.keep_turns = self.compact.keep_turns = checked_turns(keep_turns)
        self._said: list[dict[str, Any]] = []

    def steps(self, before: Any) -> Generator[Ask, Any, MemoryUpdate]:
        """Flush, then compact, as in a turn; returns both updates."""
        if before.tasks:
            raise UsageError(
                f"a turn of thread {self.entry.thread_id} is not over; finish it with invoke(None, config)"
            )
        state = cast(MemoryState, before.values)
        context = memory_context(self.entry.context)
        runtime = runtime_for(context, self.entry.store, self.entry.thread_id, stream_writer=self._said.append)
        flushed = cast(MemoryUpdate, (yield from self.flush.steps(state, runtime)))
        state = cast(MemoryState, {**state, **flushed})
        return {**flushed, **cast(MemoryUpdate, (yield from self.compact.steps(state, runtime)))}

    def save(self, update: MemoryUpdate) -> None:
        """Store the update as that of a turn's last node, so that nothing follows."""
        if update:
            # Past the gate, which we hold.
            super(GatedGraph, self.agent).bulk_update_state(self.config, [[StateUpdate(update, "consolidate")]])

    def has_moved(self, update: MemoryUpdate) -> bool:
        """Whether the view changed. ModelReplyError when it did not because there is no usable summary."""
        for each in self._said:
            if (each["node"], each["event"]) == ("compact", "failed"):
                raise ModelReplyError(f"thread {self.entry.thread_id} was not compacted: {each['reason']}")
        return "window" in update
