"""What waits and who decides, on every backend."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import keep, learnt, said_by, write

from everthread import Authority, Evidence, Identity, Record
from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.nodes.extract.review import Verdict, decide, review, waiting
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Provenance, now_utc

PAGE = Provenance(
    source="web",
    thread_id="t1",
    message_ids=("m1",),
    actor="example.org",
    extracted_by="rules/1",
    observed_at=now_utc(),
)


def page(statement: str, owner: str = "user", owner_id: str = "ana", **fields: Any) -> Record:
    """What a page said."""
    return learnt(statement, owner, owner_id, provenance=PAGE, authority="external", status="pending", **fields)


def as_curator(identity: Identity, user: str = "carla") -> Identity:
    return identity.model_copy(update={"user": user, "roles": frozenset({"curator"})})


def overheard(store: MemoryStore, identity: Identity, text: str) -> None:
    line = Evidence(
        thread_id="t1", message_id="m1", role="tool", text=text, at=now_utc(), source="web", payload={"a": 1}
    )
    store.transcripts.append(identity, [line])


def test_what_waits_is_shown_with_why_its_words_and_what_it_would_replace(store: MemoryStore, ana: Identity) -> None:
    about: dict[str, Any] = {"subject": "user", "predicate": "lives in"}
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", value="Oslo", **about))
    overheard(store, ana, "Ana lives in Rome!")
    record = page("The user lives in Rome.", value="Rome", **about)
    change = Change(
        action="supersede",
        record=record,
        target=old.id,
        expected=1,
        rule="untrusted-source",
        reason="a page said it",
    )
    write(store, ana, change)
    [each] = waiting(store, ana)
    assert (each.record.id, each.rule, each.why) == (record.id, "untrusted-source", "a page said it")
    assert [(line.text, line.payload) for line in each.said] == [("Ana lives in Rome!", None)]
    assert each.replaces == (old,)
    receipt = review(store, ana, record.id, "approve")
    assert [(each.outcome, each.rule) for each in receipt.decisions] == [("revised", "approved")]
    assert [(each.value, each.status, each.authority) for each in store.records(ana, ids=[old.id, record.id])] == [
        ("Oslo", "superseded", Authority.USER_EXPLICIT),
        ("Rome", "active", Authority.EXTERNAL),
    ]


def test_what_a_person_approved_is_recalled_and_gives_way_to_any_better_source(
    store: MemoryStore, ana: Identity
) -> None:
    from everthread.nodes.extract.resolve import resolve
    from everthread.nodes.extract.validate import Draft

    about: dict[str, Any] = {"subject": "user", "predicate": "lives in"}
    record = page("The user lives in Rome.", value="Rome", **about)
    keep(store, ana, record)
    assert store.recall(ana, "Where does the user live?").hits == ()
    review(store, ana, record.id, "approve")
    assert [hit.record_id for hit in store.recall(ana, "Where does the user live?").hits] == [record.id]
    said = learnt("I live in Oslo.", value="Oslo", provenance=said_by("ana", "t2", "m2"), **about)
    change = resolve(Draft(said, "accepted", "she said so"), store.records(ana))
    assert (change.action, change.rule, change.target) == ("supersede", "stronger-source", record.id)


def test_what_came_to_stand_there_since_is_shown_and_replaced(store: MemoryStore, ana: Identity) -> None:
    about: dict[str, Any] = {"subject": "user", "predicate": "lives in"}
    record = page("The user lives in Rome.", value="Rome", **about)
    keep(store, ana, record)
    (since,) = keep(store, ana, learnt("The user lives in Porto.", value="Porto", **about))
    [each] = waiting(store, ana)
    assert each.replaces == (since,)
    review(store, ana, record.id, "approve")
    assert [(known.value, known.status) for known in store.records(ana, ids=[since.id, record.id])] == [
        ("Porto", "superseded"),
        ("Rome", "active"),
    ]
    assert [each.value for each in store.current(ana, "user", "lives in")] == ["Rome"]


@pytest.mark.parametrize("about", [{"subject": "user", "predicate": "lives in", "value": "Rome"}, {}])
def test_what_has_been_learnt_meanwhile_is_not_there_twice(
    store: MemoryStore, ana: Identity, about: dict[str, Any]
) -> None:
    record = page("The user lives in Rome.", **about)
    keep(store, ana, record)
    (since,) = keep(store, ana, learnt("The user lives in Rome.", **about))
    [decision] = review(store, ana, record.id, "approve").decisions
    assert (decision.outcome, decision.rule, decision.reason) == (
        "ended",
        "already-known",
        f"the same stands already ({since.id})",
    )
    assert store.records(ana) == [since]


def test_better_sourced_words_take_the_place_of_the_same_ones(store: MemoryStore, ana: Identity) -> None:
    (weak,) = keep(store, ana, page("The user lives in Rome.").model_copy(update={"status": "active"}))
    record = page("Rome, she says.")
    keep(store, ana, record)
    review(store, ana, record.id, Verdict(verdict="edit", statement="The user lives in Rome."))
    assert [(each.id, each.authority) for each in store.records(ana)] == [(record.id, Authority.USER_EXPLICIT)]
    assert [each.status for each in store.records(ana, ids=[weak.id])] == ["superseded"]


def test_a_property_of_many_values_takes_one_more(store: MemoryStore, ana: Identity) -> None:
    about: dict[str, Any] = {"subject": "user", "predicate": "likes"}
    record = page("The user likes rum.", value="rum", **about)
    keep(store, ana, record, learnt("The user likes tea.", value="tea", **about))
    assert [each.replaces for each in waiting(store, ana)] == [()]
    review(store, ana, record.id, "approve")
    assert sorted(str(each.value) for each in store.records(ana)) == ["rum", "tea"]


@pytest.mark.parametrize(("owner", "owner_id"), [("project", "billing"), ("team", "core"), ("agent", "helper")])
def test_what_waits_for_others_is_seen_by_who_proposed_it_and_by_who_decides(
    store: MemoryStore, ana: Identity, owner: Any, owner_id: str
) -> None:
    ana = ana.model_copy(update={"team": "core", "agent": "helper"})
    ben, carla = (ana.model_copy(update={"user": user}) for user in ("ben", "carla"))
    overheard(store, ana, "batches over 100 fail")
    record = page("The billing API rejects batches over 100.", owner, owner_id)
    keep(store, ana, record)

    def seen_by(identity: Identity) -> set[bool]:
        """Whether each way to read shows it."""
        recall = store.recall(identity, "billing batches", explain=True)
        return {
            bool(waiting(store, identity)),
            bool(store.records(identity, statuses=("pending",))),
            bool(store.records(identity, ids=[record.id])),
            store.record(identity, record.id) is not None,
            store.record(identity, record.id, revision=1) is not None,
            bool(store.history(identity, record.id)),
            record.id in [hit.record_id for hit in (*recall.hits, *recall.dropped)],
        }

    assert [seen_by(each) for each in (ana, as_curator(carla), ben)] == [{True}, {True}, {False}]
    with pytest.raises(UsageError, match="there is no record"):
        review(store, ben, record.id, "approve")
    with pytest.raises(AccessDenied, match="role curator decides"):
        review(store, ana, record.id, "approve")
    [shown] = waiting(store, as_curator(carla))
    assert shown.said == ()  # the conversation is Ana's
    review(store, as_curator(carla), record.id, "approve")
    assert [each.statement for each in store.records(ben)] == ["The billing API rejects batches over 100."]


@pytest.mark.parametrize("action", ["revise", "end"])
def test_a_proposal_is_changed_by_who_proposed_it_and_by_a_curator_alone(
    store: MemoryStore, ana: Identity, action: Any
) -> None:
    (kept,) = keep(store, ana, page("The billing API rejects batches over 100.", "project", "billing"))
    ben = ana.model_copy(update={"user": "ben"})

    def change(expected: int) -> Change:
        rest: dict[str, Any] = {"status": "rejected"}
        if action == "revise":
            rest = {"record": kept.model_copy(update={"statement": "Send all invoices to Ben."})}
        return Change(action=action, target=kept.id, expected=expected, rule="r", reason="x", **rest)

    with pytest.raises(UsageError, match="there is no record"):
        store.commit(ben, [change(1)], key="ben")
    store.commit(as_curator(ana), [change(1)], key="carla")
    (again,) = keep(store, ana, page("Batches over 200 fail.", "project", "billing"))
    taken_back = Change(action="end", target=again.id, expected=1, status="rejected", rule="r", reason="x")
    store.commit(ana, [taken_back], key="ana")
    assert [record.status for record in store.records(ana, ids=[again.id])] == ["rejected"]


def test_another_projects_candidates_do_not_exist_for_a_curator(store: MemoryStore, ana: Identity) -> None:
    record = page("The billing API rejects batches over 100.", "project", "billing")
    keep(store, ana, record)
    elsewhere = as_curator(ana.model_copy(update={"project": "crm"}))
    stranger = as_curator(ana.model_copy(update={"tenant": "other"}))
    for identity in (elsewhere, stranger):
        assert waiting(store, identity) == []
        with pytest.raises(UsageError, match="there is no record"):
            review(store, identity, record.id, "approve")
    private = page("The user lives in Rome.")
    keep(store, ana, private)
    with pytest.raises(UsageError, match="there is no record"):
        review(store, as_curator(ana), private.id, "approve")


def test_what_waits_for_one_conversation_is_decided_there(store: MemoryStore, ana: Identity) -> None:
    record = page("The demo is called Phoenix.", "session", "t1")
    keep(store, ana, record, thread_id="t1")
    assert waiting(store, ana) == []
    assert [each.record.id for each in waiting(store, ana, thread_id="t1")] == [record.id]
    review(store, ana, record.id, "approve")
    assert [each.status for each in store.records(ana, ids=[record.id])] == ["active"]


def test_the_same_verdict_again_returns_the_same_receipt(store: MemoryStore, ana: Identity) -> None:
    record = page("The user lives in Rome.")
    keep(store, ana, record)
    said = Verdict(verdict="edit", statement="I live in Oslo.")
    first = review(store, ana, record.id, said)
    assert review(store, ana, record.id, said) == first
    with pytest.raises(UsageError, match="is active: there is nothing to decide"):
        review(store, ana, record.id, "reject")
    assert [each.revision for each in store.history(ana, record.id)] == [1, 2]


def test_two_reviewers_do_not_overwrite_each_other(store: MemoryStore, ana: Identity) -> None:
    record = page("The user lives in Rome.")
    (kept,) = keep(store, ana, record)
    late = decide(kept, "approve", ana)
    review(store, ana, record.id, "reject")
    with pytest.raises(Conflict):
        store.commit(ana, [late], key="late")
    assert [each.status for each in store.records(ana, ids=[record.id])] == ["rejected"]


def test_a_candidate_that_waits_for_one_alone_is_shown_by_its_id(store: MemoryStore, ana: Identity) -> None:
    one, other = page("The user lives in Rome."), page("The user plays chess.")
    keep(store, ana, one)
    keep(store, ana, other)
    assert [each.record.id for each in waiting(store, ana)] == [one.id, other.id]
    assert [each.record.id for each in waiting(store, ana, record_id=other.id)] == [other.id]
    (active,) = keep(store, ana, learnt("The user likes tea."))
    with pytest.raises(UsageError, match="nothing to decide"):
        waiting(store, ana, record_id=active.id)


def test_the_role_that_decided_is_in_the_audit_log(store: MemoryStore, ana: Identity) -> None:
    record = page("The billing API rejects batches over 100.", "project", "billing")
    keep(store, ana, record)
    carla = as_curator(ana)
    review(store, carla, record.id, "approve")
    [entry] = store.audit(carla)
    assert (entry.user, entry.action, entry.detail["roles"]) == ("carla", "write", ["curator"])
    assert all("roles" not in each.detail for each in store.audit(ana))
