"""The audit log: ids alone, chained; reads too where a host asks for it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from support.full_disk import fill_disk
from support.old_files import old_file
from support.records import NOON, create, keep, learnt, write

from everthread import Evidence, Identity
from everthread.errors import StoreError
from everthread.stores import SqliteStore
from everthread.stores.contract import Finding, Noted, Used
from everthread.stores.record import Change, Selection
from everthread.stores.tables import audit

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


@pytest.mark.parametrize(
    "query",
    [audit.BY_RECORD, audit.BY_THREAD, audit.BY_USER, audit.BY_TENANT, audit.BY_OTHERS, audit.TOUCHES, audit.NOTED],
)
def test_no_question_reads_the_whole_log(tmp_path: Path, query: str) -> None:
    asked = {"record": "mem_1", "thread": "t1", "tenant": "acme", "user": "ana", "admin": 0, "action": None}
    values: Any = {**asked, "after": 0, "limit": 10, "reply": "r1", "answers": "m1"}
    with SqliteStore(tmp_path / "memory.db", embedder="none") as store, store._database.read() as connection:
        plan = [str(step[3]) for step in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    assert [step for step in plan if step.startswith("SCAN") and "family" not in step and "CONSTANT" not in step] == []
    assert any("audit" in step or "injected" in step for step in plan)


def test_an_index_that_was_cut_is_seen_and_derived_again(tmp_path: Path, ana: Identity) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none") as store:
        (record,) = keep(store, ana, learnt("Ana likes tea"))
        store.note(ana, "t1", [Noted(action="inject", records=(Used(record_id=record.id, revision=1),))], reply_id="r1")
        with store._database.write() as connection:
            connection.execute("DELETE FROM audit_records WHERE seq = 2")
        assert store.trace(ana, record.id) == []
        detail = "chain of 2 entries verified, but 1 are not found by the records they name"
        assert store.verify_audit() == Finding(
            check="audit", ok=False, detail=detail, remedy="run `everthread doctor --fix`"
        )
        mended = Finding(check="audit", ok=True, detail="1 entries are found by the records they name again")
        assert store.repair() == [mended]
        assert [touch.reply_id for touch in store.trace(ana, record.id)] == ["r1"]
        assert store.verify_audit().ok


def test_an_older_log_can_be_asked_after_the_migration(tmp_path: Path, ana: Identity) -> None:
    file = tmp_path / "memory.db"
    rows = [
        (
            "write",
            {
                "receipt": "rcp_1",
                "decisions": [["superseded", "newer", "mem_2", 1, "mem_1"], ["refused", "x", None, None, None]],
            },
        ),
        ("read", {"call": "recall", "records": ["mem_2"], "messages": []}),
        ("erase", {"receipt": "ers_1", "records": ["mem_1", "mem_2"], "users": [], "erased": {}}),
    ]
    old_file(file, 8)
    last = b""
    with closing(apsw.Connection(str(file))) as connection:
        for seq, (action, detail) in enumerate(rows, start=1):
            row = (1, "acme", "ana", action, json.dumps(detail, sort_keys=True))
            last = audit.link(last, row)
            connection.execute(audit.APPEND, (seq, *row, last))
    with SqliteStore(file, embedder="none") as store:
        assert store.verify_audit() == Finding(check="audit", ok=True, detail="chain of 3 entries verified")
        assert [entry.seq for entry in store.audit(ana, record_id="mem_1")] == [1, 3]
        assert [entry.seq for entry in store.audit(ana, record_id="mem_2")] == [1, 2, 3]
        assert [entry.thread_id for entry in store.audit(ana)] == [None, None, None]


def one_chain(file: Path, *tenants: str) -> None:
    """A log as it was when all tenants shared a chain: an entry for each of these."""
    old_file(file, 11)
    last = b""
    with closing(apsw.Connection(str(file))) as connection:
        for seq, tenant in enumerate(tenants, start=1):
            row = (1, tenant, "ana", "erase", json.dumps({"records": [f"mem_{seq}"], "said": "日本"}, sort_keys=True))
            last = audit.link(last, row)
            connection.execute(audit.APPEND, (seq, *row, last))
            connection.execute("INSERT INTO audit_records (record_id, seq) VALUES (?, ?)", (f"mem_{seq}", seq))


def test_the_chain_that_tenants_shared_becomes_one_for_each(tmp_path: Path, ana: Identity) -> None:
    file = tmp_path / "memory.db"
    one_chain(file, "acme", "other", "acme", "third", "acme", "other")
    with SqliteStore(file, embedder="none") as store:
        store.set_consent(ana, "read")
        whole = Finding(check="audit", ok=True, detail="chains of 3 tenants with 7 entries verified")
        assert store.verify_audit() == whole
        assert [entry.seq for entry in store.audit(ana, record_id="mem_5")] == [3]
        assert [entry.action for entry in store.audit(ana)] == ["erase", "erase", "erase", "consent"]


class Watched:
    """A connection that remembers how many rows it gave all at once."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.at_once: list[int] = []

    def execute(self, sql: str, values: Any = None) -> Any:
        rows = self._connection.execute(sql, values).fetchall()
        self.at_once.append(len(rows))
        return SimpleNamespace(fetchall=lambda: rows)

    def streamed(self, sql: str, values: Any) -> Any:
        return self._connection.streamed(sql, values)


def test_a_whole_log_is_verified_without_reading_it_at_once(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with SqliteStore(file, embedder="none") as store:
        for n in range(20):
            write(store, Identity(tenant="acme", user="ana"), create(learnt(f"fact {n}")))
        with store._database.read() as connection:
            watched = Watched(connection)
            assert audit.verified(watched).detail == "chain of 20 entries verified"  # type: ignore[arg-type]
    assert watched.at_once == [1]


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        ("UPDATE audit SET user = 'ben' WHERE seq = 3", {"acme": 2}),
        ("DELETE FROM audit WHERE seq = 2", {"acme": 2}),
        ("DELETE FROM audit WHERE seq = 1", {"other": 1}),
    ],
)
def test_a_shared_chain_that_was_broken_is_broken_afterwards(
    tmp_path: Path, damage: str, broken: dict[str, int]
) -> None:
    file = tmp_path / "memory.db"
    one_chain(file, "acme", "other", "acme", "third", "acme", "other")
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(damage)
    with SqliteStore(file, embedder="none") as store, store._database.read() as connection:
        found = {tenant: audit.first_broken(connection, tenant) for tenant in ("acme", "other", "third")}
    assert {tenant: place[1] for tenant, place in found.items() if place} == broken
