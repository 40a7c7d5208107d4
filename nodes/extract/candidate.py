"""What an extractor proposes, and what it is shown. A candidate is a proposal only: code decides (R90, R91)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal, Protocol

from pydantic import AwareDatetime, Field

from everthread.nodes.node import Ask
from everthread.stores.identity import Frozen, Owner
from everthread.stores.record import Evidence, Record

__all__ = ["Candidate", "Extractor", "Look", "Window"]


class Candidate(Frozen):
    """One thing that may be worth keeping: minimal, self-contained, pointing to the messages it rests on (R92)."""

    statement: str = Field(min_length=1)
    """What was learnt, complete in itself, close to the speaker's words and in the speaker's language."""
    content_type: Literal["fact", "preference", "episodic", "procedural"] = "fact"
    """What is said: a fact, a preference, something that happened, or how something is done."""
    kind: Literal["semantic", "episodic", "procedural", "prospective"] = "semantic"
    """`prospective` for something to be done at a time: it becomes a task, never a record (R317)."""
    subject: str | None = None
    """What it is about: `user` for the user, else the name of the project or thing."""
    predicate: str | None = None
    """Which property of the subject, in a few words, the same for the same property."""
    value: str | None = None
    """The property's value."""
    entities: tuple[str, ...] = ()
    """Names that occur in the statement."""
    owner: Owner = "user"
    """Whose memory it belongs to. A hint: code routes it, and never wider than the identity may write."""
    reach: Literal["this_turn", "task", "session", "lasting"] = "lasting"
    """How long it was meant for: this turn, the current task, this conversation, or from now on (R94, R168)."""
    messages: tuple[int, ...]
    """Numbers of the messages that say it, as shown."""
    records: tuple[int, ...] = ()
    """Numbers of the known records that it repeats, corrects or ends, as shown."""
    valid_from: AwareDatetime | None = None
    """From when it is true in the world, if that was said."""
    valid_to: AwareDatetime | None = None
    """Until when it is true in the world, if that was said."""
    stated: bool = True
    """True when it was said in so many words, False when it is inferred (R166)."""
    concerns: Literal["expression", "decision"] | None = None
    """For a preference: how things are said, or what is chosen."""
    outcome: Literal["proposed", "executed", "verified"] | None = None
    """For an action: how far it got."""
    sensitivity: Literal["normal", "personal", "health", "finance", "identity", "location"] = "normal"
    """The kind of sensitive information it is. Code may raise it, never lower it."""
    write_reason: str = Field(min_length=1)
    """Why it will matter later, in a sentence."""
    due_at: AwareDatetime | None = None
    """For a prospective candidate: when it is due."""
    corrects: bool = False
    """True when the speaker corrects something that was said or known before."""
    retracts: bool = False
    """True when the speaker says that something known no longer holds, without a new value."""


Look = Callable[[str], Sequence[Record]]
"""Finds known records by a text, the most likely first."""


class Window:
    """The messages of one extraction, numbered from 1, and a way to look up what is known already (R114)."""

    def __init__(self, lines: Sequence[Evidence], *, look: Look | None = None, project: str | None = None) -> None:
        self.lines = tuple(lines)
        """The messages, oldest first; number n is `lines[n - 1]`."""
        self.project = project
        """Name of the project that the turn works on, to make statements about it self-contained."""
        self.shown: list[Record] = []
        """The known records looked up so far; number n is `shown[n - 1]`."""
        self._look = look

    def look(self, query: str) -> list[tuple[int, Record]]:
        """Known records that may be touched by `query`, each with the number to point to it by."""
        found = list(self._look(query)) if self._look and query.strip() else []
        for record in found:
            if all(record.id != known.id for known in self.shown):
                self.shown.append(record)
        numbers = {record.id: number for number, record in enumerate(self.shown, 1)}
        return [(numbers[record.id], record) for record in found]


class Extractor(Protocol):
    """Proposes candidates from a window. Replaceable: rules, a model, or the host's own."""

    @property
    def id(self) -> str:
        """Name and version for the provenance, such as `rules/1` or `model/gpt-5`."""

    @property
    def calls_model(self) -> bool:
        """Whether it asks a model: it then works by jobs, unless inline is chosen, so that no reply waits for it."""

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        """Yields the model calls it needs and returns candidates, in the order of the messages.

        Raises ModelReplyError when a model's reply cannot be used; the window is then kept for another try.
        """
