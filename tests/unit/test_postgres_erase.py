"""What an erasure on a server reads and vacuums: what its tenant has, and what nobody has for itself."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Thread

import psycopg
import pytest
from support.full import fill
from support.postgres import Postgres
from support.records import create, learnt, write

from everthread import Identity
from everthread.stores import MemoryStore, open_store
from everthread.stores.postgres.vacuum import vacuum
from everthread.stores.record import Selection
from everthread.stores.tables.verification import KEPT_WORDS, LEFT_OVER

ANA, SAM = Identity(tenant="acme", user="ana"), Identity(tenant="globex", user="sam")
TOUCHED = """
SELECT relname, seq_scan + coalesce(idx_scan, 0), vacuum_count FROM pg_stat_user_tables
WHERE schemaname = 'everthread' AND relname <> 'migrations'
"""
SESSIONS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'store'
"""
LOOKS_OR_VACUUMS = """
SELECT pid FROM pg_stat_activity WHERE pid = %s AND (query LIKE '%%pg_stat_activity%%' OR query LIKE 'VACUUM%%')
"""
OF_TENANT = """
SELECT DISTINCT regexp_replace(tableoid::regclass::text, '.*_p', '_p') FROM everthread.records WHERE tenant = %s
"""
WITHOUT_WORDS = {
    "artifact_uses", "audit_records", "consents", "gates", "outbox", "relations", "search_versions",
    "embedders", "meta", "tombstones", "item_vectors",
}  # fmt: skip
"""Ids, times, hashes and numbers."""


@contextmanager
def opened(postgres: Postgres) -> Iterator[MemoryStore]:
    """A store that does with few statements what it does. When this ends, so have its sessions: each has then told the
    server what it has read."""
    mark = "&" if "?" in postgres.url else "?"
    with open_store(f"{postgres.url}{mark}application_name=store", embedder="none") as store:
        yield store
    while postgres.run(SESSIONS):
        pass


def touched(postgres: Postgres) -> dict[str, tuple[int, int]]:
    """How often each table was read, and how often vacuumed."""
    return {str(name): (int(str(scans)), int(str(swept))) for name, scans, swept in postgres.run(TOUCHED)}


@pytest.fixture
def two_tenants(postgres: Postgres) -> Selection:
    """A record of one of two tenants, whose rows lie in different partitions."""
    with opened(postgres) as store:
        fill(store)
        write(store, SAM, create(learnt("Sam likes tea", owner_id="sam")))
        (decision,) = write(store, ANA, create(learnt("Ana keeps the Xylophon-4711 under the carpet")))
    assert decision.record_id is not None
    return Selection(record_ids=(decision.record_id,))


def test_an_erasure_reads_and_vacuums_no_partition_of_others(postgres: Postgres, two_tenants: Selection) -> None:
    [(own,)], [(other,)] = (postgres.run(OF_TENANT, values=(each.tenant,)) for each in (ANA, SAM))
    assert own != other
    before = touched(postgres)
    with opened(postgres) as store:
        assert store.erase(ANA, two_tenants, reason="asked for").verified
    after = touched(postgres)
    changed = {name for name in after if after[name] != before[name]}
    assert {name for name in changed if re.search(r"_p\d+$", name) and not name.endswith(str(own))} == set()
    swept = {name for name in after if after[name][1] > before[name][1]}
    assert {name for name in swept if not name.endswith(str(own))} == {"items", "item_vectors", "jobs", "threads"}
    assert {name for name in after if name.endswith(str(own))} <= swept


def test_each_table_is_looked_at_or_holds_no_words(postgres: Postgres) -> None:
    statements = " ".join(sql for _, sql in (*KEPT_WORDS, *LEFT_OVER))
    with opened(postgres) as store, store._database.read() as connection:  # type: ignore[attr-defined]
        there = set(connection.tables())
    assert there - set(re.findall(r"\b(?:FROM|JOIN) (\w+)", statements)) == WITHOUT_WORDS


def test_what_is_read_again_is_fetched_in_parts(postgres: Postgres, two_tenants: Selection) -> None:
    with opened(postgres) as store, store._database.read("acme") as connection:  # type: ignore[attr-defined]
        rows = iter(connection.streamed("SELECT body FROM revisions", {}))
        next(rows)
        assert connection.execute("SELECT name FROM pg_cursors WHERE name <> ''").fetchall() == [("streamed_0",)]
        assert list(rows)
        assert connection.execute("SELECT name FROM pg_cursors WHERE name <> ''").fetchall() == []


def test_who_reads_when_an_erasure_begins_is_waited_for(postgres: Postgres) -> None:
    """Its dead rows could not be removed as long as somebody reads what was before, even if only of the first table."""
    postgres.run("CREATE TABLE first AS SELECT generate_series(1, 9)")
    postgres.run("CREATE TABLE second (n int)")
    with (
        psycopg.connect(postgres.url) as reader,
        psycopg.connect(postgres.url) as busy,
        psycopg.connect(postgres.url, autocommit=True) as erasing,
        ThreadPoolExecutor(1) as aside,
    ):
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute("SELECT count(*) FROM first").fetchall() == [(9,)]
        busy.execute("LOCK TABLE second IN SHARE UPDATE EXCLUSIVE MODE")  # no vacuum comes to its end before this does
        erasing.execute("DELETE FROM first")
        done = aside.submit(vacuum, erasing, ["first", "second"])
        while not postgres.run(LOOKS_OR_VACUUMS, values=(erasing.info.backend_pid,)):
            pass
        reader.commit()
        busy.commit()
        done.result(60)
    assert postgres.run("SELECT pg_relation_size('first')") == [(0,)]


def test_an_erasure_beside_a_write_that_began_before_says_what_is_left(
    postgres: Postgres, two_tenants: Selection
) -> None:
    with psycopg.connect(postgres.url) as writer, opened(postgres) as store:
        writer.execute("CREATE TABLE public.others (n int)")  # it reads nothing, and the server keeps what was before
        (_, left) = store.erase(ANA, two_tenants, reason="asked for").remains
    # the server may be looking at a table at that moment, too
    assert re.search(r"[1-9] sessions, here or on replicas, still see the state before; end their transactions", left)


def test_a_vacuum_beside_it_does_not_hold_an_erasure_up(postgres: Postgres, two_tenants: Selection) -> None:
    postgres.run("CREATE TABLE public.wide AS SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, 2000) AS n")
    with slowly(postgres, "VACUUM public.wide"), opened(postgres) as store:
        assert store.erase(ANA, two_tenants, reason="asked for").remains == (
            "the messages that it came from, and their checkpoints: with_source=True erases them too",
        )


@contextmanager
def slowly(postgres: Postgres, vacuum: str) -> Iterator[None]:
    """A vacuum that is under way, and is ended at the end."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("SET vacuum_cost_delay = 100")
        connection.execute("SET vacuum_cost_limit = 1")
        running = Thread(target=_until_cancelled, args=(lambda: connection.execute(vacuum.encode()),))
        running.start()
        while not postgres.run("SELECT pid FROM pg_stat_progress_vacuum WHERE datname = current_database()"):
            assert running.is_alive()
        try:
            yield
            assert running.is_alive()
        finally:
            connection.cancel()
            running.join()


def _until_cancelled(run: Callable[[], object]) -> None:
    try:
        run()
    except psycopg.errors.QueryCanceled:
        pass
