"""A file of an older version becomes one of today's, and a copy of it stays for a while."""

from __future__ import annotations

import json
import os
import struct
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import numpy as np
import pytest
from support.old_files import old_file
from support.records import NOON, TopicEmbeddings, learnt

from everthread import Identity, Scope
from everthread.errors import UsageError
from everthread.stores import SqliteStore
from everthread.stores.database import one
from everthread.stores.identity import Within
from everthread.stores.record import Governance, Selection
from everthread.stores.scoring import Document, encode
from everthread.stores.sqlite.database import Database, migrations
from everthread.stores.tables.rows import Stored, body_of, bounds_of, columns_of, document_of, space_of
from everthread.stores.tables.times import micros

NEWEST = max(migrations())
TASK = """
INSERT INTO tasks (id, tenant, user, text, status, created_at)
VALUES ('task_1', 'acme', 'ana', CAST('buy tea' AS BLOB), 'scheduled', 1)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def insert_as_then(connection: apsw.Connection, row: dict[str, Any]) -> None:
    """A record as it was kept when its row had what it says."""
    values = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO records ({', '.join(row)}) VALUES ({values})", row)


def version_of(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return int(one(connection, "PRAGMA user_version"))


@pytest.mark.parametrize("version", range(3, NEWEST))
def test_an_older_file_is_migrated_and_copied_first(file: Path, ana: Identity, version: int) -> None:
    old_file(file, version, TASK)
    with SqliteStore(file, embedder="none") as store:
        assert [task.text for task in store.tasks.of(ana)] == ["buy tea"]
        assert all(finding.ok for finding in store.doctor())
        assert f"memory.db.v{version}.bak, is kept until" in store.doctor()[0].detail
    assert version_of(file) == NEWEST
    copy = file.with_name(f"memory.db.v{version}.bak")
    assert version_of(copy) == version
    with closing(apsw.Connection(str(copy))) as connection:
        assert one(connection, "SELECT CAST(text AS TEXT) FROM tasks") == "buy tea"


def test_a_new_file_has_no_copy(file: Path) -> None:
    SqliteStore(file, embedder="none").close()
    SqliteStore(file, embedder="none").close()
    assert [path.name for path in file.parent.iterdir()] == ["memory.db"]


def test_a_copy_goes_when_it_has_expired(file: Path) -> None:
    old_file(file, 3)
    SqliteStore(file, embedder="none").close()
    copy = file.with_name("memory.db.v3.bak")
    SqliteStore(file, embedder="none").close()
    assert copy.exists()
    a_month_ago = time.time() - 31 * 24 * 60 * 60
    os.utime(copy, (a_month_ago, a_month_ago))
    SqliteStore(file, embedder="none").close()
    assert not copy.exists()


def test_how_long_a_copy_is_kept_can_be_chosen(file: Path) -> None:
    old_file(file, 3)
    database = Database(str(file), backup_days=0)
    assert database.backups() == []
    database.close()


def test_a_failed_migration_changes_nothing(file: Path) -> None:
    old_file(file, 3, "CREATE TABLE embedders (x)")
    with pytest.raises(apsw.SQLError):
        Database(str(file))
    assert version_of(file) == 3
    with closing(apsw.Connection(str(file))) as connection:
        assert one(connection, "SELECT count(*) FROM pragma_table_info('search') WHERE name = 'whole'") == 1


def test_several_open_an_older_file_at_once(file: Path) -> None:
    old_file(file, 3, TASK)
    problems: list[BaseException] = []

    def use() -> None:
        try:
            Database(str(file)).close()
        except BaseException as error:
            problems.append(error)

    threads = [Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert (version_of(file), version_of(file.with_name("memory.db.v3.bak"))) == (NEWEST, 3)


def test_a_newer_file_is_refused_and_not_copied(file: Path) -> None:
    old_file(file, NEWEST, "CREATE TABLE of_the_future (x)")
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(f"PRAGMA user_version={NEWEST + 1}")
    with pytest.raises(UsageError, match=f"newer everthread \\(schema {NEWEST + 1}\\); upgrade everthread"):
        SqliteStore(file)
    assert not list(file.parent.glob("*.bak"))


def test_vectors_keep_their_embedder_through_the_migration(file: Path) -> None:
    old_file(file, 3)
    blob = encode(Document("r1", "Ana has a kitten"), np.ones((1, 300), np.float32))
    assert struct.unpack_from("<H", blob, 6) == (300,)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("INSERT INTO meta VALUES ('embedder', 'TopicEmbeddings')")
        rows = [
            ("acme/records/user/ana", "", 1, "r1", None, blob, 1),
            ("acme/records/user/ana", "", 2, "r2", None, blob, 0),
        ]
        connection.executemany("INSERT INTO search VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    with SqliteStore(file, embedder=TopicEmbeddings()) as store, store._database.read() as connection:
        assert connection.execute("SELECT * FROM embedders").fetchall() == [(1, "TopicEmbeddings", 300)]
        assert connection.execute("SELECT id, embedder FROM search ORDER BY id").fetchall() == [("r1", 1), ("r2", 0)]


def test_the_index_says_for_whom_a_record_is_after_the_migration(file: Path, ana: Identity) -> None:
    """What an older version asked the table of records, the index now knows itself."""
    at_home = Scope(owner="user", owner_id=ana.user, within=Within(application="home", project="p"))
    records = [
        learnt("plain tea"),
        learnt("tea at home", scope=at_home),
        learnt("tea for ben", governance=Governance(readable_by=("ben",))),
        learnt("tea of the agent", agent_family="a", agent_versions=">=2", environment="test"),
        learnt(
            "tea this year", valid_from=NOON, valid_to=NOON + timedelta(days=9), expires_at=NOON + timedelta(days=8)
        ),
        learnt("tea here", "session", "t1"),
    ]
    old_file(file, 5)
    with closing(apsw.Connection(str(file))) as connection:
        for seq, record in enumerate(records, start=1):
            space = space_of(ana.tenant, record)
            insert_as_then(connection, columns_of(ana.tenant, Stored(record, ana.user)) | {"body": body_of(record)})
            connection.execute(
                "INSERT INTO search (space, grp, seq, id, blob, embedder) VALUES (?, '', ?, ?, ?, 0)",
                (space, seq, record.id, encode(document_of(record, ana.user), None)),
            )
            connection.execute("INSERT OR REPLACE INTO search_versions VALUES (?, ?)", (space, seq))
    with SqliteStore(file, embedder="none") as store, store._database.read() as connection:
        found = connection.execute("SELECT id, since, until, reach, known, gone FROM search").fetchall()
    known = {id: (since, until, reach and json.loads(str(reach)), *rest) for id, since, until, reach, *rest in found}
    bounds = {record.id: bounds_of(record, ana.user) for record in records}
    assert known == {
        id: (since, until, reach and json.loads(reach), *rest) for id, (since, until, reach, *rest) in bounds.items()
    }


def test_what_a_record_says_is_kept_once_after_the_migration(file: Path, ana: Identity) -> None:
    first, second, torn = (learnt(f"Ana has {n} kittens") for n in ("no", "two", "three"))
    second = second.model_copy(update={"id": first.id, "revision": 2})
    old_file(file, 7)
    with closing(apsw.Connection(str(file))) as connection:
        for record in (second, torn):
            insert_as_then(connection, columns_of(ana.tenant, Stored(record, ana.user)) | {"body": body_of(record)})
        connection.executemany(
            "INSERT INTO revisions VALUES (?, ?, ?, 'ana', 'rcp_1', 'x', ?)",
            [(record.id, record.revision, record.revision, body_of(record)) for record in (first, second)],
        )
    with SqliteStore(file, embedder="none") as store:
        assert store.history(ana, first.id) == [first, second]
        assert (store.record(ana, second.id), store.record(ana, torn.id)) == (second, torn)
        assert store.history(ana, torn.id) == [torn], "its row alone had it"
        store.erase(ana, Selection(record_ids=(first.id,)), reason="asked to")
    assert b"two kittens" not in file.read_bytes()


def test_what_records_said_before_is_found_after_the_migration_by_a_job(file: Path, ana: Identity) -> None:
    first, other = (learnt(f"Ana plays the {what}.", recorded_at=NOON) for what in ("violin", "drums"))
    update = {"statement": "Ana plays the cello.", "revision": 2, "recorded_at": NOON + timedelta(days=1)}
    second = first.model_copy(update=update)
    old_file(file, 12)
    with closing(apsw.Connection(str(file))) as connection:
        for seq, record in enumerate((second, other), start=1):
            insert_as_then(connection, columns_of(ana.tenant, Stored(record, ana.user)))
            connection.execute(
                "INSERT INTO search (space, seq, grp, id, embedder, blob) VALUES (?, ?, '', ?, 0, ?)",
                (space_of(ana.tenant, record), seq, record.id, encode(document_of(record, ana.user), None)),
            )
        connection.execute("INSERT INTO search_versions VALUES (?, 2, 0)", (space_of(ana.tenant, second),))
        connection.executemany(
            "INSERT INTO revisions VALUES (?, ?, ?, 'ana', ?, 'x', ?)",
            [
                (record.id, record.revision, micros(record.recorded_at), f"rcp_{n}", body_of(record))
                for n, record in enumerate((first, second, other))
            ],
        )
    with SqliteStore(file, embedder="none") as store:
        early = store.recall(ana, "violin or drums", as_of=NOON)
        assert [hit.record_id for hit in early.hits] == [other.id]
        assert early.degraded == ("history: what was changed since is not searchable yet; a job makes it so",)
        assert store.jobs.drain(store.handlers()) == 1
        then = store.recall(ana, "violin", as_of=NOON, limit=1)
        assert ([(hit.record_id, hit.statement) for hit in then.hits], then.degraded) == (
            [(first.id, first.statement)],
            (),
        )
        assert all(finding.ok for finding in store.doctor() if finding.check in ("index", "jobs"))
