"""EverMemOS group chats: `session_meta` and a `conversation_list` of messages with a sender.

The chat is one thread, named by its group or its file. Whoever is an assistant in `session_meta` is one; all others are
people.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import each_document, stem
from everthread.cli.formats.message import Item, Problem, Scribe
from everthread.cli.formats.parts import as_text

__all__ = ["read", "recognises"]


def recognises(value: Any) -> bool:
    """Whether this value of a file is such a chat."""
    return isinstance(value, dict) and isinstance(value.get("conversation_list"), list)


def read(path: Path) -> Iterator[Item]:
    """Every message of the chat."""
    return each_document(path, recognises, "is not a group chat: no conversation_list", _chat)


def _chat(scribe: Scribe, chat: dict[str, Any], line: int) -> Iterator[Item]:
    meta = chat["session_meta"] if isinstance(chat.get("session_meta"), dict) else {}
    people = meta["user_details"] if isinstance(meta.get("user_details"), dict) else {}
    thread = str(meta.get("group_id") or stem(scribe.path))
    for position, message in enumerate(chat["conversation_list"], 1):
        if not isinstance(message, dict):
            yield Problem(scribe.path, line, f"message {position} is not an object")
            continue
        sender = people.get(str(message.get("sender")))
        known = sender if isinstance(sender, dict) else {}
        yield from scribe.write(
            thread,
            "assistant" if known.get("role") == "assistant" else "user",
            as_text(message.get("content")),
            line=line,
            id=message.get("message_id"),
            at=message.get("create_time"),
            speaker=known.get("full_name") or message.get("sender_name") or message.get("sender"),
            payload=None if message.get("type", "text") == "text" and not message.get("refer_list") else message,
        )
