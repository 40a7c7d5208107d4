"""A request that every provider takes, whatever a thread has become.

OpenAI and Anthropic each refuse what the other lets pass, and a thread may have begun with another model, in another
program, or with a message that says nothing. One refused message would stop each later turn. Pure: only the request is
changed, the thread keeps everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.nodes.state import MARK
from everthread.nodes.tool_calls import well_ordered

__all__ = ["joined", "sendable"]

NOT_SHOWN = "The earlier part of this conversation is not shown."
EMPTY = "(empty)"
CALLS = frozenset({"tool_use", "tool_call", "function_call"})
"""Kinds of content parts that repeat a call of `tool_calls`, with its id."""


def sendable(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The request as OpenAI and Anthropic take it; its messages are the same objects where nothing was wrong.

    Each call of a tool is followed by its one result, under an id that no other call of the request has. All system
    messages are one, at the beginning, and the user speaks first after it. Nothing is empty: a reply that says nothing
    and calls nothing is left out, and an empty message of the user's says so.
    """
    system: SystemMessage | None = None
    rest: list[BaseMessage] = []
    for message in messages:
        if not isinstance(message, SystemMessage):
            rest.append(message)
        elif message.text.strip():
            system = joined(system, message)
    rest = [*_told_apart(well_ordered([*_spoken(rest)]))]
    if rest and not isinstance(rest[0], HumanMessage):
        marks = {MARK: {"kind": "notice"}}
        rest.insert(0, HumanMessage(NOT_SHOWN, id="everthread-not-shown", additional_kwargs=marks))
    return [*([system] if system else []), *rest]


def joined(system: SystemMessage | None, more: SystemMessage) -> SystemMessage:
    """One system message of two; blocks (with marks for a prompt cache) stay as they are."""
    if system is None:
        return more
    if isinstance(system.content, str) and isinstance(more.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{more.content}"})
    return system.model_copy(update={"content": [*_blocks(system), *_blocks(more)]})


def _blocks(message: BaseMessage) -> list[str | dict[Any, Any]]:
    return [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content


def _spoken(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """The messages without what says nothing; a call that could not be read is none, since it was never made."""
    for message in messages:
        spoken = _readable(message) if isinstance(message, AIMessage) else message
        content = _without_empty(spoken.content)
        if content is not spoken.content:
            spoken = spoken.model_copy(update={"content": content})
        if isinstance(spoken, HumanMessage) and not content:
            spoken = spoken.model_copy(update={"content": EMPTY})
        if content or not isinstance(spoken, AIMessage) or spoken.tool_calls:
            yield spoken


def _without_empty(content: str | list[str | dict[Any, Any]]) -> str | list[str | dict[Any, Any]]:
    """The same object when it says something; else without the parts that do not."""
    if isinstance(content, str):
        return content if content.strip() else ""
    full = [_typed(part) for part in content if not _is_empty(part)]
    return content if full and full == content else full or ""


def _typed(part: str | dict[Any, Any]) -> str | dict[Any, Any]:
    """The part with the type that clients demand: what has none and is not empty is a text."""
    return part if isinstance(part, str) or part.get("type") else {**part, "type": "text"}


def _is_empty(part: str | dict[Any, Any]) -> bool:
    text = part if isinstance(part, str) else part.get("text") if part.get("type") in ("text", "", None) else "?"
    return not str(text or "").strip()


def _readable(message: AIMessage) -> AIMessage:
    """The message without calls whose arguments could not be read, or that stand in its content alone: some clients
    send them again, and nobody answers."""
    named = [call for call in message.tool_calls if call["id"]]  # a call without an id cannot be answered
    ids = {call["id"] for call in named}
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if not _calls(part) or _id_of(part) in ids]
    raw = {"tool_calls", "function_call"} & message.additional_kwargs.keys()
    whole = len(named) == len(message.tool_calls) and len(content) == len(message.content)
    if whole and not message.invalid_tool_calls and (not raw or named):
        return message
    kept = {key: value for key, value in message.additional_kwargs.items() if key not in raw}
    changed = {"content": content, "tool_calls": named, "invalid_tool_calls": [], "additional_kwargs": kept}
    return message.model_copy(update=changed)


def _told_apart(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """The messages, well ordered, with no id of a call used twice: some models begin to count anew at each reply."""
    used: Counter[str] = Counter()
    results: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            fresh = results.pop(0)
            yield message if fresh == message.tool_call_id else message.model_copy(update={"tool_call_id": fresh})
            continue
        if not isinstance(message, AIMessage) or not message.tool_calls:
            yield message
            continue
        ids = [str(call["id"]) for call in message.tool_calls]
        results = [_fresh(each, used) for each in ids]
        yield message if results == ids else _renamed(message, ids, results)


def _fresh(call_id: str, used: Counter[str]) -> str:
    """`call_id` at its first use, and something else that was not used at each later one."""
    used[call_id] += 1
    if used[call_id] == 1:
        return call_id
    return _fresh(f"{call_id}-{used[call_id]}", used)


def _renamed(message: AIMessage, ids: Sequence[str], fresh: Sequence[str]) -> AIMessage:
    calls = [{**call, "id": new} for call, new in zip(message.tool_calls, fresh, strict=True)]
    content = message.content
    if isinstance(content, list):
        waiting = [*zip(ids, fresh, strict=True)]
        content = [_with_id(part, waiting) for part in content]
    return message.model_copy(update={"tool_calls": calls, "content": content})


def _with_id(part: str | dict[Any, Any], waiting: list[tuple[str, str]]) -> str | dict[Any, Any]:
    """The part with the new id of the next call that it repeats, which waits no longer."""
    if isinstance(part, str) or not _calls(part):
        return part
    pair = next((each for each in waiting if each[0] == _id_of(part)), None)
    if pair is None:
        return part
    waiting.remove(pair)
    return {**part, ("call_id" if "call_id" in part else "id"): pair[1]}


def _calls(part: str | dict[Any, Any]) -> bool:
    return isinstance(part, dict) and part.get("type") in CALLS


def _id_of(part: str | dict[Any, Any]) -> Any:
    return part.get("call_id", part.get("id")) if isinstance(part, dict) else None
