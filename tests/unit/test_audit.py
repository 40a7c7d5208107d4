"""The audit log: ids alone, chained; reads too where a host asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.full_disk import fill_disk
from support.records import NOON, create, keep, learnt, write

from everthread import Evidence, Identity
from everthread.errors import StoreError
from everthread.stores import SqliteStore
from everthread.stores.record import Change, Selection

SECRET = "Ana keeps the Xylophon-4711 under the carpet"


def entries(store: SqliteStore, *actions: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(user, action, detail) of the log, in order."""
    with store._database.read() as connection:
        rows = connection.execute("SELECT user, action, detail FROM audit ORDER BY seq").fetchall()
    return [(str(user), str(action), json.loads(str(detail))) for user, action, detail in rows if action in actions]


def test_the_log_holds_ids_and_counts_and_no_word(tmp_path: Path, ana: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none", audit_reads=True) as store:
        said = Evidence(thread_id="t1", message_id="m1", role="user", text=SECRET, at=NOON, source="user")
        store.transcripts.append(ana, [said])
        (record,) = keep(store, ana, learnt(SECRET))
        write(store, ana, Change(action="refuse", rule="secret", reason="it looks like a password"))
        store.recall(ana, "where is the Xylophon?", sources={"records", "evidence"})
        erasure = store.erase(ana, Selection(record_ids=(record.id,)), reason="she asked", with_source=True)
        logged = entries(store, "write", "read", "erase", "verify")
        assert "Xylophon" not in json.dumps(logged)
        assert [action for _, action, _ in logged] == ["write", "read", "write", "read", "erase", "verify"]
        counted = {"records": 1, "revisions": 1, "index": 1, "evidence": 1}
        assert logged[-2][2] == {"receipt": erasure.id, "records": [record.id], "users": [], "erased": counted}
        assert logged[-1][2] == {"receipt": erasure.id, "verified": True, "remains": 1}
        assert all(finding.ok for finding in store.doctor())


def test_reads_are_noted_by_who_read_what(tmp_path: Path, ana: Identity, ben: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none", audit_reads=True) as store:
        said = Evidence(thread_id="t1", message_id="m1", role="user", text="I like tea", at=NOON, source="user")
        store.transcripts.append(ana, [said])
        record = learnt("Ana likes tea", subject="ana", predicate="likes", value="tea")
        write(store, ana, create(record))
        store.recall(ana, "tea", sources={"records", "evidence"})
        store.records(ana)
        store.history(ana, record.id)
        store.current(ana, "ana", "likes")
        store.record(ben, record.id)
        assert entries(store, "read") == [
            ("ana", "read", {"call": "recall", "records": [record.id], "messages": ["t1#m1"]}),
            ("ana", "read", {"call": "records", "records": [record.id], "messages": []}),
            ("ana", "read", {"call": "history", "records": [record.id], "messages": []}),
            ("ana", "read", {"call": "current", "records": [record.id], "messages": []}),
            ("ben", "read", {"call": "record", "records": [], "messages": []}),
        ]


def test_reads_are_not_noted_unless_it_is_asked_for(tmp_path: Path, ana: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none") as store:
        keep(store, ana, learnt("Ana likes tea"))
        store.recall(ana, "tea")
        assert entries(store, "read") == []


def test_a_read_that_cannot_be_noted_is_not_answered(tmp_path: Path, ana: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none", audit_reads=True) as store:
        keep(store, ana, learnt("Ana likes tea"))
        fill_disk(store)
        with pytest.raises(StoreError, match="full"):
            for _ in range(1_000):
                store.records(ana)


def test_what_has_expired_is_still_stored(tmp_path: Path, ana: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none") as store:
        (record,) = keep(store, ana, learnt("Ana likes tea", expires_at=NOON))
        assert store.recall(ana, "tea").hits == ()
        assert store.record(ana, record.id) == record
        assert store.erase(ana, Selection(record_ids=(record.id,)), reason="asked").verified
        assert store.record(ana, record.id) is None
