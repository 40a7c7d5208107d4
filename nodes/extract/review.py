"""What waits for a person, and what a person's verdict does to it (R106, R110, R159).

`decide` is pure: a record and a verdict in, one change out. `waiting` reads what there is to decide, `review` commits
one decision. The remember graph and `everthread review` use the same functions.

| whose it would be          | who decides                          |
|----------------------------|--------------------------------------|
| session, user              | that user                            |
| all others                 | a member with the role `curator`     |

Approving keeps the authority that the source gave: what a page said is used then, and still gives way to what any
better source says. That somebody looked at it is noted as one more source. Only the proposal of a policy, which cites
the revision of an artifact, becomes policy. Editing makes the words the reviewer's own, with the reviewer as source;
where the edit adds nothing (a full stop, a part left out), they stay those of their source, and it is an approval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, Self

from pydantic import ValidationError, model_validator

from everthread.errors import AccessDenied, UsageError
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.grounding import adds_nothing
from everthread.nodes.extract.resolve import in_its_place
from everthread.nodes.extract.sensitive import has_personal_number, has_secret
from everthread.nodes.extract.validate import Draft, Refusal, validate
from everthread.stores.contract import READABLE, MemoryStore
from everthread.stores.identity import Frozen, Identity, complaint
from everthread.stores.record import Authority, Change, Evidence, Provenance, Receipt, Record, Relation, now_utc

__all__ = ["Verdict", "Waiting", "decide", "may_decide", "review", "standing_beside", "waiting"]

REVIEWER = "review/1"
"""Who wrote the source of a verdict."""
NEAR = 8
"""How many records are compared with one that has no property of its own."""


class Verdict(Frozen):
    """What a reviewer says of one record."""

    verdict: Literal["approve", "edit", "reject"]
    """Approve it as it stands, in other words, or not at all."""
    statement: str | None = None
    """For `edit`: the words that take its place."""
    reason: str | None = None
    """Why, for the receipt."""

    @model_validator(mode="after")
    def _says_what_it_edits(self) -> Self:
        if (self.verdict == "edit") != (self.statement is not None):
            raise ValueError("statement: goes with 'edit', and 'edit' needs it")
        return self

    @classmethod
    def of(cls, said: Any) -> Verdict:
        """A verdict as it is written: `"approve"`, `"reject"`, or a dict of the fields. UsageError when it is none."""
        try:
            return cls.model_validate(said if isinstance(said, Mapping | Verdict) else {"verdict": said})
        except ValidationError as error:
            raise UsageError(
                f"no verdict: {complaint(error)}; write 'approve', 'reject', "
                "or {'verdict': 'edit', 'statement': ..., 'reason': ...}"
            ) from error


class Waiting(Frozen):
    """One record that waits for a decision, with what a reviewer has to see."""

    record: Record
    """The record, `pending`."""
    rule: str
    """The rule that sent it to review."""
    why: str
    """Why it waits, in a sentence."""
    said: tuple[Evidence, ...] = ()
    """The messages it rests on, without their payload; none when they are in another user's thread."""
    replaces: tuple[Record, ...] = ()
    """What stands now and would be superseded."""
    contradicts: tuple[Record, ...] = ()
    """What stands now and would be contested."""


def waiting(
    store: MemoryStore, identity: Identity, *, record_id: str | None = None, thread_id: str | None = None
) -> list[Waiting]:
    """What waits in the scopes that this identity reads, the oldest first; with `thread_id` that conversation's too.

    `record_id` takes that record alone: UsageError when there is none, or nothing is to be decided about it.
    """
    if record_id is None:
        found = store.records(identity, statuses=("pending",), thread_id=thread_id)
    else:
        found = [_pending(store, identity, record_id)]
    return [_seen(store, identity, record) for record in sorted(found, key=lambda each: each.recorded_at)]


def review(store: MemoryStore, identity: Identity, record_id: str, verdict: Verdict | str) -> Receipt:
    """Decide about one record and commit it; the same verdict again returns the same receipt.

    UsageError when there is nothing to decide or a rule refuses the edited words, AccessDenied when this identity may
    not, Conflict when another reviewer was first.
    """
    said = Verdict.of(verdict)
    key = f"review:{record_id}:{sha256(said.model_dump_json().encode()).hexdigest()}"
    record = store.record(identity, record_id)
    decided = [each for each in store.receipts(identity, record_id) if each.key == key] if record else []
    if decided:
        return decided[-1]
    pending = _pending(store, identity, record_id)
    change = decide(pending, said, identity, standing=standing_beside(store, identity, pending))
    return store.commit(identity, [change], key=key, thread_id=thread_of(record))


def decide(
    record: Record,
    verdict: Verdict | str,
    reviewer: Identity,
    *,
    standing: Sequence[Record] = (),
    now: datetime | None = None,
) -> Change:
    """The change that a verdict comes to. What is approved takes the place of what it said it would, and of what has
    come to stand there since (`standing`); when the same stands there already, it is archived.

    Raises AccessDenied when the reviewer may not decide, UsageError when the record does not wait or a rule refuses the
    reviewer's words.
    """
    said, now = Verdict.of(verdict), now or now_utc()
    if record.status != "pending":
        raise UsageError(f"record {record.id} is {record.status}: there is nothing to decide")
    may_decide(reviewer, record)
    reason = checked_reason(said.reason)
    if said.verdict == "reject":
        return Change(
            action="end",
            target=record.id,
            expected=record.revision,
            status="rejected",
            rule="rejected",
            reason=reason or "a reviewer rejected it",
        )
    if said.statement is not None:
        kept = _edited(record, said.statement, reviewer, now, reason or "a reviewer worded it")
        rule, default = "edited", "a reviewer approved it in other words"
    else:
        source = reviewer_of(reviewer, now)
        kept = record.model_copy(update={"confirmed_by": (*record.confirmed_by, source)})
        rule, default = "approved", "a reviewer approved it"
    update: dict[str, Any] = {"status": "active", "verified_at": now}
    if is_policy(record):
        update["authority"] = Authority.POLICY
        rule = f"policy-{rule}"
    approved = Record.model_validate(kept.model_dump() | update)
    known, rivals = in_its_place(approved, standing)
    if known:
        return Change(
            action="end",
            target=record.id,
            expected=record.revision,
            status="archived",
            rule="already-known",
            reason=f"the same stands already ({known.id})",
        )
    edges = (*record.relations, *_superseding(record, rivals, reason or default))
    return Change(
        action="revise",
        record=approved.model_copy(update={"relations": edges}),
        target=record.id,
        expected=record.revision,
        rule=rule,
        reason=reason or default,
    )


def standing_beside(store: MemoryStore, identity: Identity, record: Record) -> list[Record]:
    """What stands now of the record's property; without one, what is most like it."""
    if record.subject and record.predicate:
        return store.current(identity, record.subject, record.predicate, thread_id=thread_of(record))
    hits = store.recall(identity, record.statement, limit=NEAR, thread_id=thread_of(record)).hits
    ids = [hit.record_id for hit in hits if hit.record_id]
    return store.records(identity, ids=ids) if ids else []


def may_decide(reviewer: Identity, record: Record) -> None:
    """Raises AccessDenied unless the reviewer may decide about this record: see the table above."""
    scope = record.scope
    own = scope.owner == "session" or (scope.owner == "user" and scope.owner_id == reviewer.user)
    if not own and "curator" not in reviewer.roles:
        raise AccessDenied(
            f"record {record.id} would hold for {scope}: a member of it with the role curator decides, "
            f"and user {reviewer.user} has no such role here"
        )


def is_policy(record: Record) -> bool:
    """Whether the record proposes a policy: it cites a revision of an artifact of its organization."""
    source = record.provenance
    return record.scope.owner == "organization" and source.source == "artifact" and bool(source.artifact_revision)


def reviewer_of(reviewer: Identity, now: datetime) -> Provenance:
    """The reviewer as a source: a person, outside of any thread."""
    return Provenance(source="user", actor=reviewer.user, extracted_by=REVIEWER, observed_at=now)


def thread_of(record: Record | None) -> str | None:
    """The thread that must be named to change the record: a session's own."""
    return record.scope.owner_id if record and record.scope.owner == "session" else None


def checked_reason(reason: str | None) -> str | None:
    """The reason, if it may be kept: receipts outlive what they are about. UsageError when it holds a secret."""
    if reason is None or not reason.strip():
        return None
    if has_secret(reason) or has_personal_number(reason):
        raise UsageError("the reason holds a secret or a personal number, and would keep it; give one without it")
    return reason.strip()


def _superseding(record: Record, rivals: Sequence[Record], reason: str) -> list[Relation]:
    """The edges to those that the record does not stand against yet."""
    related = {relation.target for relation in record.relations if relation.kind in ("supersedes", "contradicts")}
    return [Relation(kind="supersedes", target=rival.id, reason=reason) for rival in rivals if rival.id not in related]


def _edited(record: Record, statement: str, reviewer: Identity, now: datetime, reason: str) -> Record:
    """The record in the reviewer's words, which pass the same rules as anybody's."""
    text = statement.strip()
    said = Evidence(
        thread_id="review", message_id=record.id, role="user", speaker=reviewer.user, text=text, at=now, source="user"
    )
    still = {field: _still_said(getattr(record, field), text) for field in ("entities", "tags")}
    value = record.value if record.value and _still_said((record.value,), text) else None
    candidate = Candidate(
        statement=text or " ",
        content_type="fact" if record.content_type == "summary" else record.content_type,
        kind=record.kind,
        subject=record.subject,
        predicate=record.predicate,
        value=value,
        entities=(*still["entities"], *still["tags"]),
        owner=record.scope.owner,
        messages=(1,),
        concerns=record.concerns,
        sensitivity=record.governance.sensitivity,
        write_reason=record.write_reason,
    )
    verdict = validate(candidate, Ground(reviewer, said.thread_id, [said], extracted_by=REVIEWER, now=now))
    if isinstance(verdict, Refusal):
        raise UsageError(f"the edited words are not kept: {verdict.reason} ({verdict.rule})")
    assert isinstance(verdict, Draft)  # only a prospective candidate becomes a reminder
    judged = verdict.record.governance.model_dump(include={"sensitivity", "retention_days"})
    source = reviewer_of(reviewer, now)
    if is_policy(record):
        cited = record.provenance.model_dump(include={"source", "artifact", "artifact_revision"})
        source = Provenance.model_validate(source.model_dump() | cited)
    worded: dict[str, Any] = {
        **still,
        "statement": verdict.record.statement,
        "value": value,
        "governance": record.governance.model_copy(update=judged),
    }
    if adds_nothing(text, record.statement):  # a full stop makes no page's word a person's
        return record.model_copy(update=worded | {"confirmed_by": (*record.confirmed_by, source)})
    update: dict[str, Any] = {
        **worded,
        "stated": True,
        "confidence": 1.0,
        "provenance": source,
        "confirmed_by": (),
        "write_reason": reason,
        "authority": Authority.USER_EXPLICIT,
    }
    return record.model_copy(update=update)


def _still_said(names: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(name for name in names if name.casefold() in text.casefold())


def _pending(store: MemoryStore, identity: Identity, record_id: str) -> Record:
    record = store.record(identity, record_id)
    if record is None:
        raise UsageError(f"there is no record {record_id} for user {identity.user}; list what waits to see the ids")
    if record.status != "pending":
        raise UsageError(f"record {record_id} is {record.status}: there is nothing to decide")
    return record


def _seen(store: MemoryStore, identity: Identity, record: Record) -> Waiting:
    sent = [
        decision
        for receipt in store.receipts(identity, record.id)
        for decision in receipt.decisions
        if decision.record_id == record.id and decision.outcome == "pending"
    ]
    _, rivals = in_its_place(record, standing_beside(store, identity, record))
    targets = {
        kind: [relation.target for relation in record.relations if relation.kind == kind]
        for kind in ("supersedes", "contradicts")
    }
    replaces = [*targets["supersedes"], *(each.id for each in rivals if each.id not in targets["contradicts"])]
    return Waiting(
        record=record,
        rule=sent[-1].rule if sent else "pending",
        why=sent[-1].reason if sent else record.write_reason,
        said=_said(store, identity, record),
        replaces=_in_use(store, identity, replaces),
        contradicts=_in_use(store, identity, targets["contradicts"]),
    )


def _in_use(store: MemoryStore, identity: Identity, ids: Sequence[str]) -> tuple[Record, ...]:
    found = store.records(identity, ids=list(dict.fromkeys(ids))) if ids else []
    return tuple(each for each in found if each.status in READABLE)


def _said(store: MemoryStore, identity: Identity, record: Record) -> tuple[Evidence, ...]:
    """The messages that the record rests on, of every source, in the order of the sources."""
    found: list[Evidence] = []
    for source in (record.provenance, *record.confirmed_by):
        if source.thread_id is None:
            continue
        try:
            found += store.transcripts.read(identity, source.thread_id, ids=source.message_ids)
        except AccessDenied:  # a role opens nobody's conversations
            continue
    return tuple(line.model_copy(update={"payload": None}) for line in found)
