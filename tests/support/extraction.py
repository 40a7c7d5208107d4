"""Windows of messages for tests of extraction, and the labelled exchanges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from everthread import Evidence, Identity
from everthread.nodes.extract.candidate import Candidate, Window
from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.extract.validate import Draft, Ground, Refusal, Reminder, validate
from everthread.nodes.node import drive
from everthread.stores.record import Record

__all__ = ["AT", "Fact", "Score", "exchanges", "facts_of", "ground", "judge", "lines", "propose", "score"]

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday morning."""
EXCHANGES = Path(__file__).parent.parent / "fixtures" / "extraction.jsonl"
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


class Fact(NamedTuple):
    """What a label says of one thing learnt. A None in a label is not compared."""

    scope: str
    type: str | None
    subject: str | None
    value: str | None

    def fits(self, other: Fact) -> bool:
        """Whether what was learnt (`other`) is what this label says."""
        return all(mine is None or mine == theirs for mine, theirs in zip(self, other, strict=True))


def facts_of(verdicts: Sequence[Draft | Reminder | Refusal]) -> list[Fact]:
    """What would be active, or become a task."""
    found = []
    for verdict in verdicts:
        if isinstance(verdict, Reminder):
            found.append(Fact("task", None, None, None))
        elif isinstance(verdict, Draft) and verdict.record.status == "active" and not verdict.retracts:
            record = verdict.record
            found.append(Fact(record.scope.owner, record.content_type, record.subject, record.value))
    return found


def exchanges() -> list[dict[str, Any]]:
    """The labelled exchanges: what was said (source, text), and what is to be learnt from it."""
    return [json.loads(line) for line in EXCHANGES.read_text(encoding="utf-8").splitlines()]


class Score(NamedTuple):
    """How much of what was learnt is right, and how much of what should be learnt was."""

    precision: float
    recall: float
    wrong: list[str]
    """What was learnt and should not have been, or differently."""
    missed: list[str]
    """What should have been learnt."""


def score(identity: Identity, language: str) -> Score:
    """RuleExtractor and validate on the labelled exchanges of one language."""
    right = learnt = wanted = 0
    wrong: list[str] = []
    missed: list[str] = []
    for exchange in exchanges():
        if exchange["language"] != language:
            continue
        said = [*(tuple(each) for each in exchange["say"]), ("assistant", "OK.")]
        found = facts_of(judge(identity, *said))
        labels = [Fact(**label) for label in exchange["learnt"]]
        learnt, wanted = learnt + len(found), wanted + len(labels)
        for fact in found:
            label = next((each for each in labels if each.fits(fact)), None)
            if label is None:
                wrong.append(f"{exchange['id']} {exchange['say'][-1][1]}: {fact}")
            else:
                labels.remove(label)
                right += 1
        missed += [f"{exchange['id']} {exchange['say'][-1][1]}: {label}" for label in labels]
    return Score(right / learnt, right / wanted, wrong, missed)
