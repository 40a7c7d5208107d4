"""From one scope to a wider one: a proposal with evidence, and a person's approval (R159, R303, R304, R309 to R311).

A promotion makes a record that waits in the wider scope, `derived_from` the one that it rests on. Code counts the
evidence before anybody is asked; `review` decides. Nothing grows wider by itself, and no evidence raises authority.

| to            | evidence                                                        | approved by |
|---------------|-----------------------------------------------------------------|-------------|
| project       | 2 threads, or a member's explicit statement                     | a curator   |
| agent         | 2 threads                                                       | a curator   |
| team          | 2 threads, and 2 people or a curator who proposes it            | a curator   |
| organization  | a revision of an artifact, by `propose_policy`; never from here | a curator   |

A thread counts when a person or a trusted tool said it there: what pages and models repeat is no evidence. Of a person
nothing is promoted: no preference, no fact about the user, nothing sensitive, and to an agent nothing that names the
user (R156).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal, NamedTuple

from everthread.errors import AccessDenied, UsageError
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.resolve import NARROWEST_FIRST, resolve
from everthread.nodes.extract.review import checked_reason, is_policy
from everthread.nodes.extract.sameness import fingerprint
from everthread.nodes.extract.sensitive import class_of
from everthread.nodes.extract.validate import Draft, Refusal, validate
from everthread.stores.contract import READABLE, MemoryStore
from everthread.stores.identity import Identity, Owner, Scope
from everthread.stores.record import (
    Authority,
    Change,
    Evidence,
    Provenance,
    Receipt,
    Record,
    Relation,
    new_id,
    now_utc,
)

__all__ = ["EVIDENCE", "Bar", "objection", "promote", "propose_policy"]

POLICY = "policy/1"
"""Who wrote the source of a proposed policy."""
COMPARED = 200
"""How many records that wait or were rejected there are compared with the new one."""


class Bar(NamedTuple):
    """How much evidence a scope asks for."""

    threads: int
    """Threads in which a person or a trusted tool said it."""
    people: int = 0
    """People who said it; a curator who proposes it stands for them."""
    explicit: bool = False
    """Whether one explicit statement of a member is enough."""


EVIDENCE: dict[Owner, Bar] = {
    "project": Bar(threads=2, explicit=True),
    "agent": Bar(threads=2),
    "team": Bar(threads=2, people=2),
}
"""The table above, for the scopes that can be promoted to."""


def promote(
    store: MemoryStore,
    identity: Identity,
    record_id: str,
    *,
    to: Scope | Literal["agent", "project", "team"],
    reason: str,
    of: Identity | None = None,
) -> Receipt:
    """Propose that what a record says holds in a wider scope; it waits there until `review` decides.

    `to` is a scope, or the owner's kind for the identity's own agent, project or team. `of` is the identity that can
    read the record when this one cannot: that of a sub-agent of the same user. The receipt says `pending`, or `refused`
    with the rule: see `objection`; `already-pending` and `rejected-before` when the same was proposed before.

    UsageError when there is no such record or no such scope, AccessDenied when the identity has no part in it.
    """
    if of is not None and (of.tenant, of.user) != (identity.tenant, identity.user):
        raise AccessDenied("promote: `of` acts for another user; a promotion rests on this user's own records")
    why = checked_reason(reason)
    if why is None:
        raise UsageError("promote needs a reason; it is kept in the receipt")
    scope = _scope(identity, to)
    record = store.record(of or identity, record_id)
    if record is None:
        raise UsageError(f"there is no memory {record_id}; search for its id first")
    against = objection(record, scope, proposer=identity)
    if against:
        change = Change(action="refuse", rule=against[0], reason=f"{against[1]} ({record_id})")
    else:
        promoted = _promoted(record, scope, identity, why)
        change = resolve(Draft(promoted, "promotion", why), _known(store, identity, promoted))
    return store.commit(identity, [change], key=f"promote:{record_id}:{record.revision}:{scope}:{change.rule}")


def objection(record: Record, to: Scope, *, proposer: Identity) -> tuple[str, str] | None:
    """Why a record may not be proposed for a scope, as the rule's name and a sentence; None when it may. Pure."""
    bar = EVIDENCE.get(to.owner)
    if bar is None:
        return "not-by-promotion", f"nothing is promoted to {to.owner}; policy cites an artifact: see propose_policy"
    if record.scope.owner == "session":
        return "one-conversation", "it was meant for one conversation only"
    if record.scope == to or NARROWEST_FIRST.index(to.owner) < NARROWEST_FIRST.index(record.scope.owner):
        return "not-wider", f"{to} is no wider than {record.scope}"
    if record.status not in ("active", "pending"):
        return "not-in-use", f"it is {record.status}"
    if record.governance.readable_by:
        return "restricted", "only some may read it; a wider scope would tell others"
    if _is_of_a_person(record, to, proposer):
        return "of-a-person", "what concerns a person stays with that person (R156)"
    sources = [(record.authority, record.provenance), *((each.authority, each) for each in record.confirmed_by)]
    heard = [source for authority, source in sources if authority is not None and authority >= Authority.TOOL]
    threads = {source.thread_id for source in heard if source.thread_id}
    people = {source.actor for source in heard if source.source == "user" and source.actor}
    explicit = bar.explicit and record.authority >= Authority.USER_EXPLICIT
    if len(threads) < bar.threads and not explicit:
        return "too-few-threads", f"{to.owner} asks for {bar.threads} threads, and {len(threads)} bear it out"
    if len(people) < bar.people and "curator" not in proposer.roles:
        return "too-few-people", f"{to.owner} asks for {bar.people} people or a curator, and {len(people)} said it"
    return None


def propose_policy(
    store: MemoryStore,
    identity: Identity,
    statement: str,
    *,
    artifact: str,
    artifact_revision: str,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    reason: str = "an artifact of the organization says so",
) -> Receipt:
    """Propose a policy of the identity's organization, which cites the revision of an approved artifact (R159).

    It waits until a curator approves it, and has the authority `policy` only then. A newer revision is proposed again:
    with the same subject and predicate it takes the place of the older one when it is approved. The receipt says
    `pending`, or `refused` with the rule.

    UsageError when the identity names no organization or the artifact is not named.
    """
    if not identity.organization:
        raise UsageError("propose_policy: the identity names no organization; set Identity(organization=...)")
    if not artifact.strip() or not artifact_revision.strip():
        raise UsageError("propose_policy: policy cites an artifact and its revision; name both")
    why, now = checked_reason(reason) or "an artifact of the organization says so", now_utc()
    key = sha256("\0".join([statement, artifact, artifact_revision]).encode("utf-8", "surrogatepass")).hexdigest()
    said = Evidence(
        thread_id="policy", message_id=key, role="user", speaker=identity.user, text=statement, at=now, source="user"
    )
    candidate = Candidate(
        statement=statement or " ",
        subject=subject,
        predicate=predicate,
        value=value,
        owner="organization",
        messages=(1,),
        write_reason=why,
    )
    verdict = validate(candidate, Ground(identity, said.thread_id, [said], extracted_by=POLICY, now=now))
    if isinstance(verdict, Refusal):
        change = Change(action="refuse", rule=verdict.rule, reason=verdict.reason)
        return store.commit(identity, [change], key=f"policy:{new_id('put')}")
    assert isinstance(verdict, Draft)  # only a prospective candidate becomes a reminder
    source = Provenance(
        source="artifact",
        actor=identity.user,
        artifact=artifact,
        artifact_revision=artifact_revision,
        extracted_by=POLICY,
        observed_at=now,
    )
    update: dict[str, Any] = {
        "scope": Scope(owner="organization", owner_id=identity.organization),
        "temporal_scope": "long_term",
        "expires_at": None,
        "provenance": source,
        "authority": Authority.ARTIFACT,
        "status": "pending",
    }
    record = Record.model_validate(verdict.record.model_dump() | update)
    # What a member said is no policy, even in the same words: only what was proposed or approved before is compared.
    known = [each for each in _known(store, identity, record) if is_policy(each)]
    change = resolve(Draft(record, "policy", why), known)
    return store.commit(identity, [change], key=f"policy:{identity.organization}:{key}:{change.action}")


def _scope(identity: Identity, to: Scope | str) -> Scope:
    if isinstance(to, Scope):
        return to
    owner_id = getattr(identity, to, None) if to in EVIDENCE else None
    if not owner_id:
        raise UsageError(f"promote: the identity names no {to}; give a Scope, or an identity with its {to}")
    return Scope.model_validate({"owner": to, "owner_id": owner_id})


def _is_of_a_person(record: Record, to: Scope, proposer: Identity) -> bool:
    """Whether it concerns a person: by its type, subject or class, and for an agent's memory by naming the user too."""
    names = {proposer.user.casefold(), *([record.scope.owner_id.casefold()] if record.scope.owner == "user" else [])}
    named = set(fingerprint(record.statement)) & names if to.owner == "agent" else set()
    return (
        record.content_type == "preference"
        or (record.subject or "").casefold() in {"user", *names}
        or record.governance.sensitivity != "normal"
        or class_of(f"{record.statement} {record.predicate or ''}") != "normal"
        or bool(named)
    )


def _promoted(record: Record, scope: Scope, identity: Identity, reason: str) -> Record:
    """The record as it waits in the wider scope. Its sources come along, and with them its authority."""
    is_agents = scope.owner == "agent"
    derived = Relation(kind="derived_from", target=record.id, reason=reason, evidence=record.provenance.message_ids)
    update: dict[str, Any] = {
        "id": new_id("mem"),
        "revision": 1,
        "scope": scope,
        "agent_family": scope.owner_id if is_agents else None,
        "agent_versions": f">={identity.agent_version}" if is_agents and identity.agent_version else None,
        "recorded_at": now_utc(),
        "expires_at": None,
        "verified_at": None,
        "status": "pending",
        "relations": (derived,),
        "write_reason": reason,
        "usage_count": 0,
        "last_used_at": None,
    }
    return Record.model_validate(record.model_dump() | update)


def _known(store: MemoryStore, identity: Identity, record: Record) -> list[Record]:
    """What the proposal could meet in its scope: what stands for its property, what waits, what was rejected."""
    standing = (
        store.current(identity, record.subject, record.predicate)
        if record.subject and record.predicate
        else store.records(identity, scopes=[record.scope], statuses=READABLE, limit=COMPARED)
    )
    asked = store.records(identity, scopes=[record.scope], statuses=("pending", "rejected"), limit=COMPARED)
    return list({each.id: each for each in (*standing, *asked)}.values())
