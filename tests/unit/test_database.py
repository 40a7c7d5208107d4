"""Files that are not ours, broken, full or read-only; two processes at once; a process that is killed."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.full_disk import fill_disk
from support.records import create, keep, learnt, write

from everthread import Identity, Record
from everthread.errors import StoreError, UsageError
from everthread.stores import SqliteStore, open_store
from everthread.stores.database import one
from everthread.stores.record import Change, Selection
from everthread.stores.sqlite.database import Database


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def opened(file: Path) -> SqliteStore:
    return SqliteStore(file, embedder="none")


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process, at work on the same file."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


# --- files


def test_a_database_of_another_program_is_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(UsageError, match="of another program"):
        opened(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_that_is_no_database_is_left_alone(file: Path) -> None:
    file.write_text("This is not a database at all, but a note of some length. " * 100)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="not a SQLite database"):
        opened(file)
    assert file.read_bytes() == before


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        opened(tmp_path)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(StoreError, match="home"):
        open_store(f"sqlite:{tmp_path / 'home'}")


def test_a_file_of_a_newer_version_is_not_touched(file: Path) -> None:
    opened(file).close()
    with sqlite3.connect(file) as newer:
        newer.execute("PRAGMA user_version = 9999")
    newer.close()
    with pytest.raises(UsageError, match="newer everthread"):
        opened(file)


def test_an_empty_file_becomes_a_store(file: Path, ana: Identity) -> None:
    file.touch()
    with opened(file) as store:
        assert store.records(ana) == []


def test_a_corrupt_file_is_reported(file: Path, ana: Identity) -> None:
    with opened(file) as store:
        keep(store, ana, *(learnt(f"Train {n} goes to Brno") for n in range(500)))
        store._database.scrub()
        with store._database.read() as connection:
            root = one(connection, "SELECT rootpage FROM sqlite_schema WHERE name = 'records'")
            size = one(connection, "PRAGMA page_size")
    with file.open("r+b") as content:
        content.seek((root - 1) * size)
        content.write(b"\x07" * size)
    with opened(file) as store, pytest.raises(StoreError, match=r"corrupt; restore a backup"):
        store.records(ana)


def test_doctor_sees_a_torn_history_a_changed_log_and_a_drifted_index(file: Path, ana: Identity) -> None:
    with opened(file) as store:
        first, second = keep(store, ana, learnt("Train one"), learnt("Train two"))
        new = first.model_copy(update={"statement": "Train three"})
        write(store, ana, Change(action="revise", target=first.id, expected=1, record=new, rule="r", reason="x"))
        with store._database.write() as connection:
            connection.execute("DELETE FROM revisions WHERE id = ? AND revision = 1", (first.id,))
            connection.execute("""UPDATE audit SET detail = replace(detail, 'created', 'refused')""")
            connection.execute("DELETE FROM search WHERE id = ?", (second.id,))
        found = {finding.check: finding for finding in store.doctor()}
        assert {check for check, finding in found.items() if not finding.ok} == {"history", "audit", "index"}
        assert found["history"].detail == "2 records, 1 without their whole history"
        assert found["audit"].detail == "entry 1 was changed, or one before it is gone"
        assert found["index"].detail == "2 texts are searchable; 1 are missing, 1 should not be there"
        assert store.rebuild() == 2
        assert {finding.check: finding.ok for finding in store.doctor()}["index"]


OPEN_AS_NOBODY = """
import os, sys
from everthread import Identity
from everthread.errors import StoreError
from everthread.stores.sqlite.store import SqliteStore
if os.geteuid() == 0:  # root may write everything
    os.setegid(65534)
    os.seteuid(65534)
try:
    SqliteStore(sys.argv[1], embedder="none").tasks.create(Identity(tenant="acme", user="ana"), "buy tea")
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["memory.db", "new.db", "new/memory.db"])
def test_a_read_only_home_is_an_error(name: str) -> None:
    # pytest's own folders are closed to other users
    with TemporaryDirectory() as folder:
        home = Path(folder)
        opened(home / "memory.db").close()
        for path in (home, home / "memory.db"):
            path.chmod(0o555)
        writer = python(OPEN_AS_NOBODY, str(home / name))
        told, _ = writer.communicate()
        home.chmod(0o700)
    assert re.search("read-only|cannot be opened|cannot be made", told), told
    assert told.count("\n") == 1


def test_a_full_disk_loses_nothing_that_was_acknowledged(file: Path, ana: Identity) -> None:
    with opened(file) as store:
        (kept,) = keep(store, ana, learnt("Ana drinks tea"))
        fill_disk(store)
        large = [learnt(f"Train {n} " + "goes to Brno and on to Vienna " * 100) for n in range(50)]
        with pytest.raises(StoreError, match="full"):
            write(store, ana, *map(create, large))
        assert store.records(ana) == [kept]
        assert store.recall(ana, "train").hits == ()
    with opened(file) as again:
        assert again.records(ana) == [kept]
        assert all(finding.ok for finding in again.doctor())
        write(again, ana, *map(create, large))
        assert len(again.records(ana)) == 51


# --- several at once


KEEP = """
import sys
sys.path.insert(0, sys.argv[2])
from everthread import Identity
from everthread.stores import SqliteStore
from support.records import create, learnt
ana = Identity(tenant="acme", user="ana")
with SqliteStore(sys.argv[1], embedder="none") as store:
    print("ready", flush=True)
    for n in range(int(sys.argv[4])):
        record = learnt(f"Train {sys.argv[3]}-{n} goes to Brno")
        store.commit(ana, [create(record)], key=f"{sys.argv[3]}-{n}")
        print(record.id, flush=True)
"""
TESTS = str(Path(__file__).parent.parent)


def test_two_processes_open_and_write_one_new_file(file: Path, ana: Identity) -> None:
    writers = [python(KEEP, str(file), TESTS, name, "40") for name in ("a", "b")]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    with opened(file) as store:
        assert len(store.records(ana)) == 80
        assert all(finding.ok for finding in store.doctor())


def test_another_processs_write_is_found_at_once(file: Path, ana: Identity) -> None:
    with opened(file) as store:
        keep(store, ana, learnt("Train x goes to Prague"))
        assert len(store.recall(ana, "train").hits) == 1
        writer = python(KEEP, str(file), TESTS, "a", "3")
        writer.communicate()
        assert len(store.recall(ana, "train").hits) == 4


def test_what_was_acknowledged_survives_a_kill(file: Path, ana: Identity) -> None:
    writer = python(KEEP, str(file), TESTS, "a", "100000")
    assert writer.stdout is not None
    with writer.stdout:
        assert writer.stdout.readline() == "ready\n"
        acknowledged = [writer.stdout.readline().strip() for _ in range(30)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    with opened(file) as store:
        kept = {record.id for record in store.records(ana)}
        assert set(acknowledged) <= kept
        assert len(kept) - len(acknowledged) in (0, 1)
        assert all(finding.ok for finding in store.doctor())


def test_threads_read_while_one_writes(file: Path, ana: Identity) -> None:
    with opened(file) as store:
        problems: list[str] = []
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                hits = store.recall(ana, "train", limit=50).hits
                records = store.records(ana)
                if len(records) < len(hits):
                    problems.append(f"{len(hits)} hits of {len(records)} records")

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(40):
            write(store, ana, create(learnt(f"Train {number} goes to Brno")))
        stop.set()
        for reader in readers:
            reader.join()
        assert problems == []
        assert len(store.recall(ana, "train", limit=50).hits) == 40


# --- the database itself


def test_a_transaction_is_rolled_back_whole(file: Path) -> None:
    database = Database(str(file))
    with pytest.raises(KeyError), database.write() as connection:
        connection.execute("INSERT INTO meta VALUES ('a', 1)")
        with database.write() as inner:
            inner.execute("INSERT INTO meta VALUES ('b', 2)")
        raise KeyError("stop")
    with database.read() as connection:
        assert one(connection, "SELECT count(*) FROM meta") == 0
    database.close()


def test_one_read_is_one_state(file: Path) -> None:
    database = Database(str(file))

    def write_elsewhere() -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO meta VALUES ('a', 1)")

    with database.read() as connection:
        assert one(connection, "SELECT count(*) FROM meta") == 0
        writer = threading.Thread(target=write_elsewhere)
        writer.start()
        writer.join()
        assert one(connection, "SELECT count(*) FROM meta") == 0
    with database.read() as connection:
        assert one(connection, "SELECT count(*) FROM meta") == 1
    database.close()


def test_threads_share_a_connection_when_they_read_one_after_the_other_and_not_when_at_once(file: Path) -> None:
    database, lent = Database(str(file)), list[object]()

    def read() -> None:
        with database.read() as connection, database.read() as again:
            assert connection is again
            lent.append(connection)

    def read_in_a_thread() -> None:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()

    for _ in range(3):
        read_in_a_thread()
    with database.read() as first:
        read_in_a_thread()
    database.close()
    assert lent[:3] == [first, first, first]
    assert lent[3] is not first


def test_a_closed_store_says_so(file: Path, ana: Identity) -> None:
    store = opened(file)
    store.close()
    store.close()
    for use in (lambda: store.records(ana), lambda: write(store, ana, create(learnt("x")))):
        with pytest.raises(UsageError, match="closed; open the store again"):
            use()


def test_an_erasure_beside_a_reader_says_what_is_left(file: Path, ana: Identity) -> None:
    """A reader of an old state keeps the old pages alive: the receipt must not claim more than was seen."""
    with SqliteStore(file, embedder="none", busy_timeout=0.2) as store, opened(file) as other:
        (record,) = keep(store, ana, learnt("Ana keeps the Xylophon-4711 at home"))
        with other._database.read() as connection:
            one(connection, "SELECT count(*) FROM records")
            erasure = store.erase(ana, Selection(record_ids=(record.id,)), reason="asked")
            assert erasure.verified is False
            assert "run erase again" in erasure.remains[-1]
        assert store.records(ana) == []


# --- by URL


def test_a_url_names_a_home(tmp_path: Path, ana: Identity) -> None:
    urls: list[str | Path] = [f"sqlite:{tmp_path}/a", f"sqlite://{tmp_path}/b", f"{tmp_path}/c", tmp_path / "d"]
    for number, url in enumerate(urls):
        with open_store(url, embedder="none") as store:
            keep(store, ana, learnt("Ana drinks tea"))
        assert (tmp_path / "abcd"[number] / "memory.db").is_file()
    with open_store(f"{tmp_path}/e.db", embedder="none"):
        assert (tmp_path / "e.db").is_file()


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ana: Identity) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite::memory:", embedder="none") as store:
        (record,) = keep(store, ana, learnt("Ana drinks tea"))
        assert store.records(ana) == [record]
        assert store.erase(ana, Selection(record_ids=(record.id,)), reason="asked").verified
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://localhost/x", "redis://x", "sqlite:", " "])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:"):
        open_store(url)


def test_it_drops_in_for_langgraphs_own(file: Path) -> None:
    with SqliteStore.from_conn_string(str(file)) as store:
        store.setup()
        store.put(("users", "ana"), "profile", {"name": "Ana"})
        item = store.get(("users", "ana"), "profile")
        assert item is not None
        assert item.value == {"name": "Ana"}
    with pytest.raises(UsageError, match="closed"):
        store.get(("users", "ana"), "profile")


def test_a_store_shows_what_it_is(file: Path) -> None:
    with opened(file) as store:
        assert repr(store) == f"SqliteStore({str(file)!r}, embedder=None)"


def test_records_are_read_by_threads_of_a_store_in_memory(ana: Identity) -> None:
    with SqliteStore(":memory:", embedder="none") as store:
        kept = keep(store, ana, learnt("Ana drinks tea"))
        found: list[Record] = []
        reader = threading.Thread(target=lambda: found.extend(store.records(ana)))
        reader.start()
        reader.join()
        assert found == kept
