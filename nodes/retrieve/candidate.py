"""What a turn may put before the model, on its way through the stages, and what was left out on the way and why."""

from __future__ import annotations

from typing import Literal, NamedTuple

from everthread.nodes.state import Reference
from everthread.stores.contract import Task
from everthread.stores.passages import Part, excerpt
from everthread.stores.record import Hit, Record

__all__ = ["Candidate", "LeftOut", "Rule", "Sifted"]

Rule = Literal["already-in-view", "says-the-same", "untrusted", "over-limit", "refuted", "over-budget"]
"""The rules by which a stage leaves something out, in the order of the stages."""


class Candidate(NamedTuple):
    """Something found by the search, or read by key."""

    source: Literal["records", "profile", "evidence", "task"]
    """Which arm brought it."""
    hit: Hit | None = None
    """What the search said of it; None for what was read by key."""
    record: Record | None = None
    """The record, at the revision that was found."""
    task: Task | None = None
    """The task."""
    checked: Literal["confirmed", "unconfirmed"] | None = None
    """What a verifier found."""
    why: str = ""
    """Why it was read by key."""
    part: Part | None = None
    """What is shown of a long message; None for all of it."""

    @property
    def id(self) -> str:
        """Id of the record, the message or the task."""
        if self.record is not None:
            return self.record.id
        if self.task is not None:
            return self.task.id
        assert self.hit is not None
        return self.hit.record_id or self.hit.message_ids[0]

    @property
    def text(self) -> str:
        """What it says."""
        if self.record is not None:
            return self.record.statement
        if self.task is not None:
            return self.task.text
        return self.hit.statement if self.hit else ""

    @property
    def shown(self) -> str:
        """What of it stands in the request."""
        return self.text if self.record is not None or self.task is not None else excerpt(self.text, self.part)

    def reference(self) -> Reference:
        """Without a word of its text: checkpoints hold references, so that an erased record is gone from them too."""
        why = self.why or (_signals(self.hit) if self.hit else "")
        found: Reference = {
            "id": self.id,
            "revision": self.record.revision if self.record else 0,
            "score": round(self.hit.score, 4) if self.hit else 0.0,
            "why": why,
        }
        if self.source != "records":
            found["source"] = self.source
        if self.source == "evidence" and self.hit and self.hit.thread_id:
            found["thread_id"] = self.hit.thread_id
        if self.part:
            found["part"] = [*self.part]
        if self.checked:
            found["checked"] = self.checked
        return found


class LeftOut(NamedTuple):
    """A candidate that does not stand in the request."""

    candidate: Candidate
    rule: Rule
    why: str
    """In a sentence, without a word of what it says."""


class Sifted(NamedTuple):
    """What a stage lets through, in order, and what it leaves out."""

    kept: list[Candidate]
    left_out: list[LeftOut]


def _signals(hit: Hit) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in hit.signals.model_dump().items() if value)
