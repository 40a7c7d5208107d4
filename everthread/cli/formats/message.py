"""What a reader yields, and the scribe that gives messages what their file leaves out."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from everthread.cli.formats.times import moment

__all__ = ["Item", "Message", "Problem", "Role", "Scribe", "Skipped", "Source", "digest", "sound"]

Role = Literal["user", "assistant", "tool"]
Source = Literal["user", "assistant", "tool", "web", "file", "agent"]

_UNSOUND = re.compile("[\x00\ud800-\udfff]")
_LABEL_SIZE = 512


class Message(NamedTuple):
    """One message as it was said."""

    thread: str
    """Name of its conversation, the same in every run."""
    id: str
    """Its id in that conversation, the same in every run."""
    role: Role
    """Who spoke, as a role."""
    speaker: str | None
    """Who spoke, by name, when the role does not tell."""
    text: str
    """What was said; sound Unicode without NUL."""
    at: datetime
    """When, aware."""
    source: Source
    """Where the words came from (R291)."""
    payload: dict[str, Any] | None
    """The original whole, when it holds more than the text (R42)."""


class Skipped(NamedTuple):
    """Something that was read and left out on purpose."""

    path: Path
    """The file."""
    line: int | None
    """The line; None for the whole file."""
    why: str
    """The reason; the same words for the same reason, so that they can be counted."""


class Problem(NamedTuple):
    """Something that could not be read, or only in part."""

    path: Path
    """The file."""
    line: int | None
    """The line; None for the whole file."""
    why: str
    """What is wrong with it."""


Item = Message | Skipped | Problem


def digest(*parts: str) -> str:
    """16 hexadecimal digits that stand for these texts."""
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


def sound(value: Any) -> Any:
    """`value` with every lone surrogate and NUL replaced by U+FFFD and every number JSON does not know by its name, so
    that any store can keep it."""
    if isinstance(value, str):
        return _UNSOUND.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sound(key): sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [sound(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class Scribe:
    """Completes the messages of one file.

    A message without id gets one from its thread, role, text and how often the same was said before in that thread, so
    it is the same in every run, also after lines were added elsewhere in the file. Two different messages under one id
    are both kept. A message without time gets the time of the one before it in its thread plus a millisecond, and the
    first one its conversation's beginning or else the file's own time; ids never depend on the time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file_time = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        self._last: dict[str, datetime] = {}
        self._said: Counter[str] = Counter()
        self._ids: dict[tuple[str, str], str] = {}

    def begin(self, thread: str, at: Any) -> None:
        """Say when a conversation began, for messages without a time of their own."""
        if when := moment(at):
            self._last.setdefault(label(thread), when)

    def write(
        self,
        thread: str,
        role: Role,
        text: str,
        *,
        line: int | None,
        id: Any = None,
        at: Any = None,
        source: Source | None = None,
        speaker: Any = None,
        payload: dict[str, Any] | None = None,
    ) -> Iterator[Item]:
        """Yield the message; before it a Problem when its time was not understood; only a Skipped when it is empty."""
        if not text.strip():
            yield Skipped(self.path, line, "empty")
            return
        thread, text = label(thread), sound(text)
        when = at if isinstance(at, datetime) else moment(at)
        if when is None and at is not None:
            yield Problem(self.path, line, f"time {str(at)[:40]!r} not understood; placed after the message before it")
        if when is None:
            last = self._last.get(thread)
            when = last + timedelta(milliseconds=1) if last else self._file_time
        self._last[thread] = when
        yield Message(
            thread=thread,
            id=self._id(thread, role, text, id),
            role=role,
            speaker=sound(speaker) if isinstance(speaker, str) and speaker.strip() else None,
            text=text,
            at=when,
            source=source or role,
            payload=None if payload is None else sound(payload),
        )

    def _id(self, thread: str, role: str, text: str, given: Any) -> str:
        content = digest(role, text)
        if given is None or not str(given).strip():
            self._said[f"{thread}\x1f{content}"] += 1
            return digest(thread, content, str(self._said[f"{thread}\x1f{content}"]))
        name = label(str(given))
        if self._ids.setdefault((thread, name), content) == content:
            return name
        return label(f"{name}~{content}")


def label(name: str) -> str:
    """`name` as the name of a thread or message: sound, not empty, at most 512 characters."""
    name = sound(name).strip() or "unnamed"
    return name if len(name) <= _LABEL_SIZE else f"{name[: _LABEL_SIZE - 17]}~{digest(name)}"
