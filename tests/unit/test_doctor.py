"""What `doctor` finds and `repair` mends, in a file that somebody has damaged by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.records import BrokenEmbeddings, Clock, TopicEmbeddings, create, keep, learnt, said_by, write

from everthread import Identity, Record
from everthread.errors import StoreError
from everthread.stores import SqliteStore
from everthread.stores.contract import Finding, Job
from everthread.stores.record import Change, Relation, now_utc
from everthread.stores.tables.jobs import ATTEMPTS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db", embedder=TopicEmbeddings()) as opened:
        yield opened


def damage(store: SqliteStore, *statements: str) -> None:
    """What no code of ours does."""
    with store._database.read() as connection:
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA foreign_keys=OFF")
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("BEGIN")
    store._rows.forget()


def broken(store: SqliteStore) -> dict[str, str]:
    """What is not as it should be, by check."""
    return {finding.check: finding.detail for finding in store.doctor() if not finding.ok}


def repaired(store: SqliteStore) -> list[tuple[str, str]]:
    done = store.repair()
    assert all(finding.ok for finding in done), done
    assert broken(store) == {}
    assert store.repair() == []
    return [(finding.check, finding.detail) for finding in done]


def revised(store: SqliteStore, ana: Identity, record: Record, statement: str) -> Record:
    new = record.model_copy(update={"statement": statement})
    write(store, ana, Change(action="revise", target=record.id, expected=1, record=new, rule="r", reason="x"))
    found = store.record(ana, record.id)
    assert found is not None
    return found


def test_a_sound_store_needs_no_repair(store: SqliteStore, ana: Identity) -> None:
    assert store.repair() == []
    keep(store, ana, learnt("Ana has a kitten"))
    assert (broken(store), store.repair()) == ({}, [])


def test_missing_and_stray_texts_of_the_index_are_mended(store: SqliteStore, ana: Identity) -> None:
    (kitten, train) = keep(store, ana, learnt("Ana has a kitten"), learnt("Ana rides the train"))
    damage(
        store,
        f"UPDATE search SET id = 'mem_of_nobody' WHERE id = '{train.id}'",
        "UPDATE search_versions SET version = version + 1",
    )
    assert broken(store) == {"index": "2 texts are searchable; 1 are missing, 1 should not be there"}
    assert repaired(store) == [("index", "added 1 texts and removed 1")]
    assert store.recall(ana, "train").hits[0].record_id == train.id
    assert store.recall(ana, "feline").hits[0].record_id == kitten.id


def test_what_nothing_leads_to_is_removed(store: SqliteStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana has a kitten"))
    store.artifacts.put(ana, "summary", "They spoke about kittens", thread_id="t1")
    store.inbox.admit(ana, "t1", "m1", "hello")
    damage(
        store,
        "INSERT INTO messages (thread_id, message_id, text) VALUES ('gone', 'm1', x'00')",
        "INSERT INTO inbox (thread_id, message_id, delivery) VALUES ('gone', 'm1', 'queue')",
        "DELETE FROM artifact_uses",
        f"INSERT INTO revisions SELECT 'mem_gone', 1, 1, 'ana', '', '', body FROM revisions WHERE id = '{record.id}'",
        "INSERT INTO item_vectors VALUES (99, '$', 0, x'00')",
    )
    assert broken(store) == {
        "orphans": "nothing leads to 1 revisions, 1 messages, 1 inbox, 1 artifacts, 1 item_vectors"
    }
    assert repaired(store) == [
        ("orphans", f"removed 1 rows of {table} that nothing leads to")
        for table in ("revisions", "messages", "inbox", "artifacts", "item_vectors")
    ]
    assert store.inbox.pending(ana, "t1") == [("m1", "hello")]
    assert store.history(ana, record.id) == [record]


def test_relations_are_what_the_records_say(store: SqliteStore, ana: Identity) -> None:
    (first,) = keep(store, ana, learnt("Ana has a kitten"))
    keep(store, ana, learnt("A view", relations=(Relation(kind="derived_from", target=first.id, reason="r"),)))
    damage(store, "UPDATE relations SET target = 'mem_of_nobody'")
    assert broken(store) == {"relations": "2 are not what the records say"}
    assert repaired(store) == [("relations", "2 relations are what the records say again")]


def test_queries_filter_by_what_the_records_say(store: SqliteStore, ana: Identity, ben: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana has a kitten"))
    damage(store, "UPDATE records SET owner_id = 'ben', status = 'archived'")
    assert broken(store)["fields"] == "1 differ"
    assert store.records(ben) == [], "the record itself is asked as well"
    assert ("fields", "1 records are filtered by what they say again") in repaired(store)
    assert store.records(ana) == [record]


def lost(check: str, detail: str) -> Finding:
    return Finding(check=check, ok=False, detail=detail, remedy="restore a backup")


def test_what_a_damaged_record_said_is_not_replaced_by_what_it_said_before(store: SqliteStore, ana: Identity) -> None:
    (first,) = keep(store, ana, learnt("Ana has a kitten"))
    revised(store, ana, first, "Ana has two kittens")
    damage(store, "UPDATE revisions SET body = substr(body, 1, 100) WHERE revision = 2")
    assert broken(store)["fields"] == "1 cannot be read"
    with pytest.raises(StoreError, match=f"record {first.id} is damaged; restore a backup"):
        store.record(ana, first.id)
    with pytest.raises(StoreError, match=f"record {first.id} is damaged; restore a backup"):
        store.recall(ana, "kitten", as_of=now_utc())
    assert lost("fields", f"what {first.id} says is damaged") in store.repair()
    assert "fields" in broken(store)
    with store._database.read() as connection:
        assert connection.execute("SELECT revision FROM records").fetchall() == [(2,)]


def test_a_record_that_lags_behind_its_history_catches_up(store: SqliteStore, ana: Identity) -> None:
    (first,) = keep(store, ana, learnt("Ana has a kitten"))
    second = revised(store, ana, first, "Ana has two kittens")
    damage(store, "UPDATE records SET revision = 1")
    assert "history" in broken(store)
    assert ("history", f"record {first.id} is at its revision 2 again") in repaired(store)
    assert store.record(ana, first.id) == second


def test_lost_revisions_are_named(store: SqliteStore, ana: Identity) -> None:
    (first,) = keep(store, ana, learnt("Ana has a kitten"))
    second = revised(store, ana, first, "Ana has two kittens")
    damage(store, "DELETE FROM revisions WHERE revision = 1")
    assert store.repair() == [
        lost("history", f"revisions of {first.id} are lost"),
        Finding(check="index", ok=True, detail="added 0 texts and removed 1"),
    ]
    assert store.record(ana, first.id) == second
    damage(store, "DELETE FROM revisions WHERE revision = 2")
    assert {finding.detail for finding in store.repair()} >= {
        f"revisions of {first.id} are lost",
        f"what {first.id} says is damaged",
    }


def test_the_audit_log_is_never_mended(store: SqliteStore, ana: Identity) -> None:
    keep(store, ana, learnt("Ana has a kitten"), learnt("Ana rides the train"))
    write(store, ana, create(learnt("Ana paints", provenance=said_by("ana", "t1", "m2"))))
    damage(store, "DELETE FROM audit WHERE seq = 1")
    assert store.repair() == []
    assert broken(store) == {"audit": "entry 2 was changed, or one before it is gone"}


def test_texts_without_vectors_get_them_and_jobs_that_gave_up_go(tmp_path: Path, ana: Identity) -> None:
    embeddings, clock = BrokenEmbeddings(), Clock(now_utc())
    with SqliteStore(tmp_path / "memory.db", embedder=embeddings) as store:
        keep(store, ana, learnt("Ana has a kitten"))
        give_up(store, clock)
        assert broken(store).keys() == {"vectors", "jobs"}
        (failed,) = store.repair()
        assert (failed.check, failed.ok) == ("vectors", False)
        embeddings.broken = False
        assert repaired(store) == [
            ("vectors", "embedded 1 texts by BrokenEmbeddings"),
            ("jobs", "removed 1 embed jobs that were given up: their work is done"),
        ]
        assert store.recall(ana, "feline").hits[0].signals.semantic == 1.0


def give_up(store: SqliteStore, clock: Clock) -> None:
    def fail(job: Job) -> None:
        raise ConnectionError("down")

    for _ in range(ATTEMPTS):
        store.jobs.drain({"embed": fail}, now=clock.now)
        clock.now += timedelta(days=366)
