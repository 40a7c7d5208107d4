"""What a draft does to what is known already (R106, R172 to R177, R186, R187). Pure: records in, one change out.

Same fact: more evidence. Same subject and predicate with another value: authority, time and scope decide, never the
order of arrival alone, and never a model. Only a record of the same subject and predicate, or one that the speaker
points to, can be retired: other facts are out of reach. docs/resolution.md has an example of each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everthread.nodes.extract.grounding import speaks_of
from everthread.nodes.extract.sameness import fingerprint, is_same_fact, is_same_property, is_same_value, same
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Authority, Change, Provenance, Record, Relation
from everthread.stores.text import terms

__all__ = [
    "EXPLICIT_SAVE",
    "MULTI_VALUED",
    "NARROWEST_FIRST",
    "in_its_place",
    "is_many_valued",
    "resolve",
    "settled",
]

EXPLICIT_SAVE = "memory_save/1"
"""The extractor's name of what was saved by the memory tools."""
SAVED_SHARE = 0.6
"""A draft with this share of its terms in a statement that was saved from the same message says nothing new."""
WITNESSES = 5
"""Threads in which a candidate that waits is noted; a page that turns up more often is no better source."""
MULTI_VALUED = frozenset(
    {"likes", "dislikes", "allergic to", "speaks", "has", "does not eat", "prefers", "uses", "wants", "knows"}
    | {"喜欢", "不喜欢", "讨厌", "过敏", "会说", "有", "不吃", "偏好", "使用", "想要", "认识"}
)
"""Predicates with many values at once: a second one adds, it does not conflict."""

NARROWEST_FIRST = ("session", "user", "agent", "project", "team", "organization")


def resolve(draft: Draft, existing: Sequence[Record]) -> Change:
    """The change that this draft comes to.

    | the draft                                   | change                                                       |
    |---------------------------------------------|--------------------------------------------------------------|
    | retracts                                    | end (archived), or refuse `nothing-to-end`, `weaker-source`, |
    |                                             | `others-record`, `older`, `needs-review`                     |
    | waits, and was rejected in a review         | refuse `rejected-before`                                     |
    | waits, and the same waits already           | confirm from another thread, else refuse `already-pending`   |
    | the memory tools saved from that message    | refuse `already-known`                                       |
    | says the same, from the same message        | refuse `already-known`                                       |
    | says the same                               | confirm; supersede when its source is stronger               |
    | waits for review                            | create, or supersede once it is approved (pending)           |
    | same property, narrower scope               | narrow: both hold, the narrower one where it applies         |
    | same property, wider or other scope         | create                                                       |
    | same property, many-valued                  | create, or supersede the one that the speaker corrects       |
    | same property, other time of validity       | create                                                       |
    | stronger, or as strong and newer            | supersede                                                    |
    | as strong, by another member of the scope   | contest, unless it says that it corrects                     |
    | as strong or weaker, and older              | refuse `older`                                               |
    | weaker                                      | supersede once it is approved (pending)                      |

    For facts of the environment every source from a trusted tool up is as strong as any other: the fresher
    observation wins (R169). For what concerns the user, the user's word wins. A record is as new as the last time that
    a source as strong as its own said it.
    """
    record = draft.record
    standing = [known for known in existing if known.status in ("active", "contested")]
    if draft.retracts:
        return _ended(draft, standing)
    asked = _asked_before(draft, existing)
    if asked:
        return asked
    saved = next((known for known in standing if _was_saved(record, known)), None)
    if saved and record.provenance.extracted_by != EXPLICIT_SAVE:
        return _refuse(draft, "already-known", "it was saved from the same message before", saved)
    repeated = next((known for known in standing if known.scope == record.scope and _is_repeated(record, known)), None)
    if repeated:
        return _repeated(draft, repeated, standing)
    rival = _rival(draft, standing)
    if rival is None:
        return _create(draft, draft.rule, draft.reason)
    draft = _within(draft, rival)
    if draft.record.status == "pending":
        if rival.scope != draft.record.scope:
            return _create(draft, draft.rule, draft.reason)
        return _touching("supersede", draft, rival, draft.rule, draft.reason)
    return _settled(draft, rival)


def settled(draft: Draft, change: Change, existing: Sequence[Record]) -> list[Change]:
    """What `change`, as `resolve` decided it, settles besides: what else stands in the draft's place, such as the other
    side of a contest, and what the speaker corrects by something that is known already.

    Only what the draft wins over ends. Another member's word stays: only who corrects it, or a curator, ends it.
    """
    record = change.record or draft.record
    if change.action not in ("supersede", "confirm") or "pending" in (draft.record.status, record.status):
        return []
    meant = set(draft.touches) if draft.corrects else set()

    def is_over(known: Record) -> bool:
        if known.id in meant and (known.scope.owner, known.scope.owner_id) == (
            record.scope.owner,
            record.scope.owner_id,
        ):
            return _may_be_meant(record, known) and not is_same_fact(record, known)
        rivals = change.action == "supersede" and known.scope == record.scope and not is_many_valued(record)
        return rivals and is_same_property(record, known) and _overlap(record, known)

    return [
        Change(
            action="end",
            target=known.id,
            expected=known.revision,
            status="archived",
            rule="settled",
            reason="what was said settles it too",
            evidence=change.evidence,
        )
        for known in existing
        if known.id != change.target
        and known.status in ("active", "contested")
        and is_over(known)
        and not _is_others_word(record, known)
        and _wins(draft, known)
    ]


def in_its_place(record: Record, standing: Sequence[Record]) -> tuple[Record | None, list[Record]]:
    """What stands where this record would: one that says the same and is as well sourced, if any, and all others. For a
    record that comes into use by a person's word, who decides what `resolve` would have decided."""
    there = [known for known in standing if known.id != record.id and known.scope == record.scope]
    repeated = [known for known in there if is_same_fact(record, known)]
    same_fact = next((known for known in repeated if known.authority >= record.authority), None)
    others = [known for known in there if is_same_property(record, known) and _overlap(record, known)]
    rivals = [] if is_many_valued(record) else others
    return same_fact, [known for known in there if known in (*repeated, *rivals) and known is not same_fact]


# --- The same again


def _asked_before(draft: Draft, existing: Sequence[Record]) -> Change | None:
    """What becomes of a draft that would wait, when the same waits or was rejected. What needs no review is not held up
    by what others have said of it."""
    record = draft.record
    if record.status != "pending":
        return None
    same_again = [known for known in existing if known.scope == record.scope and is_same_fact(record, known)]
    rejected = next((known for known in same_again if known.status == "rejected"), None)
    if rejected:
        return _refuse(draft, "rejected-before", "the same was rejected in a review", rejected)
    waiting = next((known for known in same_again if known.status == "pending"), None)
    if waiting is None:
        return None
    threads = {source.thread_id for source in (waiting.provenance, *waiting.confirmed_by)}
    if record.provenance.thread_id in threads or len(threads) >= WITNESSES:
        return _refuse(draft, "already-pending", "the same waits for review already", waiting)
    return _confirmed(draft, waiting)


def _was_saved(record: Record, known: Record) -> bool:
    """Whether the memory tools saved this from the very message that the draft rests on, if in other words."""
    mine, theirs = record.provenance, known.provenance
    if theirs.extracted_by != EXPLICIT_SAVE or mine.thread_id != theirs.thread_id:
        return False
    said = set(terms(record.statement))
    return not set(mine.message_ids).isdisjoint(theirs.message_ids) and (
        len(said & set(terms(known.statement))) >= SAVED_SHARE * len(said)
    )


def _is_repeated(record: Record, known: Record) -> bool:
    """Whether the draft says what is known. From one message, the same value is the same fact in whatever words."""
    return is_same_fact(record, known) or (is_same_value(record, known) and _is_source_of(record, known))


def _repeated(draft: Draft, known: Record, standing: Sequence[Record]) -> Change:
    if _is_source_of(draft.record, known):
        return _refuse(draft, "already-known", "it was learnt from the same message before", known)
    if draft.record.status == "pending":
        return _confirmed(draft, known)
    if _strength(draft.record) > _strength(known):
        # A confirmation raises no authority, so the stronger source speaks for itself.
        return _spoken_anew(draft, known, "stronger-source", "it says the same, and its source is the stronger one")
    against = [other for other in standing if other.status == "contested" and is_same_property(known, other)]
    others = [other for other in against if other.id != known.id and other.scope == known.scope]
    if known.status == "contested" and others and all(_wins(draft, other) for other in others):
        return _spoken_anew(draft, known, "newer", "it is as well sourced as what it contradicts, and newer")
    return _confirmed(draft, known)


def _spoken_anew(draft: Draft, known: Record, rule: str, reason: str) -> Change:
    """Supersede by a record that says the same, and keeps what has been said for it."""
    spoken = (_witness(known.provenance, known), *known.confirmed_by)
    record = draft.record.model_copy(update={"confirmed_by": (*draft.record.confirmed_by, *spoken)})
    return _touching("supersede", draft._replace(record=record), known, rule, reason)


def _confirmed(draft: Draft, known: Record) -> Change:
    source = _witness(draft.record.provenance, draft.record)
    return Change(
        action="confirm",
        target=known.id,
        expected=known.revision,
        source=source,
        rule="same-fact",
        reason="it says the same, so it is one more source",
        evidence=source.message_ids,
    )


def _witness(source: Provenance, record: Record) -> Provenance:
    """A record's source as one that confirms another: with the authority that it has by itself."""
    return source.model_copy(update={"authority": record.authority})


def _is_source_of(record: Record, known: Record) -> bool:
    """Whether `known` rests on a message of the draft's already; without messages, on the same source."""
    mine = record.provenance
    return any(
        not set(mine.message_ids).isdisjoint(source.message_ids)
        if mine.message_ids
        else source.model_copy(update={"authority": None}) == mine
        for source in (known.provenance, *known.confirmed_by)
        if source.thread_id == mine.thread_id
    )


# --- Ending


def _ended(draft: Draft, standing: Sequence[Record]) -> Change:
    record = draft.record
    many = is_many_valued(record)
    targets = [
        known
        for known in standing
        if (known.id in draft.touches and _may_be_meant(record, known))
        or is_same_fact(record, known)
        or is_same_value(record, known)
        or (is_same_property(record, known) and record.value is None and not many)
    ]
    if not targets:
        return _refuse(draft, "nothing-to-end", "nothing of the kind is known")
    target = _nearest(record, targets)
    if target.authority > record.authority:
        return _refuse(draft, "weaker-source", "its source cannot end what a stronger one said", target)
    if record.status == "pending":
        return _refuse(draft, "needs-review", "its source ends nothing by itself: ask who may change it", target)
    if _is_others_word(record, target):
        return _refuse(draft, "others-record", "another member said it: say what holds now, or ask a curator", target)
    if record.provenance.observed_at < _last_said(target):
        return _refuse(draft, "older", "it was said again later", target)
    return Change(
        action="end",
        target=target.id,
        expected=target.revision,
        status="archived",
        rule="retracted",
        reason="the speaker says that it no longer holds",
        evidence=record.provenance.message_ids,
    )


# --- Another value


def _rival(draft: Draft, standing: Sequence[Record]) -> Record | None:
    """The record whose place the draft would take; None when it takes nobody's."""
    record = draft.record
    pointed = [
        known for known in standing if draft.corrects and known.id in draft.touches and _may_be_meant(record, known)
    ]
    if pointed:
        return _nearest(record, pointed)
    if is_many_valued(record):
        return None
    rivals = [known for known in standing if is_same_property(record, known) and _overlap(record, known)]
    return _nearest(record, rivals) if rivals else None


def _may_be_meant(record: Record, known: Record) -> bool:
    """Whether a record that an extractor points to can be the one that the speaker means. A model that points at a fact
    of another property, with not a word in common, is mistaken, or was talked into it; a person who names an id is
    not (and what a tool's call names was compared before)."""
    if record.provenance.extracted_by == EXPLICIT_SAVE:
        return True
    if record.predicate and same(record.predicate, known.predicate):
        return True
    return speaks_of(record.statement, known.statement, beside=(record.subject or "", known.subject or ""))


def is_many_valued(record: Record) -> bool:
    """Whether its property takes many values at once."""
    return bool(record.predicate) and " ".join(fingerprint(str(record.predicate))) in MULTI_VALUED


def _within(draft: Draft, rival: Record) -> Draft:
    """A correction holds as far as what it corrects: never further (R107)."""
    mine, theirs = draft.record.scope, rival.scope
    meant = draft.corrects and rival.id in draft.touches
    if not meant or (mine.owner, mine.owner_id) != (theirs.owner, theirs.owner_id):
        return draft
    return draft._replace(record=draft.record.model_copy(update={"scope": theirs}))


def _nearest(record: Record, others: Sequence[Record]) -> Record:
    """Of the same scope before others, the narrowest of those; the newest of equals."""

    def distance(other: Record) -> tuple[bool, int, float]:
        return (
            other.scope != record.scope,
            NARROWEST_FIRST.index(other.scope.owner),
            -_last_said(other).timestamp(),
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
            reason = "it holds in a narrower scope, where it goes first"
            return _touching("narrow", draft, rival, "narrower-scope", reason)
        if not (draft.corrects and rival.id in draft.touches):
            return _create(draft, "other-scope", "what is known holds in another scope")
    mine, theirs = _strength(record), _strength(rival)
    older = record.provenance.observed_at < _last_said(rival)
    if mine > theirs:
        return _touching("supersede", draft, rival, "stronger-source", "its source is the stronger one")
    if mine < theirs and older:
        return _refuse(draft, "older", "what is known is better sourced, and newer", rival)
    if mine < theirs:
        waiting = draft._replace(record=record.model_copy(update={"status": "pending"}))
        return _touching("supersede", waiting, rival, "weaker-source", "a stronger source says otherwise")
    if _is_others_word(record, rival) and not draft.corrects:
        return _touching("contest", draft, rival, "members-disagree", "members of one scope say different things")
    if _is_newer(record, rival):
        return _touching("supersede", draft, rival, "newer", "it is as well sourced, and newer")
    if older:
        return _refuse(draft, "older", "what is known is as well sourced, and newer", rival)
    if draft.corrects:
        return _touching("supersede", draft, rival, "corrected", "the speaker corrects it")
    return _touching("contest", draft, rival, "undecided", "neither authority nor time decides")


def _wins(draft: Draft, rival: Record) -> bool:
    """Whether authority, or else time, puts the draft before this record."""
    mine, theirs = _strength(draft.record), _strength(rival)
    if mine != theirs:
        return mine > theirs
    return _is_newer(draft.record, rival) and (draft.corrects or not _is_others_word(draft.record, rival))


def _sources(known: Record) -> list[Provenance]:
    """The sources that are as strong as the record's own, its own first."""
    own = _strength(known)
    return [
        known.provenance,
        *(source for source in known.confirmed_by if source.authority and _strength_of(source.authority, known) >= own),
    ]


def _last_said(known: Record) -> datetime:
    """When a source as strong as its own last said it: a weaker one that repeats it makes it no newer."""
    return max(source.observed_at for source in _sources(known))


def _is_newer(record: Record, rival: Record) -> bool:
    """By the messages' own clock. Messages of one thread may share a time; drafts come in the thread's order."""
    mine = record.provenance
    newest = _last_said(rival)
    if mine.observed_at != newest:
        return mine.observed_at > newest
    return mine.thread_id is not None and any(
        source.thread_id == mine.thread_id for source in _sources(rival) if source.observed_at == newest
    )


def _strength(record: Record) -> int:
    return _strength_of(record.authority, record)


def _strength_of(authority: Authority, record: Record) -> int:
    """How much a source of this authority counts for a fact like this record's."""
    environment = record.subject not in (None, "user") and record.content_type == "fact"
    if environment and Authority.TOOL <= authority <= Authority.USER_EXPLICIT:
        return Authority.TOOL.rank
    return authority.rank


def _is_others_word(record: Record, rival: Record) -> bool:
    shared = record.scope.owner not in ("session", "user")
    return shared and record.provenance.actor != rival.provenance.actor


def _is_narrower(record: Record, rival: Record) -> bool:
    """Whether the draft holds only in a part of where the other one does; other scopes are not narrower ones."""
    mine, theirs = (NARROWEST_FIRST.index(each.scope.owner) for each in (record, rival))
    if mine != theirs:
        return mine < theirs
    narrowed, wide = (each.scope.within.model_dump(exclude_none=True).items() for each in (record, rival))
    return record.scope.owner_id == rival.scope.owner_id and wide < narrowed


# --- Changes

_RELATION = {"supersede": "supersedes", "narrow": "narrows", "contest": "contradicts"}


def _touching(action: str, draft: Draft, rival: Record, rule: str, reason: str) -> Change:
    record = draft.record
    evidence = record.provenance.message_ids
    relation = Relation.model_validate(
        {"kind": _RELATION[action], "target": rival.id, "reason": reason, "evidence": evidence}
    )
    return Change.model_validate(
        {
            "action": action,
            "record": record.model_copy(update={"relations": (*record.relations, relation)}),
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
