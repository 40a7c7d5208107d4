"""LangChain messages as evidence: who said what, when, and where the words came from."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Literal

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message, message_to_dict
from pydantic import BaseModel

from everthread.errors import UsageError
from everthread.stores.identity import Identity, aware, thread_name_check
from everthread.stores.record import Evidence, now_utc

__all__ = ["from_messages", "text_of", "time_of"]

Role = Literal["user", "assistant", "system", "tool"]
Source = Literal["user", "assistant", "tool", "web", "file", "agent"]

OURS = "everthread"
"""Key in `additional_kwargs` of the messages that we put into a thread ourselves (`nodes.state.MARK`)."""
UNTYPED = frozenset({OURS, "lc_source"})
"""Keys of messages that nobody typed, in whatever role they stand: ours, and LangChain's notices and summaries."""
ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
SOURCES: dict[Role, Source] = {"user": "user", "assistant": "assistant", "system": "agent", "tool": "tool"}
FALLING_TRUST: tuple[Source, ...] = ("user", "tool", "assistant", "file", "agent", "web")
TIME_KEYS = ("at", "timestamp", "created_at", "created")
UNSAID = frozenset({"tool_use", "tool_call", "function_call", "reasoning", "thinking", "redacted_thinking"})
"""Blocks that are not words to anyone; the payload has them."""
MAX_ID = 512


def from_messages(
    thread_id: str, messages: Iterable[BaseMessage], *, identity: Identity, at: datetime | None = None
) -> list[Evidence]:
    """The messages as evidence of this thread, in their order; RemoveMessages, which nobody said, are left out.

    - `payload` is the whole message as plain JSON, as `messages_from_dict` reads it; what JSON cannot hold is named by
      its type.
    - `text` is what was said: see `text_of`.
    - `speaker` is the message's name, else the user's or the agent's id.
    - `source` follows from the kind of message. `additional_kwargs={"source": "web"}` can only lower it: nothing in a
      message makes its words worth more than its kind does (R291, R297). What we put in ourselves is never the user's,
      nor what LangChain marks as put in by its own features, such as a summary of the conversation.
    - `at` is the message's own time (`time_of`), else the argument `at`, else now.
    - `message_id` is the message's id. Without one it is derived from the thread, the content, and how often the same
      content has come before in `messages`: the same list gives the same ids again.

    Raises UsageError when `at` has no time zone.
    """
    otherwise = now_utc() if at is None else aware(at, "at")
    seen: Counter[str] = Counter()
    return [_evidence(thread_id, said, identity, otherwise, seen) for said in messages if said.type != "remove"]


def _evidence(
    thread_id: str, message: BaseMessage, identity: Identity, otherwise: datetime, seen: Counter[str]
) -> Evidence:
    message = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
    role = _role(message)
    payload = _plain(message_to_dict(message))
    return Evidence(
        thread_id=thread_id,
        message_id=_usable(message.id) or _derived_id(thread_id, payload, seen),
        role=role,
        speaker=_speaker(message, role, identity),
        text=text_of(message.content),
        at=time_of(message) or otherwise,
        source=_source(message, role),
        payload=payload,
    )


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """What a message's content says, as text, one line a block.

    Pictures, sounds and files stand as `[image]` or `[file: report.pdf]`, with the name or caption they came with. Tool
    calls and reasoning are not words of the conversation and leave nothing.
    """
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (_block(block) for block in content)))


def _block(block: str | Mapping[str, Any]) -> str:
    if isinstance(block, str):
        return block
    kind = str(block.get("type", ""))
    if kind in UNSAID:
        return ""
    for key in ("text", "refusal"):
        if isinstance(block.get(key), str):
            return str(block[key])
    if kind == "tool_result":
        return text_of(block.get("content") or "")
    medium = next((name for name in ("image", "audio", "video", "file", "document") if name in kind), None)
    return "" if medium is None else f"[{medium}{_label(block)}]"


def _label(block: Mapping[str, Any]) -> str:
    inner = block.get("file")
    for place in (block, inner if isinstance(inner, Mapping) else {}):
        for key in ("caption", "alt", "title", "filename", "name"):
            if isinstance(place.get(key), str):
                return f": {place[key]}"
    return ""


def time_of(message: BaseMessage) -> datetime | None:
    """When the message was said, by itself: `at`, `timestamp`, `created_at` or `created` in its `additional_kwargs` or
    `response_metadata`, as ISO 8601 or seconds (or milliseconds) since 1970. Without a zone it counts as UTC. None when
    there is none that can be read."""
    places = (message.additional_kwargs, message.response_metadata)
    times = (_time(place.get(key)) for place in places for key in TIME_KEYS)
    return next((time for time in times if time is not None), None)


def _time(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            # seconds reach 10^11 in the year 5138; milliseconds passed it in 1973
            value = datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _role(message: BaseMessage) -> Role:
    if message.type == "chat":
        named = str(getattr(message, "role", ""))
        known: dict[str, Role] = {**ROLES, "user": "user", "developer": "system"}
        return known.get(named, "assistant")
    return ROLES.get(message.type, "assistant")


def _speaker(message: BaseMessage, role: Role, identity: Identity) -> str | None:
    if UNTYPED & set(message.additional_kwargs):
        return message.name
    return message.name or {"user": identity.user, "assistant": identity.agent}.get(role)


def _source(message: BaseMessage, role: Role) -> Source:
    by_kind: Source = "agent" if UNTYPED & set(message.additional_kwargs) else SOURCES[role]
    claimed = message.additional_kwargs.get("source")
    lower = FALLING_TRUST[FALLING_TRUST.index(by_kind) :]
    return next((source for source in lower if source == claimed), by_kind)


def _usable(id: str | None) -> str | None:
    """The message's own id, or None when there is none that a transcript can hold; the payload has it in any case."""
    if not id or len(id) > MAX_ID:
        return None
    try:
        return thread_name_check(id)
    except UsageError:
        return None


def _derived_id(thread_id: str, payload: dict[str, Any], seen: Counter[str]) -> str:
    content = json.dumps(payload, sort_keys=True)  # ASCII: lone surrogates are escaped
    digest = sha256(f"{len(thread_id)}:{thread_id}{content}".encode()).hexdigest()[:32]
    seen[digest] += 1
    return f"msg_{digest}" if seen[digest] == 1 else f"msg_{digest}_{seen[digest]}"


def _plain(value: Any) -> Any:
    """`value` as JSON has it; what JSON cannot hold becomes the name of its type (a repr may contain an address)."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(inner) for inner in value), key=str)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
