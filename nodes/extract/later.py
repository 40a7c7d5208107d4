"""Extraction as a durable job: what could not be learnt at the turn's end is learnt later, from the transcript."""

from __future__ import annotations

from collections.abc import Callable

from everthread.errors import AccessDenied
from everthread.nodes.extract.candidate import Extractor
from everthread.nodes.extract.pipeline import commit, propose, resolve_all, validate_all, work_of
from everthread.nodes.node import drive
from everthread.stores.contract import Job, MemoryStore
from everthread.stores.identity import Identity

__all__ = ["extracting", "job_kind", "put_off"]


def job_kind(extractor: Extractor) -> str:
    """The kind of the jobs that this extractor does: what was meant for one is not read by another."""
    return f"extract:{extractor.id}"


def put_off(
    identity: Identity,
    store: MemoryStore,
    thread_id: str,
    extractor: Extractor,
    *,
    after: str | None,
    before: str | None,
    last: str,
) -> str:
    """Leave a job to learn from what the transcript of the thread has after the message `after`; returns the job's id.
    `before` is the id of the user's last message before the window; `last`, of its end, names the window: the same
    one is put off once.

    The job keeps who it is for, without roles: what a curator may write at once waits for review when it is late.
    """
    acting = identity.model_dump(mode="json", exclude_none=True, exclude={"roles"})
    return store.jobs.enqueue(
        identity,
        job_kind(extractor),
        {"identity": acting, "thread_id": thread_id, "after": after, "before": before},
        key=f"extract:{thread_id}:{last}",
    )


def extracting(
    store: MemoryStore, extractor: Extractor, trusted_tools: frozenset[str] = frozenset()
) -> Callable[[Job], None]:
    """The handler of this extractor's jobs, for `store.jobs.drain({job_kind(extractor): extracting(...)})`.

    Raises ModelReplyError as the extractor does: the job is then tried again.
    """

    def handle(job: Job) -> None:
        identity = Identity.model_validate(job.payload["identity"])
        if (identity.tenant, identity.user) != (job.tenant, job.user):
            raise AccessDenied(f"job {job.id} names another user than its own; nothing was learnt")
        thread_id, after, before = (job.payload[name] for name in ("thread_id", "after", "before"))
        if store.transcripts.memory_of(identity, thread_id) != "on":
            return  # it was chosen since then
        work = work_of(identity, thread_id, store.transcripts.read(identity, thread_id, after=after), before=before)
        if work is not None:
            work = validate_all(drive(propose(work, extractor, store)), trusted_tools)
            commit(resolve_all(work, store), store)

    return handle
