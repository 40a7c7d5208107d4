"""The audit log: what is noted and what is read of it. Ids, counts and names of rules; no statement (R285, R296)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from everthread.stores.identity import Frozen, Label

__all__ = ["AuditEntry", "Noted", "ToolCall", "Touch", "Used"]


class AuditEntry(Frozen):
    """One thing that was done to memory, or with it (R285, R296). Ids, counts and names of rules; never a statement."""

    seq: int
    """Its place in its tenant's chain, from 1; pass the last one as `after` to go on."""
    at: AwareDatetime
    """When."""
    user: str
    """Who did it."""
    action: str
    """`write`, `erase` and `verify` (what was looked at after an erasure); `recall`, `inject` and `act` of an answer;
    `consent`, `expire`, `export`; `read` where the store was opened with `audit_reads`."""
    thread_id: str | None
    """In which thread; None when it was done outside of one."""
    detail: dict[str, Any]
    """Plain JSON. Of another user's act it holds the ids of this user's own records alone."""


class Used(Frozen):
    """A record as it was recalled, or as it stood in a request."""

    record_id: Label
    """The record."""
    revision: int
    """Its revision then."""
    score: float | None = None
    """How well it answered; None when it was not searched for."""


class ToolCall(Frozen):
    """A call of a tool by its id and name, without its arguments."""

    id: str = Field(max_length=512, pattern=r"^[!-~]*$")
    """The call's id, as the model gave it."""
    name: str = Field(max_length=128, pattern=r"^[!-~]+$")
    """The tool."""


class Noted(Frozen):
    """One link of the chain from memory to an answer (R296)."""

    action: Literal["recall", "inject", "act", "cite"]
    """It was found, it stood in the request, the reply called tools, or the reply rests on it."""
    records: tuple[Used, ...] = ()
    """What was recalled, injected or cited."""
    not_applicable: tuple[Used, ...] = ()
    """What the reply looked at and found not to apply now (R211). That is said of this answer, not of the record."""
    messages: tuple[tuple[Label, Label], ...] = ()
    """(thread id, message id) of what was said elsewhere and recalled or injected."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that the reply called."""


class Touch(Frozen):
    """An answer that a record was part of."""

    thread_id: str | None
    """The thread."""
    reply_id: str | None
    """Id of the message that the model answered with; None when a host's own node asked, and did not say."""
    answers: str | None
    """Id of the user's message that it answers; None when there was none."""
    user: str
    """Whose turn it was."""
    at: AwareDatetime
    """When it was answered."""
    record_id: str
    """The record that stood in the request: the one that was asked about, or one derived from it."""
    revision: int
    """Its revision then."""
    derived: bool
    """Whether it is one that was derived from the record, or took its place."""
    calls: tuple[ToolCall, ...]
    """The tools that the reply called, in order."""
