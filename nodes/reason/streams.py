"""A graph's stream without the markers: what a reader sees while the model speaks (R208).

Of a stream only what comes from the model itself, before its reply is one, has markers: the parts of
`stream_mode="messages"`, in each form that LangGraph gives them, and the events of a chat model. A marker may come in
several pieces, and the pieces of several replies between each other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk

from everthread.nodes.reason.citing import Unmarking, without_markers

__all__ = ["UnmarkedStream", "unmarked_events"]


class _Spoken(NamedTuple):
    """A text of a reply on its way: the reply's, or that of one of its blocks."""

    text: Unmarking
    part: Any
    """The part of the stream that brought the last piece."""
    block: dict[str, Any] | None
    """The block that the last piece stood in."""


class _Replies:
    """The texts of the replies that are on their way, by the reply's id and the block's number."""

    def __init__(self) -> None:
        self._spoken: dict[tuple[Any, Any], _Spoken] = {}

    def piece(self, key: tuple[Any, Any], text: str, part: Any, block: dict[str, Any] | None = None) -> str:
        """What can be shown now that `text` has come."""
        before = self._spoken.get(key)
        spoken = _Spoken(before.text if before else Unmarking(), part, block)
        self._spoken[key] = spoken
        return spoken.text.of(text)

    def shown(self, chunk: AIMessageChunk, part: Any) -> AIMessageChunk:
        """The chunk as it is to be seen; the last of a reply with what was held back of it."""
        content = self._content(chunk, part)
        if chunk.chunk_position == "last":
            content = _with(content, self.rests(chunk.id))
        return chunk if content == chunk.content else chunk.model_copy(update={"content": content})

    def rests(self, id: Any) -> list[_Spoken]:
        """The texts of a reply, which is over with that."""
        return [self._spoken.pop(key) for key in list(self._spoken) if key[0] == id]

    def block(self, key: tuple[Any, Any]) -> list[_Spoken]:
        """The text of one of its blocks, which is over with that."""
        return [self._spoken.pop(key)] if key in self._spoken else []

    def ids(self) -> list[Any]:
        """The replies whose end has not come."""
        return list(dict.fromkeys(id for id, _ in self._spoken))

    def _content(self, chunk: AIMessageChunk, part: Any) -> Any:
        content = chunk.content
        if isinstance(content, str):
            return self.piece((chunk.id, None), content, part) if content else content
        return [self._of_block(chunk.id, block, part) for block in content]

    def _of_block(self, id: str | None, block: Any, part: Any) -> Any:
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return {**block, "text": self.piece((id, block.get("index", 0)), block["text"], part, block)}
        return block


class UnmarkedStream:
    """The parts of one stream, in whatever modes, with the text of its replies as `unmarked` has it."""

    def __init__(self) -> None:
        self._replies = _Replies()

    def of(self, part: Any) -> list[Any]:
        """The part as it is to be seen; before it what was held back of a block that ends with it."""
        said = _said_in(part)
        if isinstance(said, AIMessageChunk):
            shown = self._replies.shown(said, part)
            return [part if shown is said else _put(part, shown)]
        if isinstance(said, AIMessage):
            return [_put(part, said.model_copy(update={"content": without_markers(said.content)}))]
        return self._of_block(said, part) if said else [part]

    def end(self) -> Iterator[Any]:
        """What is still to be seen of replies whose end did not come."""
        for id in self._replies.ids():
            spoken = self._replies.rests(id)
            if isinstance(_said_in(spoken[0].part), dict):
                yield from _deltas(spoken)
            elif content := _with("", spoken):
                yield _put(spoken[0].part, AIMessageChunk(content=content, id=id))

    def _of_block(self, event: dict[str, Any], part: Any) -> list[Any]:
        """Of LangGraph's version="v3", which brings the pieces of a block and at last the whole block."""
        key = (part["data"][1].get("run_id"), event.get("index"))
        if event["event"] == "content-block-delta" and event["delta"].get("type") == "text-delta":
            return [_put(part, _delta(event, self._replies.piece(key, event["delta"]["text"], part)))]
        if event["event"] == "content-block-finish" and event["content"].get("type") == "text":
            whole = {**event["content"], "text": without_markers(event["content"]["text"])}
            return [*_deltas(self._replies.block(key)), _put(part, {**event, "content": whole})]
        return [part]


async def unmarked_events(events: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
    """The events of `astream_events`, version 1 or 2, with what chat models reply as `unmarked` has it. What such a
    model was asked stays as it was."""
    replies = _Replies()
    async with aclosing(events):  # so that a reader who leaves gives the thread back
        async for event in events:
            data = event["data"]
            if event["event"] == "on_chat_model_stream" and isinstance(data.get("chunk"), AIMessageChunk):
                yield _with_data(event, chunk=replies.shown(data["chunk"], event))
            elif event["event"] == "on_chat_model_end":
                id = _id_of(data.get("output"))
                if (spoken := replies.rests(id)) and (content := _with("", spoken)):
                    yield _with_data(spoken[0].part, chunk=AIMessageChunk(content=content, id=id))
                yield _with_data(event, output=_unmarked_output(data.get("output")))
            else:
                yield event


def _with_data(event: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {**event, "data": {**event["data"], **data}}


def _id_of(output: Any) -> str | None:
    message = output if isinstance(output, AIMessage) else next(iter(_messages_in(output)), None)
    return message.id if message else None


def _messages_in(output: Any) -> list[AIMessage]:
    """The replies of a result as version 1 has it."""
    found = output.get("generations", []) if isinstance(output, dict) else []
    return [each["message"] for several in found for each in several if isinstance(each.get("message"), AIMessage)]


def _unmarked_output(output: Any) -> Any:
    if isinstance(output, AIMessage):
        return output.model_copy(update={"content": without_markers(output.content)})
    if not _messages_in(output):
        return output
    generations = [
        [
            {**each, "text": without_markers(each["text"]), "message": _unmarked_output(each["message"])}
            for each in several
        ]
        for several in output["generations"]
    ]
    return {**output, "generations": generations}


def _with(content: Any, spoken: list[_Spoken]) -> Any:
    """A chunk's content with what was held back before it."""
    rests = [(each.block, rest) for each in spoken if (rest := each.text.end())]
    if not rests:
        return content
    if isinstance(content, str) and all(block is None for block, _ in rests):
        return content + "".join(rest for _, rest in rests)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or [])
    return [*blocks, *({**(block or {"type": "text"}), "text": rest} for block, rest in rests)]


def _deltas(spoken: list[_Spoken]) -> Iterator[Any]:
    """What was held back of blocks, each as one more piece."""
    for each in spoken:
        if rest := each.text.end():
            yield _put(each.part, _delta(_said_in(each.part), rest))


def _delta(event: dict[str, Any], text: str) -> dict[str, Any]:
    return {**event, "delta": {**event["delta"], "text": text}}


def _said_in(part: Any) -> Any:
    """What a part in mode `messages` says, (said, metadata), alone or behind its namespace and mode: a message, or what
    happens to a block of one. None for a part of another mode."""
    if isinstance(part, dict):  # LangGraph's version="v2"
        data = part.get("data") if part.get("type") == "messages" else None
        if isinstance(data, tuple) and isinstance(data[0], dict) and "event" in data[0]:
            return data[0]
        return _said_in(data)
    if isinstance(part, tuple) and len(part) > 1:
        return part[0] if isinstance(part[0], AIMessage) and len(part) == 2 else _said_in(part[-1])
    return None


def _put(part: Any, said: Any) -> Any:
    """The part with something else said in its place."""
    if isinstance(part, dict):
        data = part["data"]
        return {**part, "data": (said, *data[1:]) if isinstance(said, dict) else _put(data, said)}
    if isinstance(part[0], AIMessage):
        return (said, *part[1:])
    return (*part[:-1], _put(cast(Any, part[-1]), said))
