"""Conversations from elsewhere: one file per format, recognised by content.

`sources(path)` says which files can be read as what, `read(source)` yields their messages one by one. A line that
cannot be read is a `Problem`, one that is left out on purpose a `Skipped`, and neither costs the lines around it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from everthread.cli.formats import chatgpt, claude_code, codex, evermemos, jsonl, locomo, longmemeval, opencode
from everthread.cli.formats.files import Line, documents
from everthread.cli.formats.message import Item, Message, Problem, Skipped
from everthread.errors import UsageError

__all__ = ["FORMATS", "Found", "Item", "Message", "Problem", "Skipped", "detect", "read", "sources"]

_SAMPLE = 200
"""Values of a file that are looked at to recognise its format."""
_RECOGNISED: dict[str, Callable[[Any], bool]] = {
    "locomo": locomo.recognises,
    "longmemeval": longmemeval.recognises,
    "chatgpt": chatgpt.recognises,
    "evermemos": evermemos.recognises,
    "codex": codex.recognises,
    "claude-code": claude_code.recognises,
}
"""Formats that one value of a file gives away, the surest first."""
FORMATS: dict[str, Callable[[Path], Iterator[Item]]] = {
    "jsonl": jsonl.read,
    "locomo": locomo.read,
    "longmemeval": longmemeval.read,
    "codex": codex.read,
    "claude-code": claude_code.read,
    "opencode": opencode.read,
    "chatgpt": chatgpt.read,
    "evermemos": evermemos.read,
}
"""The reader of each format that `--format` accepts."""


class Found(NamedTuple):
    """Something that can be read."""

    path: Path
    """A file; for `opencode` its storage folder."""
    format: str
    """A key of `FORMATS`."""


def detect(path: Path) -> str | None:
    """The format of a file, or of an OpenCode folder, by its content; None when it is none that is known."""
    if path.is_dir():
        return "opencode" if opencode.is_storage(path) else None
    return _format_of(_sample(path)) if path.is_file() else None


def _sample(path: Path) -> list[Line | Problem]:
    return list(islice(documents(path), _SAMPLE))


def _format_of(items: list[Line | Problem]) -> str | None:
    sample = [item.value for item in items if isinstance(item, Line)]
    for name, recognises in _RECOGNISED.items():
        if any(map(recognises, sample)):
            return name
    return "jsonl" if jsonl.recognises(sample) else None


def sources(path: Path, format: str | None = None) -> Iterator[Found | Skipped]:
    """What there is to read at `path`: itself, or everything in that folder, in the order of the names.

    With `format` every file is read as that. Raises UsageError for a path that does not exist or an unknown format.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"format {format!r} is not known; choose one of {', '.join(FORMATS)}")
    if not path.exists():
        raise UsageError(f"{path} does not exist; give a file or a folder of conversations")
    if opencode.is_storage(path) and format in (None, "opencode"):
        yield Found(path, "opencode")
    elif path.is_dir():
        yield from _inside(path, format)
    else:
        yield _file(path, format)


def read(source: Found) -> Iterator[Item]:
    """The messages of one source, lazily, with what was skipped and what could not be read."""
    try:
        yield from FORMATS[source.format](source.path)
    except OSError as error:
        yield Problem(source.path, None, f"cannot be read: {error.strerror or error}")


def _inside(folder: Path, format: str | None) -> Iterator[Found | Skipped]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield Skipped(folder, None, f"cannot be read: {error.strerror or error}")
        return
    for name in names:
        path = folder / name
        if path.is_dir():
            if name != ".git" and not path.is_symlink():
                yield from sources(path, format)
        else:
            yield _file(path, format)


def _file(path: Path, format: str | None) -> Found | Skipped:
    if not path.is_file() or path.stat().st_size == 0:
        return Skipped(path, None, "empty file" if path.is_file() else "not a file")
    questions = path.with_name(path.name.replace("_sessions", "_questions"))
    if format is None and questions != path and questions.is_file() and detect(questions) == "longmemeval":
        return Skipped(path, None, f"read together with {questions.name}")
    if format:
        return Found(path, format)
    sample = _sample(path)
    if found := _format_of(sample):
        return Found(path, found)
    problems = [item for item in sample if isinstance(item, Problem)]
    if problems and len(problems) == len(sample):  # nothing in it is JSON
        return Skipped(path, problems[0].line, problems[0].why)
    return Skipped(path, None, "format not known; --format says which it is")
