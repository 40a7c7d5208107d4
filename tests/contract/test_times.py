"""Two times, each by itself: when something was known (`as_of`), and when it is true in the world (`now`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from support.records import Clock, keep, learnt, write

from everthread import Identity, Record
from everthread.errors import UsageError
from everthread.stores import MemoryStore
from everthread.stores.record import Change

from .conftest import OpenStore

JANUARY, MARCH, JUNE, AUGUST = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 6, 8))
HEARD = datetime(2026, 5, 1, tzinfo=UTC)
BEFORE, LATER = HEARD - timedelta(days=1), HEARD + timedelta(days=30)


def home(city: str, since: datetime | None, until: datetime | None = None) -> Record:
    return learnt(f"Ana lives in {city}", subject="ana", predicate="home", value=city, valid_from=since, valid_to=until)


class Told(NamedTuple):
    """Brno since January is heard on 1 May; a month later, that she lives in Prague from June on."""

    store: MemoryStore
    ana: Identity


@pytest.fixture
def told(reopen: OpenStore, ana: Identity) -> Told:
    clock = Clock()
    store = reopen(embedder="none", clock=clock)
    clock.now = HEARD
    (brno,) = keep(store, ana, home("Brno", JANUARY))
    clock.now = LATER
    prague = home("Prague", JUNE)
    write(store, ana, Change(action="supersede", target=brno.id, expected=1, record=prague, rule="r", reason="moved"))
    return Told(store, ana)


TABLE = [
    # known then, true then, answer
    (BEFORE, MARCH, []),
    (HEARD, datetime(2025, 12, 1, tzinfo=UTC), []),
    (HEARD, MARCH, ["Brno"]),
    (HEARD, AUGUST, ["Brno"]),
    (LATER, datetime(2025, 12, 1, tzinfo=UTC), []),
    (LATER, MARCH, ["Brno"]),
    (LATER, JUNE, ["Prague"]),
    (LATER, AUGUST, ["Prague"]),
    (None, MARCH, ["Brno"]),
    (None, AUGUST, ["Prague"]),
]


@pytest.mark.parametrize(("known", "true", "answer"), TABLE)
def test_what_stands_is_read_by_both_times(
    told: Told, known: datetime | None, true: datetime, answer: list[str]
) -> None:
    found = told.store.current(told.ana, "ana", "home", as_of=known, now=true)
    assert [record.value for record in found] == answer


def test_what_was_known_then_is_asked_for_then(told: Told) -> None:
    assert [record.value for record in told.store.current(told.ana, "ana", "home", as_of=HEARD)] == ["Brno"]
    assert [record.value for record in told.store.current(told.ana, "ana", "home", as_of=LATER)] == ["Brno"]


@pytest.mark.parametrize(
    ("known", "true", "answer"),
    [
        (BEFORE, None, []),
        (HEARD, None, ["Brno"]),
        (HEARD, AUGUST, ["Brno"]),
        (HEARD, datetime(2025, 12, 1, tzinfo=UTC), []),
        (LATER, None, ["Prague"]),
        (LATER, MARCH, []),
        (None, JUNE, ["Prague"]),
    ],
)
def test_records_are_listed_by_both_times(
    told: Told, known: datetime | None, true: datetime | None, answer: list[str]
) -> None:
    listed = told.store.records(told.ana, as_of=known, now=true)
    assert [record.value for record in listed] == answer
    ids = [record.id for record in told.store.records(told.ana, statuses=("active", "superseded"))]
    by_id = told.store.records(told.ana, ids=ids, as_of=known, now=true)
    assert [record.value for record in by_id if record.status == "active"] == answer


@pytest.mark.parametrize(
    ("known", "true", "answer"),
    [
        (BEFORE, MARCH, []),
        (HEARD, MARCH, ["Ana lives in Brno"]),
        (HEARD, AUGUST, ["Ana lives in Brno"]),
        (LATER, AUGUST, ["Ana lives in Prague"]),
        (None, AUGUST, ["Ana lives in Prague"]),
        (None, datetime(2025, 12, 1, tzinfo=UTC), []),
    ],
)
def test_recall_reads_by_both_times(told: Told, known: datetime | None, true: datetime, answer: list[str]) -> None:
    recall = told.store.recall(told.ana, "where does Ana live", as_of=known, now=true)
    assert [hit.statement for hit in recall.hits] == answer


def test_what_was_corrected_was_never_true(store: MemoryStore, ana: Identity) -> None:
    (brno,) = keep(store, ana, home("Brno", JANUARY, AUGUST))
    for since in (None, JANUARY, MARCH):
        right = home("Zlín", since)
        write(
            store,
            ana,
            Change(action="supersede", target=brno.id, expected=brno.revision, record=right, rule="r", reason="x"),
        )
        found = store.current(ana, "ana", "home", now=MARCH)
        assert [record.value for record in found] == ["Zlín"]
        brno = found[0]


def test_each_time_has_a_zone(store: MemoryStore, ana: Identity) -> None:
    naive: Any = {"as_of": datetime(2026, 1, 1)}, {"now": datetime(2026, 1, 1)}
    for options in naive:
        with pytest.raises(UsageError, match="has no time zone"):
            store.records(ana, **options)
        with pytest.raises(UsageError, match="has no time zone"):
            store.records(ana, ids=["mem_1"], **options)
        with pytest.raises(UsageError, match="has no time zone"):
            store.current(ana, "ana", "home", **options)
