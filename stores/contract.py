"""What every backend promises.

`MemoryStore` is a LangGraph `BaseStore` (so `compile(store=...)` takes it) and more: records in namespaces under
"everthread", with history, hybrid search, receipts and erasure. `tests/contract/` holds each promise as a test that
every backend runs.

Every method that reads or writes memory takes the identity first: the tenant, scope, ACL, status and time are filters
inside the query, and what an identity may not read does not exist for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from langgraph.store.base import BaseStore
from pydantic import AwareDatetime

from everthread.stores.arguments import checked
from everthread.stores.artifacts import Artifact, Artifacts
from everthread.stores.aside import aside
from everthread.stores.audit import AuditEntry, Noted, ToolCall, Touch, Used
from everthread.stores.identity import Frozen, Identity, Memory, Scope
from everthread.stores.inbox import Inbox
from everthread.stores.jobs import Handlers, Job, JobInfo, Jobs, JobStatus
from everthread.stores.record import Change, ErasureReceipt, Recall, Receipt, Record, Selection, Status
from everthread.stores.tasks import Task, Tasks, TaskStatus
from everthread.stores.transcripts import ThreadInfo, Transcripts

if TYPE_CHECKING:
    from everthread.stores.bound import Remember
    from everthread.stores.transfer import Transfer

__all__ = [
    "Artifact",
    "Artifacts",
    "AuditEntry",
    "Event",
    "Finding",
    "Inbox",
    "Job",
    "JobInfo",
    "JobStatus",
    "Jobs",
    "MemoryStore",
    "Noted",
    "Task",
    "TaskStatus",
    "Tasks",
    "ThreadEraser",
    "ThreadInfo",
    "ToolCall",
    "Touch",
    "Transcripts",
    "Used",
]

Source = Literal["records", "evidence"]
READABLE: tuple[Status, ...] = ("active", "contested")
"""The statuses that recall and `current` see."""


class Finding(Frozen):
    """One thing that `doctor` looked at."""

    check: str
    """What was checked."""
    ok: bool
    """Whether it is as it should be."""
    detail: str
    """What was found."""
    remedy: str | None = None
    """What to do about it."""


class Event(Frozen):
    """That a record changed, or a task is due or over, for those who act on it. Holds ids only."""

    cursor: int
    """Where it stands in the feed; rises with every event, not necessarily by one."""
    kind: Literal["memory.updated", "memory.ended", "memory.erased", "task.due", "task.ended"]
    """A record says something new, is out of use, or is gone; a task is due (a `Worker` looks), or has a result."""
    record_id: str
    """The record, or the task."""
    revision: int | None
    """The record's revision then; None for an erased one, and for a task."""
    tenant: str
    """Whose it is."""
    at: AwareDatetime
    """When it happened."""


@runtime_checkable
class ThreadEraser(Protocol):
    """What `erase` needs of a checkpointer: ours has it."""

    def redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        """Replace the text of these messages, and any text that contains one of `words`, in every checkpoint, pending
        write and snapshot of the thread; returns how many rows were rewritten."""

    def affected(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        """How many rows `redact` would rewrite; changes nothing."""

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of the thread and of the threads of its sub-agents, bytes included."""

    def holds(self, words: Sequence[str], thread_ids: Sequence[str]) -> list[str]:
        """Which of these threads still have one of `words`, once everything is decoded."""


class MemoryStore(BaseStore):
    """A LangGraph store that also keeps records. Backends implement the synchronous methods; the asynchronous ones run
    the same code on a worker thread, so both do the same.

    Plain BaseStore calls under "everthread" read only, must name at least the tenant, and raise UsageError on a write:
    the door is `commit`. They carry no identity and are the host's own; `bound` gives what other people's tools get.

    Everywhere else it is an ordinary BaseStore. Filters take `$eq $ne $gt $gte $lt $lte`, nested values and dotted
    paths, as `everthread.stores.filters` says. A read prolongs an item's life when the call says so
    (`refresh_ttl=True`), or when `ttl` says `refresh_on_read` and the call does not.
    """

    transcripts: Transcripts
    artifacts: Artifacts
    tasks: Tasks
    inbox: Inbox
    jobs: Jobs
    transfer: Transfer

    @abstractmethod
    def sweep_ttl(self) -> int:
        """Delete expired items for good; returns how many there were. They are not readable before it, either."""

    @abstractmethod
    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Call `sweep_ttl` from now on, every so many minutes (those of `ttl`, or 5), on a thread of its own.

        The future ends with the sweeper and stops it when it is cancelled. Without a `ttl` nothing is started, and it
        has ended already. Closing the store stops the sweeper.
        """

    @abstractmethod
    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper and wait for it; False when it has not ended after `timeout` seconds."""

    def bound(
        self,
        identity: Identity,
        *,
        thread_id: str | None = None,
        namespace: Sequence[str] | None = None,
        remember: Remember | None = None,
    ) -> BaseStore:
        """The BaseStore to hand to other people's tools; it acts for this identity, whatever a model fills in.

        Under "everthread" it shows what the identity may use here and now: `get` by record id, or by the key that its
        tool put; `search` with the scores of `recall`, then what did not answer, without a score. A prefix needs not
        name the tenant, and another tenant's is empty. A `put` there, in a scope of this identity, makes a candidate: a
        record that waits for review, with the authority `inferred`. `remember` takes candidates instead, for a host
        that has a door of its own; it also checks them for secrets, which nothing here does. A `delete` takes back what
        this user's tools put, and raises AccessDenied for anything else.

        All other namespaces are private to tenant and user, or lie under `namespace` where the host says so. The
        search of everything, `search(())`, covers both. `thread_id` opens that session's memory.
        """
        from everthread.stores.bound import BoundStore

        return BoundStore(self, identity, thread_id=thread_id, namespace=namespace, remember=remember)

    @abstractmethod
    def commit(
        self, identity: Identity, changes: Sequence[Change], *, key: str, thread_id: str | None = None
    ) -> Receipt:
        """Write decided changes in ONE transaction: records, history, search index, relations, audit, outbox, receipt.

        The same `key` (per tenant and user) again writes nothing and returns the first receipt. Texts are embedded
        before the transaction begins; when the embedder fails, the records are written and a job embeds them later.

        Raises Conflict when a target's revision is not the expected one (`winner` is the revision that stands),
        AccessDenied when the identity may not write that scope or its user has not agreed to be learnt from (records
        may still be ended and refused then), UsageError when a target does not exist, StoreError
        when the backend fails. Nothing is half written. What was erased before is not an error: its decision says
        `refused` by the rule `tombstone`, and the other changes are written.
        """

    @abstractmethod
    def recall(
        self,
        identity: Identity,
        query: str,
        *,
        limit: int = 10,
        sources: Sequence[Source] | set[Source] = ("records",),
        thread_id: str | None = None,
        scopes: Sequence[Scope] | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        floor: float | None = None,
        explain: bool = False,
        asked_at: datetime | None = None,
        task: str | None = None,
    ) -> Recall:
        """Search what this identity may read; the best first.

        `sources`: records, evidence (messages of the identity's own threads), or both. `thread_id` opens that session's
        memory. `scopes` narrows the search; an empty sequence raises UsageError (R162). Hits that score below
        `floor` are dropped, and when none is left the recall abstains; None only ranks. An arm that fails is named in
        `degraded` and the others answer. `asked_at` is when the question was asked, if not now: the days that it names
        are counted from then. `task` is what is being worked on: what answers and belongs to it counts more (R192).

        Two times, each by itself. `as_of` is system time: what the store knew then, each record in the revision that
        stood; what is true in the world is judged at that time too, unless `now` says another. `now` is the world's
        time: what held then as it is known today (or `as_of`), superseded since or not, if what superseded it began
        when its own time ended; decay is measured from it. Neither finds what was erased.
        """

    @abstractmethod
    def record(
        self, identity: Identity, record_id: str, *, revision: int | None = None, as_of: datetime | None = None
    ) -> Record | None:
        """One record by id, whatever its status: the newest revision, a given one, or the one that stood at `as_of`.
        None when it does not exist for this identity."""

    @abstractmethod
    def records(
        self,
        identity: Identity,
        *,
        ids: Sequence[str] | None = None,
        scopes: Sequence[Scope] | None = None,
        statuses: Sequence[Status] = READABLE,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        limit: int | None = None,
    ) -> list[Record]:
        """Readable records, the newest first; or, with `ids`, these records in that order, whatever their status.

        Two times, each by itself: `as_of` is system time and takes the revisions that stood then, with the status that
        they had; `now` is valid time and leaves out what is not true in the world at that moment. Without `now` the
        world's time leaves nothing out.
        """

    @abstractmethod
    def history(self, identity: Identity, record_id: str) -> list[Record]:
        """Every revision of a record, the oldest first; empty when it does not exist for this identity."""

    @abstractmethod
    def current(
        self,
        identity: Identity,
        subject: str,
        predicate: str,
        *,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
    ) -> list[Record]:
        """What stands for this subject and predicate, read by key and not by similarity (R210), narrowest scope first.
        More than one means that scopes differ, or that it is contested.

        `as_of` (system time) takes what was known then, `now` (valid time) what is true then; with `as_of` alone, what
        was known then to be true then. What was superseded by something that began later stands for the time before.
        """

    @abstractmethod
    def profile(
        self,
        identity: Identity,
        *,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        limit: int = 10,
    ) -> list[Record]:
        """How this user has said that they want to be answered: preferences about expression (R166) that they stated
        themselves and that hold here and now, read by key and not by similarity (R199, R210). This session's first,
        then the newest. `as_of` (system time) takes those that stood then."""

    @abstractmethod
    def receipt(self, identity: Identity, receipt_id: str) -> Receipt | None:
        """A receipt by id, or None."""

    @abstractmethod
    def receipt_of(self, identity: Identity, key: str) -> Receipt | None:
        """The receipt of this user's commit under this key, or None: what a job has done is found by the job's key."""

    @abstractmethod
    def learnt_from(
        self, identity: Identity, thread_id: str, message_ids: Sequence[str], *, since: datetime | None = None
    ) -> list[Record]:
        """Every record, whatever its status, that rests on one of these messages of the thread and that this identity
        may read, the oldest first: what of them has been learnt already. `since` leaves out what has not changed since
        then: nothing was learnt from a message before it was said."""

    @abstractmethod
    def receipts(self, identity: Identity, record_id: str) -> list[Receipt]:
        """The receipts of the commits that wrote each revision of a record, the oldest first: which rule decided. Empty
        when the record does not exist for this identity."""

    @abstractmethod
    def cite(self, identity: Identity, record_ids: Sequence[str]) -> None:
        """Note that these records were used in an answer: raises `usage_count`, sets `last_used_at` (R208). Not a new
        revision."""

    @abstractmethod
    def events(self, identity: Identity, after: int = 0, *, limit: int = 100) -> list[Event]:
        """What happened to records after a cursor, in order, for consumers outside: at most `limit`, empty at the end.
        Go on with the last one's `cursor`; no event ever appears behind one that was given out.

        Shows the events of records that this identity may read, and of erased ones that its user had written; to the
        role `admin` all of its tenant. What waits for review makes none, and what runs out by itself neither.
        UsageError when events after the cursor have been pruned.
        """

    @abstractmethod
    def prune_events(self, older_than: timedelta) -> int:
        """Take events out of the feed that are older than this, for all tenants; returns how many. Who has read less
        far is told so at the next `events`; who begins anew gets what is left."""

    @abstractmethod
    def run_out(self, identity: Identity, *, now: datetime) -> list[Record]:
        """The records in use or under review whose time is over at `now` (`valid_to`, `expires_at`, retention), of all
        scopes that this identity reads without a thread, if it may mark them so. For the background pass, which ends
        them as `expired`; they are recalled no more in any case."""

    @abstractmethod
    def expire_transcripts(self, identity: Identity, older_than: timedelta) -> int:
        """Erase what was said longer ago than this in this user's threads, the role `admin`: in all of its tenant's
        (R47); returns how many messages are gone. They are not appended again. What was learnt from them stays, and so
        do checkpoints. A job of the kind `expire-transcripts` with {"days": N} does the same for its user."""

    @abstractmethod
    def audit(
        self,
        identity: Identity,
        *,
        record_id: str | None = None,
        thread_id: str | None = None,
        action: str | None = None,
        after: int = 0,
        limit: int = 1_000,
    ) -> list[AuditEntry]:
        """What was done, the oldest first, at most `limit`; go on with the last one's `seq` as `after` (R285).

        Shows what this identity's user did, and what others did to the user's own records; to the role `admin` all of
        its tenant. `record_id` takes the entries about one record, `thread_id` those of one thread, `action` those of
        one kind. Entries stay when what they are about is erased.
        """

    @abstractmethod
    def verify_audit(self, tenant: str | None = None) -> Finding:
        """Whether the chain of a tenant's entries is whole (None: the chain of every tenant); `detail` counts them, or
        names the first that is broken. What is said of one tenant's chain says nothing of the others."""

    @abstractmethod
    def note(
        self,
        identity: Identity,
        thread_id: str | None,
        events: Sequence[Noted],
        *,
        reply_id: str | None = None,
        answers: str | None = None,
    ) -> bool:
        """Note in the audit log what memory an answer was made from and which tools it called: an entry for each event,
        in one transaction (R296). Nodes call it once for each reply that had memory in its request.

        A `cite` raises `usage_count` and sets `last_used_at` of what is cited, of each record once for the message that
        is answered, however many replies it takes and however often they are made again (R208).

        `answers` is the id of the user's message. The same reply of a thread is noted once; without a `reply_id` the
        same message that it answers. Returns whether it was noted; without a recalled or injected record or
        message nothing is. AccessDenied when the thread is another user's, StoreError when it cannot be written.
        """

    @abstractmethod
    def trace(self, identity: Identity, record_id: str) -> list[Touch]:
        """Every answer that the record was part of, or one derived from it, the oldest first; in answers of this
        identity's user, to the role `admin` of all users of its tenant. What was erased is traced by its id."""

    @abstractmethod
    def set_consent(self, identity: Identity, memory: Memory) -> None:
        """What this user agrees to (R289): `on` to be learnt from and reminded, `read` to be reminded only, `off` to
        neither. It holds for every thread and run, and is noted in the audit log."""

    @abstractmethod
    def consent(self, identity: Identity) -> Memory:
        """What this user agrees to; what the store was opened with (`default_consent`, else `on`) when they have not
        said."""

    @abstractmethod
    def erase(
        self,
        identity: Identity,
        selection: Selection,
        *,
        reason: str,
        with_source: bool = False,
        threads: ThreadEraser | None = None,
        dry_run: bool = False,
        with_backups: bool = False,
    ) -> ErasureReceipt:
        """Erase records, their history, index rows, relations and receipts' references; leave tombstones (keyed hashes
        of what was said, and of the messages it came from) that block re-learning; overwrite the bytes and look at the
        files again before reporting. The audit log keeps ids and counts.

        `with_source` also erases the messages that they came from and what repeats them: in transcripts and, through
        `threads`, in every checkpoint; of a user who is selected whole, and of a tenant, it deletes all threads.
        `threads` is asked afterwards whether it still holds the words. `dry_run` counts what would go and changes
        nothing. `with_backups` deletes the copies that migrations left beside the file; else `remains` names those that
        have it.

        AccessDenied when the identity may not erase what was selected, UsageError when there is no reason or the reason
        repeats what is erased.
        """

    @checked
    def export(
        self,
        identity: Identity,
        *,
        user: str | None = None,
        scope: Scope | None = None,
        format: Literal["jsonl", "markdown"] = "jsonl",
    ) -> Iterator[str]:
        """Everything that is kept for a user, line by line, each with its end of line (R225, R279).

        "jsonl": one object a line, the first says what it is an export of and how much there is, the last seals it:
        `everthread.migrate.restore` brings it back, whole. "markdown": the same for a person to read. Records with all
        revisions, whatever their status, receipts, threads with every message, tasks, artifacts, inputs, jobs, plain
        items of bound tools, consent, and the log of what was done; the vectors are not in it, they are derived.

        `user` is another user of the tenant, which needs the role admin. `scope` narrows it to the records of one scope
        that may be read, and the receipts of them. What this user has written where this identity does not belong is
        counted in the first line, by scope. It is one state of the store, read while the lines are taken.

        The export is noted in the audit log before the first line is given out. AccessDenied when the identity may not
        export that.
        """
        from everthread.stores.export import exported

        return exported(self, identity, user=user, scope=scope, format=format)

    @abstractmethod
    def handlers(self) -> Handlers:
        """The store's own jobs, by kind, for `jobs.drain`: embedding that was put off."""

    @abstractmethod
    def doctor(self) -> list[Finding]:
        """Look at integrity, versions, drift between records and what is derived from them, rows that nothing leads to,
        the audit chain and failed jobs; changes nothing."""

    @abstractmethod
    def repair(self) -> list[Finding]:
        """Derive again what has drifted from the records, remove what nothing leads to, embed what lacks vectors.
        Returns what was done, one finding each; one that is not `ok` could not be mended. A sound store: empty."""

    @abstractmethod
    def rebuild(self) -> int:
        """Drop the search index and build it again from records and transcripts; returns how many rows it has."""

    @abstractmethod
    def close(self) -> None:
        """Release the files or connections. Closing twice is allowed."""

    async def acommit(
        self, identity: Identity, changes: Sequence[Change], *, key: str, thread_id: str | None = None
    ) -> Receipt:
        """`commit`, without blocking the event loop."""
        return await aside(self.commit, identity, changes, key=key, thread_id=thread_id)

    async def arecall(self, identity: Identity, query: str, **options: Any) -> Recall:
        """`recall`, without blocking the event loop."""
        return await aside(lambda: self.recall(identity, query, **options))

    async def aerase(self, identity: Identity, selection: Selection, *, reason: str, **options: Any) -> ErasureReceipt:
        """`erase`, without blocking the event loop."""
        return await aside(lambda: self.erase(identity, selection, reason=reason, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await aside(self.close)
