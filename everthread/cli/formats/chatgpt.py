"""ChatGPT's export, `conversations.json`: each conversation a tree of messages, of which one path is the current one.

The path to `current_node` is read; messages on branches that were edited away are counted as skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import each_document
from everthread.cli.formats.message import Item, Scribe, Skipped, digest
from everthread.cli.formats.parts import as_text, result_text, tool_source

__all__ = ["read", "recognises"]

_REASONING = ("thoughts", "reasoning_recap")
_CONTEXT = ("user_editable_context", "model_editable_context")


def recognises(value: Any) -> bool:
    """Whether this value of a file is a conversation of the export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read(path: Path) -> Iterator[Item]:
    """Every message on the current path of every conversation."""
    return each_document(path, recognises, "is not a conversation of a ChatGPT export: no mapping", _conversation)


def _conversation(scribe: Scribe, value: dict[str, Any], line: int) -> Iterator[Item]:
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    given = value.get("conversation_id") or value.get("id")
    thread = f"chatgpt/{given or digest(str(value.get('title')), str(value.get('create_time')))}"
    current = _path_to(nodes, value.get("current_node"))
    for key in current:
        if isinstance(message := nodes[key].get("message"), dict):
            yield from _message(scribe, message, thread, line)
    for key in nodes.keys() - set(current):
        if isinstance(nodes[key].get("message"), dict):
            yield Skipped(scribe.path, line, "on a branch that was edited away")


def _path_to(nodes: dict[str, dict[str, Any]], current: Any) -> list[str]:
    """The nodes from the root to `current`, or to the newest node when that is missing."""
    if current not in nodes:
        current = max(nodes, key=lambda key: _created(nodes[key]), default=None)
    path: list[str] = []
    while current in nodes and current not in path:
        path.append(current)
        current = nodes[current].get("parent")
    return path[::-1]


def _created(node: dict[str, Any]) -> float:
    message = node.get("message")
    at = message.get("create_time") if isinstance(message, dict) else None
    return float(at) if isinstance(at, int | float) else 0.0


def _message(scribe: Scribe, message: dict[str, Any], thread: str, line: int) -> Iterator[Item]:
    author = message["author"] if isinstance(message.get("author"), dict) else {}
    content = message["content"] if isinstance(message.get("content"), dict) else {}
    metadata = message["metadata"] if isinstance(message.get("metadata"), dict) else {}
    role, kind = author.get("role"), content.get("content_type")
    common: dict[str, Any] = {"line": line, "id": message.get("id"), "at": message.get("create_time")}
    if role == "system" or kind in _CONTEXT:
        yield Skipped(scribe.path, line, "system prompt")
    elif metadata.get("is_visually_hidden_from_conversation"):
        yield Skipped(scribe.path, line, "hidden from the conversation")
    elif kind in _REASONING:
        yield Skipped(scribe.path, line, "reasoning")
    elif role == "tool":
        name, text = author.get("name"), _text(content)
        yield from scribe.write(thread, "tool", text, source=tool_source(name), speaker=name, payload=message, **common)
    elif role == "assistant" and message.get("recipient") not in (None, "all"):
        text = f"{message['recipient']} {_text(content)}"
        yield from scribe.write(thread, "tool", text, source="assistant", payload=message, **common)
    elif role in ("user", "assistant"):
        payload = None if kind == "text" else message
        yield from scribe.write(thread, role, _text(content), payload=payload, **common)
    else:
        yield Skipped(scribe.path, line, f"role {str(role)[:40]!r} not known")


def _text(content: dict[str, Any]) -> str:
    return as_text(content.get("parts")) or result_text({**content, "content": content.get("result")})
