"""What every backend's job queue promises. Time is given, not waited for."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest

from everthread import Identity, Scope
from everthread.errors import Conflict, ModelReplyError, UsageError
from everthread.stores import MemoryStore
from everthread.stores.jobs import Job, JobInfo
from everthread.stores.record import Selection, now_utc

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
    assert (again.id, again.attempts) == (bad, 2)
    assert re.fullmatch(r"ZeroDivisionError at test_jobs.py:\d+", again.error or "")


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


# --- what users see and decide


def test_jobs_are_listed_with_what_stands_about_them(store: MemoryStore, ana: Identity, now: datetime) -> None:
    tried = store.jobs.enqueue(ana, "extract", {"thread_id": "t1"}, key="k", now=now)
    store.jobs.fail(claimed(store, now), "no", now=now)
    fresh = store.jobs.enqueue(ana, "embed", {}, now=now)
    common: dict[str, Any] = {"tenant": "acme", "user": "ana", "status": "waiting", "created_at": now}
    later = now + SERIES[0]
    assert store.jobs.of(ana, now=now) == [
        JobInfo(
            id=tried,
            kind="extract",
            key="k",
            thread_id="t1",
            attempts=1,
            due_at=later,
            error="no",
            **common,
        ),
        JobInfo(id=fresh, kind="embed", key=None, thread_id=None, attempts=0, due_at=None, error=None, **common),
    ]


def test_a_listed_job_runs_while_its_lease_holds_and_keeps_its_thread_when_it_is_done(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    store.jobs.enqueue(ana, "extract", {"thread_id": "t1", "after": "m1"}, key="k")
    job = claimed(store, now, seconds=5)
    assert [info.status for info in store.jobs.of(ana, now=now)] == ["running"]
    assert [info.status for info in store.jobs.of(ana, now=now + timedelta(seconds=5))] == ["waiting"]
    store.jobs.complete(job)
    assert [(info.status, info.thread_id) for info in store.jobs.of(ana, status="done")] == [("done", "t1")]
    assert store.jobs.of(ana, status="waiting") == []


def test_users_see_their_own_jobs_and_an_admin_the_tenants(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    ids = [store.jobs.enqueue(user, "embed", {}) for user in (ana, ben, stranger)]
    admin = ben.model_copy(update={"roles": frozenset({"admin"})})
    listed = [[info.id for info in store.jobs.of(user)] for user in (ana, ben, stranger, admin)]
    assert listed == [ids[:1], ids[1:2], ids[2:], ids[:2]]
    for decide in (store.jobs.retry, store.jobs.cancel):
        with pytest.raises(UsageError, match=f"there is no job {ids[0]}"):
            decide(ben, ids[0])
    store.jobs.cancel(admin, ids[0])
    assert [info.status for info in store.jobs.of(ana)] == ["cancelled"]


def test_a_failed_job_is_tried_again_with_all_its_attempts(store: MemoryStore, ana: Identity, now: datetime) -> None:
    id = store.jobs.enqueue(ana, "embed", {})
    for wait in (*SERIES, timedelta()):
        store.jobs.fail(claimed(store, now), "no", now=now)
        now += wait
    assert [job.id for job in store.jobs.failed()] == [id]
    store.jobs.retry(ana, id, now=now)
    assert store.jobs.failed() == []
    again = claimed(store, now)
    assert (again.id, again.attempts, again.token) == (id, 1, 6)
    with pytest.raises(Conflict, match="is running"):
        store.jobs.retry(ana, id, now=now)


def test_a_job_that_waits_for_its_time_can_be_tried_at_once(store: MemoryStore, ana: Identity, now: datetime) -> None:
    id = store.jobs.enqueue(ana, "embed", {})
    store.jobs.fail(claimed(store, now), "no", now=now)
    assert store.jobs.claim(now=now) is None
    store.jobs.retry(ana, id, now=now)
    assert claimed(store, now).id == id


def test_a_cancelled_job_is_not_claimed_and_its_key_is_not_added_again(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    id = store.jobs.enqueue(ana, "embed", {}, key="k")
    store.jobs.cancel(ana, id)
    assert store.jobs.enqueue(ana, "embed", {}, key="k") == id
    assert store.jobs.claim(now=now) is None
    with pytest.raises(Conflict, match="is cancelled"):
        store.jobs.cancel(ana, id)
    store.jobs.retry(ana, id)
    assert claimed(store, now).id == id


def test_a_job_that_is_let_go_is_claimed_at_once_and_the_attempt_does_not_count(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    store.jobs.enqueue(ana, "embed", {})
    job = claimed(store, now)
    store.jobs.release(job)
    heir = claimed(store, now)
    assert (heir.id, heir.attempts, heir.token) == (job.id, 1, 2)
    with pytest.raises(Conflict):
        store.jobs.release(job)


def test_jobs_of_one_lane_of_a_user_wait_for_each_other(
    store: MemoryStore, ana: Identity, ben: Identity, now: datetime
) -> None:
    first, second = (store.jobs.enqueue(ana, "extract", {"n": n}, lane="learn") for n in (1, 2))
    bens = store.jobs.enqueue(ben, "extract", {}, lane="learn")
    other = store.jobs.enqueue(ana, "extract", {})
    running = claimed(store, now)
    assert running.id == first
    assert [claimed(store, now).id for _ in range(2)] == [bens, other]
    assert (store.jobs.claim(now=now), store.jobs.waiting()) == (None, 0)
    store.jobs.complete(running)
    assert claimed(store, now).id == second


def test_a_dead_workers_job_does_not_close_its_lane(store: MemoryStore, ana: Identity, now: datetime) -> None:
    first = store.jobs.enqueue(ana, "extract", {}, lane="learn")
    store.jobs.enqueue(ana, "extract", {}, lane="learn")
    claimed(store, now, seconds=5)
    assert store.jobs.claim(now=now) is None
    assert claimed(store, now + timedelta(seconds=5)).id == first


def test_an_error_that_is_not_ours_is_kept_without_its_words(store: MemoryStore, ana: Identity, now: datetime) -> None:
    class Refused(Exception):
        status_code = 429

    errors: list[Exception] = [Refused("you said: my password is hunter2"), ModelReplyError("prose in 2 replies")]

    def handle(job: Job) -> None:
        raise errors[job.payload["n"]]

    for n in range(2):
        store.jobs.enqueue(ana, "fail", {"n": n})
    store.jobs.drain({"fail": handle}, now=now)
    kept = [info.error or "" for info in store.jobs.of(ana)]
    assert re.fullmatch(r"Refused 429 at test_jobs.py:\d+", kept[0])
    assert kept[1] == "ModelReplyError: prose in 2 replies"


# --- gates


def test_a_clock_that_was_ahead_holds_up_neither_its_job_nor_its_lane(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    ahead = now + timedelta(days=400)
    first = store.jobs.enqueue(ana, "extract", {}, lane="learn")
    dead = claimed(store, ahead)
    assert (dead.id, [job.status for job in store.jobs.of(ana, now=now)]) == (first, ["waiting"])
    again = claimed(store, now)
    assert (again.id, again.token) == (first, 2)
    store.jobs.fail(again, "no", now=ahead)
    assert claimed(store, now).id == first


def test_a_job_put_off_for_long_waits_all_the_same(store: MemoryStore, ana: Identity, now: datetime) -> None:
    store.jobs.enqueue(ana, "extract", {}, due_at=now + timedelta(days=400))
    assert store.jobs.claim(now=now + timedelta(days=399)) is None


def test_a_lease_of_more_than_a_day_is_refused(store: MemoryStore, now: datetime) -> None:
    with pytest.raises(UsageError, match=r"^a lease lasts a day at most, not 86401 seconds; heartbeat prolongs it$"):
        store.jobs.claim(now=now, seconds=86_401)


def test_a_gate_lets_one_through_in_a_while_whichever_store_asks(
    reopen: Callable[..., MemoryStore], ana: Identity, ben: Identity, now: datetime
) -> None:
    one, other = reopen(embedder="none"), reopen(embedder="none")
    hour = timedelta(hours=1)
    passed = [
        one.jobs.gate(ana, "extract", hour, key="a", now=now),
        other.jobs.gate(ana, "extract", hour, key="b", now=now),
        other.jobs.gate(ana, "another", hour, key="b", now=now),
        other.jobs.gate(ben, "extract", hour, key="b", now=now),
        other.jobs.gate(ana, "extract", hour, key="b", now=now + hour - timedelta(microseconds=1)),
        other.jobs.gate(ana, "extract", hour, key="b", now=now + hour),
        one.jobs.gate(ana, "extract", hour, key="c", now=now + hour),
    ]
    assert passed == [True, False, True, True, False, True, False]


def test_who_passed_a_gate_and_was_killed_passes_again(store: MemoryStore, ana: Identity, now: datetime) -> None:
    hour = timedelta(hours=1)
    assert [store.jobs.gate(ana, "extract", hour, key=key, now=now) for key in "aaba"] == [True, True, False, True]


def test_a_gate_is_not_closed_for_ever_by_a_clock_that_was_wrong(
    store: MemoryStore, ana: Identity, now: datetime
) -> None:
    hour = timedelta(hours=1)
    assert store.jobs.gate(ana, "extract", hour, key="a", now=now + timedelta(days=9999))
    assert store.jobs.gate(ana, "extract", hour, key="b", now=now)


def test_many_at_one_gate_and_one_gets_through(
    reopen: Callable[..., MemoryStore], ana: Identity, now: datetime
) -> None:
    stores = [reopen(embedder="none") for _ in range(3)]
    passed: list[str] = []

    def walk(number: int) -> None:
        if stores[number % 3].jobs.gate(ana, "extract", timedelta(hours=1), key=f"k{number}", now=now):
            passed.append(f"k{number}")

    walkers = [Thread(target=walk, args=(number,)) for number in range(12)]
    for walker in walkers:
        walker.start()
    for walker in walkers:
        walker.join()
    assert len(passed) == 1


def test_what_an_erased_user_left_to_be_done_is_gone(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.jobs.enqueue(ana, "extract", {"thread_id": "t1"})
    kept = store.jobs.enqueue(ben, "extract", {"thread_id": "t2"})
    admin = ana.model_copy(update={"roles": frozenset({"admin"})})
    whole = Selection(scope=Scope(owner="user", owner_id="ana"))
    store.erase(admin, whole, reason="asked", with_source=True)
    assert [info.id for info in store.jobs.of(admin)] == [kept]
