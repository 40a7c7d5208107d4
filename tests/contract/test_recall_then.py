"""Recall as of a time (what the store knew then) and about a time (what held then): embedded once, gone when erased."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from support.records import NOON, BrokenEmbeddings, Clock, TopicEmbeddings, keep, learnt, said_by, write

from everthread import Identity, Record, Scope
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Governance, Selection

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
    assert embedder.documents == ["Ana has a cat.", "安娜坐火车。", "Ana has a kitten."]
    assert reopen(embedder=embedder).recall(ana, "feline", as_of=then) == first
    assert len(embedder.documents) == 3
    store.erase(ana, Selection(record_ids=(old.id,)), reason="asked to")
    assert old.id not in [hit.record_id for hit in store.recall(ana, "feline", as_of=then).hits]


def at(clock: Clock, days: int) -> datetime:
    """So many days after noon, which it is from now on."""
    clock.now = NOON + timedelta(days=days)
    return clock.now


def found(store: MemoryStore, identity: Identity, query: str, **options: Any) -> list[tuple[str, str, int]]:
    return [
        (hit.record_id or "", hit.statement, hit.revision or 0) for hit in store.recall(identity, query, **options).hits
    ]


def superseding(old: Record, new: Record) -> Change:
    return Change(
        action="supersede", record=new, target=old.id, expected=old.revision, rule="newer", reason="it changed"
    )


def revising(old: Record, **fields: Any) -> Change:
    record = old.model_copy(update=fields)
    return Change(
        action="revise", record=record, target=old.id, expected=old.revision, rule="better", reason="it was corrected"
    )


def test_each_revision_is_found_in_its_time_and_by_its_words(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    (first,) = keep(store, ana, learnt("Ana plays the violin."))
    at(clock, 1)
    write(store, ana, revising(first, statement="Ana plays the cello."))
    at(clock, 2)
    second = store.record(ana, first.id)
    assert second is not None
    write(store, ana, Change(action="end", target=first.id, expected=2, status="archived", rule="r", reason="over"))
    violin, cello = (first.id, "Ana plays the violin.", 1), (first.id, "Ana plays the cello.", 2)
    times = [NOON + timedelta(days=days) for days in (-1, 0, 0.5, 1, 1.5, 2)]
    for opened in (store, reopen(clock=clock)):
        known = [found(opened, ana, "What does Ana play, violin or cello?", as_of=moment) for moment in times]
        assert known == [[], [violin], [violin], [cello], [cello], []]
    assert found(store, ana, "cello", as_of=NOON, floor=0.5) == []


def test_a_confirmation_leaves_one_text_and_a_move_takes_it_along(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    (first,) = keep(store, ana, learnt("Ana plays the violin."))
    at(clock, 1)
    confirm = Change(
        action="confirm", target=first.id, expected=1, source=said_by("ana", "t2", "m9"), rule="r", reason="said again"
    )
    write(store, ana, confirm)
    at(clock, 2)
    moved = first.model_copy(update={"revision": 2, "scope": Scope(owner="project", owner_id="billing")})
    write(store, ana, revising(moved))
    assert [found(store, ana, "violin", as_of=NOON + timedelta(days=days)) for days in (0, 1, 2)] == [
        [(first.id, "Ana plays the violin.", revision)] for revision in (1, 2, 3)
    ]
    of_user, of_project = [Scope(owner="user", owner_id="ana")], [moved.scope]
    assert found(store, ana, "violin", as_of=NOON, scopes=of_project) == []
    assert found(store, ana, "violin", as_of=clock.now, scopes=of_user) == []
    (finding,) = [finding for finding in store.doctor() if finding.check == "index"]
    assert (finding.ok, finding.detail) == (True, "2 texts are searchable")


def test_what_another_may_not_read_is_not_found_in_the_past(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    ben, other = (ana.model_copy(update=who) for who in ({"user": "ben"}, {"tenant": "other"}))
    of_project = learnt("The team plays the violin.", "project", "billing")
    hidden = of_project.model_copy(update={"governance": Governance(readable_by=("ana",))})
    (first,) = keep(store, ana, hidden)
    at(clock, 1)
    write(store, ana, revising(first, governance=Governance()))
    at(clock, 2)
    ids = [[id for id, *_ in found(store, who, "violin", as_of=NOON)] for who in (ana, ben, other)]
    assert ids == [[first.id], [], []]
    assert found(store, ben, "violin", as_of=clock.now) == [(first.id, "The team plays the violin.", 2)]


def test_now_in_the_past_finds_what_held_then_though_it_was_superseded(reopen: OpenStore, ana: Identity) -> None:
    """`now` is the world's time as it is known today, `as_of` the store's: Ana told of the move a week later."""
    clock = Clock()
    store = reopen(clock=clock)
    (lyon,) = keep(store, ana, learnt("Ana lives in Lyon.", valid_from=NOON - timedelta(days=30)))
    at(clock, 7)
    write(store, ana, superseding(lyon, learnt("Ana lives in Oslo.", valid_from=NOON + timedelta(days=3))))
    at(clock, 9)

    def where(**options: Any) -> list[str]:
        return [statement for _, statement, _ in found(store, ana, "Where does Ana live?", **options)]

    days = {n: NOON + timedelta(days=n) for n in (-40, 1, 5, 8)}
    old, new = "Ana lives in Lyon.", "Ana lives in Oslo."
    assert where() == [new]
    assert [where(now=moment) for moment in days.values()] == [[], [old], [new], [new]]
    assert [where(as_of=moment) for moment in days.values()] == [[], [old], [old], [new]]
    assert where(as_of=days[5], now=days[1]) == [old]
    assert where(as_of=days[8], now=days[1]) == [old]
    (hit,) = store.recall(ana, "Where does Ana live?", now=days[1]).hits
    assert (hit.revision, hit.why.split("; ")[-1]) == (2, "it held until 2026-05-11")
    explained = store.recall(ana, "Where does Ana live?", now=days[1], explain=True)
    assert ([each.record_id for each in explained.hits], [each.statement for each in explained.dropped]) == (
        [lyon.id],
        [new],
    )


def test_what_was_corrected_did_not_hold_at_any_time(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    wrong = learnt("Ana lives in Lyon.", valid_to=NOON + timedelta(days=30))
    (wrong,) = keep(store, ana, wrong)
    at(clock, 1)
    write(store, ana, superseding(wrong, learnt("Ana lives in Oslo.")))
    assert found(store, ana, "Lyon", now=NOON, floor=0.5) == []
    assert [id for id, *_ in found(store, ana, "Lyon", as_of=NOON)] == [wrong.id]


def test_a_contest_comes_with_the_other_side_only_once_it_has_begun(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock, embedder="none")
    tea, _ = keep(store, ana, learnt("Ana drinks tea."), learnt("Planes leave at noon."))
    at(clock, 1)
    write(
        store,
        ana,
        Change(action="contest", record=learnt("Coffee is hers."), target=tea.id, expected=1, rule="r", reason="both"),
    )
    at(clock, 2)
    said = {
        moment: [statement for _, statement, _ in found(store, ana, "tea", as_of=moment)]
        for moment in (NOON, clock.now)
    }
    assert said == {NOON: ["Ana drinks tea."], clock.now: ["Ana drinks tea.", "Coffee is hers."]}


def test_an_erasure_takes_what_a_record_has_ever_said(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    (first,) = keep(store, ana, learnt("Ana plays the violin."))
    at(clock, 1)
    write(store, ana, revising(first, statement="Ana plays the cello."))
    at(clock, 2)
    second = store.record(ana, first.id)
    assert second is not None
    write(store, ana, superseding(second, learnt("Ana plays the drums.")))
    at(clock, 3)
    assert [id for id, *_ in found(store, ana, "violin", as_of=NOON)] == [first.id]
    erasure = store.erase(ana, Selection(record_ids=(first.id,)), reason="asked to")
    assert (erasure.verified, erasure.erased["index"]) == (True, 2)
    assert [found(store, ana, "Ana plays", as_of=NOON + timedelta(days=days)) for days in (0, 1)] == [[], []]
    assert all(finding.ok for finding in store.doctor() if finding.check == "index")


def test_the_past_is_what_the_histories_say_when_it_is_made_anew(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    first, second, third = keep(
        store, ana, *(learnt(f"Ana has {n} kittens.", valid_from=NOON - timedelta(days=30)) for n in range(3))
    )
    at(clock, 1)
    write(store, ana, revising(first, statement="Ana has nine kittens."))
    write(store, ana, superseding(second, learnt("Ana has ten kittens.", valid_from=NOON + timedelta(days=1))))
    write(store, ana, Change(action="end", target=third.id, expected=1, status="expired", rule="r", reason="over"))
    at(clock, 2)
    questions: list[dict[str, Any]] = [{}, {"as_of": NOON}, {"as_of": clock.now}, {"now": NOON}]
    before = [found(store, ana, "How many kittens?", **options) for options in questions]
    assert [len(hits) for hits in before] == [2, 3, 2, 2]
    assert all(finding.ok for finding in store.doctor() if finding.check == "index")
    store.rebuild()
    assert [found(store, ana, "How many kittens?", **options) for options in questions] == before


def test_the_past_gets_the_vectors_of_a_new_embedder(reopen: OpenStore, ana: Identity) -> None:
    clock, embedder = Clock(), TopicEmbeddings()
    store = reopen(embedder="none", clock=clock)
    (pet,) = keep(store, ana, learnt("Ana has a kitten."))
    at(clock, 1)
    write(store, ana, revising(pet, statement="Ana has a canvas."))
    assert found(store, ana, "feline", as_of=NOON, floor=0.1) == []
    store = reopen(embedder=embedder, clock=clock)
    store.jobs.drain(store.handlers())
    assert sorted(embedder.documents) == ["Ana has a canvas.", "Ana has a kitten."]
    assert found(store, ana, "feline", as_of=NOON, floor=0.1) == [(pet.id, "Ana has a kitten.", 1)]
    assert found(store, ana, "feline", as_of=clock.now, floor=0.1) == []


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
