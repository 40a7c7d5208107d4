"""Taking words out of what a thread has stored, whatever it is stored in."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph._internal._constants import TASKS
from langgraph.constants import START
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from everthread.stores.traces import spellings

ERASED = "[erased]"

INPUTS = frozenset({START, TASKS})
"""Channels that hold what a run or a node was given, as it was given."""

# Of an erased message only its id, its kind and the ids and names of its tool calls stay: the history remains valid.
_BLANK: dict[str, Any] = {
    "content": ERASED,
    "additional_kwargs": {},
    "response_metadata": {},
    "invalid_tool_calls": [],
    "tool_call_chunks": [],
    "artifact": None,
}


class Redaction:
    """Replaces messages by id, and any text that contains one of the words (whatever their case).

    Give it values of channels, not whole checkpoints: names of channels and nodes are not for it. `said` is what the
    messages say: by it they are known in a turn's input, where they have no id yet.
    """

    def __init__(self, message_ids: Iterable[str], words: Iterable[str], *, said: Iterable[str] = ()) -> None:
        self._ids = {identifier for identifier in message_ids if identifier}
        self._words = sorted({each.casefold() for word in words if word.strip() for each in spellings(word)})
        self._said = {text for text in said if text.strip()}
        self._in_input = False

    def of(self, channel: str, value: Any) -> Any:
        """`value` of this channel without the words."""
        self._in_input = channel in INPUTS
        try:
            return self(value)
        finally:
            self._in_input = False

    def __call__(self, value: Any) -> Any:
        """`value` without the words; the very same object when nothing in it had to go."""
        if isinstance(value, str):
            return ERASED if self._names(value) else value
        if isinstance(value, BaseMessage):
            return blank(value) if self._concerns(value) else value
        if isinstance(value, bytes | bytearray):
            return type(value)(ERASED.encode()) if self._names(value.decode(errors="ignore")) else value
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple | set | frozenset | deque):
            return self._sequence(value)
        return self._object(value)

    def _names(self, text: str) -> bool:
        if self._in_input and text in self._said:
            return True
        folded = text.casefold()
        return any(word in folded for word in self._words)

    def _concerns(self, message: BaseMessage) -> bool:
        if message.id in self._ids:
            return True
        said = message.model_dump(exclude={"id", "type", "tool_calls", "tool_call_id", "usage_metadata"})
        arguments = [call["args"] for call in getattr(message, "tool_calls", [])]
        return any(self._names(text) for text in texts([said, arguments]))

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        identifier = value.get("id")
        if "content" in value and isinstance(identifier, str) and identifier in self._ids:  # a message as plain data
            return {key: part for key, part in value.items() if key in ("id", "role", "type")} | {"content": ERASED}
        clean = {self(key): self(part) for key, part in value.items()}
        same = len(clean) == len(value) and all(key in clean and clean[key] is part for key, part in value.items())
        return value if same else clean

    def _sequence(self, value: Any) -> Any:
        clean = [self(part) for part in value]
        if all(new is old for new, old in zip(clean, value, strict=True)):
            return value
        return type(value)(*clean) if hasattr(value, "_fields") else type(value)(clean)

    def _object(self, value: Any) -> Any:
        """Anything else that can hold text: LangGraph's Send, Command and Interrupt, a host's own models."""
        if isinstance(value, Send):
            argument = self(value.arg)
            return value if argument is value.arg else Send(value.node, argument, timeout=value.timeout)
        if isinstance(value, Interrupt):
            said = self(value.value)
            return value if said is value.value else Interrupt(said, id=value.id)
        fields = _fields(value)
        clean = {name: self(part) for name, part in fields.items()}
        changed = {name: part for name, part in clean.items() if part is not fields[name]}
        if not changed:
            return value
        if isinstance(value, BaseModel):
            return value.model_copy(update=changed)
        return dataclasses.replace(value, **changed)


def blank(message: BaseMessage) -> BaseMessage:
    """The message without anything that was said: text, arguments of tool calls, what the provider added."""
    update: dict[str, Any] = {name: part for name, part in _BLANK.items() if name in type(message).model_fields}
    if calls := getattr(message, "tool_calls", None):
        update["tool_calls"] = [{**call, "args": {}} for call in calls]
    clean = message.model_copy(update=update)
    return message if clean == message else clean


def said_by(message_ids: set[str], value: Any) -> Iterator[str]:
    """What the user's messages with these ids say, wherever they are in plain data."""
    if isinstance(value, BaseMessage):
        if value.id in message_ids and value.type == "human":
            parts = [value.content] if isinstance(value.content, str) else value.content
            yield from (part if isinstance(part, str) else str(part.get("text", "")) for part in parts)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from said_by(message_ids, part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from said_by(message_ids, part)
    elif hasattr(value, "value"):  # LangGraph's snapshot of a DeltaChannel, Overwrite
        yield from said_by(message_ids, value.value)


def texts(value: Any) -> Iterator[str]:
    """Every text in plain data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from texts(key)
            yield from texts(part)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        for part in value:
            yield from texts(part)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}
