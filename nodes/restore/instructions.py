"""Project instructions: the AGENTS.md files of a project, read whole, never retrieved by similarity (R71 to R83)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from everthread.errors import UsageError

__all__ = ["ProjectInstructions"]


@dataclass(frozen=True)
class ProjectInstructions:
    """Every AGENTS.md from the project's root down to the working folder, each once, the nearest last (R73, R78)."""

    root: Path
    """The project's top folder."""
    folder: Path | None = None
    """The working folder inside it; the root when None."""
    max_bytes: int = 32_768
    """The budget that all files share (R79)."""

    def load(self) -> str:
        """The instructions as one text, each part headed by its path; empty when there are none.

        What exceeds the budget is cut at a character, and the cut is said. Raises UsageError when the folder is outside
        the root, OSError when a file that exists cannot be read.
        """
        root = self.root.resolve()
        folder = (self.folder or self.root).resolve()
        if not folder.is_relative_to(root):
            raise UsageError(f"{folder} is not inside the project {root}; give a folder of the project")
        steps = [
            root,
            *(root.joinpath(*folder.relative_to(root).parts[:n]) for n in range(1, _depth(root, folder) + 1)),
        ]
        room = self.max_bytes
        parts = []
        for step in steps:
            path = step / "AGENTS.md"
            if not path.is_file():
                continue
            data = path.read_bytes()
            text = data[:room].decode("utf-8", "ignore")
            if len(data) > room:
                text += f"\n[cut: {path.name} exceeds the {self.max_bytes} bytes that project instructions may take]"
            parts.append(f"# {path.relative_to(root.parent)}\n\n{text.strip()}")
            room = max(0, room - len(data))
        return "\n\n".join(parts)


def _depth(root: Path, folder: Path) -> int:
    return len(folder.relative_to(root).parts)
