"""What every backend promises about what has been learnt from a message, and what was decided under a key."""

from datetime import timedelta

from support.records import create, learnt, said_by

from everthread import Identity
from everthread.stores import MemoryStore
from everthread.stores.record import Change


def test_what_was_learnt_from_a_message_is_found_whatever_became_of_it(
    store: MemoryStore, ana: Identity, ben: Identity
) -> None:
    kept = learnt("Ana drinks tea", provenance=said_by("ana", "t1", "m1", "m2"))
    ended = learnt("Ana drinks coffee", provenance=said_by("ana", "t1", "m2"))
    others = [learnt("Ana drinks cocoa", provenance=said_by("ana", *where)) for where in (("t1", "m3"), ("t2", "m2"))]
    store.commit(ana, [create(record) for record in (kept, ended, *others)], key="k1")
    end = Change(action="end", target=ended.id, expected=1, status="archived", rule="retracted", reason="said so")
    store.commit(ana, [end], key="k2")
    found = store.learnt_from(ana, "t1", ["m2"])
    assert [(record.id, record.status) for record in found] == [(kept.id, "active"), (ended.id, "archived")]
    assert store.learnt_from(ana, "t1", []) == []
    assert store.learnt_from(ana, "t1", ["m2"], since=found[1].recorded_at) == found[1:]
    assert store.learnt_from(ana, "t1", ["m2"], since=found[1].recorded_at + timedelta(seconds=1)) == []
    assert store.learnt_from(ben, "t1", ["m1", "m2"]) == []


def test_a_receipt_is_found_by_the_key_of_its_commit(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    receipt = store.commit(ana, [create(learnt("Ana drinks tea"))], key="extract:t1:m2")
    assert store.receipt_of(ana, "extract:t1:m2") == receipt
    assert store.receipt_of(ana, "extract:t1:m4") is None
    assert store.receipt_of(ben, "extract:t1:m2") is None
