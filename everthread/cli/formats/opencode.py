"""OpenCode's storage folder: `session/`, `message/`, `part/`, one small JSON file each, new and legacy layouts.

New: `part/<message id>/*.json`. Legacy: parts in one flat folder, or under `session/message` and `session/part`, and a
user's words at times only in the message's summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import load
from everthread.cli.formats.message import Item, Problem, Role, Scribe, Skipped, Source
from everthread.cli.formats.parts import as_text, call_text, result_text, tool_source

__all__ = ["is_storage", "read"]

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_MARKERS = {
    "reasoning": "reasoning",
    "compaction": "compaction marker",
    "step-start": "step marker",
    "step-finish": "step marker",
    "snapshot": "snapshot marker",
    "patch": "snapshot marker",
    "retry": "step marker",
    "agent": "agent marker",
    "subtask": "agent marker",
}


def is_storage(folder: Path) -> bool:
    """Whether this folder is a storage of OpenCode."""
    return folder.is_dir() and _home(folder) is not None


def read(folder: Path) -> Iterator[Item]:
    """Every message and tool call, session by session, in the order of their time."""
    home = _home(folder) or folder
    sessions: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / "session").rglob("ses*.json")):
        session = _object(path)
        if isinstance(session, Problem):
            yield session
        elif isinstance(session.get("id"), str):
            sessions[session["id"]] = session
    loose = _loose_parts(home)
    for messages in sorted(path for path in (home / "message").iterdir() if path.is_dir()):
        yield from _session(home, messages, sessions.get(messages.name, {}), loose)


def _home(folder: Path) -> Path | None:
    """The folder that has `message` and belongs to a `session` folder."""
    if not (folder / "session").is_dir():
        return None
    return next((home for home in (folder, folder / "session") if (home / "message").is_dir()), None)


def _object(path: Path) -> dict[str, Any] | Problem:
    value = load(path)
    return value if isinstance(value, dict | Problem) else Problem(path, None, "is not a JSON object")


def _loose_parts(home: Path) -> dict[str, list[Path]]:
    """Files of parts that lie in no folder of their message, by message id."""
    found: dict[str, list[Path]] = {}
    for path in sorted((home / "part").glob("*.json")):
        part = load(path)
        if isinstance(part, dict):
            found.setdefault(str(part.get("messageID")), []).append(path)
    return found


def _session(home: Path, folder: Path, session: dict[str, Any], loose: dict[str, list[Path]]) -> Iterator[Item]:
    messages: list[tuple[Any, Path, dict[str, Any]]] = []
    for path in sorted(folder.glob("*.json")):
        message = _object(path)
        if isinstance(message, Problem):
            yield message
        elif message.get("role") not in _ROLES:
            yield Problem(path, None, f"role {str(message.get('role'))[:40]!r} not known")
        else:
            messages.append((_created(message), path, message))
    last = max((number for number, _, _ in messages if number is not None), default=0)
    for _, path, message in sorted(messages, key=lambda found: (last if found[0] is None else found[0], found[1])):
        name = str(message.get("id") or path.stem)
        places = (home / "part" / name, home / "part" / folder.name / name)
        parts = sorted(part for place in places for part in place.glob("*.json")) + loose.get(name, [])
        yield from _message(
            Scribe(path), message, name, parts, f"opencode/{folder.name}", bool(session.get("parentID"))
        )


def _created(message: dict[str, Any]) -> int | float | None:
    time = message.get("time")
    at = time.get("created") if isinstance(time, dict) else None
    return at if isinstance(at, int | float) else None


def _message(
    scribe: Scribe, message: dict[str, Any], name: str, parts: list[Path], thread: str, subagent: bool
) -> Iterator[Item]:
    role, at = _ROLES[message["role"]], _created(message)
    words, before, after = list[str](), list[dict[str, Any]](), list[dict[str, Any]]()
    for path in parts:
        part = _object(path)
        if isinstance(part, Problem):
            yield part
        elif part.get("type") == "tool":
            (after if words else before).append(part)
        elif part.get("synthetic") or part.get("ignored"):
            yield Skipped(path, None, "synthetic text")
        elif text := as_text(part).strip():
            at = at if words else _began(part, at)
            words.append(text)
        else:
            kind = str(part.get("type"))
            yield Skipped(
                path, None, _MARKERS.get(kind, "empty" if kind == "text" else f"part {kind[:40]!r} not known")
            )
    # The "user" of a sub-session is the agent that started it; a summary was written by a model.
    source: Source | None = "agent" if subagent and role == "user" else None
    summary = message.get("summary")
    if not words and role == "user" and isinstance(summary, dict) and isinstance(summary.get("body"), str):
        words, source = [summary["body"]], "agent"
    for part in before:
        yield from _tool(scribe, part, thread, _created(message))
    if words:
        text = "\n".join(words)
        yield from scribe.write(thread, role, text, line=None, id=name, at=at, source=source, payload=message)
    for part in after:
        yield from _tool(scribe, part, thread, at)


def _began(part: dict[str, Any], otherwise: Any) -> Any:
    time = part.get("time")
    return time.get("start", otherwise) if isinstance(time, dict) else otherwise


def _tool(scribe: Scribe, part: dict[str, Any], thread: str, at: Any) -> Iterator[Item]:
    state = part["state"] if isinstance(part.get("state"), dict) else {}
    name, id = part.get("tool"), part.get("id") or part.get("callID")
    time = state["time"] if isinstance(state.get("time"), dict) else {}
    began = _began(state, at)
    text = call_text(name, state.get("input"))
    yield from scribe.write(thread, "tool", text, line=None, id=id, at=began, source="assistant", payload=part)
    output = state.get("output") or state.get("error")
    if text := result_text(output):
        yield from scribe.write(
            thread,
            "tool",
            text,
            line=None,
            id=f"{id}/result" if id else None,
            at=time.get("end", began),
            source=tool_source(name),
            speaker=name,
            payload={"callID": part.get("callID"), "state": state},
        )
