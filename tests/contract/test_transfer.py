"""A whole store moves into another: every row, the history, the chain; it can be stopped, and goes on."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from support.full import ANA, BEN, fill, other_users
from support.records import BrokenEmbeddings, keep, learnt

from everthread import Identity
from everthread.errors import UsageError
from everthread.stores import MemoryStore
from everthread.stores.record import Selection
from everthread.stores.transfer import Mark, Row, Sums, copy


def rows_of(store: MemoryStore) -> list[Row]:
    with store.transfer.snapshot() as snapshot:
        return list(snapshot.dump())


@pytest.fixture
def source(store: MemoryStore) -> MemoryStore:
    fill(store)
    other_users(store)
    return store


@pytest.fixture
def target(open_empty: Any) -> Any:
    with open_empty() as empty:
        yield empty


def stop_after(source: MemoryStore, target: MemoryStore, rows: int) -> None:
    """Leave the target as a copy that was killed after so many rows."""
    sums, id = Sums(), source.transfer.id()
    with source.transfer.snapshot() as snapshot:
        first = list(islice(snapshot.dump(), rows))
    sums.add(first)
    target.transfer.load(first, Mark(source=id, rows=rows, sums=sums.told()))


def test_a_copy_has_every_row_and_the_whole_chain(source: MemoryStore, target: MemoryStore) -> None:
    report = copy(source, target)
    assert rows_of(target) == rows_of(source)
    assert (report.resumed_at, report.already) == (0, False)
    assert sum(report.rows.values()) == len([row for row in rows_of(source) if row.table != "counters"])
    assert [finding for finding in target.doctor() if not finding.ok] == []
    assert [each.action for each in target.audit(Identity(tenant="everthread", user="everthread"))] == ["copy"]


def test_everyone_finds_in_a_copy_what_was_there(source: MemoryStore, target: MemoryStore) -> None:
    copy(source, target)
    for who in (ANA, BEN):
        for question in ("报告", "row-level security", "BEN-ONLY"):
            there = source.recall(who, question, sources=("records", "evidence"))
            assert target.recall(who, question, sources=("records", "evidence")) == there
        assert target.records(who) == source.records(who)
        assert target.events(who, limit=1000) == source.events(who, limit=1000)


def test_a_copy_without_its_embedder_is_searched_by_words(source: MemoryStore, open_empty: Any) -> None:
    embeddings = BrokenEmbeddings()
    with open_empty(embedder=embeddings) as target:
        copy(source, target)
        assert [hit.statement for hit in target.recall(ANA, "Hamburg", limit=1).hits] == ["Hamburg"]
        embeddings.broken = False
        while target.jobs.drain(target.handlers()):
            pass
        assert [finding for finding in target.doctor() if not finding.ok] == []
        assert copy(source, target).already, "what follows from the rows makes no difference"


def test_what_was_erased_stays_away_in_a_copy(source: MemoryStore, target: MemoryStore) -> None:
    copy(source, target)
    assert keep(target, ANA, learnt("This will be erased")) == []


def test_numbers_are_not_given_out_twice_after_a_copy(source: MemoryStore, target: MemoryStore) -> None:
    copy(source, target)
    last = source.events(ANA, limit=1000)[-1].cursor
    keep(target, ANA, learnt("something new"))
    assert [event.cursor > last for event in target.events(ANA, last)] == [True]


@pytest.mark.parametrize("rows", [1, 17, 60])
def test_a_copy_goes_on_where_it_was_stopped(source: MemoryStore, target: MemoryStore, rows: int) -> None:
    stop_after(source, target, rows)
    assert [finding.check for finding in target.doctor() if not finding.ok and finding.check == "copy"] == ["copy"]
    assert copy(source, target).resumed_at == rows
    assert rows_of(target) == rows_of(source)
    assert target.transfer.unfinished() is None


def test_a_copy_that_was_stopped_in_the_log_goes_on_there(source: MemoryStore, target: MemoryStore) -> None:
    copied = Identity(tenant="everthread", user="everthread")
    source.transfer.note(copied, "copy", {"resumed_at": 0})
    rows = max(n for n, row in enumerate(rows_of(source), start=1) if row.table == "audit")
    stop_after(source, target, rows)
    assert copy(source, target).resumed_at == rows
    assert rows_of(target) == rows_of(source)


def test_a_copy_of_what_has_changed_meanwhile_begins_anew(source: MemoryStore, target: MemoryStore) -> None:
    stop_after(source, target, 40)
    source.erase(ANA, Selection(thread_id="t1"), reason="asked", with_source=True)
    assert copy(source, target).resumed_at == 0
    assert rows_of(target) == rows_of(source)


def test_a_second_copy_writes_nothing(source: MemoryStore, target: MemoryStore) -> None:
    copy(source, target)
    before = rows_of(target)
    assert copy(source, target).already
    assert rows_of(target) == before


def test_a_store_that_holds_memory_is_not_copied_into(source: MemoryStore, target: MemoryStore) -> None:
    keep(target, BEN, learnt("mine", "user", "ben"))
    before = rows_of(target)
    with pytest.raises(UsageError, match="holds other memory"):
        copy(source, target)
    assert rows_of(target) == before


def test_what_was_written_into_an_unfinished_copy_is_not_lost(source: MemoryStore, target: MemoryStore) -> None:
    stop_after(source, target, 3)
    kept = keep(target, BEN, learnt("mine", "user", "ben"))
    with pytest.raises(UsageError, match="was written to since"):
        copy(source, target)
    assert target.records(BEN) == kept


def test_an_unfinished_copy_of_another_store_is_left_alone(
    source: MemoryStore, target: MemoryStore, open_empty: Any
) -> None:
    stop_after(source, target, 3)
    with open_empty() as another, pytest.raises(UsageError, match="of another store"):
        copy(another, target)


def test_only_an_unfinished_copy_can_be_cleared(source: MemoryStore) -> None:
    before = rows_of(source)
    with pytest.raises(UsageError, match="no unfinished copy"):
        source.transfer.clear()
    assert rows_of(source) == before


def test_a_table_that_is_not_known_is_refused(target: MemoryStore) -> None:
    with pytest.raises(UsageError, match="upgrade everthread"):
        target.transfer.load([Row("dreams", {"id": 1})], Mark(source="x"))
    with pytest.raises(UsageError, match="upgrade everthread"):
        target.transfer.load([Row("tasks", {"id); DROP TABLE tasks; --": 1})], Mark(source="x"))
    assert rows_of(target) == []


def test_a_snapshot_does_not_move_while_the_store_does(source: MemoryStore) -> None:
    with source.transfer.snapshot() as snapshot:
        before = list(snapshot.dump())
        keep(source, ANA, learnt("written meanwhile"))
        assert [record.statement for record in source.records(ANA, limit=1)] == ["written meanwhile"]
        assert list(snapshot.dump()) == before
