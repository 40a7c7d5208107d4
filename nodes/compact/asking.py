"""Asking a model about many messages: shown as data, in chunks that fit, one answer feeding the next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp

from everthread.errors import EverthreadError, ModelReplyError
from everthread.nodes.compact.prose import clip, said
from everthread.nodes.models import is_overflow
from everthread.nodes.node import Ask
from everthread.nodes.state import is_marked
from everthread.stores.text import estimate_tokens

__all__ = ["CHUNK_TOKENS", "Malformed", "TooLong", "asked", "folded", "given_by", "model_name", "rendered"]

CHUNK_TOKENS = 16_000
"""Tokens of messages in one request, by estimate."""
SMALLEST_CHUNK = 500
"""Characters below which a request that is still too long is given up."""
RESULT_LENGTH = 2_000
"""Characters of a tool's result that are shown: what mattered in it, the assistant has said since."""

T = TypeVar("T")


class TooLong(ModelReplyError):
    """The request did not fit into the model's context window."""


class Malformed(ModelReplyError):
    """The reply does not have the structure that was asked for."""


def asked(model: Runnable[Any, Any], messages: Sequence[BaseMessage]) -> Generator[Ask, Any, Any]:
    """The model's reply. Raises ModelReplyError, with the cause, when the call fails for whatever reason: `TooLong` or
    `Malformed` when it is one of these."""
    try:
        return (yield Ask(model, messages))
    except Exception as error:
        kind = TooLong if is_overflow(error) else Malformed if isinstance(error, ValueError) else ModelReplyError
        raise kind(f"the model could not be asked ({type(error).__name__}: {clip(str(error), 200)})") from error


def given_by(make: Callable[[], Any], who: str, kind: type[T]) -> Generator[Ask, Any, T]:
    """What a part that a host can replace makes: a generator's result, or the value of a plain function.

    Raises ModelReplyError for whatever goes wrong in it, with the cause, and for what is no `kind`: that a summary
    cannot be had must not end the turn. Our own errors, and an interrupt, pass."""
    try:
        made = make()
        result = (yield from made) if isinstance(made, Generator) else made
    except (EverthreadError, GraphBubbleUp):
        raise
    except Exception as error:
        raise ModelReplyError(f"{who} failed ({type(error).__name__}: {clip(str(error), 200)})") from error
    if not isinstance(result, kind):
        raise ModelReplyError(f"{who} gave a {type(result).__name__} instead of a {kind.__name__}")
    return result


def folded(
    step: Callable[[T, str], Generator[Ask, Any, T]], start: T, messages: Sequence[BaseMessage], chunk_tokens: int
) -> Generator[Ask, Any, T]:
    """`step(so_far, chunk)` over the messages in chunks, from the oldest; returns the last result. A chunk that the
    model finds too long is halved."""
    so_far = start
    chunks = list(_chunks(messages, chunk_tokens))[::-1]
    while chunks:
        chunk = chunks.pop()
        try:
            so_far = yield from step(so_far, chunk)
        except TooLong:
            if len(chunk) <= SMALLEST_CHUNK:
                raise
            half = chunk.rfind("\n", 0, len(chunk) // 2) + 1 or len(chunk) // 2
            chunks += [chunk[half:], chunk[:half]]
    return so_far


def _chunks(messages: Sequence[BaseMessage], tokens: int) -> Iterator[str]:
    """The rendered messages in pieces of at most `tokens`; one that is longer by itself is divided."""
    lines: list[str] = []
    room = tokens
    for piece in (piece for message in messages for piece in _pieces(rendered(message), tokens)):
        size = estimate_tokens(piece)
        if lines and size > room:
            yield "\n".join(lines)
            lines, room = [], tokens
        lines.append(piece)
        room -= size
    if lines:
        yield "\n".join(lines)


def _pieces(text: str, tokens: int) -> list[str]:
    length = len(text) * tokens // max(estimate_tokens(text), tokens, 1)
    return [text[n : n + length] for n in range(0, len(text), length)]


def rendered(message: BaseMessage) -> str:
    """The message as it is shown to a model that reads about it: who spoke, then what."""
    text = said(message).strip()
    if isinstance(message, ToolMessage):
        return f"[result of {message.name or 'a tool'}] {clip(text, RESULT_LENGTH)}"
    if isinstance(message, AIMessage):
        calls = [f"[assistant calls {call['name']}] {clip(str(call['args']), 500)}" for call in message.tool_calls]
        return "\n".join([*([f"[assistant] {text}"] if text or not calls else []), *calls])
    speaker = "notice" if is_marked(message) else "user" if message.type == "human" else message.type
    return f"[{speaker}] {text}"


def model_name(model: Any) -> str:
    """The model's name, for the record of who wrote something."""
    for attribute in ("model_name", "model", "_llm_type"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__
