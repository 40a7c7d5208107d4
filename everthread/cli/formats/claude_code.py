"""Claude Code sessions: JSON Lines of `user` and `assistant` records with content parts, or an export's `loglines`.

What people, the model and its tools said is read. A sub-agent's conversation (a sidechain) is a thread of its own, and
what was said to it counts as said by an agent. Summaries, meta lines, hooks, commands and reminders are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import Line, documents, stem
from everthread.cli.formats.message import Item, Problem, Role, Scribe, Skipped
from everthread.cli.formats.parts import as_text, call_text, result_text, tool_source

__all__ = ["read", "recognises"]

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_INJECTED = re.compile(
    r"\s*<(system-reminder|command-(name|message|args)|local-command-(stdout|stderr|caveat)|bash-(input|stdout|stderr)"
    r"|user-prompt-submit-hook|task-notification|user-memory-input|ide_\w+)\b|\s*Caveat: The messages below"
)
"""How text begins that the program, and not the person, put into a user message."""


def recognises(value: Any) -> bool:
    """Whether this value of a file is a line of a session."""
    if not isinstance(value, dict):
        return False
    if isinstance(lines := value.get("loglines"), list):
        return any(map(recognises, lines[:20]))
    message = value.get("message")
    return value.get("type") in _ROLES and isinstance(message, dict) and isinstance(message.get("content"), str | list)


def read(path: Path) -> Iterator[Item]:
    """Every message, tool call and tool result of the session."""
    session = _Session(path)
    for item in documents(path):
        if isinstance(item, Problem):
            yield item
        elif not isinstance(item.value, dict):
            yield Problem(path, item.number, "is not a line of a session: expected an object")
        elif isinstance(lines := item.value.get("loglines"), list):
            for value in lines:
                yield from session.line(Line(item.number, value if isinstance(value, dict) else {}))
        else:
            yield from session.line(item)


class _Session:
    """What is known of a session while its lines go by."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scribe = Scribe(path)
        self.tools: dict[str, str] = {}

    def line(self, line: Line) -> Iterator[Item]:
        """The messages of one line."""
        value, number = line.value, line.number
        kind = str(value.get("type") or "")
        message = value.get("message")
        if kind in ("tool_use", "tool_result"):  # before version 2: records of their own
            yield from self._part(value, value, 0, number)
        elif kind not in _ROLES:
            yield Skipped(self.path, number, "summary" if kind == "summary" else "session metadata")
        elif not isinstance(message, dict):
            yield Problem(self.path, number, f"{kind} record without a message")
        elif why := _not_said(value):
            yield Skipped(self.path, number, why)
        else:
            yield from self._message(value, message, _ROLES[kind], number)

    def _message(self, value: dict[str, Any], message: dict[str, Any], role: Role, number: int) -> Iterator[Item]:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts = [part if isinstance(part, dict) else {"type": "text", "text": str(part)} for part in parts]
        words = [part for part in parts if as_text(part).strip()]
        said = [part for part in words if role == "assistant" or not _is_injected(value, part)]
        if said:
            yield from self.scribe.write(
                self._thread(value),
                role,
                as_text(said),
                line=number,
                id=value.get("uuid"),
                at=value.get("timestamp"),
                source="agent" if role == "user" and value.get("isSidechain") else None,
                payload=None if isinstance(content, str) else message,
            )
        elif words:
            yield Skipped(self.path, number, "injected context (reminders, commands)")
        for position, part in enumerate(parts):
            if part.get("type") in ("tool_use", "server_tool_use", "tool_result", "web_search_tool_result"):
                yield from self._part(value, part, position, number)
            elif not as_text(part).strip():
                yield Skipped(self.path, number, _silent(part))

    def _part(self, value: dict[str, Any], part: dict[str, Any], position: int, number: int) -> Iterator[Item]:
        """A tool call or a tool's result."""
        result = str(part.get("type")).endswith("tool_result")
        call_id = part.get("tool_use_id" if result else "id")
        name = part.get("name") or self.tools.get(str(call_id))
        if not result and isinstance(call_id, str):
            self.tools[call_id] = str(name)
        own = value.get("uuid")
        text = result_text(part.get("content", part.get("output"))) if result else call_text(name, part.get("input"))
        yield from self.scribe.write(
            self._thread(value),
            "tool",
            text,
            line=number,
            id=f"{own}/{position}" if own else (f"{call_id}/result" if result and call_id else call_id),
            at=value.get("timestamp"),
            source=tool_source(name) if result else "assistant",
            speaker=name if result else None,
            payload=part if part is value or not result else {**part, "toolUseResult": value.get("toolUseResult")},
        )

    def _thread(self, value: dict[str, Any]) -> str:
        session = value.get("sessionId") or stem(self.path)
        if not value.get("isSidechain"):
            return f"claude-code/{session}"
        agent = f"agent-{value.get('agentId') or 'sidechain'}"
        return f"claude-code/{session}" if session == agent else f"claude-code/{session}/{agent}"


def _not_said(value: dict[str, Any]) -> str | None:
    """Why this record is not something that was said; None when it is."""
    if value.get("isCompactSummary"):
        return "compaction summary"
    if value.get("isApiErrorMessage"):
        return "error of the provider"
    if value["message"].get("model") == "<synthetic>":
        return "synthetic reply"
    return None


def _is_injected(value: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether the program wrote this text: meta lines, reminders, notices of background tasks."""
    origin = value.get("origin")
    noticed = isinstance(origin, dict) and origin.get("kind") == "task-notification"
    return bool(value.get("isMeta")) or noticed or _INJECTED.match(as_text(part)) is not None


def _silent(part: dict[str, Any]) -> str:
    kind = str(part.get("type"))
    if kind in ("thinking", "redacted_thinking"):
        return "reasoning"
    return "empty" if kind == "text" else f"part {kind[:40]!r} not known"
