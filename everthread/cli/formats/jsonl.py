"""Plain messages: `{role, content, time?, speaker?, thread?, id?}` as JSON Lines, as a list, or under `messages`.

Content is a string or OpenAI's list of parts; `tool_calls` and tool messages are read. Lines that are lists, or objects
with `messages`, are conversations of their own. Without a `thread` a conversation is named after its file and its first
message, so that a copy of the file elsewhere is the same conversation and another file of that name is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import documents, stem
from everthread.cli.formats.message import Item, Problem, Role, Scribe, Skipped, digest
from everthread.cli.formats.parts import as_text, call_text, result_text, tool_source

__all__ = ["is_conversation", "is_message", "messages_of", "read", "recognises"]

ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "tool": "tool",
    "function": "tool",
}
INSTRUCTIONS = ("system", "developer")
TIMES = ("time", "timestamp", "created_at", "create_time", "date", "at", "ts")
_THREADS = ("thread", "thread_id", "conversation_id", "session_id", "sessionId")
_PLAIN = {"role", "content", "id", "speaker", "name", *TIMES, *_THREADS}
"""Fields that a stored message has a place for; anything else makes the original worth keeping."""


def is_message(value: Any) -> bool:
    """Whether this is `{role, content}`, or an OpenAI message with `tool_calls` and no content."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and (isinstance(value.get("content"), str | list) or isinstance(value.get("tool_calls"), list))
    )


def is_conversation(value: Any) -> bool:
    """Whether this is a list of messages, alone or under `messages`."""
    inner = value.get("messages") if isinstance(value, dict) else value
    return isinstance(inner, list) and any(map(is_message, inner[:20]))


def recognises(values: list[Any]) -> bool:
    """Whether these values of a file are messages: at least one {role, content}, and, with lines of tools counted, at
    least half of them. So a log of something else that happens to hold a message is not taken for a conversation."""
    messages = sum(is_message(value) or is_conversation(value) for value in values)
    tools = sum(isinstance(value, dict) and value.get("type") in ("tool_call", "tool_result") for value in values)
    return messages > 0 and (messages + tools) * 2 >= len(values)


def read(path: Path) -> Iterator[Item]:
    """Every message of the file."""
    scribe, thread = Scribe(path), ""
    for item in documents(path):
        if isinstance(item, Problem):
            yield item
        elif is_conversation(item.value):
            yield from _conversation(scribe, item.value, item.number)
        else:
            thread = thread or _thread_of(path, item.value)
            yield from _message(scribe, item.value, thread, item.number)


def _conversation(scribe: Scribe, value: Any, line: int) -> Iterator[Item]:
    outer = value if isinstance(value, dict) else {}
    messages = value["messages"] if isinstance(value, dict) else value
    thread = _first(outer, (*_THREADS, "id")) or _thread_of(scribe.path, next(filter(is_message, messages)))
    for message in messages:
        yield from _message(scribe, message, str(thread), line)


def _thread_of(path: Path, first: Any) -> str:
    said = first if isinstance(first, dict) else {}
    return f"{stem(path)}-{digest(str(said.get('role')), as_text(said.get('content')))[:8]}"


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if value.get(key) not in (None, "")), None)


def _message(scribe: Scribe, value: Any, thread: str, line: int) -> Iterator[Item]:
    if not isinstance(value, dict):
        yield Problem(scribe.path, line, "is not a message: expected an object with role and content")
        return
    yield from messages_of(scribe, value, str(_first(value, _THREADS) or thread), line)


def messages_of(scribe: Scribe, value: dict[str, Any], thread: str, line: int | None) -> Iterator[Item]:
    """One message as others write it: its words, then each of its tool calls."""
    kind = str(value.get("role") or value.get("type") or "")
    at, id = _first(value, TIMES), value.get("id")
    if kind in INSTRUCTIONS:
        yield Skipped(scribe.path, line, "system prompt")
    elif kind.endswith(("_call", "_result")) or ROLES.get(kind) == "tool":
        yield from _tool(scribe, value, kind, thread, line)
    elif kind not in ROLES:
        yield Skipped(scribe.path, line, f"role {kind[:40]!r} not known" if kind else "no role")
    else:
        calls = [call for call in value.get("tool_calls") or () if isinstance(call, dict)]
        content = value.get("content")
        plain = isinstance(content, str) and value.keys() <= _PLAIN
        if as_text(content).strip() or not calls:
            yield from scribe.write(
                thread,
                ROLES[kind],
                as_text(content),
                line=line,
                id=id,
                at=at,
                speaker=value.get("speaker") or value.get("name"),
                payload=None if plain else value,
            )
        for call in calls:
            yield from _call(scribe, call, thread, line, at)


def _call(scribe: Scribe, call: dict[str, Any], thread: str, line: int | None, at: Any) -> Iterator[Item]:
    function = call["function"] if isinstance(call.get("function"), dict) else call
    text = call_text(function.get("name"), function.get("arguments", call.get("arguments")))
    yield from scribe.write(thread, "tool", text, line=line, id=call.get("id"), at=at, source="assistant", payload=call)


def _tool(scribe: Scribe, value: dict[str, Any], kind: str, thread: str, line: int | None) -> Iterator[Item]:
    if kind.endswith("_call"):
        yield from _call(scribe, value, thread, line, _first(value, TIMES))
        return
    name = value.get("name") or value.get("tool_name")
    yield from scribe.write(
        thread,
        "tool",
        result_text(_first(value, ("content", "result", "output"))),
        line=line,
        id=value.get("id"),
        at=_first(value, TIMES),
        source=tool_source(name),
        speaker=name,
        payload=value,
    )
