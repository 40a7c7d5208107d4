"""The resident profile: how a user said that they want to be answered, by key (R199, R210)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support.records import NOON, Clock, keep, learnt, write

from everthread import Identity, Record, Scope
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, Selection

from .conftest import OpenStore


def wish(statement: str, owner: Any = "user", owner_id: str = "ana", **fields: Any) -> Record:
    given: dict[str, Any] = {"content_type": "preference", "concerns": "expression"}
    return learnt(statement, owner, owner_id, **(given | fields))


def said(store: MemoryStore, identity: Identity, **options: Any) -> list[str]:
    return [record.statement for record in store.profile(identity, **options)]


def test_what_the_user_said_about_how_to_answer_is_read_without_a_question(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, wish("Answers are in German."), learnt("Ana lives in Berlin."))
    keep(store, ana, wish("回答要简短。"))
    assert said(store, ana) == ["回答要简短。", "Answers are in German."]


def test_this_sessions_wishes_come_first_and_stay_in_it(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, wish("Answers are in English here.", "session", "t1"), thread_id="t1")
    keep(store, ana, wish("Answers are in German."))
    assert said(store, ana, thread_id="t1") == ["Answers are in English here.", "Answers are in German."]
    assert said(store, ana, thread_id="t2") == said(store, ana) == ["Answers are in German."]


def test_what_was_concluded_or_chosen_or_is_over_is_not_of_it(store: MemoryStore, ana: Identity) -> None:
    shop = Scope(owner="user", owner_id="ana", within=Within(project="shop"))
    keep(
        store,
        ana,
        wish("Ana likes long answers.", authority="inferred", stated=False),
        wish("Ana implies that she likes tables.", authority="user_implied"),
        wish("The report goes out by mail.", concerns="decision"),
        wish(
            "Until May answers are in French.", valid_to=NOON - timedelta(days=1), valid_from=NOON - timedelta(days=9)
        ),
        wish("In production answers are terse.", environment="production"),
        wish("In the shop answers are long.", scope=shop),
    )
    assert said(store, ana, now=NOON) == []


def test_another_users_wishes_are_not_mine(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    keep(store, ben, wish("Answers are in Dutch.", "user", "ben"))
    assert said(store, ana) == []
    assert said(store, ben) == ["Answers are in Dutch."]


def test_it_follows_each_change_at_once_and_is_found_as_it_was(reopen: OpenStore, ana: Identity) -> None:
    clock = Clock()
    store = reopen(clock=clock)
    (old,) = keep(store, ana, wish("Answers are in German."))
    clock.now = NOON + timedelta(hours=1)
    new = wish("Answers are in English.")
    write(
        store,
        ana,
        Change(action="supersede", record=new, target=old.id, expected=1, rule="newer", reason="the user changed it"),
    )
    assert said(store, ana) == ["Answers are in English."]
    assert said(store, ana, as_of=NOON + timedelta(minutes=1)) == ["Answers are in German."]
    assert said(store, ana, as_of=NOON - timedelta(minutes=1)) == []
    store.erase(ana, Selection(record_ids=(new.id, old.id)), reason="asked to")
    assert said(store, ana) == said(store, ana, as_of=NOON + timedelta(minutes=1)) == []


def test_it_takes_at_most_as_many_as_asked_for(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, *(wish(f"Answers have {n} lines.") for n in range(12)))
    assert len(said(store, ana)) == 10 and len(said(store, ana, limit=2)) == 2
