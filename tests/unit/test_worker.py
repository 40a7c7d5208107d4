"""The worker: jobs are done beside a program, once, and a worker that dies loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from support.records import create, learnt

from everthread import Identity
from everthread.errors import ModelReplyError, UsageError
from everthread.stores import MemoryStore, Worker, open_store
from everthread.stores.jobs import Job
from everthread.stores.record import now_utc
from everthread.stores.worker import Done

TESTS = Path(__file__).parents[1]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}", embedder="none") as store:
        yield store


def until(holds: Callable[[], bool]) -> None:
    """Waits for something that will be; fails when it is not so after a minute."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def writing(store: MemoryStore) -> Callable[[Job], None]:
    """A handler whose effect is a record, written under the job's key."""

    def write(job: Job) -> None:
        acting = Identity(tenant=job.tenant, user=job.user)
        store.commit(acting, [create(learnt(f"note {job.payload['n']}"))], key=f"note:{job.payload['n']}")

    return write


def notes(store: MemoryStore, identity: Identity) -> list[str]:
    return sorted(record.statement for record in store.records(identity))


def has_notes(store: MemoryStore, identity: Identity, wanted: int) -> bool:
    return len(notes(store, identity)) == wanted


def test_what_is_due_is_done_and_reported(store: MemoryStore, ana: Identity) -> None:
    seen: list[Done] = []
    for n in range(5):
        store.jobs.enqueue(ana, "note", {"n": n})
    store.jobs.enqueue(ana, "other", {})
    assert Worker(store, {"note": writing(store)}, concurrency=3, report=seen.append).drain()
    assert notes(store, ana) == [f"note {n}" for n in range(5)]
    assert sorted((done.job.payload["n"], done.outcome, done.error) for done in seen) == [
        (n, "done", None) for n in range(5)
    ]
    assert [job.kind for job in store.jobs.of(ana)] == ["other"]


def test_a_worker_beside_a_program_does_what_comes(store: MemoryStore, ana: Identity) -> None:
    with Worker(store, {"note": writing(store)}, poll=0.01):
        for n in range(3):
            store.jobs.enqueue(ana, "note", {"n": n})
            until(partial(has_notes, store, ana, n + 1))
    store.jobs.enqueue(ana, "note", {"n": 9})
    assert store.jobs.waiting() == 1


def test_a_failing_job_waits_for_another_try_and_its_error_has_no_words(store: MemoryStore, ana: Identity) -> None:
    def fail(job: Job) -> None:
        raise ValueError("my password is hunter2") if job.payload["n"] else ModelReplyError("prose in 2 replies")

    seen: list[Done] = []
    for n in range(2):
        store.jobs.enqueue(ana, "note", {"n": n})
    Worker(store, {"note": fail}, report=seen.append).drain()
    assert [done.outcome for done in seen] == ["failed", "failed"]
    ours, other = store.jobs.of(ana, status="waiting")
    assert (ours.error, ours.attempts) == ("ModelReplyError: prose in 2 replies", 1)
    assert (other.error or "").startswith("ValueError at test_worker.py:")


def test_a_long_job_keeps_its_lease(store: MemoryStore, ana: Identity) -> None:
    def lease() -> object:
        return store.jobs.of(ana)[0].due_at

    def long(job: Job) -> None:
        first = lease()
        until(lambda: lease() != first)

    store.jobs.enqueue(ana, "note", {}, key="k")
    Worker(store, {"note": long}, lease=6.0).drain()
    assert [(job.status, job.attempts) for job in store.jobs.of(ana)] == [("done", 1)]


def test_a_job_that_another_worker_took_over_is_reported_as_lost(store: MemoryStore, ana: Identity) -> None:
    def overtaken(job: Job) -> None:
        assert store.jobs.claim(now=now_utc() + timedelta(hours=1)) is not None

    seen: list[Done] = []
    store.jobs.enqueue(ana, "note", {})
    Worker(store, {"note": overtaken}, report=seen.append).drain()
    assert [done.outcome for done in seen] == ["lost"]


def test_the_budget_bounds_what_is_begun(store: MemoryStore, ana: Identity) -> None:
    for n in range(5):
        store.jobs.enqueue(ana, "note", {"n": n})
    Worker(store, {"note": writing(store)}, budget=2).drain()
    assert store.jobs.waiting() == 3


def test_a_budget_is_there_again_after_an_hour(store: MemoryStore, ana: Identity) -> None:
    clock = [0.0]
    for n in range(2):
        store.jobs.enqueue(ana, "note", {"n": n})
    with Worker(store, {"note": writing(store)}, budget=1, poll=0.01, clock=lambda: clock[0]):
        until(lambda: len(notes(store, ana)) == 1)
        clock[0] = 3_600.0
        until(lambda: len(notes(store, ana)) == 2)


def test_a_stopping_worker_finishes_what_is_running_and_begins_nothing(store: MemoryStore, ana: Identity) -> None:
    begun, go_on = Event(), Event()

    def slow(job: Job) -> None:
        begun.set()
        go_on.wait(60)

    for n in range(2):
        store.jobs.enqueue(ana, "note", {"n": n}, key=f"k{n}")
    stopping = Event()
    worker = Worker(store, {"note": slow}, stopping=stopping).start()
    begun.wait(60)
    stopping.set()
    go_on.set()
    assert worker.stop()
    assert [job.status for job in store.jobs.of(ana)] == ["done", "waiting"]


def test_what_is_not_over_in_time_is_let_go_and_can_begin_at_once(store: MemoryStore, ana: Identity) -> None:
    begun, go_on = Event(), Event()

    def hangs(job: Job) -> None:
        begun.set()
        go_on.wait(60)

    id = store.jobs.enqueue(ana, "note", {}, key="k")
    worker = Worker(store, {"note": hangs}, grace=0.0).start()
    begun.wait(60)
    assert not worker.stop()
    heir = store.jobs.claim()
    go_on.set()
    assert heir is not None
    assert (heir.id, heir.attempts) == (id, 1)
    store.jobs.complete(heir)


def test_a_worker_is_used_once(store: MemoryStore) -> None:
    worker = Worker(store, {})
    worker.drain()
    with pytest.raises(UsageError, match="begun already"):
        worker.start()
    with pytest.raises(UsageError, match="concurrency"):
        Worker(store, {}, concurrency=0)


WORKER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from unit.test_worker import writing
from everthread.stores import Worker, open_store

def write_and_hang(job):
    writing(store)(job)
    print("written", flush=True)
    time.sleep(60)

with open_store(f"sqlite:{sys.argv[1]}", embedder="none") as store:
    Worker(store, {"note": write_and_hang}, lease=1.0).drain()
"""


def test_a_worker_that_is_killed_loses_nothing_and_nothing_is_done_twice(
    store: MemoryStore, tmp_path: Path, ana: Identity
) -> None:
    for n in range(6):
        store.jobs.enqueue(ana, "note", {"n": n}, key=f"note:{n}")
    dying = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(TESTS)], stdout=subprocess.PIPE)
    assert dying.stdout is not None
    with dying.stdout:
        assert dying.stdout.readline() == b"written\n"
        dying.send_signal(signal.SIGKILL)
    dying.wait()
    # Its job was done and not reported. Two others go on, and do that one again when the lease has run out.
    with open_store(f"sqlite:{tmp_path}", embedder="none") as other:
        workers = [Worker(each, {"note": writing(each)}, poll=0.02, concurrency=2).start() for each in (store, other)]
        until(lambda: all(job.status == "done" for job in store.jobs.of(ana)))
        assert all([worker.stop() for worker in workers])
    assert notes(store, ana) == [f"note {n}" for n in range(6)]
    assert sorted(job.attempts for job in store.jobs.of(ana)) == [1, 1, 1, 1, 1, 2]


def test_a_worker_rings_for_what_is_due_once(store: MemoryStore, ana: Identity) -> None:
    due = store.tasks.create(ana, "call Ben", due_at=now_utc() - timedelta(seconds=1))
    store.tasks.create(ana, "call Cleo", due_at=now_utc() + timedelta(days=1))
    for _ in range(2):
        assert Worker(store, {}).drain()
    assert [(event.kind, event.record_id) for event in store.events(ana)] == [("task.due", due.id)]


def test_a_worker_beside_a_program_rings_without_any_job(store: MemoryStore, ana: Identity) -> None:
    with Worker(store, {}, poll=0.01):
        due = store.tasks.create(ana, "call Ben", due_at=now_utc() + timedelta(seconds=0.05))
        until(lambda: [event.record_id for event in store.events(ana)] == [due.id])
