"""Where the model's view of a thread may start. Pure: `Flush` and `Compact` ask it and so agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.errors import UsageError
from everthread.nodes.compact.budget import Counter, count_tokens
from everthread.nodes.eviction import has_media, pointed, text_in
from everthread.nodes.state import MemoryState, in_view, is_marked, visible

__all__ = ["KEEP_TOKENS", "Leaving", "checked_turns", "leaving", "many_turns", "safe_cut", "unread", "whole_starts"]

KEEP_TOKENS = 20_000
"""Tokens of the newest messages that stay verbatim, unless told otherwise."""


SHRINKS = 1_000
"""Characters from which on a result that the model has read is shrunk to a pointer."""
SOME_ARTIFACT = "sha256:" + 64 * "0"
"""As long as the id that a shrunk result will name."""


class Leaving(NamedTuple):
    """A thread's visible messages, divided by a cut."""

    prefix: list[AnyMessage]
    """What leaves the window, oldest first; empty when it is enough to shrink."""
    tail: list[AnyMessage]
    """What stays."""
    shrinking: list[ToolMessage]
    """Results in the tail of which only the beginning is shown from now on."""


def leaving(
    state: MemoryState, keep_tokens: int, counter: Counter | None = None, keep_turns: int | None = None
) -> Leaving | None:
    """What would leave the window now, or None when nothing would.

    Results that the model has read shrink first, the oldest before the others, until what is visible takes at most
    `keep_tokens` (R66); only what is still too much is cut. After an overflow at most half of what was visible stays:
    the provider has shown that our count was too low. Of the user's turns at most `keep_turns` stay, whatever their
    length (R38, R60). Since the last compaction something must have been said: without new content the window does not
    move again.
    """
    messages = visible(state)
    window = state.get("window", {})
    newest = messages[-1].id if messages else None
    if newest is not None and window.get("compacted_at") == newest:
        return None
    sizes = [count_tokens([message], counter) for message in messages]
    if newest is not None and window.get("overflow") == newest:
        keep_tokens = min(keep_tokens, sum(sizes) // 2)
    shrinking: dict[int, ToolMessage] = {}
    for index, result in _consumed(messages):
        if sum(sizes) <= keep_tokens:
            break
        if result.id not in window.get("shrunk", {}):
            shrinking[index] = result
            sizes[index] = count_tokens([pointed(result, SOME_ARTIFACT)], counter)
    cut = max(_cut(messages, sizes, keep_tokens), _turns_cut(messages, keep_turns))
    staying = [result for index, result in shrinking.items() if index >= cut]
    return Leaving(messages[:cut], messages[cut:], staying) if cut or staying else None


def _consumed(messages: Sequence[BaseMessage]) -> Iterator[tuple[int, ToolMessage]]:
    """The long results, and those with pictures or files, that the model has read, with their positions, the oldest
    first. One that a tool of ours gave is short, and stands for what it refers to."""
    read = _read_up_to(messages)
    for index, message in enumerate(messages[:read]):
        if isinstance(message, ToolMessage) and not is_marked(message):
            if len(text_in(message)) >= SHRINKS or has_media(message):
                yield index, message


def safe_cut(messages: Sequence[BaseMessage], keep_tokens: int, counter: Counter | None = None) -> int:
    """Index of the first message that stays verbatim; 0 when nothing has to leave, or nothing can.

    `messages[index:]` takes at most `keep_tokens` where that is possible. Never cut off is what the model has not read
    yet (R66), and a tool call and its results stay on one side, parallel calls included (R55). The tail starts at
    a user's message, unless that would leave out more than half of what could have been kept.
    """
    return _cut(messages, [count_tokens([message], counter) for message in messages], keep_tokens)


def _cut(messages: Sequence[BaseMessage], each: Sequence[int], keep_tokens: int) -> int:
    """`safe_cut`, given the tokens of each message."""
    sizes = [*accumulate(reversed(each))][::-1]
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


def many_turns(state: MemoryState, keep_turns: int | None) -> bool:
    """Whether twice as many turns of the user are visible as should stay: some leave then, so that the view does not
    move, and no summary is made, at each turn."""
    return keep_turns is not None and sum(map(_begins_a_turn, in_view(state))) > 2 * keep_turns


def checked_turns(keep_turns: int | None) -> int | None:
    """`keep_turns`, when it can be one; UsageError otherwise."""
    if keep_turns is not None and keep_turns < 1:
        raise UsageError(f"keep_turns must be at least 1 turn, or None for any number, not {keep_turns}")
    return keep_turns


def _turns_cut(messages: Sequence[BaseMessage], keep_turns: int | None) -> int:
    """Index of the first message of the last `keep_turns` turns, or of the next safe place; 0 when all may stay."""
    turns = [index for index, message in enumerate(messages) if _begins_a_turn(message)]
    starts = _safe_starts(messages)
    if keep_turns is None or len(turns) <= keep_turns or not starts:
        return 0
    return next((start for start in starts if start >= turns[-keep_turns]), starts[-1])


def _safe_starts(messages: Sequence[BaseMessage]) -> list[int]:
    """Every index, in order, at which the tail may start: what the model has not read is behind it."""
    read = _read_up_to(messages)
    return [start for start in whole_starts(messages) if start <= read + 1]


def whole_starts(messages: Sequence[BaseMessage]) -> list[int]:
    """Every index but 0, in order, from which on all results have their calls."""
    needs = _needs(messages)
    starts = []
    first_needed = len(messages)
    for index in range(len(messages) - 1, 0, -1):
        first_needed = min(first_needed, needs[index])
        if index <= first_needed:
            starts.append(index)
    return starts[::-1]


def unread(messages: Sequence[BaseMessage]) -> set[str]:
    """Ids of the messages that the model has not read yet."""
    return {message.id for message in messages[_read_up_to(messages) + 1 :] if message.id}


def _read_up_to(messages: Sequence[BaseMessage]) -> int:
    """Position of the last message that the model wrote: it has read what stands before it. -1 when there is none."""
    return next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], AIMessage)), -1)


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
