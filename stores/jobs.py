"""Work that outlives the turn that asked for it: what a job is, and what a queue of them promises."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any, Literal, Protocol

from pydantic import AwareDatetime

from everthread.errors import EverthreadError
from everthread.stores.identity import Frozen, Identity

__all__ = ["Handlers", "Job", "JobInfo", "JobStatus", "Jobs", "wordless"]


class Job(Frozen):
    """Work that outlives the turn that asked for it."""

    id: str
    """The job's id."""
    kind: str
    """What to do, such as `embed` or `extract`."""
    payload: dict[str, Any]
    """Ids and small values; never statements."""
    attempts: int
    """How often it was tried."""
    token: int
    """Fencing token: rises with each claim; an older holder's `complete` is a Conflict."""
    tenant: str
    """Whose it is."""
    user: str
    """On whose behalf it runs."""
    error: str | None = None
    """What its last attempt failed with."""


Handlers = Mapping[str, Callable[[Job], None]]
"""What does a job, by the job's kind."""
JobStatus = Literal["waiting", "running", "failed", "done", "cancelled"]


class JobInfo(Frozen):
    """A job as `everthread jobs` lists it."""

    id: str
    """The job's id."""
    kind: str
    """What it does."""
    status: JobStatus
    """`waiting` for its time or a worker, `running` under a lease, `failed` when it was given up, `done`, or
    `cancelled`."""
    key: str | None
    """What it was added under; a commit of its own has the same key, see `MemoryStore.receipt_of`."""
    thread_id: str | None
    """The thread that it is about, if it is about one."""
    attempts: int
    """How often it was tried."""
    created_at: AwareDatetime | None
    """When it was added; None when an older version added it."""
    due_at: AwareDatetime | None
    """Before when it is not tried again; of a running one, when its lease ends. None: at once, or it has ended."""
    error: str | None
    """What its last attempt failed with; no word of what was said."""
    tenant: str
    """Whose it is."""
    user: str
    """On whose behalf it runs."""


def wordless(error: BaseException) -> str:
    """What went wrong, for a job's `error`, in one line: our own errors name things by id, so their message stays.
    Anybody else's may quote what was said, and is named by its type, its code and the place that raised it."""
    name = type(error).__name__
    if isinstance(error, EverthreadError):
        return f"{name}: {error}"
    codes = (getattr(error, each, None) for each in ("status_code", "code", "errno"))
    code = next((f" {each}" for each in codes if isinstance(each, int)), "")
    trace = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(trace[-1].filename).name}:{trace[-1].lineno}" if trace else ""
    return f"{name}{code}{place}"


class Jobs(Protocol):
    """A durable queue with leases, retry and backoff (R237, R332)."""

    def enqueue(
        self,
        identity: Identity,
        kind: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        lane: str | None = None,
        due_at: datetime | None = None,
        now: datetime | None = None,
    ) -> str:
        """Add a job and return its id. The same key (of this user) adds it once, for good: the id of the job that
        exists, waiting, done, failed or cancelled, comes back. Jobs of one `lane` (of this user) run one at a time. It
        is not tried before `due_at`. UsageError when the payload is not plain JSON."""

    def claim(
        self, kinds: Sequence[str] | None = None, *, seconds: float = 60.0, now: datetime | None = None
    ) -> Job | None:
        """Lease the oldest job that is due (of these kinds) for so many seconds, or None. A lease that ran out is
        claimed again with a higher token; at its sixth claim the job is given up instead. UsageError for a lease of
        more than a day: `heartbeat` prolongs one."""

    def waiting(self, kinds: Sequence[str] | None = None) -> int:
        """How many jobs (of these kinds) could be claimed now."""

    def kinds(self) -> dict[str, int]:
        """How many jobs of each kind wait, due or not, whoever's they are; for the operator of a worker."""

    def heartbeat(self, job: Job, *, seconds: float = 60.0, now: datetime | None = None) -> None:
        """Prolong the lease; Conflict if it was lost or ran out. Never revives one."""

    def complete(self, job: Job) -> None:
        """Done; Conflict if the lease was lost to another claim. One that ran out unclaimed still counts: nobody else
        has begun."""

    def fail(self, job: Job, error: str, *, now: datetime | None = None) -> None:
        """Try again later with backoff; after five attempts it stays as failed, to be seen in `doctor`. Conflict if the
        lease was lost."""

    def release(self, job: Job) -> None:
        """Let the lease go, so that another worker may begin at once; the attempt does not count. Conflict if the lease
        was lost."""

    def of(
        self,
        identity: Identity,
        *,
        status: JobStatus | None = None,
        job_id: str | None = None,
        limit: int = 1000,
        now: datetime | None = None,
    ) -> list[JobInfo]:
        """The jobs of this user (the role `admin`: of the tenant), the oldest first, at most `limit`; of one status if
        given. Done ones are there when they had a key."""

    def retry(self, identity: Identity, job_id: str, *, now: datetime | None = None) -> None:
        """Let a failed, cancelled or waiting job begin at once, with all its attempts before it. UsageError if this
        identity has no such job, Conflict if it runs or is done."""

    def cancel(self, identity: Identity, job_id: str, *, now: datetime | None = None) -> None:
        """Call a waiting or failed job off. It keeps its key, so that the same is not added again. UsageError if this
        identity has no such job, Conflict if it runs or has ended."""

    def gate(self, identity: Identity, name: str, every: timedelta, *, key: str, now: datetime | None = None) -> bool:
        """Whether this may go through now: at most one in `every` does, of this user, in whatever process (S21). The
        same `key` goes through again: a run that was killed behind the gate is not held up when it is resumed. A time
        in the future, from a clock that was wrong, holds nothing up for longer than `every`."""

    def failed(self) -> list[Job]:
        """Every job that was given up, the oldest first, each with its last `error`."""

    def drain(self, handlers: Handlers, *, limit: int = 10, now: datetime | None = None) -> int:
        """Run up to `limit` due jobs of the kinds that have a handler, here and now; returns how many completed. A
        handler that raises fails its job, which is logged and tried again later; the other jobs run. A handler that
        takes longer than the lease of a minute should call `heartbeat`."""
