"""What every backend promises about the feed of events."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import create, keep, learnt, write

from everthread import Identity, Record
from everthread.errors import UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import Event
from everthread.stores.record import Change, Governance, Selection

ADMIN = Identity(tenant="acme", user="ops", roles=frozenset({"admin"}))


def told(events: list[Event]) -> list[tuple[str, str, int | None]]:
    return [(event.kind, event.record_id, event.revision) for event in events]


def end(record: Record) -> Change:
    return Change(action="end", target=record.id, expected=record.revision, status="archived", rule="r", reason="x")


def test_each_change_of_a_record_is_an_event(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea"))
    coffee = learnt("Ana drinks coffee")
    write(store, ana, Change(action="supersede", target=tea.id, expected=1, record=coffee, rule="r", reason="x"))
    (stored,) = store.records(ana)
    write(store, ana, end(stored))
    store.erase(ana, Selection(record_ids=(tea.id,)), reason="asked")
    events = store.events(ana)
    assert sorted(told(events)[1:3]) == sorted([("memory.updated", coffee.id, 1), ("memory.ended", tea.id, 2)])
    assert told(events)[:1] + told(events)[3:] == [
        ("memory.updated", tea.id, 1),
        ("memory.ended", coffee.id, 2),
        ("memory.erased", tea.id, None),
    ]
    assert {event.tenant for event in events} == {"acme"}
    assert events[0].at == tea.recorded_at


def test_a_consumer_goes_on_from_its_cursor(store: MemoryStore, ana: Identity) -> None:
    records = [keep(store, ana, learnt(f"Thing {n}"))[0] for n in range(5)]
    seen: list[Event] = []
    while page := store.events(ana, seen[-1].cursor if seen else 0, limit=2):
        assert len(page) <= 2
        seen += page
    assert told(seen) == [("memory.updated", record.id, 1) for record in records]
    assert [event.cursor for event in seen] == sorted({event.cursor for event in seen})
    keep(store, ana, learnt("Thing 5"))
    assert len(store.events(ana, seen[-1].cursor)) == 1
    with pytest.raises(UsageError, match="limit must be at least 1"):
        store.events(ana, limit=0)


def test_what_waits_or_was_refused_is_no_event(store: MemoryStore, ana: Identity) -> None:
    refused = Change(action="refuse", rule="secret", reason="it is a password")
    write(store, ana, create(learnt("Perhaps", status="pending")), refused)
    assert store.events(ana) == []


def test_the_same_commit_again_is_no_event(store: MemoryStore, ana: Identity) -> None:
    record = learnt("Ana drinks tea")
    for _ in range(2):
        write(store, ana, create(record), key="same")
    assert told(store.events(ana)) == [("memory.updated", record.id, 1)]


def test_nobody_sees_events_of_what_they_may_not_read(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    named: Any = {"governance": Governance(readable_by=("ana",))}
    mine = keep(store, ana, learnt("Mine"), learnt("Of the project", "project", "billing"))
    hidden = keep(store, ana, learnt("For me alone", "project", "billing", **named))
    session = keep(store, ana, learnt("In this talk", "session", "t1"), thread_id="t1")
    keep(store, ben, learnt("His", "user", "ben"))
    colleague = ben.model_copy(update={"project": "billing"})

    def ids(identity: Identity) -> set[str]:
        return {event.record_id for event in store.events(identity)} - {event.record_id for event in store.events(ben)}

    assert ids(ana) == {record.id for record in (*mine, *hidden, *session)}
    assert ids(colleague) == {mine[1].id}
    assert store.events(stranger) == []
    assert len(store.events(ADMIN)) == 5
    assert store.events(ADMIN.model_copy(update={"tenant": "other"})) == []


def test_an_erasure_is_told_to_who_wrote_it_and_to_the_admin(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    (record,) = keep(store, ana, learnt("Of the project", "project", "billing"))
    store.erase(ana, Selection(record_ids=(record.id,)), reason="asked")
    gone = ("memory.erased", record.id, None)
    assert told(store.events(ana))[-1] == gone
    assert told(store.events(ADMIN))[-1] == gone
    assert store.events(ben.model_copy(update={"project": "billing"})) == []
    assert store.events(stranger) == []
