"""A graph's stream without the markers: what a reader sees while the model speaks (R208).

Of the parts of a stream only the tokens of `stream_mode="messages"` have markers: they come from the model itself,
before its reply is one. A marker may come in several pieces, and the pieces of several replies between each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk

from everthread.nodes.reason.citing import Unmarking, without_markers

__all__ = ["UnmarkedStream"]


class _Spoken(NamedTuple):
    """A text of a reply on its way: the reply's, or that of one of its blocks."""

    text: Unmarking
    part: Any
    """The part of the stream that brought the last piece."""
    block: dict[str, Any] | None
    """The block that the last piece stood in."""


class UnmarkedStream:
    """The parts of one stream, in whatever modes, with the text of its replies as `unmarked` has it."""

    def __init__(self) -> None:
        self._spoken: dict[tuple[str | None, Any], _Spoken] = {}

    def of(self, part: Any) -> Any:
        """The part as it is to be seen."""
        message = _message_in(part)
        if isinstance(message, AIMessageChunk):
            content = self._content(message, part)
            if message.chunk_position == "last":
                content = _with(content, self._rests(message.id))
            return part if content == message.content else _put(part, message.model_copy(update={"content": content}))
        if isinstance(message, AIMessage):
            return _put(part, message.model_copy(update={"content": without_markers(message.content)}))
        return part

    def end(self) -> Iterator[Any]:
        """What is still to be seen of replies whose end did not come."""
        for id, _ in list(self._spoken):
            part = next((spoken.part for key, spoken in self._spoken.items() if key[0] == id), None)
            if rests := self._rests(id):
                yield _put(part, AIMessageChunk(content=_with("", rests), id=id))

    def _content(self, message: AIMessageChunk, part: Any) -> Any:
        content = message.content
        if isinstance(content, str):
            return self._piece((message.id, None), content, part, None) if content else content
        return [self._block(message.id, block, part) for block in content]

    def _block(self, id: str | None, block: Any, part: Any) -> Any:
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return {**block, "text": self._piece((id, block.get("index", 0)), block["text"], part, block)}
        return block

    def _piece(self, key: tuple[str | None, Any], text: str, part: Any, block: dict[str, Any] | None) -> str:
        before = self._spoken.get(key)
        spoken = _Spoken(before.text if before else Unmarking(), part, block)
        self._spoken[key] = spoken
        return spoken.text.of(text)

    def _rests(self, id: str | None) -> list[tuple[dict[str, Any] | None, str]]:
        """What was held back of a reply, by block; it is over with that."""
        keys = [key for key in self._spoken if key[0] == id]
        ended = [self._spoken.pop(key) for key in keys]
        return [(spoken.block, rest) for spoken in ended if (rest := spoken.text.end())]


def _with(content: Any, rests: list[tuple[dict[str, Any] | None, str]]) -> Any:
    """A chunk's content with what was held back before it."""
    if not rests:
        return content
    if isinstance(content, str) and all(block is None for block, _ in rests):
        return content + "".join(rest for _, rest in rests)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or [])
    return [*blocks, *({**(block or {"type": "text"}), "text": rest} for block, rest in rests)]


def _message_in(part: Any) -> Any:
    """The message of a part in mode `messages`: (message, metadata), alone or behind its namespace and mode."""
    if isinstance(part, dict):  # LangGraph's version="v2"
        return _message_in(part.get("data")) if part.get("type") == "messages" else None
    if isinstance(part, tuple) and len(part) > 1:
        return part[0] if isinstance(part[0], AIMessage) and len(part) == 2 else _message_in(part[-1])
    return None


def _put(part: Any, message: AIMessage) -> Any:
    """The part with another message in its place."""
    if isinstance(part, dict):
        return {**part, "data": _put(part["data"], message)}
    if isinstance(part[0], AIMessage):
        return (message, *part[1:])
    return (*part[:-1], _put(cast(Any, part[-1]), message))
