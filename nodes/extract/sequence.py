"""What is read again, or late, neither repeats nor undoes what came of it before (R86, R174). Pure: no I/O.

A job learns from its window when later turns have been learnt from already, and `everthread extract` reads a whole
thread again. The order in which a thread was said decides then, and not the order of learning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everthread.nodes.extract.resolve import MULTI_VALUED
from everthread.nodes.extract.sameness import is_same_fact, is_same_property
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Provenance, Record

__all__ = ["Positions", "learnt_before", "overtaking", "said_later"]

Positions = Mapping[str, int]
"""Where messages stand in their thread, by id."""

STANDING = ("active", "contested")


def learnt_before(draft: Draft, learnt: Sequence[Record], existing: Sequence[Record]) -> Record | None:
    """The record that this very draft became before, from the same message; None when there is none. Whatever became
    of it since still holds: it was superseded, it ended, or its time is over. (`resolve` meets what is in use.)"""
    if draft.retracts:
        return None
    said, met = set(draft.record.provenance.message_ids), {known.id for known in existing}
    return next(
        (
            known
            for known in learnt
            if known.id not in met
            and known.scope == draft.record.scope
            and not said.isdisjoint(known.provenance.message_ids)
            and is_same_fact(draft.record, known)
        ),
        None,
    )


def overtaking(draft: Draft, existing: Sequence[Record], positions: Positions) -> Record | None:
    """What this thread says later about the same property, with another value; None when nothing does."""
    if draft.retracts or draft.record.predicate in MULTI_VALUED:
        return None
    return next(
        (
            known
            for known in existing
            if known.status in STANDING
            and known.scope == draft.record.scope
            and is_same_property(draft.record, known)
            and not is_same_fact(draft.record, known)
            and _follows(known.provenance, draft.record.provenance, positions)
        ),
        None,
    )


def said_later(known: Record, draft: Draft, positions: Positions) -> bool:
    """Whether a record rests on something that was said after the draft was: a retraction does not mean that."""
    said = draft.record.provenance
    return any(
        _follows(source, said, positions) or source.observed_at > said.observed_at
        for source in (known.provenance, *known.confirmed_by)
    )


def _follows(later: Provenance, earlier: Provenance, positions: Positions) -> bool:
    """Whether all of one source comes after all of another, in their thread."""
    if later.thread_id != earlier.thread_id or not (later.message_ids and earlier.message_ids):
        return False
    places = [positions.get(each) for each in later.message_ids]
    last = max((positions.get(each, -1) for each in earlier.message_ids), default=-1)
    return last >= 0 and all(place is not None and place > last for place in places)
