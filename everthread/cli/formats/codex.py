"""Codex rollouts: `rollout-*.jsonl` with `session_meta`, `response_item`, `event_msg`, and the older layouts.

What people, the model and its tools said is read. Session metadata, turn context, world state, compaction markers,
developer messages, AGENTS.md and environment fragments are left out (R45, R230). Events repeat what response items say,
so a role is taken from events only when no response item has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import Line, documents, stem
from everthread.cli.formats.message import Item, Problem, Role, Scribe, Skipped, Source
from everthread.cli.formats.parts import as_text, call_text, result_text, tool_source

__all__ = ["read", "recognises"]

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "world_state", "compacted")
_STATE = {
    "session_meta": "session metadata",
    "turn_context": "turn context",
    "world_state": "world state",
    "compacted": "compaction marker",
    "ghost_snapshot": "snapshot marker",
    "reasoning": "reasoning",
    "agent_message": "message between agents",
    "inter_agent_communication_metadata": "message between agents",
}
_SAID: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
_INJECTED = re.compile(
    r"\s*(# AGENTS\.md|# CLAUDE\.md|<(environment_context|user_instructions|instructions|permissions|turn_aborted"
    r"|collaboration_mode|personality_spec|subagent_notification|skills?|skills_instructions|apps_instructions"
    r"|plugins_instructions|user_shell_command|system[-_]reminder|memory_context|memories|goal_context)\b[^>]*>)",
    re.IGNORECASE,
)
"""How text begins that the program, and not the person, put into a user message."""


def recognises(value: Any) -> bool:
    """Whether this value of a file is a line of a rollout, new or old."""
    if not isinstance(value, dict):
        return False
    if value.get("type") in _ENVELOPES and isinstance(value.get("payload"), dict):
        return True
    if value.get("record_type") == "state":
        return True
    if isinstance(value.get("session"), dict) and isinstance(value.get("items"), list):
        return True
    return value.keys() >= {"id", "timestamp", "instructions"} and "role" not in value


def read(path: Path) -> Iterator[Item]:
    """Every message, tool call and tool result of the rollout."""
    rollout = _Rollout(path)
    for item in documents(path):
        if isinstance(item, Problem):
            yield item
        elif not isinstance(item.value, dict):
            yield Problem(path, item.number, "is not a line of a rollout: expected an object")
        elif isinstance(items := item.value.get("items"), list):  # before 2025-07: one document
            session = item.value.get("session")
            yield from rollout.line(Line(item.number, session if isinstance(session, dict) else {}))
            for inner in items:
                yield from rollout.line(Line(item.number, inner if isinstance(inner, dict) else {}))
        else:
            yield from rollout.line(item)
    yield from rollout.end()


class _Rollout:
    """What is known of a rollout while its lines go by."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scribe = Scribe(path)
        self.thread: str | None = None
        self.subagent = False
        self.tools: dict[str, str] = {}
        self.answered: set[Role] = set()
        self.events: list[tuple[int, Role, str, Any]] = []

    def line(self, line: Line) -> Iterator[Item]:
        """The messages of one line."""
        value, number = line.value, line.number
        payload = value.get("payload") if isinstance(value.get("payload"), dict) else None
        kind, at = str(value.get("type") or ""), value.get("timestamp") or value.get("created_at")
        if kind == "session_meta" or (not kind and "role" not in value and "record_type" not in value):
            self._begin(payload or value)
            yield Skipped(self.path, number, "session metadata")
        elif kind == "event_msg":
            yield from self._event(payload or {}, number, at)
        elif kind == "response_item":
            yield from self._item(payload or {}, number, at)
        elif kind in _STATE or "record_type" in value:
            yield Skipped(self.path, number, _STATE.get(kind, "session metadata"))
        elif payload is None:  # before 2025-09: items without an envelope
            yield from self._item(value, number, at)
        else:
            yield Skipped(self.path, number, f"record {kind[:40]!r} not known")

    def end(self) -> Iterator[Item]:
        """What only events have said."""
        for number, role, text, at in self.events:
            if role in self.answered:
                yield Skipped(self.path, number, "event that repeats a message")
            else:
                yield from self._write(role, text, number, at, None)

    def _begin(self, meta: dict[str, Any]) -> None:
        # A resumed or forked rollout repeats its parent's metadata further down; the first one is its own.
        if self.thread is None and meta.get("id"):
            self.thread = f"codex/{meta['id']}"
            self.scribe.begin(self.thread, meta.get("timestamp"))
            self.subagent = "subagent" in json.dumps([meta.get("source"), meta.get("thread_source")]).lower()

    def _event(self, event: dict[str, Any], number: int, at: Any) -> Iterator[Item]:
        role, text = _SAID.get(str(event.get("type"))), event.get("message")
        if role and isinstance(text, str) and text.strip():
            self.events.append((number, role, text, at))
        else:
            yield Skipped(self.path, number, "event")

    def _item(self, item: dict[str, Any], number: int, at: Any) -> Iterator[Item]:
        kind = str(item.get("type") or "message")
        if kind == "message":
            yield from self._message(item, number, at)
        elif kind in _STATE:
            yield Skipped(self.path, number, _STATE[kind])
        elif kind.endswith(("_output", "_result")):
            yield from self._result(item, number, at)
        elif kind.endswith("_call"):
            yield from self._call(item, kind, number, at)
        else:
            yield Skipped(self.path, number, f"item {kind[:40]!r} not known")

    def _message(self, item: dict[str, Any], number: int, at: Any) -> Iterator[Item]:
        role, content = item.get("role"), item.get("content", item.get("message"))
        if role not in ("user", "assistant"):
            known = role in ("developer", "system")
            yield Skipped(self.path, number, "developer message" if known else f"role {str(role)[:40]!r} not known")
            return
        parts = content if isinstance(content, list) else [content]
        said = [part for part in parts if role == "assistant" or not _INJECTED.match(as_text(part))]
        self.answered.add(role)
        if parts and not said:
            yield Skipped(self.path, number, "injected context (AGENTS.md, environment)")
        else:
            whole = item if as_text(said).strip() != "" and not isinstance(content, str) else None
            yield from self._write(role, as_text(said), number, at, whole, item.get("id"))

    def _write(
        self, role: Role, text: str, number: int, at: Any, payload: dict[str, Any] | None, id: Any = None
    ) -> Iterator[Item]:
        # The "user" of a sub-agent is the agent that started it.
        source: Source | None = "agent" if self.subagent and role == "user" else None
        yield from self.scribe.write(
            self._name(), role, text, line=number, id=id, at=at, source=source, payload=payload
        )

    def _call(self, item: dict[str, Any], kind: str, number: int, at: Any) -> Iterator[Item]:
        function = item["function"] if isinstance(item.get("function"), dict) else {}
        name = item.get("name") or function.get("name") or kind.removesuffix("_call")
        arguments = next((item[key] for key in ("arguments", "input", "action") if item.get(key)), None)
        if isinstance(call_id := item.get("call_id"), str):
            self.tools[call_id] = str(name)
        yield from self.scribe.write(
            self._name(),
            "tool",
            call_text(name, arguments),
            line=number,
            id=item.get("id") or call_id,
            at=at,
            source="assistant",
            payload=item,
        )

    def _result(self, item: dict[str, Any], number: int, at: Any) -> Iterator[Item]:
        name = item.get("name") or self.tools.get(str(item.get("call_id")))
        call_id = item.get("call_id")
        yield from self.scribe.write(
            self._name(),
            "tool",
            result_text(_unpacked(next((item[key] for key in ("output", "result", "tools") if item.get(key)), None))),
            line=number,
            id=item.get("id") or (f"{call_id}/result" if call_id else None),
            at=at,
            source=tool_source(name),
            speaker=name,
            payload=item,
        )

    def _name(self) -> str:
        return self.thread or f"codex/{stem(self.path).removeprefix('rollout-')}"


def _unpacked(output: Any) -> Any:
    """Older rollouts wrap a command's output as JSON text: `{"output": ..., "metadata": ...}`."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            return json.loads(output)["output"]
        except (ValueError, KeyError):
            return output
    return output
