"""Recall as of a time, again and again: what stood then is embedded once, and nothing outlives its erasure."""

from __future__ import annotations

from datetime import timedelta

from support.records import NOON, BrokenEmbeddings, Clock, TopicEmbeddings, keep, learnt, write

from everthread import Identity
from everthread.stores.record import Change, Selection

from .conftest import OpenStore


def test_what_stood_then_is_embedded_once(reopen: OpenStore, ana: Identity) -> None:
    embedder = TopicEmbeddings()
    store = reopen(embedder=embedder)
    old, _ = keep(store, ana, learnt("Ana has a cat."), learnt("安娜坐火车。"))
    then = old.recorded_at
    new = learnt("Ana has a kitten.")
    write(
        store,
        ana,
        Change(action="supersede", record=new, target=old.id, expected=1, rule="newer", reason="the user changed it"),
    )
    first = store.recall(ana, "feline", as_of=then)
    assert [hit.record_id for hit in first.hits][:1] == [old.id]
    embedded = len(embedder.documents)
    assert store.recall(ana, "feline", as_of=then) == first
    assert len(embedder.documents) == embedded
    store.erase(ana, Selection(record_ids=(old.id,)), reason="asked to")
    assert old.id not in [hit.record_id for hit in store.recall(ana, "feline", as_of=then).hits]


def test_what_could_not_be_embedded_is_tried_again(reopen: OpenStore, ana: Identity) -> None:
    clock, embedder = Clock(), BrokenEmbeddings(broken=False)
    store = reopen(embedder=embedder, clock=clock)
    (cat,) = keep(store, ana, learnt("Ana has a kitten."))
    clock.now = NOON + timedelta(days=1)
    embedder.broken = True
    assert store.recall(ana, "feline", as_of=NOON).hits == ()
    embedder.broken = False
    assert [hit.record_id for hit in store.recall(ana, "feline", as_of=NOON).hits] == [cat.id]


def test_days_that_a_question_names_count_from_when_it_was_asked(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    seen = learnt("x").provenance
    first, second = (
        learnt(
            "The budget meeting was moved.",
            kind="episodic",
            content_type="episodic",
            provenance=seen.model_copy(update={"observed_at": NOON - timedelta(days=days)}),
        )
        for days in (1, 8)
    )
    keep(store, ana, first, second)
    for question in ("Which meeting was moved yesterday?", "Which budget meeting was moved 昨天?"):
        assert store.recall(ana, question).hits[0].record_id == first.id
        assert store.recall(ana, question, asked_at=NOON - timedelta(days=7)).hits[0].record_id == second.id
