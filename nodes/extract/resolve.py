"""What a draft does to what is known already (R106, R172 to R177, R186, R187). Pure: records in, one change out.

Same fact: more evidence. Same subject and predicate with another value: authority, time and scope decide, never the
order of arrival alone, and never a model. Only a record of the same subject and predicate, or one that the speaker
points to, can be retired: other facts are out of reach.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Authority, Change, Record, Relation
from everthread.stores.text import terms

__all__ = ["EXPLICIT_SAVE", "MULTI_VALUED", "fingerprint", "is_same_fact", "resolve"]

EXPLICIT_SAVE = "memory_save/1"
"""The extractor's name of what was saved by the memory tools."""
SAVED_SHARE = 0.6
"""A draft with this share of its terms in a statement that was saved from the same message says nothing new."""
MULTI_VALUED = frozenset(
    {"likes", "dislikes", "allergic to", "speaks", "has", "does not eat", "prefers", "uses", "wants", "knows"}
)
"""Predicates with many values at once: a second one adds, it does not conflict."""

NARROWEST_FIRST = ("session", "user", "agent", "project", "team", "organization")

_LITTLE = frozenset({"a", "an", "the", "please", "really", "very", "also", "just"})
_WORD = re.compile(r"[+\-]?\d[\d.,:/%-]*\d|\d|[^\W\d_]+|[+#$€£¥%°<>=-]")


def fingerprint(text: str) -> tuple[str, ...]:
    """The text as a key of sameness: words in order, without case, width, punctuation and little words.

    Numbers, dates, units, signs and negations are part of it: "5 years" and "6 years", "is" and "is not" differ.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("n't", " not")
    return tuple(word.strip(".,:") for word in _WORD.findall(folded) if word not in _LITTLE)


def is_same_fact(one: Record, other: Record) -> bool:
    """Whether two records say the same: the same words, or the same value of the same property."""
    if fingerprint(one.statement) == fingerprint(other.statement):
        return True
    return is_same_property(one, other) and one.value is not None and same(one.value, other.value)


def is_same_property(one: Record, other: Record) -> bool:
    """Whether two records speak of the same property of the same subject."""
    return bool(one.predicate) and same(one.subject, other.subject) and same(one.predicate, other.predicate)


def same(one: str | None, other: str | None) -> bool:
    """Whether two short texts are the same but for case, width and punctuation; a missing one is the same as none."""
    if one is None or other is None:
        return one is other
    return fingerprint(one) == fingerprint(other)


def resolve(draft: Draft, existing: Sequence[Record]) -> Change:
    """The change that this draft comes to.

    | the draft                                   | change                                                       |
    |---------------------------------------------|--------------------------------------------------------------|
    | rests on what was learnt before             | refuse `already-known`                                       |
    | was rejected in a review                    | refuse `rejected-before`                                     |
    | the memory tools saved from that message    | refuse `already-known`                                       |
    | retracts                                    | end (archived), or refuse `nothing-to-end`, `weaker-source`  |
    | says the same                               | confirm                                                      |
    | waits for review                            | create, or supersede once it is approved (pending)           |
    | same property, narrower scope, other value  | narrow: both hold, the narrower one where it applies         |
    | same property, wider or other scope         | create                                                       |
    | same property, many-valued                  | create, or supersede the one that the speaker corrects       |
    | same property, other time of validity       | create                                                       |
    | stronger, or as strong and newer            | supersede                                                    |
    | as strong, by another member of the scope   | contest, unless it says that it corrects                     |
    | as strong and older                         | refuse `older`                                               |
    | weaker                                      | supersede once it is approved (pending)                      |

    For facts of the environment every source from a trusted tool up is as strong as any other: the fresher
    observation wins (R169). For what concerns the user, the user's word wins.
    """
    record = draft.record
    standing = [known for known in existing if known.status in ("active", "contested")]
    repeated = next((known for known in existing if is_same_fact(record, known)), None)
    if repeated and not draft.retracts:
        if repeated.status == "rejected" and repeated.scope == record.scope:
            return _refuse(draft, "rejected-before", "the same was rejected in a review", repeated)
        if repeated.status == "pending" and repeated.scope == record.scope:
            return _refuse(draft, "already-pending", "the same waits for review already", repeated)
    if draft.retracts:
        return _ended(draft, standing)
    saved = next((known for known in standing if _was_saved(record, known)), None)
    if saved and record.provenance.extracted_by != EXPLICIT_SAVE:
        return _refuse(draft, "already-known", "it was saved from the same message before", saved)
    confirmed = next((known for known in standing if known.scope == record.scope and is_same_fact(record, known)), None)
    if confirmed:
        return _confirmed(draft, confirmed)
    rival = _rival(draft, standing)
    if rival is None:
        return _create(draft, draft.rule, draft.reason)
    if record.status == "pending":
        if rival.scope != record.scope:
            return _create(draft, draft.rule, draft.reason)
        return _touching("supersede", "supersedes", draft, rival, draft.rule, draft.reason)
    return _settled(draft, rival)


def _was_saved(record: Record, known: Record) -> bool:
    """Whether the memory tools saved this from the very message that the draft rests on, if in other words."""
    mine, theirs = record.provenance, known.provenance
    if theirs.extracted_by != EXPLICIT_SAVE or mine.thread_id != theirs.thread_id:
        return False
    said = set(terms(record.statement))
    return not set(mine.message_ids).isdisjoint(theirs.message_ids) and (
        len(said & set(terms(known.statement))) >= SAVED_SHARE * len(said)
    )


def _confirmed(draft: Draft, known: Record) -> Change:
    seen = {
        (source.thread_id, message_id)
        for source in (known.provenance, *known.confirmed_by)
        for message_id in source.message_ids
    }
    source = draft.record.provenance
    if any((source.thread_id, message_id) in seen for message_id in source.message_ids):
        return _refuse(draft, "already-known", "it was learnt from the same message before", known)
    return Change(
        action="confirm",
        target=known.id,
        expected=known.revision,
        source=source,
        rule="same-fact",
        reason="it says the same, so it is one more source",
        evidence=source.message_ids,
    )


def _ended(draft: Draft, standing: Sequence[Record]) -> Change:
    record = draft.record
    targets = [
        known
        for known in standing
        if known.id in draft.touches
        or is_same_fact(record, known)
        or (is_same_property(record, known) and record.value is None)
    ]
    if not targets:
        return _refuse(draft, "nothing-to-end", "nothing of the kind is known")
    target = _nearest(record, targets)
    if target.authority > record.authority:
        return _refuse(draft, "weaker-source", "its source cannot end what a stronger one said", target)
    if _is_others_word(record, target):
        return _refuse(draft, "others-record", "another member said it: say what holds now, or ask a curator", target)
    return Change(
        action="end",
        target=target.id,
        expected=target.revision,
        status="archived",
        rule="retracted",
        reason="the speaker says that it no longer holds",
        evidence=record.provenance.message_ids,
    )


def _rival(draft: Draft, standing: Sequence[Record]) -> Record | None:
    """The record whose place the draft would take; None when it takes nobody's."""
    pointed = [known for known in standing if draft.corrects and known.id in draft.touches]
    if pointed:
        return _nearest(draft.record, pointed)
    if draft.record.predicate in MULTI_VALUED:
        return None
    rivals = [known for known in standing if is_same_property(draft.record, known) and _overlap(draft.record, known)]
    return _nearest(draft.record, rivals) if rivals else None


def _nearest(record: Record, others: Sequence[Record]) -> Record:
    """Of the same scope before others, the narrowest of those; the newest of equals."""

    def distance(other: Record) -> tuple[bool, int, float]:
        return (
            other.scope != record.scope,
            NARROWEST_FIRST.index(other.scope.owner),
            -other.provenance.observed_at.timestamp(),
        )

    return min(others, key=distance)


def _overlap(one: Record, other: Record) -> bool:
    """Whether both can be true at the same time in the world."""
    begins_late = one.valid_from and other.valid_to and one.valid_from >= other.valid_to
    ends_early = one.valid_to and other.valid_from and one.valid_to <= other.valid_from
    return not (begins_late or ends_early)


def _settled(draft: Draft, rival: Record) -> Change:
    record = draft.record
    if rival.scope != record.scope:
        if _is_narrower(record, rival):
            return _touching(
                "narrow", "narrows", draft, rival, "narrower-scope", "it holds in a narrower scope, where it goes first"
            )
        if not (draft.corrects and rival.id in draft.touches):
            return _create(draft, "other-scope", "what is known holds in another scope")
    mine, theirs = _strength(record), _strength(rival)
    newer = _is_newer(record, rival)
    if mine > theirs:
        return _touching("supersede", "supersedes", draft, rival, "stronger-source", "its source is the stronger one")
    if mine < theirs:
        waiting = draft._replace(record=record.model_copy(update={"status": "pending"}))
        return _touching("supersede", "supersedes", waiting, rival, "weaker-source", "a stronger source says otherwise")
    if _is_others_word(record, rival) and not draft.corrects:
        return _touching(
            "contest", "contradicts", draft, rival, "members-disagree", "members of one scope say different things"
        )
    if newer:
        return _touching("supersede", "supersedes", draft, rival, "newer", "it is as well sourced, and newer")
    if record.provenance.observed_at < rival.provenance.observed_at:
        return _refuse(draft, "older", "what is known is as well sourced, and newer", rival)
    if draft.corrects:
        return _touching("supersede", "supersedes", draft, rival, "corrected", "the speaker corrects it")
    return _touching("contest", "contradicts", draft, rival, "undecided", "neither authority nor time decides")


def _is_newer(record: Record, rival: Record) -> bool:
    """By the messages' own clock. Messages of one thread may share a time; drafts come in the thread's order."""
    mine, theirs = record.provenance, rival.provenance
    return mine.observed_at > theirs.observed_at or (
        mine.observed_at == theirs.observed_at and mine.thread_id is not None and mine.thread_id == theirs.thread_id
    )


def _strength(record: Record) -> int:
    environment = record.subject not in (None, "user") and record.content_type == "fact"
    if environment and Authority.TOOL <= record.authority <= Authority.USER_EXPLICIT:
        return Authority.TOOL.rank
    return record.authority.rank


def _is_others_word(record: Record, rival: Record) -> bool:
    shared = record.scope.owner not in ("session", "user")
    return shared and record.provenance.actor != rival.provenance.actor


def _is_narrower(record: Record, rival: Record) -> bool:
    mine, theirs = (NARROWEST_FIRST.index(each.scope.owner) for each in (record, rival))
    if mine != theirs:
        return mine < theirs
    return len(record.scope.within.model_dump(exclude_none=True)) > len(
        rival.scope.within.model_dump(exclude_none=True)
    )


def _touching(action: str, kind: str, draft: Draft, rival: Record, rule: str, reason: str) -> Change:
    record = draft.record
    evidence = record.provenance.message_ids
    relation = Relation.model_validate({"kind": kind, "target": rival.id, "reason": reason, "evidence": evidence})
    updates = {"relations": (*record.relations, relation)}
    return Change.model_validate(
        {
            "action": action,
            "record": record.model_copy(update=updates),
            "target": rival.id,
            "expected": rival.revision,
            "rule": rule,
            "reason": reason,
            "evidence": evidence,
        }
    )


def _create(draft: Draft, rule: str, reason: str) -> Change:
    return Change(
        action="create", record=draft.record, rule=rule, reason=reason, evidence=draft.record.provenance.message_ids
    )


def _refuse(draft: Draft, rule: str, reason: str, known: Record | None = None) -> Change:
    return Change(
        action="refuse",
        rule=rule,
        reason=f"{reason} ({known.id})" if known else reason,
        evidence=draft.record.provenance.message_ids,
    )
