"""Project instructions: the AGENTS.md files of a project, read whole, never retrieved by similarity (R71 to R83)."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from langchain_core.messages import BaseMessage, HumanMessage

from everthread.errors import UsageError
from everthread.nodes.block import fenced
from everthread.nodes.state import MARK

__all__ = ["NAMES", "ProjectInstructions"]

NAMES = ("AGENTS.override.md", "AGENTS.md")
"""The names that a folder's instructions are looked for by; the first that exists is the folder's only one (R78)."""
MAX_BYTES = 32_768


@dataclass(frozen=True)
class ProjectInstructions:
    """One file a folder, from the project's root down to the working folder, the nearest last (R73, R78).

    A folder's file is the first that exists of `AGENTS.override.md`, `AGENTS.md` and the `fallbacks`. All files share
    one budget of bytes, the global one first (R79). A file behind a symbolic link that leads out of the project is not
    the project's, and is left out.
    """

    root: Path
    """The project's top folder."""
    folder: Path | None = None
    """The working folder inside it; the root when None."""
    max_bytes: int = MAX_BYTES
    """The budget that all files share (R79)."""
    global_file: Path | None = None
    """A file of yours that stands before every project's, when it exists (R73)."""
    fallbacks: tuple[str, ...] = ()
    """Other names to look for in a folder that has neither of ours, such as `CLAUDE.md`, in order (R75, R78)."""

    def __post_init__(self) -> None:
        for name in self.fallbacks:
            if not name or Path(name).name != name:
                raise UsageError(f"fallbacks: {name!r} is not a file name; name files, not paths")
        if self.max_bytes < 1:
            raise UsageError(f"max_bytes must be at least 1, not {self.max_bytes}")

    def load(self) -> str:
        """The instructions as one text, each part headed by its path; empty when there are none.

        What exceeds the budget is cut at a character, and the cut is said. Raises UsageError when the folder is outside
        the root, OSError when what has a file's name cannot be read: a folder, a link in a circle or to nowhere.
        """
        root, folder = self.root.resolve(), (self.folder or self.root).resolve()
        if not folder.is_relative_to(root):
            raise UsageError(f"{folder} is not inside the project {root}; give a folder of the project")
        files = [(path, str(path.relative_to(root.parent))) for path in self._files(root, folder)]
        if self.global_file is not None and _is_file(self.global_file.expanduser()):
            files.insert(0, (self.global_file.expanduser(), self.global_file.name))
        return "\n\n".join(self._within_budget(files))

    def attached(self, path: Path | str, messages: Sequence[BaseMessage]) -> list[HumanMessage]:
        """The instructions of folders below the working folder that govern `path`, as marked messages, the nearest
        last: what a tool that reads files adds beside its result (R76).

        Each text is attached once to a thread: not again when `messages` has it, and anew when it changed. Empty for a
        path outside the working folder. Raises OSError when a file that exists cannot be read.
        """
        folder = (self.folder or self.root).resolve()
        target = (folder / path).resolve()
        if not target.is_relative_to(folder):
            return []
        below = target if target.is_dir() else target.parent
        files = [
            (found, str(found.relative_to(folder))) for found in self._files(folder, below) if found.parent != folder
        ]
        present = {message.id for message in messages}
        return [message for text in self._within_budget(files) if (message := _attachment(text)).id not in present]

    def _files(self, top: Path, folder: Path) -> Iterator[Path]:
        """The file of each folder from `top` down to `folder`, both included."""
        root = self.root.resolve()
        steps = folder.relative_to(top).parts
        for depth in range(len(steps) + 1):
            step = top.joinpath(*steps[:depth])
            names = (step / name for name in (*NAMES, *self.fallbacks))
            if found := next((path for path in names if _is_inside(path, root) and _is_file(path)), None):
                yield found

    def _within_budget(self, files: Sequence[tuple[Path, str]]) -> Iterator[str]:
        """Each file's text under its title, while there is room; a file that is not reached is named."""
        room = self.max_bytes
        for path, title in files:
            with path.open("rb") as opened:
                data = opened.read(room + 4)  # no more: it may be of any size
            text = _decoded(data[:room], cut=len(data) > room)
            if len(data) > room:
                text += f"\n[cut: {title} exceeds the {self.max_bytes} bytes that project instructions may take]"
            yield f"# {title}\n\n{text.strip()}"
            room = max(0, room - len(data))


def _is_inside(path: Path, root: Path) -> bool:
    """Whether a path leads to nothing outside of the project."""
    return not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(root)


def _is_file(path: Path) -> bool:
    """Whether there is a file; OSError when there is something of this name that cannot be read as one, so that rules
    which were in force do not end because of it (S18)."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise
        return False
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "is no file that can be read", str(path))
    return True


def _decoded(data: bytes, *, cut: bool) -> str:
    """The text in UTF-8, or in what its byte order mark says; U+FFFD for what is none. A torn last character goes."""
    name = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return codecs.getincrementaldecoder(name)("replace").decode(data, final=not cut)


def _attachment(text: str) -> HumanMessage:
    return HumanMessage(
        content=fenced("project_instructions", text),
        id=f"instructions-{sha256(text.encode()).hexdigest()[:32]}",
        additional_kwargs={MARK: {"kind": "instructions"}},
    )
