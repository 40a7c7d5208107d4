"""What every backend promises about records: commit, revisions, exact reads, receipts."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from support.records import NOON, BrokenEmbeddings, Clock, create, keep, learnt, said_by, write

from everthread import Authority, Identity, Record, Scope
from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, Coverage, Decision, Governance, Provenance, Relation

TEA, COFFEE = "Ana drinks tea in the morning", "Ana drinks coffee in the morning"


def change(action: Any, target: Record, record: Record | None = None, **fields: Any) -> Change:
    given: dict[str, Any] = {"expected": target.revision, "rule": "test", "reason": "the test says so"}
    return Change(action=action, target=target.id, record=record, **(given | fields))


# --- create


def test_a_record_comes_back_whole(store: MemoryStore, ana: Identity) -> None:
    record = learnt(
        '安娜 likes tea 🍵 ‏مرحبا with "quotes" and\nlines',
        content_type="preference",
        concerns="decision",
        subject="Ana",
        predicate="drink",
        value="tea",
        entities=("Ana",),
        tags=("drinks",),
        importance=0.9,
        valid_from=datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        expires_at=datetime(2999, 1, 1, tzinfo=UTC),
        confidence=0.7,
        governance=Governance(sensitivity="personal"),
    )
    (stored,) = keep(store, ana, record)
    assert stored == record.model_copy(update={"recorded_at": stored.recorded_at})
    assert stored.valid_from is not None
    assert stored.valid_from.isoformat() == "2020-01-01T00:00:00.000001+05:45"


def test_a_summary_keeps_what_it_covers(store: MemoryStore, ana: Identity) -> None:
    covers = Coverage(thread_id="t1", first_message="m1", last_message="m9", generator="rules/1")
    (stored,) = keep(store, ana, learnt("They planned a trip", content_type="summary", covers=covers))
    assert stored.covers == covers


def test_the_store_says_when_a_record_was_written(store: MemoryStore, ana: Identity) -> None:
    before = datetime.now(UTC)
    (stored,) = keep(store, ana, learnt(TEA, recorded_at=datetime(1999, 1, 1, tzinfo=UTC)))
    assert before <= stored.recorded_at <= datetime.now(UTC)


def test_a_receipt_says_what_was_decided(store: MemoryStore, ana: Identity) -> None:
    record = learnt(TEA)
    refused = Change(action="refuse", rule="secret", reason="it looks like a password", evidence=("m2",))
    receipt = store.commit(ana, [create(record), refused], key="turn-1", thread_id="t1")
    assert receipt.decisions == (
        Decision(
            outcome="created",
            rule="new",
            reason="nothing like it was known",
            record_id=record.id,
            revision=1,
            evidence=("m1",),
        ),
        Decision(outcome="refused", rule="secret", reason="it looks like a password", evidence=("m2",)),
    )
    assert (receipt.key, receipt.thread_id) == ("turn-1", "t1")
    assert store.receipt(ana, receipt.id) == receipt
    assert [found.id for found in store.records(ana)] == [record.id]


def test_the_same_key_writes_once(store: MemoryStore, ana: Identity) -> None:
    first = store.commit(ana, [create(learnt(TEA))], key="turn-1")
    assert store.commit(ana, [create(learnt(COFFEE))], key="turn-1") == first
    assert [found.statement for found in store.records(ana)] == [TEA]


def test_a_key_belongs_to_one_user(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    receipts = [
        store.commit(identity, [create(learnt(TEA, owner_id=identity.user))], key="turn-1")
        for identity in (ana, ben, stranger)
    ]
    assert len({receipt.id for receipt in receipts}) == 3
    assert store.receipt(ben, receipts[0].id) is None
    assert store.receipt(stranger, receipts[0].id) is None


def test_a_commit_without_a_key_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="key"):
        store.commit(ana, [create(learnt(TEA))], key=" ")


def test_an_empty_commit_leaves_a_receipt(store: MemoryStore, ana: Identity) -> None:
    receipt = store.commit(ana, [], key="turn-1")
    assert receipt.decisions == ()
    assert store.receipt(ana, receipt.id) == receipt


def test_an_id_is_used_once(store: MemoryStore, ana: Identity) -> None:
    record = learnt(TEA)
    write(store, ana, create(record))
    with pytest.raises(UsageError, match=record.id):
        write(store, ana, create(record))


@pytest.mark.parametrize("status", ["superseded", "rejected", "contested"])
def test_a_new_record_is_active_or_pending(store: MemoryStore, ana: Identity, status: str) -> None:
    with pytest.raises(UsageError, match=status):
        write(store, ana, create(learnt(TEA, status=status)))


def test_a_pending_record_waits(store: MemoryStore, ana: Identity) -> None:
    record = learnt(TEA, status="pending", subject="ana", predicate="drink", value="tea")
    (decision,) = write(store, ana, create(record))
    assert (decision.outcome, decision.record_id) == ("pending", record.id)
    assert store.records(ana) == []
    assert store.current(ana, "ana", "drink") == []
    assert store.recall(ana, "tea").hits == ()
    assert [found.id for found in store.records(ana, statuses=["pending"])] == [record.id]


def test_retention_becomes_an_expiry(store: MemoryStore, ana: Identity) -> None:
    (stored,) = keep(store, ana, learnt(TEA, governance=Governance(retention_days=30)))
    assert stored.expires_at == stored.recorded_at + timedelta(days=30)


def test_text_with_a_lone_surrogate_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="surrogate"):
        write(store, ana, create(learnt(TEA, subject="\ud800", predicate="drink")))
    assert store.records(ana) == []


# --- changes


def test_a_new_value_supersedes_and_keeps_history(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA, valid_from=NOON - timedelta(days=9)))
    coffee = learnt(COFFEE, valid_from=NOON)
    (decision,) = write(store, ana, change("supersede", tea, coffee, evidence=("m7",)))
    assert (decision.outcome, decision.record_id, decision.target) == ("superseded", coffee.id, tea.id)
    first, last = store.history(ana, tea.id)
    assert first == tea
    assert (last.revision, last.status, last.valid_to) == (2, "superseded", NOON)
    assert last.ended_at == last.recorded_at
    new = store.record(ana, coffee.id)
    assert new is not None
    reason = "the test says so"
    assert new.relations == (Relation(kind="supersedes", target=tea.id, reason=reason, evidence=("m7",)),)
    assert store.records(ana) == [new]


def test_a_known_end_of_validity_is_kept(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA, valid_to=NOON - timedelta(days=1)))
    write(store, ana, change("supersede", tea, learnt(COFFEE, valid_from=NOON)))
    assert store.history(ana, tea.id)[-1].valid_to == NOON - timedelta(days=1)


def test_an_exception_narrows_and_both_stand(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    at_work = Scope(owner="user", owner_id="ana", within=Within(project="billing"))
    (decision,) = write(store, ana, change("narrow", tea, learnt(COFFEE, scope=at_work)))
    assert decision.outcome == "narrowed"
    assert store.history(ana, tea.id) == [tea]
    assert {found.statement: found.status for found in store.records(ana)} == {TEA: "active", COFFEE: "active"}


def test_what_cannot_both_be_true_is_contested(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    coffee = learnt(COFFEE)
    (decision,) = write(store, ana, change("contest", tea, coffee))
    assert decision.outcome == "contested"
    found = {record.id: record for record in store.records(ana)}
    assert {record.status for record in found.values()} == {"contested"}
    assert [(r.kind, r.target) for r in found[coffee.id].relations] == [("contradicts", tea.id)]
    assert [(r.kind, r.target) for r in found[tea.id].relations] == [("contradicts", coffee.id)]


def test_a_confirmation_adds_evidence_and_no_authority(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA, authority="inferred", confidence=0.5))
    source = said_by("ana", "t2", "m5")
    (decision,) = write(store, ana, change("confirm", tea, source=source))
    assert (decision.outcome, decision.revision) == ("confirmed", 2)
    confirmed = store.record(ana, tea.id)
    assert confirmed is not None
    assert confirmed.confirmed_by == (source,)
    assert (confirmed.authority, confirmed.confidence) == (Authority.INFERRED, 0.5)


def test_the_same_source_confirms_once(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    (own,) = write(store, ana, change("confirm", tea, source=tea.provenance))
    assert (own.outcome, own.revision) == ("confirmed", 1)
    assert store.history(ana, tea.id) == [tea]


def test_a_revision_replaces_what_is_said(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    revised = tea.model_copy(update={"statement": "Ana drinks green tea in the morning"})
    (decision,) = write(store, ana, change("revise", tea, revised))
    assert (decision.outcome, decision.record_id, decision.revision) == ("revised", tea.id, 2)
    assert decision.target is None
    assert [found.statement for found in store.history(ana, tea.id)] == [TEA, revised.statement]
    assert store.recall(ana, "green").hits[0].revision == 2


@pytest.mark.parametrize("status", ["expired", "archived", "rejected"])
def test_an_ended_record_is_out_of_use(store: MemoryStore, ana: Identity, status: str) -> None:
    (tea,) = keep(store, ana, learnt(TEA, subject="ana", predicate="drink", value="tea"))
    (decision,) = write(store, ana, change("end", tea, status=status))
    assert decision.outcome == "ended"
    assert (store.records(ana), store.current(ana, "ana", "drink")) == ([], [])
    assert store.recall(ana, "tea").hits == ()
    ended = store.record(ana, tea.id)
    assert ended is not None
    assert (ended.status, ended.ended_at) == (status, ended.recorded_at)


def test_an_archived_record_can_come_back(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    write(store, ana, change("end", tea, status="archived"))
    archived = store.history(ana, tea.id)[-1]
    write(store, ana, change("revise", archived, archived.model_copy(update={"status": "active", "ended_at": None})))
    assert [hit.record_id for hit in store.recall(ana, "tea").hits] == [tea.id]


def test_what_is_out_of_use_cannot_be_superseded(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    write(store, ana, change("end", tea, status="archived"))
    with pytest.raises(UsageError, match="archived"):
        write(store, ana, change("supersede", tea.model_copy(update={"revision": 2}), learnt(COFFEE)))


def test_a_pending_successor_leaves_its_target_until_it_is_approved(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    (decision,) = write(store, ana, change("supersede", tea, learnt(COFFEE, status="pending")))
    assert (decision.outcome, decision.target) == ("pending", tea.id)
    assert store.history(ana, tea.id) == [tea]
    waiting = store.records(ana, statuses=["pending"])[0]
    write(store, ana, change("revise", waiting, waiting.model_copy(update={"status": "active"})))
    assert store.history(ana, tea.id)[-1].status == "superseded"
    assert [found.id for found in store.records(ana)] == [waiting.id]


# --- compare and set


def test_a_decision_on_an_old_revision_is_a_conflict(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    write(store, ana, change("confirm", tea, source=said_by("ana", "t2")))
    with pytest.raises(Conflict) as conflict:
        write(store, ana, create(learnt("It rained")), change("supersede", tea, learnt(COFFEE)))
    assert conflict.value.winner == 2
    assert [found.statement for found in store.records(ana)] == [TEA]


def test_two_changes_of_one_commit_may_rest_on_the_same_revision(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    sources = (said_by("ana", "t2"), said_by("ana", "t3"))
    write(store, ana, *(change("confirm", tea, source=source) for source in sources))
    confirmed = store.record(ana, tea.id)
    assert confirmed is not None
    assert (confirmed.revision, confirmed.confirmed_by) == (3, sources)


def test_of_many_writers_one_wins(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    outcomes: list[str] = []

    def supersede(number: int) -> None:
        try:
            write(
                store, ana, change("supersede", tea, learnt(f"{COFFEE}, said writer {number}")), key=f"writer-{number}"
            )
            outcomes.append("won")
        except Conflict as conflict:
            outcomes.append(f"lost to revision {conflict.winner}")

    writers = [threading.Thread(target=supersede, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes) == ["lost to revision 2"] * 7 + ["won"]
    assert len(store.records(ana)) == 1
    assert len(store.history(ana, tea.id)) == 2


def test_a_failed_commit_leaves_nothing(store: MemoryStore, ana: Identity) -> None:
    before = learnt("It rained on Monday")
    with pytest.raises(UsageError, match="mem_missing"):
        store.commit(
            ana,
            [
                create(before),
                Change(action="end", target="mem_missing", expected=1, status="archived", rule="r", reason="x"),
            ],
            key="turn-1",
        )
    assert store.record(ana, before.id) is None
    assert store.recall(ana, "Monday").hits == ()
    # the key was not used up
    assert store.commit(ana, [create(before)], key="turn-1").decisions[0].outcome == "created"


# --- permission


def test_a_user_writes_only_its_own_memory(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(AccessDenied, match="ben"):
        write(store, ana, create(learnt(TEA)), create(learnt("Ben drinks milk", owner_id="ben")))
    assert store.records(ana) == []


def test_another_users_record_does_not_exist_for_a_change(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    for identity in (ben, Identity(tenant="other", user="ana")):
        with pytest.raises(UsageError, match="there is no record"):
            write(store, identity, change("end", tea, status="archived"))


def test_a_member_states_for_a_project_and_infers_by_review(store: MemoryStore, ana: Identity) -> None:
    write(store, ana, create(learnt("The project runs on PostgreSQL", "project", "billing")))
    guess = learnt("The project dislikes ORMs", "project", "billing", authority="inferred")
    with pytest.raises(AccessDenied, match="review"):
        write(store, ana, create(guess))
    (decision,) = write(store, ana, create(guess.model_copy(update={"status": "pending"})))
    assert decision.outcome == "pending"


def test_wider_memory_is_written_by_a_curator(store: MemoryStore) -> None:
    member = Identity(tenant="acme", user="ana", team="core")
    curator = Identity(tenant="acme", user="cleo", team="core", roles=frozenset({"curator"}))
    norm = learnt("We review every change", "team", "core")
    with pytest.raises(AccessDenied, match="curator"):
        write(store, member, create(norm))
    write(store, member, create(norm.model_copy(update={"status": "pending"})))
    waiting = store.records(curator, statuses=["pending"])[0]
    approved = waiting.model_copy(update={"status": "active"})
    with pytest.raises(AccessDenied):
        write(store, member, change("revise", waiting, approved))
    write(store, curator, change("revise", waiting, approved))
    assert [found.statement for found in store.records(member)] == [norm.statement]


def test_a_session_is_written_by_its_own_turns(store: MemoryStore, ana: Identity) -> None:
    note = learnt("We call the report R", "session", "t1")
    with pytest.raises(AccessDenied, match="t1"):
        write(store, ana, create(note), thread_id="t2")
    write(store, ana, create(note), thread_id="t1")
    assert [found.id for found in store.records(ana, thread_id="t1")] == [note.id]


# --- exact reads


def test_a_revision_is_read_by_number_and_by_time(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    write(store, ana, change("end", tea, status="archived"))
    first, last = store.history(ana, tea.id)
    assert store.record(ana, tea.id) == last
    assert store.record(ana, tea.id, revision=1) == first
    assert store.record(ana, tea.id, revision=9) is None
    assert store.record(ana, tea.id, as_of=first.recorded_at) == first
    assert store.record(ana, tea.id, as_of=last.recorded_at) == last
    assert store.record(ana, tea.id, as_of=first.recorded_at - timedelta(microseconds=1)) is None
    with pytest.raises(UsageError, match="not both"):
        store.record(ana, tea.id, revision=1, as_of=NOON)
    with pytest.raises(UsageError, match="time zone"):
        store.record(ana, tea.id, as_of=datetime(2026, 1, 1))


def test_an_unknown_record_is_none(store: MemoryStore, ana: Identity) -> None:
    assert store.record(ana, "mem_missing") is None
    assert store.history(ana, "mem_missing") == []
    assert store.receipt(ana, "rcp_missing") is None


def test_records_come_newest_first_or_as_asked(store: MemoryStore, ana: Identity) -> None:
    tea, coffee, rain = (keep(store, ana, learnt(text))[0] for text in (TEA, COFFEE, "It rained"))
    assert store.records(ana) == [rain, coffee, tea]
    assert store.records(ana, limit=2) == [rain, coffee]
    assert store.records(ana, ids=[tea.id, "mem_missing", rain.id]) == [tea, rain]


def test_records_by_id_come_whatever_their_status(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    write(store, ana, change("end", tea, status="archived"))
    assert [found.status for found in store.records(ana, ids=[tea.id])] == ["archived"]
    assert store.records(ana, ids=[tea.id], as_of=tea.recorded_at) == [tea]


def test_the_past_is_read_as_it_stood(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA, subject="ana", predicate="drink", value="tea"))
    (coffee,) = (learnt(COFFEE, subject="ana", predicate="drink", value="coffee"),)
    write(store, ana, change("supersede", tea, coffee))
    then = tea.recorded_at
    assert store.records(ana, as_of=then) == [tea]
    assert store.current(ana, "ana", "drink", as_of=then) == [tea]
    assert [found.id for found in store.current(ana, "ana", "drink")] == [coffee.id]
    assert store.records(ana, as_of=then - timedelta(seconds=1)) == []


def test_what_stands_is_read_by_key_narrowest_first(store: MemoryStore, ana: Identity) -> None:
    def rule(text: str, owner: str, owner_id: str) -> Record:
        return learnt(text, owner, owner_id, subject="Reports", predicate="Language", value=text)

    mine, project = keep(store, ana, rule("Czech", "user", "ana"), rule("English", "project", "billing"))
    (session,) = keep(store, ana, rule("German", "session", "t1"), thread_id="t1")
    assert store.current(ana, "reports", "LANGUAGE") == [mine, project]
    found = store.current(ana, "reports", "language", thread_id="t1")
    assert [record.value for record in found] == ["German", "Czech", "English"]
    assert session.value == "German"
    assert store.current(ana, "reports", "language", thread_id="t2") == [mine, project]


def test_what_does_not_hold_now_does_not_stand(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt(TEA, subject="ana", predicate="drink", valid_from=NOON, valid_to=NOON + timedelta(days=1)))
    days = [NOON + timedelta(days=n) for n in (-1, 0, 1)]
    assert [len(store.current(ana, "ana", "drink", now=day)) for day in days] == [0, 1, 0]


def test_a_citation_is_counted_and_is_no_revision(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA))
    store.cite(ana, [tea.id, tea.id, "mem_missing"])
    store.cite(ana, [tea.id])
    store.cite(ben, [tea.id])
    cited = store.record(ana, tea.id)
    assert cited is not None
    assert (cited.revision, cited.usage_count) == (1, 2)
    assert cited.last_used_at is not None
    write(store, ana, change("confirm", cited, source=said_by("ana", "t2")))
    confirmed = store.record(ana, tea.id)
    assert confirmed is not None
    assert (confirmed.revision, confirmed.usage_count) == (2, 2)


def test_system_time_never_runs_backwards(reopen: Any, ana: Identity) -> None:
    clock = Clock()
    store: MemoryStore = reopen(embedder="none", clock=clock)
    (tea,) = keep(store, ana, learnt(TEA))
    clock.now = NOON - timedelta(days=1)
    write(store, ana, change("confirm", tea, source=said_by("ana", "t2")))
    assert [found.recorded_at for found in store.history(ana, tea.id)] == [NOON, NOON + timedelta(microseconds=1)]


def test_records_survive_a_restart(reopen: Any, ana: Identity) -> None:
    store = reopen()
    (tea,) = keep(store, ana, learnt(TEA))
    store.close()
    again = reopen()
    assert again.records(ana) == [tea]
    assert [hit.record_id for hit in again.recall(ana, "what does Ana drink?").hits] == [tea.id]


# --- embedding


def test_a_failing_embedder_holds_up_no_write(reopen: Any, ana: Identity) -> None:
    embeddings = BrokenEmbeddings()
    store: MemoryStore = reopen(embedder=embeddings)
    (cat,) = keep(store, ana, learnt("Ana has a kitten"))
    assert [hit.record_id for hit in store.recall(ana, "kitten").hits] == [cat.id]
    assert {finding.check: finding.ok for finding in store.doctor()}["vectors"] is False
    embeddings.broken = False
    assert store.jobs.drain(store.handlers()) == 1
    assert {finding.check: finding.ok for finding in store.doctor()}["vectors"] is True
    (hit,) = store.recall(ana, "felines").hits
    assert (hit.record_id, hit.signals.keyword, hit.signals.semantic) == (cat.id, 0.0, 1.0)


def test_an_artifact_is_cited_with_its_revision(store: MemoryStore) -> None:
    curator = Identity(tenant="acme", user="cleo", organization="acme", roles=frozenset({"curator"}))
    source = Provenance(
        source="artifact", artifact="handbook", artifact_revision="7", extracted_by="cleo", observed_at=NOON
    )
    policy = learnt("Invoices are kept for ten years", "organization", "acme", authority="policy", provenance=source)
    assert keep(store, curator, policy)[0].provenance == source


def test_one_job_embeds_what_many_commits_left(reopen: Any, ana: Identity) -> None:
    embeddings = BrokenEmbeddings()
    store: MemoryStore = reopen(embedder=embeddings)
    for number in range(5):
        keep(store, ana, learnt(f"Ana has {number} kittens"))
    assert store.jobs.waiting(["embed"]) == 1
    assert store.jobs.drain(store.handlers()) == 0
    embeddings.broken = False
    assert store.jobs.drain(store.handlers(), now=datetime.now(UTC) + timedelta(minutes=1)) == 1
    assert all(finding.ok for finding in store.doctor())
    assert len(store.recall(ana, "felines").hits) == 5


def test_contesting_what_waits_for_review_does_not_approve_it(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt(TEA, status="pending"))
    coffee = learnt(COFFEE)
    write(store, ana, change("contest", tea, coffee))
    assert [(found.id, found.status) for found in store.records(ana)] == [(coffee.id, "active")]
    waiting = store.records(ana, statuses=["pending"])[0]
    write(store, ana, change("revise", waiting, waiting.model_copy(update={"status": "active"})))
    assert {found.id: found.status for found in store.records(ana)} == {tea.id: "contested", coffee.id: "contested"}
