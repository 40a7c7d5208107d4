"""Jobs on PostgreSQL: workers claim beside each other, and wait for nobody."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import psycopg
import pytest
from support.postgres import Postgres

from everthread import Identity
from everthread.stores import PostgresStore
from everthread.stores.jobs import Job
from everthread.stores.record import now_utc
from everthread.stores.worker import Worker

SOON = 60
"""Seconds within which a claim that waits for nobody has returned; one that waits never does here."""


@pytest.fixture
def store(postgres: Postgres) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.url, embedder="none") as store:
        yield store


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Another thread: what it does is in transactions of its own."""
    with ThreadPoolExecutor(1) as thread:
        yield thread


def soon(aside: ThreadPoolExecutor, call: Callable[[], Job | None]) -> Job | None:
    claimed: Future[Job | None] = aside.submit(call)
    return claimed.result(SOON)


@pytest.mark.parametrize("lane", ["acme", "other", None])
def test_a_claim_waits_for_no_open_write(
    store: PostgresStore, aside: ThreadPoolExecutor, ana: Identity, lane: str | None
) -> None:
    id = store.jobs.enqueue(ana, "note", {})
    with store._database.write(lane):
        job = soon(aside, store.jobs.claim)
        assert job is not None
        assert job.id == id
        aside.submit(store.jobs.heartbeat, job).result(SOON)
        aside.submit(store.jobs.complete, job).result(SOON)
    assert store.jobs.of(ana) == []


def test_a_job_that_another_is_just_claiming_is_passed_over(
    store: PostgresStore, postgres: Postgres, aside: ThreadPoolExecutor, ana: Identity
) -> None:
    first, second = (store.jobs.enqueue(ana, "note", {"n": n}) for n in (1, 2))
    with psycopg.connect(postgres.url) as another:
        another.execute("SELECT 1 FROM everthread.jobs WHERE id = %s FOR UPDATE", (first,))
        job = soon(aside, store.jobs.claim)
        assert job is not None
        assert job.id == second
        assert soon(aside, store.jobs.claim) is None
    job = store.jobs.claim()
    assert job is not None
    assert job.id == first


def test_jobs_of_a_lane_run_one_at_a_time_however_many_claim(store: PostgresStore, ana: Identity) -> None:
    for number in range(60):
        store.jobs.enqueue(ana, "note", {"n": number}, lane=f"lane-{number % 3}")
    running, at_most, done, lock = Counter[str](), Counter[str](), Counter[int](), Lock()

    def handle(job: Job) -> None:
        lane = f"lane-{job.payload['n'] % 3}"
        with lock:
            running[lane] += 1
            at_most[lane] = max(at_most[lane], running[lane])
            done[job.payload["n"]] += 1
        with lock:
            running[lane] -= 1

    workers = [Worker(store, {"note": handle}, concurrency=2, budget=None, poll=0.01) for _ in range(4)]
    for worker in workers:
        worker.start()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(until_done, store, ana).result(60)
    for worker in workers:
        assert worker.stop()
    assert at_most == {f"lane-{n}": 1 for n in range(3)}
    assert done == {number: 1 for number in range(60)}


def until_done(store: PostgresStore, identity: Identity) -> None:
    while store.jobs.of(identity, now=now_utc()):
        pass


def test_a_client_that_says_nothing_in_the_middle_of_a_write_holds_its_tenant_up_no_longer_than_the_server_waits(
    postgres: Postgres, aside: ThreadPoolExecutor, ana: Identity
) -> None:
    with (
        PostgresStore(postgres.url, embedder="none") as store,
        psycopg.connect(postgres.url, autocommit=True) as silent,
    ):
        silent.execute(
            "SET idle_in_transaction_session_timeout = 300; SET search_path = everthread; "
            "BEGIN; INSERT INTO consents VALUES ('acme', 'ana', 'off', 0)"
        )
        aside.submit(store.set_consent, ana, "read").result(SOON)
        assert store.consent(ana) == "read"
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            silent.execute("SELECT 1")
        silent.close()


@pytest.mark.parametrize(
    ("asked", "waits"), [("", "1min"), ("options=-cidle_in_transaction_session_timeout%3D90s", "90s")]
)
def test_a_minute_is_waited_where_nothing_else_is_asked_for(postgres: Postgres, asked: str, waits: str) -> None:
    mark = "&" if "?" in postgres.url else "?"
    with PostgresStore(f"{postgres.url}{mark}{asked}", embedder="none") as store, store._database.read() as connection:
        assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchall() == [(waits,)]
