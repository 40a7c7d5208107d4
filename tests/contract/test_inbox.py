"""What every backend's inbox promises."""

from typing import Any, cast

import pytest

from everthread import Identity
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore


def test_an_input_waits_until_it_is_promoted(store: MemoryStore, ana: Identity) -> None:
    assert store.inbox.admit(ana, "t1", "m1", "hello")
    assert store.inbox.pending(ana, "t1") == [("m1", "hello")]
    store.inbox.promote(ana, "t1", ["m1"])
    assert store.inbox.pending(ana, "t1") == []


def test_an_input_is_admitted_once(store: MemoryStore, ana: Identity) -> None:
    assert store.inbox.admit(ana, "t1", "m1", "hello")
    assert not store.inbox.admit(ana, "t1", "m1", "changed", delivery="steer")
    assert store.inbox.pending(ana, "t1") == [("m1", "hello")]
    store.inbox.promote(ana, "t1", ["m1"])
    assert not store.inbox.admit(ana, "t1", "m1", "hello")
    assert store.inbox.pending(ana, "t1") == []
    assert store.inbox.admit(ana, "t2", "m1", "hello")


def test_queued_inputs_come_one_at_a_time_the_oldest_first(store: MemoryStore, ana: Identity) -> None:
    for id in ("z", "a", "m"):
        store.inbox.admit(ana, "t1", id, f"text {id}")
    order = []
    while waiting := store.inbox.pending(ana, "t1"):
        order.append(waiting)
        store.inbox.promote(ana, "t1", [id for id, _ in waiting])
    assert order == [[("z", "text z")], [("a", "text a")], [("m", "text m")]]


def test_every_steer_comes_before_what_is_queued(store: MemoryStore, ana: Identity) -> None:
    store.inbox.admit(ana, "t1", "q1", "first")
    store.inbox.admit(ana, "t1", "s1", "stop", delivery="steer")
    store.inbox.admit(ana, "t1", "s2", "do this instead", delivery="steer")
    assert store.inbox.pending(ana, "t1") == [("s1", "stop"), ("s2", "do this instead")]
    store.inbox.promote(ana, "t1", ["s1", "s2"])
    assert store.inbox.pending(ana, "t1") == [("q1", "first")]


@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800", "\ud83d\ude00", "emoji 🙂 שלום 你好"])
def test_no_character_of_an_input_is_lost(store: MemoryStore, ana: Identity, text: str) -> None:
    store.inbox.admit(ana, "t1", "m1", text)
    assert store.inbox.pending(ana, "t1") == [("m1", text)]


def test_promoting_again_or_what_never_came_changes_nothing(store: MemoryStore, ana: Identity) -> None:
    store.inbox.admit(ana, "t1", "m1", "hello")
    store.inbox.promote(ana, "t1", ["m9"])
    store.inbox.promote(ana, "t9", ["m1"])
    assert store.inbox.pending(ana, "t1") == [("m1", "hello")]
    store.inbox.promote(ana, "t1", ["m1", "m1"])
    store.inbox.promote(ana, "t1", ["m1"])
    assert store.inbox.pending(ana, "t1") == []


def test_another_users_inbox_is_refused(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    store.inbox.admit(ana, "t1", "m1", "hello")
    for other in (ben, stranger):
        with pytest.raises(AccessDenied):
            store.inbox.admit(other, "t1", "m2", "intruding")
        with pytest.raises(AccessDenied):
            store.inbox.pending(other, "t1")
        with pytest.raises(AccessDenied):
            store.inbox.promote(other, "t1", ["m1"])
    assert store.inbox.pending(ana, "t1") == [("m1", "hello")]


def test_an_input_without_an_id_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError):
        store.inbox.admit(ana, "t1", "", "hello")
    assert store.inbox.pending(ana, "t1") == []


def test_another_delivery_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="delivery: must be 'queue' or 'steer'"):
        store.inbox.admit(ana, "t1", "m1", "hello", delivery=cast(Any, "soon"))
