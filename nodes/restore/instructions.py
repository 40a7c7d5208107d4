"""Project instructions: the AGENTS.md files of a project, read whole, never retrieved by similarity (R71 to R83)."""

from __future__ import annotations

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
        the root, OSError when a file that exists cannot be read.
        """
        root, folder = self.root.resolve(), (self.folder or self.root).resolve()
        if not folder.is_relative_to(root):
            raise UsageError(f"{folder} is not inside the project {root}; give a folder of the project")
        files = [(path, str(path.relative_to(root.parent))) for path in self._files(root, folder)]
        if self.global_file is not None and self.global_file.expanduser().is_file():
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
            found = next((step / name for name in (*NAMES, *self.fallbacks) if (step / name).is_file()), None)
            if found is not None and found.resolve().is_relative_to(root):
                yield found

    def _within_budget(self, files: Sequence[tuple[Path, str]]) -> Iterator[str]:
        """Each file's text under its title, while there is room; a file that is not reached is named."""
        room = self.max_bytes
        for path, title in files:
            data = path.read_bytes()
            text = data[:room].decode("utf-8", "ignore")
            if len(data) > room:
                text += f"\n[cut: {title} exceeds the {self.max_bytes} bytes that project instructions may take]"
            yield f"# {title}\n\n{text.strip()}"
            room = max(0, room - len(data))


def _attachment(text: str) -> HumanMessage:
    return HumanMessage(
        content=fenced("project_instructions", text),
        id=f"instructions-{sha256(text.encode()).hexdigest()[:32]}",
        additional_kwargs={MARK: {"kind": "instructions"}},
    )
