"""What commands report, as data: printed for people, or as JSON."""

from __future__ import annotations

from typing import Any, Literal

from everthread.stores.contract import AuditEntry, Finding, Touch
from everthread.stores.identity import Frozen
from everthread.stores.record import Evidence, Hit, Receipt, Record

__all__ = [
    "AuditReport",
    "ChatTurn",
    "Compaction",
    "DoctorReport",
    "Explanation",
    "ExportReport",
    "FileProblem",
    "FileSkipped",
    "Flow",
    "FormatCount",
    "IngestReport",
    "WorkReport",
]


class FormatCount(Frozen):
    """What was read of one format."""

    files: int
    """How many files or folders."""
    read: int
    """How many messages."""
    skipped: dict[str, int]
    """What was left out on purpose, by reason."""


class FileSkipped(Frozen):
    """A file that was not read."""

    path: str
    """The file."""
    line: int | None
    """The line that shows it, when it is one."""
    why: str
    """The reason."""


class FileProblem(Frozen):
    """Something that could not be read."""

    path: str
    """The file."""
    line: int | None
    """The line, when it is one."""
    why: str
    """What is wrong with it."""


class IngestReport(Frozen):
    """What `everthread ingest` did."""

    read: int
    """Messages that were read."""
    added: int
    """Messages that are new in the store."""
    already_there: int
    """Messages that the store had, that came twice, or that were erased and stay so."""
    threads: int
    """Conversations that they belong to."""
    skipped: dict[str, int]
    """What was left out on purpose, by reason, over all formats."""
    formats: dict[str, FormatCount]
    """The same for each format."""
    skipped_files: tuple[FileSkipped, ...]
    """Files that were not read at all, and why."""
    problems: tuple[FileProblem, ...]
    """What could not be read, with its place."""
    seconds: float
    """How long it took."""


class Flow(Frozen):
    """One step, what it sends, and to whom (R287)."""

    step: str
    """The step of a turn."""
    sends: str
    """What leaves it."""
    to: str
    """Who gets it."""


class DoctorReport(Frozen):
    """What `everthread doctor` found."""

    ok: bool
    """Whether every finding is as it should be."""
    store: str
    """The store that was looked at."""
    repairs: tuple[Finding, ...] = ()
    """With `--fix`: what was done before it was looked at."""
    findings: tuple[Finding, ...]
    """What was looked at in it."""
    environment: dict[str, str]
    """Versions and abilities of this installation."""
    data_flow: tuple[Flow, ...]
    """What goes where."""


class ChatTurn(Frozen):
    """One turn of `everthread chat`."""

    thread_id: str
    """The conversation."""
    reply: str
    """What the agent answered."""
    recalled: list[dict[str, Any]]
    """What was recalled for it, as references."""
    receipts: list[str]
    """Receipts of what the turn wrote or refused."""
    events: list[dict[str, Any]] | None = None
    """With --trace: what each node did and why."""


class Compaction(Frozen):
    """What `/compact` did in `everthread chat`."""

    thread_id: str
    """The conversation."""
    changed: bool
    """Whether the model sees less of it verbatim than before."""
    messages: int
    """How many messages a summary stands for now."""
    summary: str
    """The summary; empty when there is none."""


class ExportReport(Frozen):
    """What `everthread export` wrote."""

    path: str
    """The file."""
    format: Literal["jsonl", "markdown"]
    """How it is written."""
    lines: int
    """Lines in it."""
    bytes: int
    """Its size."""
    export: str | None
    """The export's id, as the audit log has it; None for a document, which says it itself."""
    counts: dict[str, int]
    """Entries by type; empty for a document."""
    left_out: dict[str, int]
    """Records that this user wrote in scopes that the identity does not belong to, by scope."""


class AuditReport(Frozen):
    """What `everthread audit` shows."""

    entries: list[AuditEntry]
    """What was done, the oldest first."""
    chain: Finding
    """Whether the whole log is as it was written."""


class Explanation(Frozen):
    """Why a memory is there, and how it is recalled."""

    record: Record
    """The memory."""
    said: list[Evidence]
    """The messages it rests on, as they were said."""
    receipts: list[Receipt]
    """Which rules decided, the oldest first."""
    recall: Hit | None
    """How it ranks for the question, when one was asked and it is a candidate."""
    in_a_turn: str | None = None
    """What becomes of it in a turn that asks this, and by which rule."""
    answers: list[Touch]
    """The answers it was part of, or a record derived from it, the oldest first."""


class WorkReport(Frozen):
    """What a worker did."""

    done: int
    """Jobs that were finished."""
    failed: int
    """Jobs that failed; they are tried again later, or wait for a decision after five attempts."""
    lost: int
    """Jobs that another worker took over."""
    let_go: bool
    """Whether a job was running still when the worker was stopped; another one begins it again."""
