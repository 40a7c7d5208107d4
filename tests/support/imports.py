"""What a reader made of a file, short enough to compare as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from everthread.cli.formats import Found, Message, Problem, Skipped, read, sources

__all__ = ["FIXTURES", "Outcome", "outcome"]

FIXTURES = Path(__file__).parent.parent / "fixtures"


class Outcome(NamedTuple):
    """Everything that came of reading a path."""

    formats: list[str]
    messages: list[Message]
    skipped: dict[str, int]
    problems: list[tuple[str, int | None, str]]

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """(role, source, text) of each message, in order."""
        return [(message.role, message.source, message.text) for message in self.messages]


def outcome(path: Path, format: str | None = None) -> Outcome:
    """Read `path` as the command line does."""
    formats, messages, skipped, problems = [], [], Counter[str](), []
    for source in sources(path, format):
        if isinstance(source, Found):
            formats.append(source.format)
        for item in read(source) if isinstance(source, Found) else [source]:
            if isinstance(item, Message):
                messages.append(item)
            elif isinstance(item, Skipped):
                skipped[item.why] += 1
            elif isinstance(item, Problem):
                problems.append((item.path.name, item.line, item.why))
    return Outcome(formats, messages, dict(skipped), problems)
