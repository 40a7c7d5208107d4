"""Extraction as a durable job: what is not to hold up the reply, or could not be learnt at the turn's end, is learnt
later, from the transcript (R86, R87, R117).

The transcript and the job come first; only then does the thread count as seen. Whoever runs the job finds everything in
the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from everthread.errors import AccessDenied, ModelReplyError, UsageError
from everthread.nodes.extract import wording
from everthread.nodes.extract.candidate import Extractor
from everthread.nodes.extract.pipeline import (
    Work,
    begin,
    commit,
    learns,
    propose,
    resolve_all,
    validate_all,
    work_of,
)
from everthread.nodes.extract.sequence import user_before, windows
from everthread.nodes.node import announce, context_of, drive, store_of, thread_of
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, MemoryContext
from everthread.stores.jobs import Job
from everthread.stores.record import Evidence, now_utc

__all__ = ["When", "extracting", "in_window", "is_late", "job_kind", "learn_later", "put_off"]

When = Literal["inline", "job"]
"""At once, or by a worker."""
AFTER_ERROR = timedelta(seconds=10)
"""How long a job waits that is left because the extraction has just failed."""
LANE = "learn"
"""Extractions of one user wait for each other, so that none misses what another is about to write."""


def is_late(extractor: Extractor, when: When | None) -> bool:
    """Whether this extractor works by jobs: as was chosen, else when it calls a model, which would delay the reply.
    Raises UsageError for an extractor that does not say whether it does."""
    if when is not None:
        return when == "job"
    calls_model: bool | None = getattr(extractor, "calls_model", None)
    if calls_model is None:
        name = type(extractor).__name__
        raise UsageError(f'{name} does not say whether it calls a model; give it calls_model, or choose when="inline"')
    return calls_model


def job_kind(extractor: Extractor) -> str:
    """The kind of the jobs that this extractor does: what was meant for one is not read by another."""
    return f"extract:{extractor.id}"


def learn_later(
    runtime: Runtime[Any],
    extractor: Extractor,
    messages: Sequence[AnyMessage],
    *,
    before: str | None = None,
    node: str = "extract",
    error: ModelReplyError | None = None,
) -> str | None:
    """Write the messages to the transcript and leave a job for what can be learnt from; returns the id of the last
    message of that window, or None when there is none or the run may not learn. After an `error` the job is not tried
    again at once."""
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    if not learns(context, store, thread_id):
        return None
    work = begin(context.identity, store, thread_id, messages, before=before)
    if work is None:
        return None
    job = put_off(work, store, extractor, due_at=now_utc() + AFTER_ERROR if error else None)
    reason = str(error) if error else "a job learns from it"
    announce(runtime, node, "put-off", reason=reason, job=job, kind=job_kind(extractor))
    return work.last


def put_off(work: Work, store: MemoryStore, extractor: Extractor, *, due_at: datetime | None = None) -> str:
    """Leave a job to learn from this window of the transcript; returns its id. The same window is put off once, and
    what comes of it is found by the job's key: `store.receipt_of(identity, key)`.

    The job keeps who it is for, without roles: what a curator may write at once waits for review when it is late.
    """
    return store.jobs.enqueue(
        work.identity,
        job_kind(extractor),
        {
            "key": work.key,
            "identity": work.identity.model_dump(mode="json", exclude_none=True, exclude={"roles"}),
            "thread_id": work.thread_id,
            "messages": [line.message_id for line in work.lines],
            "before": work.before,
            "saves": list(work.saves),
        },
        key=work.key,
        lane=LANE,
        due_at=due_at,
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
        thread_id = job.payload["thread_id"]
        if not learns(MemoryContext(identity=identity), store, thread_id):
            return  # it was chosen since then
        key = job.payload["key"]
        if store.receipt_of(identity, key):
            return  # it was learnt, and its worker died before it said so
        said, ids = store.transcripts.read(identity, thread_id), set(job.payload["messages"])
        numbers = [number for number, line in enumerate(said) if line.message_id in ids]
        if not numbers:
            return  # it was erased since then
        offset, end = numbers[0], numbers[-1] + 1
        # What left the model's view before compaction may be more than an extractor should read at once.
        for start, stop in ((offset + first, offset + last) for first, last in windows(said[offset:end])):
            before = job.payload["before"] if start == offset else user_before(said, start)
            work = in_window(identity, thread_id, said, start, stop, before=before)
            part = key if stop == end else f"{key}:{said[stop - 1].message_id}"
            if work is not None and not store.receipt_of(identity, part):
                work = work._replace(key=part, saves=tuple(job.payload["saves"]))
                work = validate_all(drive(propose(work, extractor, store)), trusted_tools)
                commit(resolve_all(work, store), store)

    return handle


def in_window(
    identity: Identity, thread_id: str, said: Sequence[Evidence], first: int, end: int, *, before: str | None
) -> Work | None:
    """A `Work` of the lines from `first` to `end` of a thread that goes on after them; None when nothing in them can be
    learnt from.

    "Do not remember that" may be said in the turn after the window: that turn then belongs to it (R104).
    """
    following = _turn(said, end)
    if following and wording.forbids_memory(following[0].text) and wording.only_forbids(following[0].text):
        end += len(following)
    work = work_of(identity, thread_id, said[first:end], before=before)
    return work and work._replace(later=tuple(line.message_id for line in said[end:]))


def _turn(said: Sequence[Evidence], start: int) -> Sequence[Evidence]:
    """The turn that begins at `start`: from a user's words to the next user's words after an answer."""
    if start >= len(said) or said[start].source != "user":
        return []
    answered = (n for n in range(start + 1, len(said)) if said[n].source == "user" and said[n - 1].source != "user")
    return said[start : next(answered, len(said))]
