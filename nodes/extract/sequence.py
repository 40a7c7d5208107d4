"""What is read again, or late, neither repeats nor undoes what came of it before (R86, R174). Pure: no I/O.

A job learns from its window when later turns have been learnt from already, and `everthread extract` reads a whole
thread again. The order in which a thread was said decides then, and not the order of learning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from everthread.nodes.extract.resolve import MULTI_VALUED
from everthread.nodes.extract.sameness import is_same_fact, is_same_property
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Evidence, Provenance, Record
from everthread.stores.text import estimate_tokens

__all__ = ["WINDOW_TOKENS", "Positions", "learnt_before", "overtaking", "said_later", "user_before", "windows"]

WINDOW_TOKENS = 6_000
"""How much of a thread is read at once, in estimated tokens; a longer turn stands alone."""
READ = 4_000
"""Characters of one message that count: a model is shown no more."""

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


def windows(said: Sequence[Evidence], tokens: int = WINDOW_TOKENS) -> Iterator[tuple[int, int]]:
    """Where a thread is cut to be read in parts: (first, end) of each, in order, without gaps. No part is longer than
    `tokens`, but for one turn that is; it is cut between turns, and where only one side speaks, between messages."""
    first, size = 0, 0
    start_of_turn, turn_size = 0, 0
    for number, line in enumerate(said):
        cost = estimate_tokens(line.text[:READ])
        if number and line.source == "user":
            start_of_turn, turn_size = number, 0
        if size + cost > tokens and start_of_turn > first:
            yield first, start_of_turn
            first, size = start_of_turn, turn_size
        size, turn_size = size + cost, turn_size + cost
    if said:
        yield first, len(said)


def user_before(said: Sequence[Evidence], end: int) -> str | None:
    """Id of the user's last message before a place in the thread; None when there is none."""
    return next((line.message_id for line in reversed(said[:end]) if line.source == "user"), None)
