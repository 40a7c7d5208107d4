"""Windows of messages for tests of extraction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from everthread import Evidence, Identity
from everthread.nodes.extract.candidate import Candidate, Window
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.extract.validate import Draft, Refusal, Reminder, validate
from everthread.nodes.node import drive
from everthread.stores.record import Record

__all__ = ["AT", "ground", "judge", "lines", "propose"]

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday morning."""
ROLES: dict[str, Any] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "web": "tool",
    "file": "user",
    "agent": "user",
}


def lines(*said: str | tuple[str, str] | tuple[str, str, str], thread_id: str = "t1") -> tuple[Evidence, ...]:
    """Messages m1, m2, ...: a plain text is the user's, else (source, text) or (source, text, speaker)."""
    parts = [("user", each, None) if isinstance(each, str) else (*each, None)[:3] for each in said]
    return tuple(
        Evidence(
            thread_id=thread_id,
            message_id=f"m{number}",
            role=ROLES[str(source)],
            text=str(text),
            speaker=speaker,
            at=AT,
            source=source,
        )
        for number, (source, text, speaker) in enumerate(parts, 1)
    )


def ground(identity: Identity, *said: Any, thread_id: str = "t1", **options: Any) -> Ground:
    """What a candidate is judged on."""
    return Ground(identity, thread_id, lines(*said), extracted_by="test/1", now=AT, **options)


def propose(*said: Any, project: str | None = "billing", known: Sequence[Record] = ()) -> list[Candidate]:
    """What the rules propose; `known` is what every look-up finds."""
    window = Window(lines(*said), project=project, look=lambda query: known)
    found: list[Candidate] = drive(RuleExtractor().propose(window))
    return found


def judge(identity: Identity, *said: Any) -> list[Draft | Reminder | Refusal]:
    """What becomes of everything that the rules propose."""
    return [validate(candidate, ground(identity, *said)) for candidate in propose(*said)]
