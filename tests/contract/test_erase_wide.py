"""Erasing by message, a whole user, a whole tenant; counting before; what a source message leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from support.records import NOON, create, keep, learnt, said_by, write
from support.threads import Checkpoints

from everthread import Evidence, Identity, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, ErasureReceipt, Selection

SECRET = "Ana keeps the Xylophon-4711 under the carpet"
ADMIN = Identity(tenant="acme", user="root", roles=frozenset({"admin"}))
ALL_OF_ANA = Selection(scope=Scope(owner="user", owner_id="ana"))


def said(message_id: str, text: str, thread_id: str = "t1", role: Any = "user") -> Evidence:
    return Evidence(thread_id=thread_id, message_id=message_id, role=role, text=text, at=NOON, source=role)


def told(store: MemoryStore, identity: Identity, thread_id: str = "t1") -> list[str]:
    return [message.message_id for message in store.transcripts.read(identity, thread_id)]


def everything_of(store: MemoryStore, *identities: Identity) -> list[Any]:
    return [
        (store.records(each), store.transcripts.threads(each), store.tasks.of(each), store.recall(each, "Xylophon"))
        for each in identities
    ]


# --- by message


def test_a_message_takes_what_rests_on_it_along(
    store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    store.transcripts.append(ana, [said("m1", f"Remember: {SECRET}"), said("m2", "Yes?", role="assistant")])
    store.transcripts.append(ana, [said("m3", "And I like tea")])
    of_it = learnt("The Xylophon-4711 is under the carpet", provenance=said_by("ana", "t1", "m1"))
    other = learnt("Ana likes tea", provenance=said_by("ana", "t1", "m3"))
    keep(store, ana, of_it, other)
    one = Selection(thread_id="t1", message_ids=("m1",))
    erasure = store.erase(ana, one, reason="asked", with_source=True, threads=Checkpoints())
    assert (erasure.record_ids, erasure.verified) == ((of_it.id,), True)
    assert told(store, ana) == ["m3"], "the answer to it went too"
    assert [record.id for record in store.records(ana)] == [other.id]
    assert b"Xylophon" not in stored_bytes()


def test_a_message_of_which_nothing_was_learnt_is_erased_wherever_it_is_repeated(
    store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    store.transcripts.append(ana, [said("m1", SECRET), said("m9", f"He said: {SECRET}!", thread_id="t2")])
    one = Selection(thread_id="t1", message_ids=("m1",))
    assert store.erase(ana, one, reason="asked", with_source=True, threads=Checkpoints()).erased == {
        "evidence": 2,
        "checkpoints": 4,
    }
    assert (told(store, ana), told(store, ana, "t2")) == ([], [])
    assert b"Xylophon" not in stored_bytes()


def test_messages_need_their_thread() -> None:
    with pytest.raises(ValidationError, match="thread_id: missing"):
        Selection(message_ids=("m1",))


def test_messages_of_another_user_cannot_be_erased(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET)])
    one = Selection(thread_id="t1", message_ids=("m1",))
    erasure = store.erase(ben, one, reason="malice", with_source=True, threads=Checkpoints())
    assert erasure.erased == {}
    assert told(store, ana) == ["m1"]
    assert store.erase(ADMIN, one, reason="law", with_source=True, threads=Checkpoints()).erased["evidence"] == 1


# --- what is not learnt again


def test_nothing_is_learnt_again_from_a_message_that_something_was_erased_from(
    store: MemoryStore, ana: Identity, ben: Identity
) -> None:
    (gone, stays) = keep(store, ana, learnt(SECRET), learnt("Ana likes tea"))
    store.erase(ana, Selection(record_ids=(gone.id,)), reason="asked")
    reworded = learnt("Under Ana's carpet there is an instrument")
    takes_over = Change(action="supersede", target=stays.id, expected=1, record=reworded, rule="r", reason="x")
    revised = stays.model_copy(update={"statement": "Ana likes green tea"})
    revision = Change(action="revise", target=stays.id, expected=1, record=revised, rule="r", reason="x")
    elsewhere = learnt("Ana plays an instrument", provenance=said_by("ana", "t1", "m2"))
    decisions = write(store, ana, create(reworded), takes_over, revision, create(elsewhere))
    assert [(decision.outcome, decision.rule) for decision in decisions] == [
        ("refused", "tombstone"),
        ("refused", "tombstone"),
        ("revised", "r"),
        ("created", "new"),
    ]
    assert "message that it rests on" in decisions[0].reason
    (of_ben,) = write(store, ben, create(learnt("Ben has a carpet", owner_id="ben", provenance=said_by("ben"))))
    assert of_ben.outcome == "created"


def test_nothing_is_learnt_from_messages_that_were_erased(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(
        ana, [said("m1", SECRET), said("m2", "Where?", role="assistant"), said("m3", "I like tea")]
    )
    store.erase(ana, Selection(thread_id="t1"), reason="asked", with_source=True, threads=Checkpoints())
    again = [learnt("Ana likes tea", provenance=said_by("ana", "t1", id)) for id in ("m1", "m3", "m4")]
    assert [decision.outcome for decision in write(store, ana, *map(create, again))] == [
        "refused",
        "refused",
        "created",
    ]


# --- a whole user


def test_of_an_erased_user_nothing_is_left(
    store: MemoryStore, ana: Identity, ben: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    store.transcripts.append(ana, [said("m1", SECRET), said("m2", "Where is the Xylophon?", thread_id="t2")])
    store.transcripts.bind(ana, "t3", name="About the Xylophon")
    store.artifacts.put(ana, "summary", "The Xylophon is hers")
    store.tasks.create(ana, "Tune the Xylophon")
    store.inbox.admit(ana, "t2", "m3", "Xylophon!")
    session = learnt("Call it Xylophon", "session", "t2", provenance=said_by("ana", "t2", "m2"))
    keep(store, ana, learnt(SECRET))
    keep(store, ana, session, thread_id="t2")
    reason = "Xylophon is hers alone"
    write(store, ana, Change(action="refuse", rule="secret", reason=reason))
    keep(store, ben, learnt("Ben likes tea", owner_id="ben", provenance=said_by("ben", "t9")))
    store.transcripts.append(ben, [said("m1", "Tea!", thread_id="t9")])
    bens = everything_of(store, ben)
    checkpoints = Checkpoints()

    erasure = store.erase(ana, ALL_OF_ANA, reason="the law", with_source=True, threads=checkpoints)

    assert (erasure.verified, erasure.remains) == (True, ())
    assert erasure.erased == {
        "records": 2,
        "revisions": 2,
        "index": 4,
        "evidence": 2,
        "artifacts": 1,
        "tasks": 1,
        "inbox": 1,
        "threads": 3,
    }
    assert checkpoints.deleted == ["t1", "t2", "t3"]
    assert b"Xylophon" not in stored_bytes()
    assert (store.records(ana), store.transcripts.threads(ana), store.tasks.of(ana)) == ([], [], [])
    assert everything_of(store, ben) == bens
    assert all(finding.ok for finding in store.doctor())


def test_a_users_records_can_go_while_the_threads_stay(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", "I like tea")])
    keep(store, ana, learnt(SECRET, provenance=said_by("ana", "t8")))
    checkpoints = Checkpoints()
    erasure = store.erase(ana, ALL_OF_ANA, reason="asked", threads=checkpoints)
    assert (erasure.erased["records"], checkpoints.deleted, told(store, ana)) == (1, [], ["m1"])
    narrowed = Selection(scope=Scope(owner="user", owner_id="ana", within=Within(application="billing")))
    store.erase(ana, narrowed, reason="asked", with_source=True, threads=checkpoints)
    assert (checkpoints.deleted, told(store, ana)) == ([], ["m1"])


def test_what_a_user_gave_to_a_project_is_the_projects_and_is_named(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt("We use PostgreSQL", "project", "billing"), learnt(SECRET))
    erasure = store.erase(ana, ALL_OF_ANA, reason="asked", with_source=True, threads=Checkpoints())
    assert erasure.remains == ("1 records given to project:billing: erase them by that scope",)
    assert [record.statement for record in store.records(ana)] == ["We use PostgreSQL"]
    project = Selection(scope=Scope(owner="project", owner_id="billing"))
    assert store.erase(ana, project, reason="asked").erased["records"] == 1


def test_threads_out_of_reach_are_named(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", "hello")])
    erasure = store.erase(ana, ALL_OF_ANA, reason="asked", with_source=True)
    assert erasure.remains == ("checkpoints of thread t1: pass threads=checkpointer to delete them",)
    without = store.erase(ana, ALL_OF_ANA, reason="asked")
    assert without.remains == (
        "what was said in the threads, in transcripts and checkpoints: with_source=True erases it too",
    )


def test_another_user_is_erased_by_an_admin_alone(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET)])
    keep(store, ana, learnt(SECRET))
    with pytest.raises(AccessDenied, match="role admin"):
        store.erase(ben, ALL_OF_ANA, reason="malice", with_source=True)
    foreign = Identity(tenant="other", user="root", roles=frozenset({"admin"}))
    assert store.erase(foreign, ALL_OF_ANA, reason="malice", with_source=True, threads=Checkpoints()).erased == {}
    assert (len(store.records(ana)), told(store, ana)) == (1, ["m1"])
    erasure = store.erase(ADMIN, ALL_OF_ANA, reason="law", with_source=True, threads=Checkpoints())
    assert (erasure.erased["records"], erasure.erased["threads"], erasure.verified) == (1, 1, True)


def test_who_may_erase_for_others_still_cannot_read_for_them(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET)])
    (record,) = keep(store, ana, learnt(SECRET))
    all_roles = Identity(tenant="acme", user="root", project="billing", roles=frozenset({"admin", "curator"}))
    assert (store.records(all_roles), store.record(all_roles, record.id), store.history(all_roles, record.id)) == (
        [],
        None,
        [],
    )
    assert store.recall(all_roles, "Xylophon", sources={"records", "evidence"}).hits == ()
    with pytest.raises(AccessDenied):
        store.transcripts.read(all_roles, "t1")


# --- a whole tenant


def test_of_an_erased_tenant_nothing_is_left_and_of_others_everything(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    for identity, thread_id in ((ana, "t1"), (ben, "t2"), (stranger, "t3")):
        text = f"The Xylophon of {identity.tenant}"
        store.transcripts.append(identity, [said("m1", text, thread_id=thread_id)])
        keep(store, identity, learnt(text, owner_id=identity.user, provenance=said_by(identity.user, thread_id)))
        store.tasks.create(identity, text)
    keep(store, ana, learnt("We use the Xylophon", "project", "billing", provenance=said_by("ana", "t1", "m8")))
    others = everything_of(store, stranger)
    checkpoints = Checkpoints()
    erasure = store.erase(ADMIN, Selection(tenant="acme"), reason="closed", with_source=True, threads=checkpoints)
    assert (erasure.erased["records"], erasure.erased["threads"], erasure.erased["tasks"]) == (3, 2, 2)
    assert (erasure.verified, erasure.remains, checkpoints.deleted) == (True, (), ["t1", "t2"])
    assert [part for each in everything_of(store, ana, ben) for part in each[:3]] == [[]] * 6
    assert everything_of(store, stranger) == others


def test_a_tenant_is_erased_by_its_own_admin_alone(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt(SECRET))
    foreign = Identity(tenant="other", user="root", roles=frozenset({"admin"}))
    for identity in (ana, foreign):
        with pytest.raises(AccessDenied, match="only the role admin may erase a tenant, and only its own"):
            store.erase(identity, Selection(tenant="acme"), reason="malice")
    assert len(store.records(ana)) == 1


def test_a_tenant_goes_alone() -> None:
    with pytest.raises(ValidationError, match="selects everything"):
        Selection(tenant="acme", subject="Ana")


# --- counting before


def filled(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET), said("m2", f"Yes, {SECRET}", role="assistant")])
    store.artifacts.put(ana, "summary", SECRET, thread_id="t1")
    keep(store, ana, learnt(SECRET))


@pytest.mark.parametrize(
    "selection",
    [ALL_OF_ANA, Selection(thread_id="t1"), Selection(thread_id="t1", message_ids=("m1",)), Selection(tenant="acme")],
    ids=["user", "thread", "message", "tenant"],
)
@pytest.mark.parametrize("with_source", [False, True])
def test_a_dry_run_counts_what_would_go_and_changes_nothing(
    store: MemoryStore, ana: Identity, selection: Selection, with_source: bool
) -> None:
    filled(store, ana)
    identity = ana.model_copy(update={"roles": frozenset({"admin"})})
    before, checkpoints = everything_of(store, ana), Checkpoints()

    def erase(dry_run: bool) -> ErasureReceipt:
        return store.erase(
            identity, selection, reason="asked", with_source=with_source, threads=checkpoints, dry_run=dry_run
        )

    dry = erase(True)
    assert (dry.verified, checkpoints.asked, checkpoints.deleted) == (False, [], [])
    assert everything_of(store, ana) == before
    assert all(finding.ok for finding in store.doctor())
    assert (
        write(store, ana, create(learnt("Ana is here", provenance=said_by("ana", "t1", "m1"))))[0].outcome == "created"
    )
    store.erase(ana, Selection(record_ids=(store.records(ana)[0].id,)), reason="tidy")
    done = erase(False)
    assert (dry.erased, dry.record_ids) == (done.erased, done.record_ids)


# --- what the receipt says


def test_checkpoints_that_still_hold_the_words_are_named(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", "hello"), said("m1", "hello", thread_id="t2")])
    (record,) = keep(store, ana, learnt(SECRET))
    only = Selection(record_ids=(record.id,))
    erasure = store.erase(ana, only, reason="asked", threads=Checkpoints("t2"))
    assert erasure.verified is False
    assert erasure.remains[-1] == "the same words in checkpoints of thread t2: with_source=True erases them too"


def test_checkpoints_that_hold_the_words_are_rewritten_whatever_the_transcript_says(
    store: MemoryStore, ana: Identity
) -> None:
    store.transcripts.append(ana, [said("m1", "hello", thread_id="t2")])
    (record,) = keep(store, ana, learnt(SECRET))
    checkpoints = Checkpoints("t2")
    erasure = store.erase(
        ana, Selection(record_ids=(record.id,)), reason="asked", with_source=True, threads=checkpoints
    )
    assert ("t2", (), (SECRET,)) in checkpoints.asked
    assert erasure.remains == ("the same words in checkpoints of thread t2: run erase again",)


def test_a_reason_that_repeats_what_is_erased_is_refused(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    with pytest.raises(UsageError, match="reason repeats"):
        store.erase(ana, Selection(record_ids=(record.id,)), reason=f"not true: {SECRET.upper()}")
    assert store.record(ana, record.id) == record
