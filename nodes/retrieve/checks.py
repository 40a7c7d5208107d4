"""What is not put before the model although it was found: repeated, not trusted, refuted, or half of a contest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from everthread.errors import StoreError
from everthread.nodes.retrieve.candidate import Candidate, LeftOut, Sifted
from everthread.stores.identity import Identity
from everthread.stores.ranking import AUTHORITY_TRUST, collapse
from everthread.stores.record import Record
from everthread.stores.text import normalise, query_terms

__all__ = ["TRUST", "Verifier", "counterparts", "first", "trust", "trusted", "unrepeated", "verified"]

TRUST = 0.3
"""Below this a record is not put before the model, however well it answers (R180)."""

TOLD = 0.5
"""Share of the words of a message, or of its passage that answers, from which a record says what it says."""

Verifier = Callable[[Identity, Record], bool | None]
"""An observation now of what a record says, by the system that owns it: whether it holds, or None when that cannot be
told. StoreError counts as None. Under asyncio it is called on a worker thread."""


def unrepeated(candidates: Sequence[Candidate], in_view: Collection[str] = ()) -> Sifted:
    """Each thing once: of records that say the same the first; no message of which a kept record that was taken from it
    says what answers, that says what another one says, or that the model sees anyway (`in_view`, message ids)."""
    first = {candidate.id: candidate for candidate in reversed(candidates) if candidate.record}
    records = [
        (candidate.record, 0.0) for candidate in candidates if candidate.record and first[candidate.id] is candidate
    ]
    kept_records, same = collapse(records)
    standing = {record.id for record, _ in kept_records}
    reasons = {dropped.record.id: dropped.reason for dropped in same}
    taken: dict[str, list[Record]] = {}
    for record, _ in kept_records:
        for message in record.provenance.message_ids:
            taken.setdefault(message, []).append(record)
    words = {normalise(record.statement) for record, _ in kept_records}
    kept: list[Candidate] = []
    left_out: list[LeftOut] = []
    for candidate in candidates:
        if candidate.source == "evidence":
            said = normalise(candidate.text)
            if candidate.id in in_view:
                left_out.append(LeftOut(candidate, "already-in-view", "the model sees this message anyway"))
                continue
            if said in words or any(_tells(record, candidate) for record in taken.get(candidate.id, ())):
                left_out.append(LeftOut(candidate, "says-the-same", "a memory that is shown was taken from it"))
                continue
            words.add(said)
        elif candidate.record and first[candidate.id] is not candidate:
            continue  # found by another arm already
        elif candidate.record and candidate.id not in standing:
            left_out.append(LeftOut(candidate, "says-the-same", f"it {reasons[candidate.id]}"))
            continue
        kept.append(candidate)
    return Sifted(kept, left_out)


def _tells(record: Record, message: Candidate) -> bool:
    """Whether a record says what answers in the message that it was taken from: a message may say several things."""
    passage = message.hit.passage if message.hit else None
    said = query_terms(message.text[slice(*passage)] if passage else message.text)
    told = query_terms(record.statement)
    return sum(weight for term, weight in said.items() if term in told) >= TOLD * sum(said.values())


def trust(record: Record) -> float:
    """How far a record can be trusted, from 0 to 1: by what its source can settle and how sure the extraction was."""
    return AUTHORITY_TRUST[record.authority] * record.confidence


def trusted(candidates: Sequence[Candidate], least: float = TRUST) -> Sifted:
    """The candidates without the records whose trust is below `least`: nothing is better than those (R180)."""
    kept, left_out = [], []
    for candidate in candidates:
        if candidate.record and trust(candidate.record) < least:
            why = f"its trust of {trust(candidate.record):.2f} is below {least}"
            left_out.append(LeftOut(candidate, "untrusted", why))
        else:
            kept.append(candidate)
    return Sifted(kept, left_out)


def first(candidates: Sequence[Candidate], limit: int) -> Sifted:
    """The first so many of what the search found, and all that was read by key."""
    kept: list[Candidate] = []
    left_out: list[LeftOut] = []
    found = 0
    for candidate in candidates:
        found += candidate.hit is not None
        if candidate.hit is not None and found > limit:
            left_out.append(LeftOut(candidate, "over-limit", f"it comes after the first {limit}"))
        else:
            kept.append(candidate)
    return Sifted(kept, left_out)


def verified(candidates: Sequence[Candidate], identity: Identity, verifier: Verifier | None) -> Sifted:
    """What is to be verified before use, looked at now (R181): what holds says so, what does not is left out, and what
    could not be checked stays marked as uncertain. Without a verifier all of it stays as it is."""
    if verifier is None:
        return Sifted(list(candidates), [])
    kept, left_out = [], []
    for candidate in candidates:
        if candidate.record is None or not candidate.record.verify_before_use:
            kept.append(candidate)
            continue
        holds = _observed(verifier, identity, candidate.record)
        if holds is False:
            left_out.append(LeftOut(candidate, "refuted", "what was observed now says otherwise"))
        else:
            kept.append(candidate._replace(checked="confirmed" if holds else "unconfirmed"))
    return Sifted(kept, left_out)


def _observed(verifier: Verifier, identity: Identity, record: Record) -> bool | None:
    try:
        return verifier(identity, record)
    except StoreError:  # the system that owns it cannot be reached: that says nothing about the record
        return None


def counterparts(candidates: Sequence[Candidate], known: Mapping[str, Record]) -> list[Candidate]:
    """The candidates, each contested record followed by those it stands against, found or not: one side of a contest
    alone would pass for a fact (R180). `known` are readable records, by id."""
    there = {candidate.id for candidate in candidates}
    paired: list[Candidate] = []
    for candidate in candidates:
        paired.append(candidate)
        for id in contradicted(candidate.record):
            if id not in there and id in known:
                there.add(id)
                paired.append(Candidate("records", record=known[id], why=f"stands against {candidate.id}"))
    return paired


def contradicted(record: Record | None) -> Iterable[str]:
    """Ids of the records that a contested record stands against."""
    if record is None or record.status != "contested":
        return ()
    return (relation.target for relation in record.relations if relation.kind == "contradicts")
