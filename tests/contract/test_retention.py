"""What is kept for a time only: records that run out, transcripts, and the feed of events."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON, Clock, keep, learnt

from everthread import Evidence, Identity
from everthread.errors import UsageError
from everthread.nodes.consolidate import Expire, Merge, job_handlers
from everthread.nodes.node import runtime_for
from everthread.stores import MemoryStore
from everthread.stores.record import Governance

DAY = timedelta(days=1)


def said(text: str, days_ago: float, thread_id: str = "t1") -> Evidence:
    at = NOON - DAY * days_ago
    return Evidence(thread_id=thread_id, message_id=f"m{days_ago}", role="user", text=text, at=at, source="user")


def statuses(store: MemoryStore, identity: Identity, *ids: str) -> list[str]:
    return [record.status for record in store.records(identity, ids=ids)]


# ---------------------------------------------------------------------------------------------------------- records


def test_what_has_run_out_is_found_in_every_scope_that_the_identity_reads(store: MemoryStore) -> None:
    ana = Identity(tenant="acme", user="ana", agent="helper", project="billing", roles=frozenset({"curator"}))
    over: dict[str, Any] = {"expires_at": NOON}
    written = keep(
        store,
        ana,
        learnt("Ana is in Oslo", **over),
        learnt("The helper is new", "agent", "helper", **over),
        learnt("The build is red", "project", "billing", **over),
        learnt("Ana may move", status="pending", **over),
        learnt("Ana was in Rome", valid_from=NOON - DAY, valid_to=NOON),
        learnt("Ana likes tea"),
        learnt("Ana is away", expires_at=NOON + DAY),
    )
    member = ana.model_copy(update={"roles": frozenset()})
    assert {record.id for record in store.run_out(member, now=NOON)} == {record.id for record in written[:5]}
    assert store.run_out(member, now=NOON - DAY) == []
    assert store.run_out(Identity(tenant="acme", user="ben"), now=NOON) == []
    assert store.run_out(Identity(tenant="other", user="ana", project="billing"), now=NOON) == []


def test_what_only_others_may_write_is_left_to_them(store: MemoryStore, ana: Identity) -> None:
    reserved = learnt(
        "The build is red", "project", "billing", expires_at=NOON, governance=Governance(writable_by=("ana",))
    )
    keep(store, ana, reserved)
    assert store.run_out(Identity(tenant="acme", user="ben", project="billing"), now=NOON) == []
    assert [record.id for record in store.run_out(ana, now=NOON)] == [reserved.id]


def test_the_background_pass_marks_as_expired_what_ran_out_in_shared_scopes_too(
    store: MemoryStore, ana: Identity
) -> None:
    curator = ana.model_copy(update={"roles": frozenset({"curator"})})
    mine = learnt("Ana is in Oslo", expires_at=NOON)
    ours = learnt("The build is red", "project", "billing", expires_at=NOON, governance=Governance(retention_days=9))
    tea = learnt("Ana likes tea")
    keep(store, curator, mine, ours, tea)
    colleague = Identity(tenant="acme", user="ben", project="billing")
    Expire()({}, runtime_for(colleague, store))
    assert statuses(store, ana, mine.id, ours.id, tea.id) == ["active", "expired", "active"]
    Expire()({}, runtime_for(ana, store))
    assert statuses(store, ana, mine.id, ours.id, tea.id) == ["expired", "expired", "active"]
    assert Expire()({}, runtime_for(ana, store)) == {}, "there is nothing left to do"


def test_the_background_job_reaches_the_project_that_it_names_and_no_other_tenant(
    store: MemoryStore, ana: Identity, stranger: Identity
) -> None:
    ours = learnt("The build is red", "project", "billing", expires_at=NOON)
    theirs = learnt("Their build is red", "project", "billing", expires_at=NOON)
    keep(store, ana, ours)
    keep(store, stranger, theirs)
    store.jobs.enqueue(ana, "consolidate", {})
    store.jobs.drain(job_handlers(store))
    assert statuses(store, ana, ours.id) == ["active"], "the job named no project"
    named = {"identity": {"tenant": "other", "user": "root", "project": "billing", "roles": ["admin"]}}
    store.jobs.enqueue(ana, "consolidate", named)
    assert store.jobs.drain(job_handlers(store)) == 1
    assert (statuses(store, ana, ours.id), statuses(store, stranger, theirs.id)) == (["expired"], ["active"])
    assert [entry.user for entry in store.audit(ana, record_id=ours.id)] == ["ana", "ana"]


def test_without_consent_records_run_out_and_are_not_merged(store: MemoryStore, ana: Identity) -> None:
    same = [learnt("Ana likes tea"), learnt("Ana likes tea"), learnt("Ana is in Oslo", expires_at=NOON)]
    keep(store, ana, *same)
    store.set_consent(ana, "off")
    Expire()({}, runtime_for(ana, store))
    assert Merge()({}, runtime_for(ana, store)) == {}
    assert statuses(store, ana, *(record.id for record in same)) == ["active", "active", "expired"]


# ------------------------------------------------------------------------------------------------------- transcripts


def test_what_was_said_long_ago_goes_and_does_not_come_back(
    reopen: Callable[..., MemoryStore], ana: Identity, ben: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    store = reopen(embedder="none", clock=Clock())
    lines = [said("the old Xylophon", 400), said("the new trumpet", 3)]
    store.transcripts.append(ana, lines)
    store.transcripts.append(ben, [said("the old drum", 400, "t2")])
    assert store.expire_transcripts(ana, older_than=DAY * 365) == 1
    assert [line.text for line in store.transcripts.read(ana, "t1")] == ["the new trumpet"]
    assert [line.text for line in store.transcripts.read(ben, "t2")] == ["the old drum"]
    assert store.recall(ana, "Xylophon", sources={"evidence"}).hits == ()
    assert (store.transcripts.append(ana, lines), store.expire_transcripts(ana, older_than=DAY * 365)) == (0, 0)
    assert [(entry.action, entry.detail) for entry in store.audit(ana)] == [
        ("expire", {"messages": 1, "threads": ["t1"], "before": (NOON - DAY * 365).isoformat()})
    ]
    assert all(finding.ok for finding in store.doctor())


def test_an_admin_cleans_the_transcripts_of_the_tenant(
    reopen: Callable[..., MemoryStore], ana: Identity, ben: Identity, stranger: Identity
) -> None:
    store = reopen(embedder="none", clock=Clock())
    for thread, user in (("t1", ana), ("t2", ben), ("t3", stranger)):
        store.transcripts.append(user, [said("long ago", 400, thread)])
    admin = Identity(tenant="acme", user="root", roles=frozenset({"admin"}))
    assert store.expire_transcripts(admin, older_than=DAY * 365) == 2
    assert len(store.transcripts.read(stranger, "t3")) == 1


def test_what_was_learnt_from_it_stays(reopen: Callable[..., MemoryStore], ana: Identity) -> None:
    store = reopen(embedder="none", clock=Clock())
    store.transcripts.append(ana, [said("I like tea", 400)])
    (tea,) = keep(store, ana, learnt("Ana likes tea"))
    store.expire_transcripts(ana, older_than=DAY)
    assert store.records(ana) == [tea]


def test_a_job_cleans_transcripts_in_the_background(reopen: Callable[..., MemoryStore], ana: Identity) -> None:
    store = reopen(embedder="none", clock=Clock())
    store.transcripts.append(ana, [said("long ago", 400), said("now", 1)])
    store.jobs.enqueue(ana, "expire-transcripts", {"days": 365})
    assert store.jobs.drain(store.handlers()) == 1
    assert [line.text for line in store.transcripts.read(ana, "t1")] == ["now"]


# ------------------------------------------------------------------------------------------------------------ events


def test_old_events_go_and_a_reader_that_has_not_come_that_far_is_told(
    reopen: Callable[..., MemoryStore], ana: Identity
) -> None:
    clock = Clock()
    store = reopen(embedder="none", clock=clock)
    for name in ("tea", "rum", "milk"):
        keep(store, ana, learnt(f"Ana likes {name}"))
    first, second, third = store.events(ana)
    clock.now += DAY * 40
    keep(store, ana, learnt("Ana likes water"))
    assert store.prune_events(DAY * 30) == 3
    (left,) = store.events(ana)
    assert store.events(ana, after=third.cursor) == [left]
    assert left.cursor > third.cursor
    with pytest.raises(UsageError, match=f"after {second.cursor} is not kept any more.*go on after {third.cursor}"):
        store.events(ana, after=second.cursor)
    assert (store.prune_events(DAY * 30), first.cursor < second.cursor) == (0, True)


def test_a_time_that_would_take_everything_is_refused(store: MemoryStore, ana: Identity) -> None:
    for nothing in (timedelta(0), -DAY):
        with pytest.raises(UsageError, match="must be more than nothing"):
            store.expire_transcripts(ana, nothing)
        with pytest.raises(UsageError, match="must be more than nothing"):
            store.prune_events(nothing)
