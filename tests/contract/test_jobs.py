"""What every backend's job queue promises. Time is given, not waited for."""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Thread

import pytest

from everthread import Identity
from everthread.errors import Conflict, UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import Job
from everthread.stores.record import now_utc

SERIES = [timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1)]


@pytest.fixture
def now() -> datetime:
    return now_utc()


def claimed(store: MemoryStore, now: datetime, seconds: float = 60.0) -> Job:
    job = store.jobs.claim(now=now, seconds=seconds)
    assert job is not None
    return job


def test_a_job_is_claimed_as_it_was_put(store: MemoryStore, ana: Identity, now: datetime) -> None:
    id = store.jobs.enqueue(ana, "extract", {"thread_id": "t1", "numbers": [1, 2.5, None]})
    assert claimed(store, now) == Job(
        id=id,
        kind="extract",
        payload={"thread_id": "t1", "numbers": [1, 2.5, None]},
        attempts=1,
        token=1,
        tenant="acme",
        user="ana",
    )


def test_an_empty_queue_has_nothing_to_claim(store: MemoryStore, now: datetime) -> None:
    assert store.jobs.claim(now=now) is None


def test_a_leased_job_is_not_claimed_again(store: MemoryStore, ana: Identity, now: datetime) -> None:
    first, second = (store.jobs.enqueue(ana, "embed", {"n": n}) for n in (1, 2))
    assert [claimed(store, now).id, claimed(store, now).id] == [first, second]
    assert store.jobs.claim(now=now) is None


def test_only_the_kinds_asked_for_are_claimed(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "embed", {})
    wanted = store.jobs.enqueue(ana, "extract", {})
    found = store.jobs.claim(["extract", "expire"], now=now)
    assert found is not None
    assert found.id == wanted
    assert store.jobs.claim([], now=now) is None


def test_the_same_key_adds_a_job_once_for_good(store: MemoryStore, ana: Identity, ben: Identity, now: datetime) -> None:
    id = store.jobs.enqueue(ana, "extract", {"n": 1}, key="k")
    assert store.jobs.enqueue(ana, "extract", {"n": 2}, key="k") == id
    store.jobs.complete(claimed(store, now))
    assert store.jobs.enqueue(ana, "extract", {"n": 3}, key="k") == id
    assert store.jobs.claim(now=now) is None
    assert store.jobs.enqueue(ben, "extract", {"n": 1}, key="k") != id


def test_a_completed_job_is_not_claimed_again(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "embed", {})
    job = claimed(store, now)
    store.jobs.complete(job)
    assert store.jobs.claim(now=now + timedelta(days=1)) is None
    with pytest.raises(Conflict, match=f"the lease on job {job.id}"):
        store.jobs.complete(job)


def test_a_lease_that_ran_out_is_claimed_with_a_higher_token_and_fences_the_old_holder(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    store.jobs.enqueue(ana, "embed", {})
    dead = claimed(store, now, seconds=5)
    assert store.jobs.claim(now=now + timedelta(seconds=4.999999)) is None
    heir = claimed(store, now + timedelta(seconds=5))
    assert (heir.id, heir.token, heir.attempts) == (dead.id, dead.token + 1, 2)
    reports: list[Callable[[], None]] = [
        lambda: store.jobs.complete(dead),
        lambda: store.jobs.fail(dead, "late"),
        lambda: store.jobs.heartbeat(dead, now=now),
    ]
    for report in reports:
        with pytest.raises(Conflict) as lost:
            report()
        assert lost.value.winner == heir.token
    store.jobs.complete(heir)


def test_a_heartbeat_prolongs_a_lease_and_never_revives_one(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "embed", {})
    job = claimed(store, now, seconds=5)
    store.jobs.heartbeat(job, seconds=10, now=now + timedelta(seconds=4))
    assert store.jobs.claim(now=now + timedelta(seconds=13)) is None
    with pytest.raises(Conflict):
        store.jobs.heartbeat(job, now=now + timedelta(seconds=14))
    assert claimed(store, now + timedelta(seconds=14)).token == 2


def test_a_lease_that_ran_out_unclaimed_can_still_complete(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "embed", {})
    store.jobs.complete(claimed(store, now - timedelta(days=1), seconds=1))
    assert store.jobs.claim(now=now) is None


def test_a_failing_job_waits_longer_each_time_and_is_given_up_after_five_attempts(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    id = store.jobs.enqueue(ana, "embed", {"n": 1})
    for attempt, wait in enumerate(SERIES, start=1):
        job = claimed(store, now)
        assert (job.attempts, job.error) == (attempt, f"error {attempt - 1}" if attempt > 1 else None)
        store.jobs.fail(job, f"error {attempt}", now=now)
        assert store.jobs.claim(now=now + wait - timedelta(microseconds=1)) is None
        assert store.jobs.failed() == []
        now += wait
    store.jobs.fail(claimed(store, now), "the\nlast \x00\ud800one", now=now)
    assert store.jobs.claim(now=now + timedelta(days=365)) is None
    assert store.jobs.failed() == [
        Job(
            id=id,
            kind="embed",
            payload={"n": 1},
            attempts=5,
            token=5,
            tenant="acme",
            user="ana",
            error="the last  ?one",
        )
    ]


def test_a_job_whose_worker_dies_each_time_is_given_up(store: MemoryStore, ana: Identity, now: datetime) -> None:
    id = store.jobs.enqueue(ana, "embed", {})
    for _ in range(5):
        claimed(store, now, seconds=1)
        now += timedelta(seconds=1)
    assert store.jobs.claim(now=now) is None
    assert [(job.id, job.attempts, job.error) for job in store.jobs.failed()] == [
        (id, 5, "its worker died or lost the lease at each attempt")
    ]


def test_a_failed_job_holds_up_no_other(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "embed", {})
    behind = store.jobs.enqueue(ana, "embed", {})
    store.jobs.fail(claimed(store, now), "no", now=now)
    assert claimed(store, now).id == behind


def test_draining_runs_what_is_due_and_counts_what_completed(store: MemoryStore, ana: Identity, now: datetime) -> None:
    done: list[int] = []
    for n in range(4):
        store.jobs.enqueue(ana, "note", {"n": n})
    store.jobs.enqueue(ana, "other", {})
    handlers: dict[str, Callable[[Job], None]] = {"note": lambda job: done.append(job.payload["n"])}
    assert store.jobs.drain(handlers, limit=3, now=now) == 3
    assert store.jobs.drain(handlers, limit=3, now=now) == 1
    assert store.jobs.drain(handlers, now=now) == 0
    assert done == [0, 1, 2, 3]
    assert claimed(store, now).kind == "other"


def test_a_failing_handler_fails_its_own_job_alone(store: MemoryStore, ana: Identity, now: datetime) -> None:
    done: list[int] = []

    def handle(job: Job) -> None:
        done.append(10 // job.payload["n"])

    bad = store.jobs.enqueue(ana, "divide", {"n": 0})
    store.jobs.enqueue(ana, "divide", {"n": 5})
    assert store.jobs.drain({"divide": handle}, now=now) == 1
    assert done == [2]
    again = claimed(store, now + SERIES[0])
    assert (again.id, again.attempts, again.error) == (
        bad,
        2,
        "ZeroDivisionError: integer division or modulo by zero",
    )


def test_what_is_drained_under_a_lost_lease_does_not_count(store: MemoryStore, ana: Identity, now: datetime) -> None:
    heirs: list[Job] = []

    def slow(job: Job) -> None:
        heirs.append(claimed(store, now + timedelta(hours=1)))

    store.jobs.enqueue(ana, "slow", {})
    assert store.jobs.drain({"slow": slow}, limit=1, now=now) == 0
    store.jobs.complete(heirs[0])


def test_an_interrupted_handler_leaves_its_job_to_the_next_worker(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    def interrupted(job: Job) -> None:
        raise KeyboardInterrupt

    id = store.jobs.enqueue(ana, "long", {})
    with pytest.raises(KeyboardInterrupt):
        store.jobs.drain({"long": interrupted}, now=now)
    assert claimed(store, now + timedelta(minutes=1)).id == id


def test_workers_in_parallel_take_each_job_once(store: MemoryStore, ana: Identity, now: datetime) -> None:
    ids = [store.jobs.enqueue(ana, "embed", {"n": n}) for n in range(20)]
    taken: list[str] = []

    def work() -> None:
        while (job := store.jobs.claim(now=now)) is not None:
            taken.append(job.id)
            store.jobs.complete(job)

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(ids)


def test_a_payload_that_is_not_json_is_refused(store: MemoryStore, ana: Identity, now: datetime) -> None:
    with pytest.raises(UsageError, match="payload of the 'embed' job"):
        store.jobs.enqueue(ana, "embed", {"when": now})
    assert store.jobs.claim(now=now) is None
