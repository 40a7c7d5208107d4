"""Correct, archive, verify: a person's rights, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON, Clock, create, keep, learnt, said_by, write

from everthread import Authority, Identity, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.nodes.extract.correction import archive, correct, longest_unverified, unarchive, unverified, verify
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Governance
from everthread.stores.threads import thread_id_for

HOME: dict[str, Any] = {"subject": "user", "predicate": "lives in"}


def statuses(store: MemoryStore, identity: Identity, *ids: str) -> list[str]:
    return [record.status for record in store.records(identity, ids=ids)]


def test_a_correction_is_the_persons_word_and_the_old_one_stays_in_the_history(
    store: MemoryStore, ana: Identity
) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", value="Oslo", **HOME))
    receipt = correct(store, ana, old.id, "I live in Rome.", reason="she moved")
    [decision] = receipt.decisions
    assert (decision.outcome, decision.target) == ("superseded", old.id)
    new = store.record(ana, str(decision.record_id))
    assert new is not None
    assert (new.authority, new.subject, new.predicate, new.status) == (
        Authority.USER_EXPLICIT,
        "user",
        "lives in",
        "active",
    )
    source = new.provenance
    assert (source.source, source.actor, source.thread_id) == ("user", "ana", thread_id_for(ana, "corrections"))
    said = store.transcripts.read(ana, str(source.thread_id))
    assert [(line.message_id, line.text) for line in said] == [(source.message_ids[0], "I live in Rome.")]
    assert statuses(store, ana, old.id) == ["superseded"]
    assert new.write_reason == "she moved"


def test_the_same_correction_again_writes_nothing(store: MemoryStore, ana: Identity) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", value="Oslo", **HOME))
    first = correct(store, ana, old.id, "I live in Rome.")
    assert correct(store, ana, old.id, "I live in Rome.") == first
    assert len(store.records(ana)) == 1
    with pytest.raises(UsageError, match="is superseded; correct what stands now"):
        correct(store, ana, old.id, "I live in Paris.")


def test_a_correction_passes_the_same_rules(store: MemoryStore, ana: Identity) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", value="Oslo", **HOME))
    receipt = correct(store, ana, old.id, "My password is hunter2-Gk39sLq0Zx.")
    assert [(each.outcome, each.rule) for each in receipt.decisions] == [("refused", "secret")]
    assert statuses(store, ana, old.id) == ["active"]


def test_a_correction_keeps_the_reach_of_what_it_corrects(store: MemoryStore, ana: Identity) -> None:
    narrow = Scope.model_validate({"owner": "user", "owner_id": "ana", "within": {"project": "billing"}})
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", scope=narrow, value="Oslo", **HOME))
    [decision] = correct(store, ana, old.id, "I live in Rome.").decisions
    new = store.record(ana, str(decision.record_id))
    assert new is not None
    assert (new.scope, decision.target) == (narrow, old.id)
    in_thread = learnt("We call it Phoenix.", "session", "t1", subject="demo", predicate="is called", value="Phoenix")
    (session,) = keep(store, ana, in_thread, thread_id="t1")
    [decision] = correct(store, ana, session.id, "We call it Griffin.").decisions
    new = store.record(ana, str(decision.record_id))
    assert new is not None
    assert (new.scope, new.status) == (session.scope, "active")
    assert statuses(store, ana, session.id) == ["superseded"]


def test_nobody_corrects_what_they_may_not_read(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo."))
    with pytest.raises(UsageError, match="there is no memory"):
        correct(store, ben, old.id, "I live in Rome.")


def test_a_correction_of_the_teams_memory_waits_for_a_curator(store: MemoryStore, ana: Identity) -> None:
    member = ana.model_copy(update={"team": "core"})
    carla = member.model_copy(update={"user": "carla", "roles": frozenset({"curator"})})
    (old,) = keep(store, carla, learnt("The team meets on Mondays.", "team", "core", subject="core", predicate="meets"))
    [decision] = correct(store, member, old.id, "The team meets on Tuesdays.").decisions
    assert decision.outcome == "pending"
    assert statuses(store, member, old.id) == ["active"]


def test_what_is_archived_is_not_recalled_and_comes_back(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea in the morning."))
    receipt = archive(store, ana, tea.id, reason="not any more")
    assert [(each.outcome, each.rule, each.reason) for each in receipt.decisions] == [
        ("ended", "archived", "not any more")
    ]
    assert store.recall(ana, "What does Ana drink?").hits == ()
    assert [each.status for each in store.history(ana, tea.id)] == ["active", "archived"]
    with pytest.raises(UsageError, match="out of use already"):
        archive(store, ana, tea.id)
    unarchive(store, ana, tea.id)
    assert [hit.record_id for hit in store.recall(ana, "What does Ana drink?").hits] == [tea.id]
    [back] = store.records(ana)
    assert (back.status, back.ended_at, back.revision) == ("active", None, 3)
    assert {entry.action for entry in store.audit(ana, record_id=tea.id)} >= {"write"}


def test_what_has_been_replaced_does_not_come_back_beside_it(store: MemoryStore, ana: Identity) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo.", value="Oslo", **HOME))
    archive(store, ana, old.id)
    (new,) = keep(store, ana, learnt("The user lives in Rome.", value="Rome", **HOME))
    with pytest.raises(UsageError, match=f"record {new.id} stands in the place of {old.id}"):
        unarchive(store, ana, old.id)
    with pytest.raises(UsageError, match="not archived"):
        unarchive(store, ana, new.id)
    likes: dict[str, Any] = {"subject": "user", "predicate": "likes"}
    tea, _ = keep(store, ana, *(learnt(f"The user likes {each}.", value=each, **likes) for each in ("tea", "rum")))
    archive(store, ana, tea.id)
    unarchive(store, ana, tea.id)
    assert statuses(store, ana, tea.id) == ["active"]


def test_verifying_keeps_it_for_as_long_again(reopen: Callable[..., MemoryStore], ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    limited = learnt("Ana takes insulin.", governance=Governance(sensitivity="health", retention_days=30))
    dated = learnt("The token page moves.", expires_at=NOON + timedelta(days=10))
    keep(store, ana, limited, dated)
    clock.now = NOON + timedelta(days=9)
    for record in (limited, dated):
        verify(store, ana, record.id, now=clock.now)
    found = store.records(ana, ids=[limited.id, dated.id])
    assert [(each.verified_at, each.expires_at) for each in found] == [
        (clock.now, NOON + timedelta(days=39)),
        (clock.now, NOON + timedelta(days=19)),
    ]
    clock.now = NOON + timedelta(days=12)
    verify(store, ana, dated.id, now=clock.now)
    [again] = store.records(ana, ids=[dated.id])
    assert again.expires_at == NOON + timedelta(days=22)


def test_a_date_of_verification_in_the_future_keeps_nothing_longer(
    reopen: Callable[..., MemoryStore], ana: Identity
) -> None:
    store = reopen(clock=Clock())
    (kept,) = keep(store, ana, learnt("Ana takes insulin.", governance=Governance(retention_days=30)))
    later = kept.model_copy(update={"verified_at": NOON + timedelta(days=900), "expires_at": None})
    write(store, ana, Change(action="revise", record=later, target=kept.id, expected=1, rule="r", reason="x"))
    [revised] = store.records(ana)
    assert revised.expires_at == NOON + timedelta(days=30)


def test_what_has_expired_comes_back_when_it_is_verified(reopen: Callable[..., MemoryStore], ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    (dated,) = keep(store, ana, learnt("The token page moves.", expires_at=NOON + timedelta(days=10)))
    clock.now = NOON + timedelta(days=11)
    write(
        store,
        ana,
        Change(action="end", target=dated.id, expected=1, status="expired", rule="expired", reason="it has run out"),
    )
    assert store.records(ana) == []
    verify(store, ana, dated.id, now=clock.now)
    [back] = store.records(ana)
    assert (back.status, back.ended_at, back.expires_at) == ("active", None, NOON + timedelta(days=21))
    archive(store, ana, dated.id)
    with pytest.raises(UsageError, match="only what is in use, or has expired"):
        verify(store, ana, dated.id)


def test_what_others_share_is_archived_and_verified_by_who_may_change_it(store: MemoryStore, ana: Identity) -> None:
    ben = ana.model_copy(update={"user": "ben"})
    (shared,) = keep(store, ana, learnt("Deploys are on Mondays.", "project", "billing"))
    with pytest.raises(AccessDenied):
        archive(store, ben, shared.id)
    archive(store, ana, shared.id)
    assert statuses(store, ben, shared.id) == ["archived"]


def test_what_was_longest_unverified_comes_first(store: MemoryStore, ana: Identity) -> None:
    def said(days: int, **fields: Any) -> Any:
        return learnt(f"Fact {days}.", provenance=said_by(at=NOON + timedelta(days=days)), **fields)

    again = said_by("ana", "t9", "m9", at=NOON + timedelta(days=8))
    checked = said(1, verified_at=NOON + timedelta(days=9))
    confirmed, old, new = said(2, confirmed_by=(again,)), said(3), said(7)
    write(store, ana, *map(create, (checked, new, confirmed, old)))
    assert [each.statement for each in unverified(store, ana, limit=3)] == ["Fact 3.", "Fact 7.", "Fact 2."]
    assert longest_unverified([], 3) == []


def test_what_waits_or_is_gone_is_not_corrected(store: MemoryStore, ana: Identity) -> None:
    (waits,) = keep(store, ana, learnt("The user lives in Oslo.", status="pending"))
    with pytest.raises(UsageError, match="is pending; review it with an edit"):
        correct(store, ana, waits.id, "I live in Rome.")
    with pytest.raises(UsageError, match="there is no memory"):
        archive(store, ana, "mem_none")


def test_a_correction_needs_consent(store: MemoryStore, ana: Identity) -> None:
    (old,) = keep(store, ana, learnt("The user lives in Oslo."))
    store.set_consent(ana, "read")
    with pytest.raises(UsageError, match="memory is not writable"):
        correct(store, ana, old.id, "I live in Rome.")
    archive(store, ana, old.id)
    assert statuses(store, ana, old.id) == ["archived"]
