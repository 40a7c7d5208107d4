"""The content of a message, in the ways that providers and agents write it."""

from __future__ import annotations

import json
from typing import Any

from everthread.cli.formats.message import Source

__all__ = ["as_text", "call_text", "result_text", "tool_source"]

_UNSAID = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result", "tool_call", "encrypted_content")
_FILES = ("read", "read_file", "readfile", "view", "view_file", "open_file", "notebookread")


def as_text(content: Any) -> str:
    """What was said, as text: a string, or the parts of a list joined by newlines. An image, a sound or a file leaves
    `[image]`, `[audio]`, `[file: name]` in its place; reasoning and tool calls say nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _part(content)
    if isinstance(content, list):
        return "\n".join(text for text in map(as_text, content) if text)
    return ""


def _part(part: dict[str, Any]) -> str:
    kind = str(part.get("type") or part.get("content_type") or "")
    if kind in _UNSAID:
        return ""
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    if "image" in kind:
        return "[image]"
    if "audio" in kind:
        return "[audio]"
    if kind in ("file", "input_file", "document"):
        inner = part.get("file")
        name = part.get("filename") or part.get("title") or (inner.get("filename") if isinstance(inner, dict) else None)
        return f"[file: {name}]" if name else "[file]"
    return as_text(part.get("content"))


def call_text(name: Any, arguments: Any) -> str:
    """A tool call on one line: the tool's name and its arguments as JSON."""
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{name or 'tool'} {shown}" if arguments not in (None, "", {}) else str(name or "tool")


def result_text(result: Any) -> str:
    """What a tool returned, as text: its words when it has some, else the JSON."""
    if isinstance(result, dict):
        for key in ("output", "stdout", "text", "content"):
            if isinstance(result.get(key), str | list | dict) and result[key]:
                errors = result.get("stderr")
                return "\n".join(filter(None, (result_text(result[key]), errors if isinstance(errors, str) else "")))
    if isinstance(result, str):
        return result
    return as_text(result) or ("" if result in (None, [], {}) else json.dumps(result, ensure_ascii=False))


def tool_source(name: Any) -> Source:
    """Where a tool's result comes from: the web, a file, or the tool itself. What may be learnt from it hangs on that
    (R291), so a tool that fetches pages never counts as a trusted one."""
    plain = str(name or "").lower()
    if plain.startswith(("web", "fetch", "browser")) or any(word in plain for word in ("websearch", "webfetch")):
        return "web"
    return "file" if plain in _FILES else "tool"
