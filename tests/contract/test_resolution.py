"""What resolution decides, done by a store: the order of arrival does not change what stands."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

from support.records import NOON, keep, learnt, said_by

from everthread import Identity, Record
from everthread.nodes.extract.resolve import resolve, settled
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Provenance

SAID: list[tuple[str, int, str]] = [
    ("dry", 1, "user_explicit"),
    ("warm", 2, "user_explicit"),
    ("dry", 3, "user_explicit"),
    ("warm", 4, "tool"),
]


def said(value: str, hour: int, authority: Any) -> Record:
    at = NOON + timedelta(hours=hour)
    source = said_by("ana", f"t{hour}", f"m{hour}", at=at)
    if authority == "tool":
        source = Provenance.model_validate(source.model_dump() | {"source": "tool", "actor": "survey"})
    about = {"subject": "user", "predicate": "tone of reports", "value": value}
    return learnt(f"Reports are {value}.", provenance=source, authority=authority, **about)


def test_the_order_of_arrival_does_not_change_what_stands(open_empty: Any, ana: Identity) -> None:
    outcomes = set()
    for order in permutations(SAID):
        with open_empty(embedder="none") as store:
            for number, each in enumerate(order):
                draft = Draft(said(*each), "accepted", "said")
                known = store.current(ana, "user", "tone of reports")
                change = resolve(draft, known)
                store.commit(ana, [change, *settled(draft, change, known)], key=f"{number}", thread_id="t")
            outcomes.add(tuple((each.value, each.status, each.authority) for each in store.records(ana)))
    assert outcomes == {(("dry", "active", "user_explicit"),)}


def test_what_settles_a_contest_leaves_one_record(open_empty: Any, ana: Identity) -> None:
    with open_empty(embedder="none") as store:
        one = said("dry", 1, "user_explicit")
        other = said("warm", 1, "user_explicit").model_copy(
            update={"provenance": said_by("ana", "elsewhere", "m9", at=one.provenance.observed_at)}
        )
        keep(store, ana, one)
        contest = resolve(Draft(other, "accepted", "said"), store.records(ana))
        assert contest.action == "contest"
        store.commit(ana, [contest], key="contest")
        assert [each.status for each in store.records(ana)] == ["contested", "contested"]
        draft = Draft(said("dry", 5, "user_explicit"), "accepted", "said")
        known = store.records(ana)
        change = resolve(draft, known)
        store.commit(ana, [change, *settled(draft, change, known)], key="settle")
        assert [(each.value, each.status) for each in store.records(ana)] == [("dry", "active")]
        assert [each.status for each in store.records(ana, ids=[other.id])] == ["archived"]
