"""From one scope to a wider one: evidence first, then a person, on every backend."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON, keep, learnt, said_by

from everthread import Authority, Identity, Record, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.nodes.extract.promotion import objection, promote, propose_policy
from everthread.nodes.extract.review import review, waiting
from everthread.stores import MemoryStore
from everthread.stores.record import Governance, Provenance, Selection

LIMIT = "The billing API rejects batches over 100."
ABOUT: dict[str, Any] = {"subject": "billing API", "predicate": "batch limit", "value": "100"}
BILLING = Scope(owner="project", owner_id="billing")


def full(identity: Identity, user: str | None = None, *roles: Any) -> Identity:
    update = {"agent": "ops", "team": "core", "organization": "acme", "roles": frozenset(roles)}
    return identity.model_copy(update=update | ({"user": user} if user else {}))


def seen(thread: str, actor: str = "billing_api", source: Any = "tool", authority: Any = "tool") -> Provenance:
    return Provenance(
        source=source,
        thread_id=thread,
        message_ids=(f"{thread}-1",),
        actor=actor,
        extracted_by="test/1",
        observed_at=NOON,
        authority=authority,
    )


def observed(*threads: str, owner: str = "user", owner_id: str = "ana", **fields: Any) -> Record:
    """What a trusted tool showed in these threads."""
    first, *more = threads
    given: dict[str, Any] = {
        "provenance": seen(first).model_copy(update={"authority": None}),
        "confirmed_by": tuple(map(seen, more)),
        "authority": "tool",
    }
    return learnt(LIMIT, owner, owner_id, **(ABOUT | given | fields))


def outcome(receipt: Any) -> tuple[str, str]:
    [decision] = receipt.decisions
    return decision.outcome, decision.rule


def test_a_promotion_waits_derived_from_what_it_rests_on(store: MemoryStore, ana: Identity) -> None:
    member, carla = full(ana), full(ana, "carla", "curator")
    (kept,) = keep(store, member, observed("t1", "t2"))
    receipt = promote(store, member, kept.id, to="agent", reason="it failed twice")
    assert outcome(receipt) == ("pending", "promotion")
    [each] = waiting(store, member)
    assert (each.record.scope, each.record.agent_family, each.record.status) == (
        Scope(owner="agent", owner_id="ops"),
        "ops",
        "pending",
    )
    assert (each.record.authority, each.record.provenance) == (Authority.TOOL, kept.provenance)
    assert [(edge.kind, edge.target) for edge in each.record.relations] == [("derived_from", kept.id)]
    with pytest.raises(AccessDenied):
        review(store, member, each.record.id, "approve")
    review(store, carla, each.record.id, "approve")
    assert {(str(record.scope), record.status) for record in store.records(member)} == {
        ("user:ana", "active"),
        ("agent:ops", "active"),
    }


@pytest.mark.parametrize(
    ("record", "to", "rule"),
    [
        (observed("t1"), "agent", "too-few-threads"),
        (observed("t1", "t1"), "agent", "too-few-threads"),
        (observed("t1"), "project", "too-few-threads"),
        (observed("t1", "t2"), "team", "too-few-people"),
        (observed("t1", confirmed_by=(seen("t2", "example.org", "web", "external"),)), "agent", "too-few-threads"),
        (observed("t1", confirmed_by=(seen("t2", authority=None),)), "agent", "too-few-threads"),
        (observed("t1", "t2", subject="user", predicate="limit"), "project", "of-a-person"),
        (observed("t1", "t2", subject="Ana", predicate="limit"), "agent", "of-a-person"),
        (observed("t1", "t2", content_type="preference"), "agent", "of-a-person"),
        (observed("t1", "t2", governance=Governance(sensitivity="health")), "project", "of-a-person"),
        (observed("t1", "t2").model_copy(update={"statement": "Ana takes insulin."}), "agent", "of-a-person"),
        (observed("t1", "t2", governance=Governance(readable_by=("ana",))), "project", "restricted"),
        (observed("t1", "t2", owner="session", owner_id="t1"), "project", "one-conversation"),
        (observed("t1", "t2", owner="project", owner_id="billing"), "project", "not-wider"),
        (observed("t1", "t2", owner="project", owner_id="billing"), "agent", "not-wider"),
    ],
)
def test_too_little_evidence_or_too_much_of_a_person_is_refused(
    store: MemoryStore, ana: Identity, record: Record, to: Any, rule: str
) -> None:
    member = full(ana)
    writer = full(ana, None, "curator")
    keep(store, writer, record, thread_id="t1")
    assert outcome(promote(store, member, record.id, to=to, reason="it helps")) == ("refused", rule)
    assert waiting(store, member) == []


@pytest.mark.parametrize("status", ["contested", "archived", "rejected", "superseded"])
def test_only_what_stands_or_waits_is_promoted(ana: Identity, status: Any) -> None:
    record = observed("t1", "t2").model_copy(update={"status": status})
    assert objection(record, BILLING, proposer=full(ana)) == ("not-in-use", f"it is {status}")


def test_one_explicit_statement_is_enough_for_a_project_and_two_people_for_a_team(ana: Identity) -> None:
    said = learnt(LIMIT, **ABOUT)
    assert objection(said, BILLING, proposer=full(ana)) is None
    bens = seen("t2", "ben", "user", "user_explicit")
    shared = learnt(LIMIT, "project", "billing", confirmed_by=(bens,), **ABOUT)
    core = Scope(owner="team", owner_id="core")
    assert objection(shared, core, proposer=full(ana)) is None
    again = learnt(LIMIT, "project", "billing", confirmed_by=(seen("t2", "ana", "user", "user_explicit"),), **ABOUT)
    assert objection(again, core, proposer=full(ana)) == (
        "too-few-people",
        "team asks for 2 people or a curator, and 1 said it",
    )
    assert objection(again, core, proposer=full(ana, None, "curator")) is None


def test_nothing_is_promoted_to_the_organization(ana: Identity) -> None:
    refused = objection(observed("t1", "t2"), Scope(owner="organization", owner_id="acme"), proposer=full(ana))
    assert refused is not None
    assert refused[0] == "not-by-promotion"


def test_the_same_promotion_is_asked_once_and_not_after_a_rejection(store: MemoryStore, ana: Identity) -> None:
    member, carla = full(ana), full(ana, "carla", "curator")
    (kept,) = keep(store, member, observed("t1", "t2"))
    first = promote(store, member, kept.id, to="project", reason="it helps")
    assert outcome(promote(store, member, kept.id, to="project", reason="it helps")) == ("refused", "already-pending")
    review(store, carla, str(first.decisions[0].record_id), "reject")
    assert outcome(promote(store, member, kept.id, to="project", reason="it helps")) == ("refused", "rejected-before")


def test_what_stands_there_is_confirmed_or_would_be_replaced(store: MemoryStore, ana: Identity) -> None:
    member, carla = full(ana), full(ana, "carla", "curator")
    (old,) = keep(store, carla, learnt("The limit is 50.", "project", "billing", **(ABOUT | {"value": "50"})))
    (kept,) = keep(store, member, observed("t3", "t2"))
    promote(store, member, kept.id, to="project", reason="it helps")
    [each] = waiting(store, carla)
    assert each.replaces == (old,)
    review(store, carla, each.record.id, "approve")
    assert [record.value for record in store.records(member, scopes=[BILLING])] == ["100"]
    other = learnt(LIMIT, provenance=said_by("ana", "t9", "m9"), **ABOUT)
    keep(store, member, other)
    assert outcome(promote(store, member, other.id, to="project", reason="she says so")) == ("confirmed", "same-fact")


def test_erasing_what_it_rests_on_erases_the_promotion(store: MemoryStore, ana: Identity) -> None:
    member = full(ana)
    (kept,) = keep(store, member, observed("t1", "t2"))
    promote(store, member, kept.id, to="project", reason="it helps")
    gone = store.erase(member, Selection(record_ids=(kept.id,)), reason="asked")
    assert gone.erased["records"] == 2
    assert waiting(store, member) == []


def test_bad_calls_say_what_to_do(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (kept,) = keep(store, ana, observed("t1", "t2"))
    with pytest.raises(UsageError, match="the identity names no team"):
        promote(store, ana, kept.id, to="team", reason="x")
    with pytest.raises(UsageError, match="needs a reason"):
        promote(store, ana, kept.id, to="project", reason=" ")
    with pytest.raises(UsageError, match="there is no memory"):
        promote(store, full(ben).model_copy(update={"project": "billing"}), kept.id, to="project", reason="x")
    with pytest.raises(AccessDenied, match="acts for another user"):
        promote(store, full(ben), kept.id, to="agent", reason="x", of=ana)
    with pytest.raises(AccessDenied, match="is not open to user ana"):
        promote(store, ana, kept.id, to=Scope(owner="project", owner_id="crm"), reason="x")
    with pytest.raises(UsageError, match="names no organization"):
        propose_policy(store, ana, "Deploys need two approvals.", artifact="handbook", artifact_revision="7")
    with pytest.raises(UsageError, match="name both"):
        propose_policy(store, full(ana), "Deploys need two approvals.", artifact="handbook", artifact_revision=" ")


def test_a_policy_waits_and_cites_its_artifact(store: MemoryStore, ana: Identity) -> None:
    member, carla = full(ana), full(ana, "carla", "curator")
    about: dict[str, Any] = {"subject": "deploys", "predicate": "approvals"}

    def propose(text: str, revision: str, value: str) -> Any:
        return propose_policy(
            store, member, text, artifact="handbook", artifact_revision=revision, value=value, **about
        )

    receipt = propose("Deploys need two approvals.", "7", "two")
    assert outcome(receipt) == ("pending", "policy")
    assert propose("Deploys need two approvals.", "7", "two").decisions[0].outcome in ("refused", "pending")
    [each] = waiting(store, carla)
    assert (each.record.authority, each.record.provenance.artifact_revision) == (Authority.ARTIFACT, "7")
    review(store, carla, each.record.id, "approve")
    [policy] = store.records(member)
    assert (policy.authority, policy.status, policy.scope.owner) == (Authority.POLICY, "active", "organization")
    propose("Deploys need three approvals.", "8", "three")
    [newer] = waiting(store, carla)
    assert newer.replaces == (policy,)
    review(store, carla, newer.record.id, "approve")
    assert [(record.value, record.authority) for record in store.records(member)] == [("three", Authority.POLICY)]


def test_what_a_curator_said_becomes_policy_only_by_the_artifact(store: MemoryStore, ana: Identity) -> None:
    member, carla = full(ana), full(ana, "carla", "curator")
    (said,) = keep(store, carla, learnt("Deploys need two approvals.", "organization", "acme"))
    receipt = propose_policy(store, member, "Deploys need two approvals.", artifact="handbook", artifact_revision="7")
    assert outcome(receipt) == ("pending", "policy")
    review(store, carla, str(receipt.decisions[0].record_id), "approve")
    assert [(record.authority, record.id == said.id) for record in store.records(member)] == [(Authority.POLICY, False)]
    again = propose_policy(store, member, "Deploys need two approvals.", artifact="handbook", artifact_revision="8")
    assert outcome(again) == ("confirmed", "same-fact")


def test_a_policy_passes_the_rules_and_no_word_of_a_refused_one_is_kept(store: MemoryStore, ana: Identity) -> None:
    receipt = propose_policy(
        store, full(ana), "The deploy password is hunter2-Gk39sLq0Zx.", artifact="handbook", artifact_revision="7"
    )
    assert outcome(receipt) == ("refused", "secret")
    assert "hunter2" not in receipt.model_dump_json()


def test_a_late_observation_does_not_raise_what_was_promoted(store: MemoryStore, ana: Identity) -> None:
    member = full(ana)
    (kept,) = keep(store, member, observed("t1", "t2"))
    promoted = promote(store, member, kept.id, to="project", reason="it helps").decisions[0].record_id
    again = observed("t7", "t8").model_copy(
        update={"provenance": seen("t7").model_copy(update={"observed_at": NOON + timedelta(days=1)})}
    )
    keep(store, member, again)
    assert outcome(promote(store, member, again.id, to="project", reason="seen again")) == ("confirmed", "same-fact")
    record = store.record(member, str(promoted))
    assert record is not None
    assert (record.status, record.authority) == ("pending", Authority.TOOL)
