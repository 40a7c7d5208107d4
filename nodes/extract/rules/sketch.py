"""What a rule found in a sentence, before it is tied to a message."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from everthread.nodes.extract.rules.topics import Topic
from everthread.stores.identity import Owner

__all__ = [
    "PROJECT_FACT",
    "Sketch",
    "convention",
    "passing_limit",
    "project_fact",
    "standing_wish",
    "stated_preference",
]

PROJECT_FACT = "a fact about the project"
"""Why what a project is, has or does is worth keeping."""


class Sketch(NamedTuple):
    """A candidate in the making."""

    statement: str
    """Self-contained, in the speaker's language."""
    reason: str
    """Why it is worth keeping."""
    content_type: str = "fact"
    kind: str = "semantic"
    subject: str | None = None
    predicate: str | None = None
    value: str | None = None
    owner: Owner = "user"
    reach: str = "lasting"
    concerns: str | None = None
    due_at: datetime | None = None
    corrects: bool = False
    retracts: bool = False
    replaces: str | None = None
    """The old value that the speaker names while correcting it."""
    unmarked: bool = False
    """A preference without a word of habit or comparison: it may be meant for what is being done only."""

    def fields(self) -> dict[str, Any]:
        """The fields that a candidate shares with it."""
        fields = self._asdict()
        del fields["replaces"], fields["unmarked"]
        return {"write_reason": fields.pop("reason"), **fields}


def passing_limit(statement: str, topic: Topic | None, reach: str) -> Sketch:
    """A limit of what is being done now, such as "no tests this time"."""
    return Sketch(
        statement,
        "a limit of what is being done now",
        subject="user" if topic else None,
        predicate=topic.predicate if topic else None,
        value=topic.value if topic else None,
        owner="session",
        reach=reach,
    )


def standing_wish(statement: str, what: str, topic: Topic | None, *, project: str | None) -> Sketch:
    """A wish for every time from now on: the user's, or with `project` that project's."""
    return Sketch(
        statement,
        "a standing wish of the user",
        content_type="preference",
        subject=project or "user",
        predicate=topic.predicate if topic else "wants",
        value=topic.value if topic else what,
        owner="project" if project else "user",
        concerns="expression" if topic and topic.expression else "decision",
    )


def stated_preference(
    statement: str, predicate: str, value: str, *, expression: bool = False, unmarked: bool = False
) -> Sketch:
    """What the user prefers: how to be answered (`expression`), or what to decide for."""
    return Sketch(
        statement,
        "the user stated a preference",
        content_type="preference",
        subject="user",
        predicate=predicate,
        value=value,
        concerns="expression" if expression else "decision",
        unmarked=unmarked,
    )


def project_fact(
    statement: str,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    *,
    reason: str = PROJECT_FACT,
) -> Sketch:
    """What a project is, has or does; a property of its subject where the sentence names one."""
    return Sketch(statement, reason, subject=subject, predicate=predicate, value=value, owner="project")


def convention(statement: str, subject: str) -> Sketch:
    """How something is done in a project."""
    return Sketch(
        statement, "a convention of the project", "procedural", "procedural", subject=subject, owner="project"
    )
