"""A tool's result that is too long for the thread: kept whole beside it, with its head and tail in its place (R64).

The artifact's id stands in the message as the path to the rest (R69). Every tool's results are treated alike, shell
output included (R68), except those that read an evicted text back. A picture or a file is whole or not at all: what no
model would take is left out before the thread has it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage

from everthread.errors import StoreError
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity
from everthread.stores.messages import text_of

__all__ = [
    "EVICTED",
    "LEFT_OUT",
    "LIMIT",
    "MEDIA_LIMIT",
    "PREVIEW",
    "Eviction",
    "evict",
    "has_media",
    "is_evicted",
    "is_oversized",
    "pointed",
    "shortened",
    "text_in",
    "whole",
    "whole_id",
]

LIMIT = 30_000
"""Characters from which on a result is evicted, unless told otherwise; for models with much room 80,000 is usual (R65,
R67)."""
PREVIEW = 2_000
"""Characters of its head, and of its tail, that stay."""
EVICTED = "everthread_evicted"
"""Key in `additional_kwargs` of a shortened result: the artifact's id and how many characters the whole has."""
MEDIA_LIMIT = 5_000_000
"""Characters of one picture or file, as base64, from which on it is left out: about what Anthropic takes of one."""
LEFT_OUT = "everthread_left_out"
"""Key in `additional_kwargs` of a result without such a picture: id of the artifact with its content as it was."""
POINTED = 200
"""Characters of a consumed result that stay when it shrinks to a pointer."""
READERS = frozenset({"artifact_read"})
"""Tools that read an evicted text: evicting what they return would never end."""


class Eviction(NamedTuple):
    """What became of a tool's result."""

    message: ToolMessage
    """The result as it enters the thread: shortened, or the same object as before."""
    artifact: str | None = None
    """Id of the whole text, or of the content with its pictures, when it was evicted."""
    failed: str = ""
    """Why it could not be evicted, when it should have been."""


def evict(
    message: ToolMessage,
    identity: Identity,
    store: MemoryStore,
    *,
    thread_id: str | None,
    limit: int = LIMIT,
    preview: int = PREVIEW,
) -> Eviction:
    """The result with its middle moved to `store.artifacts` when it is longer than `limit` characters, and without its
    pictures and files of more than `MEDIA_LIMIT`, which are kept there.

    Nothing is shortened before the whole is kept: a failing store leaves the message as it was, and says so in
    `failed`.
    """
    shown, artifact = message, None
    try:
        if original := _heavy_content(message):
            artifact = store.artifacts.put(identity, "original", original, thread_id=thread_id)
            shown = _lightened(message, artifact)
        if is_oversized(shown, limit):
            artifact = store.artifacts.put(identity, "tool_result", text_in(shown), thread_id=thread_id)
            shown = shortened(shown, artifact, preview)
    except StoreError as error:
        return Eviction(message, failed=str(error))
    return Eviction(shown, artifact)


def _heavy_content(message: ToolMessage) -> str | None:
    """The content as JSON when a picture or file in it is too large; None otherwise, and for what is no plain JSON."""
    if not has_media(message):
        return None
    try:
        return json.dumps(message.content) if any(map(_is_heavy, message.content)) else None
    except TypeError:
        return None


def _lightened(message: ToolMessage, artifact: str) -> ToolMessage:
    """The message with a word in place of each picture or file that is too large."""
    content = [
        {"type": "text", "text": _word_for(part, artifact)} if _is_heavy(part) else part for part in message.content
    ]
    marks = {**message.additional_kwargs, LEFT_OUT: artifact}
    return message.model_copy(update={"content": content, "additional_kwargs": marks})


def _word_for(part: str | dict[Any, Any], artifact: str) -> str:
    what = text_of([part]).strip("[]") or "content"
    return f"[{what} left out: its {_weight(part)} characters are more than a model takes; it is kept as {artifact}]"


def _is_heavy(part: str | dict[Any, Any]) -> bool:
    return not _is_text(part) and _weight(part) > MEDIA_LIMIT


def _weight(part: str | dict[Any, Any]) -> int:
    return len(json.dumps(part))


def has_media(message: ToolMessage) -> bool:
    """Whether there are pictures or files in the result."""
    return not isinstance(message.content, str) and not all(map(_is_text, message.content))


def is_oversized(message: ToolMessage, limit: int = LIMIT) -> bool:
    """Whether the result has to be evicted: too long, not evicted before, and no evicted text read back."""
    return message.name not in READERS and not is_evicted(message) and len(text_in(message)) > limit


def is_evicted(message: ToolMessage) -> bool:
    """Whether only the head and the tail of the result are left in the message."""
    return whole_id(message) is not None


def whole_id(message: ToolMessage) -> str | None:
    """Id of the artifact that has the whole of an evicted result; None when it was not evicted."""
    mark = message.additional_kwargs.get(EVICTED)
    artifact = mark.get("artifact") if isinstance(mark, dict) else None
    return artifact if isinstance(artifact, str) else None  # a tool may put anything there


def shortened(message: ToolMessage, artifact: str, preview: int = PREVIEW) -> ToolMessage:
    """The same message with head and tail of its text and the path to the whole; pictures and files in it stay."""
    text = text_in(message)
    preview = min(preview, len(text) // 4)  # a preview is never the whole
    shown = (
        f"{text[:preview]}\n\n"
        f"[{len(text) - 2 * preview} of {len(text)} characters left out; the whole result is kept as {artifact}]\n\n"
        f"{text[len(text) - preview :]}"
    )
    mark = {EVICTED: {"artifact": artifact, "characters": len(text)}}
    return message.model_copy(
        update={
            "content": _with_text(message.content, shown),
            "additional_kwargs": {**message.additional_kwargs, **mark},
        }
    )


def pointed(message: ToolMessage, artifact: str) -> ToolMessage:
    """A result that the model has read, with the beginning of its text and the path to the whole (R66); of pictures and
    files in it their names alone."""
    text = text_of(message.content) if has_media(message) else text_in(message)
    shown = f"{text[:POINTED]}\n[a result of {len(text)} characters, read before; the whole is kept as {artifact}]"
    return message.model_copy(update={"content": shown})


def whole(message: ToolMessage, identity: Identity, store: MemoryStore) -> ToolMessage:
    """The message as the tool returned it, for the transcript (R42); as it is when it was not evicted, or when the
    whole has been erased since."""
    left_out = message.additional_kwargs.get(LEFT_OUT)
    original = store.artifacts.get(identity, left_out) if isinstance(left_out, str) else None
    if original is not None and original.kind == "original":
        kept = {key: value for key, value in message.additional_kwargs.items() if key not in (EVICTED, LEFT_OUT)}
        return message.model_copy(update={"content": json.loads(original.text), "additional_kwargs": kept})
    kept_as = whole_id(message)
    artifact = store.artifacts.get(identity, kept_as) if kept_as else None
    if artifact is None:
        return message
    kept = {key: value for key, value in message.additional_kwargs.items() if key != EVICTED}
    return message.model_copy(update={"content": _with_text(message.content, artifact.text), "additional_kwargs": kept})


def text_in(message: ToolMessage) -> str:
    """The text of a result, without its pictures and files."""
    if isinstance(message.content, str):
        return message.content
    return text_of([part for part in message.content if _is_text(part)])


def _with_text(content: str | list[str | dict[Any, Any]], text: str) -> str | list[str | dict[Any, Any]]:
    if isinstance(content, str):
        return text
    others = [part for part in content if not _is_text(part)]
    return [{"type": "text", "text": text}, *others] if others else text


def _is_text(part: str | dict[Any, Any]) -> bool:
    return isinstance(part, str) or part.get("type") == "text"
