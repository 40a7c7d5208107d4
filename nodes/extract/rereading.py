"""A thread is learnt from again, from its transcript: what another extractor sees in it, or what was only read in.

Idempotent by what it decides, not by a watermark: what these messages have taught before is refused as known, whatever
became of it, so that reading twice writes nothing new (R86). Tombstones and "do not remember this" hold, as in a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from hashlib import sha256
from typing import Any

from pydantic import Field

from everthread.errors import ModelReplyError
from everthread.nodes.extract.candidate import Extractor
from everthread.nodes.extract.later import in_window
from everthread.nodes.extract.pipeline import Work, commit, learns, propose, resolve_all, validate_all
from everthread.nodes.extract.sameness import fingerprint
from everthread.nodes.extract.sequence import WINDOW_TOKENS, user_before, windows
from everthread.nodes.node import Ask
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Frozen, Identity, MemoryContext
from everthread.stores.record import Change

__all__ = ["Reading", "read_again"]

OF_ACTION: dict[str, str] = {
    "create": "learnt",
    "supersede": "learnt",
    "narrow": "learnt",
    "contest": "learnt",
    "revise": "learnt",
    "confirm": "confirmed",
    "end": "ended",
}
OF_OUTCOME: dict[str, str] = {
    "created": "learnt",
    "superseded": "learnt",
    "narrowed": "learnt",
    "contested": "learnt",
    "revised": "learnt",
    "pending": "waiting",
    "confirmed": "confirmed",
    "ended": "ended",
}


class Reading(Frozen):
    """What came of reading a thread again."""

    thread_id: str
    """The thread."""
    messages: int = 0
    """How many messages its transcript holds."""
    windows: int = 0
    """How many parts were read."""
    passed_over: int = 0
    """How many parts were not read, since this extractor has read them before."""
    learnt: int = 0
    """Records that are new, or replace another."""
    waiting: int = 0
    """Records that wait for review."""
    confirmed: int = 0
    """Records that have one more source."""
    ended: int = 0
    """Records that ended."""
    refused: dict[str, int] = Field(default_factory=dict)
    """What was refused, by rule."""
    failed: tuple[str, ...] = ()
    """Why parts could not be read: the extractor's model gave nothing usable. They can be read again."""
    skipped: str | None = None
    """Why nothing was read."""


def read_again(
    identity: Identity,
    store: MemoryStore,
    thread_id: str,
    extractor: Extractor,
    *,
    again: bool = False,
    dry_run: bool = False,
    trusted_tools: frozenset[str] = frozenset(),
    window_tokens: int = WINDOW_TOKENS,
) -> Generator[Ask, Any, Reading]:
    """Learn from what the transcript of a thread has, part by part, by the one door.

    Parts that this extractor has read before are passed over, unless `again`. With `dry_run` nothing is written, and a
    part does not see what an earlier one would have taught. AccessDenied if the thread is another user's.
    """
    said = store.transcripts.read(identity, thread_id)
    if not learns(MemoryContext(identity=identity), store, thread_id):
        return Reading(thread_id=thread_id, messages=len(said), skipped="memory is not on for this thread or user")
    counts, refused, failed = Counter[str](), Counter[str](), list[str]()
    before: str | None = None
    for first, end in windows(said, window_tokens):
        work = in_window(identity, thread_id, said, first, end, before=before)
        before = user_before(said, end)
        if work is None:
            continue
        work = work._replace(key=f"read:{extractor.id}:{thread_id}:{said[end - 1].message_id}", again=True)
        if not again and store.receipt_of(identity, work.key):
            counts["passed_over"] += 1
            continue
        try:
            work = yield from propose(work, extractor, store)
        except ModelReplyError as error:
            failed.append(str(error))
            continue
        counts["windows"] += 1
        work = resolve_all(validate_all(work, trusted_tools), store, dry_run=dry_run)
        for what, rule in _would_be(work) if dry_run else _written(work, store, again):
            counts[what] += what != "refused"
            refused[rule] += what == "refused"
    return Reading.model_validate(
        {
            **{what: count for what, count in counts.items() if what != "refused"},
            "thread_id": thread_id,
            "messages": len(said),
            "refused": {rule: count for rule, count in refused.most_common() if count},
            "failed": tuple(failed),
        }
    )


def _would_be(work: Work) -> list[tuple[str, str]]:
    """(what, rule) of each decision, before it is written."""

    def what(change: Change) -> str:
        waits = change.record is not None and change.record.status == "pending"
        return "waiting" if waits else OF_ACTION.get(change.action, "refused")

    return [(what(change), change.rule) for change in work.changes]


def _written(work: Work, store: MemoryStore, again: bool) -> list[tuple[str, str]]:
    """Commit, and return (what, rule) of each decision.

    A part that is read for the first time leaves a receipt, whatever comes of it. One that is read again and teaches
    nothing leaves none.
    """
    if not again:
        decided = store.commit(work.identity, [], key=work.key) if not work.changes else commit(work, store)
    elif all(change.action == "refuse" for change in work.changes):
        return _would_be(work)
    else:
        work = work._replace(key=f"{work.key}:{_digest(work.changes)}")
        decided = commit(work, store)
        if decided is not None and decided.at < work.now:
            # The same was decided before. If it comes up still, what it wrote is not there any more.
            work = resolve_all(work, store)._replace(key=f"{work.key}:{decided.id}")
            decided = commit(work, store)
    decisions = decided.decisions if decided else ()
    return [(OF_OUTCOME.get(decision.outcome, "refused"), decision.rule) for decision in decisions]


def _digest(changes: Sequence[Change]) -> str:
    """What was decided, without what is new each time: two readers at once decide the same, and write it once."""
    said = [
        (change.action, change.rule, change.target, fingerprint(change.record.statement) if change.record else None)
        for change in changes
        if change.action != "refuse"
    ]
    return sha256(repr(said).encode("utf-8", "surrogatepass")).hexdigest()[:16]
