"""A first AGENTS.md from what a project's own files say, on request only (R77): no guess, no conversation."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Note", "draft", "notes_of"]

MAX_READ = 1_000_000
"""Bytes of a build file that are read."""
_TARGET = re.compile(r"^([A-Za-z0-9][\w.-]*)\s*:(?!=)", re.MULTILINE)
TELLING = ("build", "test", "tests", "check", "lint", "format", "fmt", "types", "typecheck", "docs", "run", "dev")
"""Targets and scripts that a newcomer needs."""


class Note(NamedTuple):
    """One thing that a file of the project says."""

    kind: str
    """`about` or `command`."""
    text: str
    """What it says; for a command, how it is called."""
    source: str
    """The file, from the project's root."""


def notes_of(root: Path) -> list[Note]:
    """What the build files in `root` say, in a fixed order, each with the file it stands in. Empty when there is no
    build file that is known. A file that is malformed says nothing; OSError when one cannot be read."""
    found: list[Note] = []
    for name, reader in _READERS.items():
        path = root / name
        if path.is_file():
            found.extend(
                Note(kind, text, name) for kind, text in reader(path.read_bytes()[:MAX_READ].decode("utf-8", "replace"))
            )
    found.extend(
        Note("command", "dotnet test", path.name) for path in sorted([*root.glob("*.sln"), *root.glob("*.csproj")])[:1]
    )
    return found


def draft(root: Path) -> str | None:
    """An AGENTS.md for the project in `root`, each line with the file that says so; None when no file says anything.
    A person reads and completes it: only they know the rules that are in no file."""
    notes = notes_of(root)
    if not notes:
        return None
    about = [note for note in notes if note.kind == "about"]
    commands = [note for note in notes if note.kind == "command"]
    parts = [f"# {root.resolve().name}"]
    if about:
        parts.append("\n".join(f"- {note.text} ({note.source})" for note in about))
    if commands:
        parts.append("## Commands\n\n" + "\n".join(f"- `{note.text}` ({note.source})" for note in commands))
    parts.append("## Rules\n\nWrite here what no file says: how to work in this project, and what never to do.")
    return "\n\n".join(parts) + "\n"


Said = Iterator[tuple[str, str]]


def _pyproject(text: str) -> Said:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    project = _mapping(data.get("project"))
    if isinstance(project.get("description"), str):
        yield "about", _line(project["description"])
    if isinstance(project.get("requires-python"), str):
        yield "about", f"Python {_line(project['requires-python'])}"
    tools = _mapping(data.get("tool"))
    for tool, command in (("pytest", "pytest"), ("ruff", "ruff check ."), ("mypy", "mypy")):
        if tool in tools:
            yield "command", command


def _package(text: str) -> Said:
    try:
        data = _mapping(json.loads(text))
    except ValueError:
        return
    if isinstance(data.get("description"), str) and data["description"].strip():
        yield "about", _line(data["description"])
    scripts = _mapping(data.get("scripts"))
    for name in scripts:
        if name in TELLING:
            yield "command", f"npm run {name}"


def _makefile(text: str) -> Said:
    targets = dict.fromkeys(_TARGET.findall(text))
    for name in targets:
        if name in TELLING:
            yield "command", f"make {name}"


def _always(*commands: str) -> Callable[[str], Said]:
    def said(text: str) -> Said:
        return (("command", command) for command in commands)

    return said


_READERS: Mapping[str, Callable[[str], Said]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package,
    "Makefile": _makefile,
    "tox.ini": _always("tox"),
    "noxfile.py": _always("nox"),
    "Cargo.toml": _always("cargo build", "cargo test"),
    "go.mod": _always("go build ./...", "go test ./..."),
    "pom.xml": _always("mvn test"),
    "build.gradle": _always("gradle test"),
    "build.gradle.kts": _always("gradle test"),
    "CMakeLists.txt": _always("cmake -B build && cmake --build build", "ctest --test-dir build"),
}
"""What each build file says. Commands are those that the file's own tool defines by its presence."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _line(text: str) -> str:
    return " ".join(text.split())
