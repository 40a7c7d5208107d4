"""Where the model's view of a thread may start. Pure: `Flush` and `Compact` ask it and so agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.nodes.compact.budget import Counter, count_tokens
from everthread.nodes.state import MemoryState, is_marked, visible

__all__ = ["KEEP_TOKENS", "Leaving", "leaving", "safe_cut"]

KEEP_TOKENS = 20_000
"""Tokens of the newest messages that stay verbatim, unless told otherwise."""


class Leaving(NamedTuple):
    """A thread's visible messages, divided by a cut; neither side is empty."""

    prefix: list[AnyMessage]
    """What leaves the window, oldest first."""
    tail: list[AnyMessage]
    """What stays verbatim."""


def leaving(state: MemoryState, keep_tokens: int, counter: Counter | None = None) -> Leaving | None:
    """What would leave the window now, or None when nothing would.

    After an overflow at most half of what was visible stays: the provider has shown that our count was too low. Since
    the last compaction something must have been said: without new content the window does not move again.
    """
    messages = visible(state)
    window = state.get("window", {})
    newest = messages[-1].id if messages else None
    if newest is not None and window.get("compacted_at") == newest:
        return None
    if newest is not None and window.get("overflow") == newest:
        keep_tokens = min(keep_tokens, count_tokens(messages, counter) // 2)
    cut = safe_cut(messages, keep_tokens, counter)
    return Leaving(messages[:cut], messages[cut:]) if cut else None


def safe_cut(messages: Sequence[BaseMessage], keep_tokens: int, counter: Counter | None = None) -> int:
    """Index of the first message that stays verbatim; 0 when nothing has to leave, or nothing can.

    `messages[index:]` takes at most `keep_tokens` where that is possible. Never cut off is what the model has not read
    yet (R66), and a tool call and its results stay on one side, parallel calls included (R55). The tail starts at
    a user's message, unless that would leave out more than half of what could have been kept.
    """
    sizes = [*accumulate(count_tokens([message], counter) for message in reversed(messages))][::-1]
    starts = _safe_starts(messages)
    if not starts or sizes[0] <= keep_tokens:
        return 0
    fitting = [start for start in starts if sizes[start] <= keep_tokens]
    if not fitting:
        return starts[-1]
    first = fitting[0]
    turns = (start for start in fitting if _begins_a_turn(messages[start]))
    turn = next(turns, first)
    return turn if 2 * sizes[turn] >= sizes[first] else first


def _safe_starts(messages: Sequence[BaseMessage]) -> list[int]:
    """Every index, in order, at which the tail may start: all results from there on have their calls there too."""
    needs = _needs(messages)
    read = max((index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    starts = []
    first_needed = len(messages)
    for index in range(len(messages) - 1, 0, -1):
        first_needed = min(first_needed, needs[index])
        if index <= first_needed and index <= read + 1:
            starts.append(index)
    return starts[::-1]


def _needs(messages: Sequence[BaseMessage]) -> list[int]:
    """For each message the index of the one that must stay with it: a result's call, else itself."""
    called_at: dict[str | None, int] = {}
    needs = []
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            called_at.update({call["id"]: index for call in message.tool_calls})
        if isinstance(message, ToolMessage):  # one without a call leans on what precedes it: it cannot start the tail
            needs.append(called_at.get(message.tool_call_id, index - 1))
        else:
            needs.append(index)
    return needs


def _begins_a_turn(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not is_marked(message)
