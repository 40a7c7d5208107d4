"""Whoever does the jobs of a store: on threads beside a program, or as a process of its own (R237, R332).

    with Worker(store, job_handlers(store, ModelExtractor(model))):
        ...  # jobs are done meanwhile

A job is claimed with a lease, which is prolonged for as long as its handler runs. A worker that dies loses the lease,
and the job is done by another, or by the next. What a handler writes, it writes under a key: a job that is done twice
has its effect once. It also rings for tasks that are due: `store.events` says `task.due`, once for each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from everthread.errors import Conflict, StoreError, UsageError
from everthread.stores.contract import MemoryStore
from everthread.stores.jobs import Handlers, Job, wordless
from everthread.stores.record import now_utc

__all__ = ["Done", "Worker"]

log = logging.getLogger(__name__)

SLOWEST = 60.0
"""Seconds between two tries at most, while the store does not answer."""
HOUR = 3_600.0
LOOK = 0.1
"""Seconds between two looks at whether it is to stop."""
HEART = "everthread-heartbeat"


class Done(NamedTuple):
    """One job that a worker has tried."""

    job: Job
    """The job."""
    outcome: str
    """`done`, `failed` (tried again later, or given up), or `lost`: another worker has it now."""
    error: str | None
    """What went wrong; no word of what was said."""
    seconds: float
    """How long it took."""


class Worker:
    """Does the jobs of the kinds that have a handler, on `concurrency` threads, from `start` (or `with`) until `stop`.

    `lease`: seconds that a job is held without a sign of life; it is prolonged every third of that. `poll`: seconds
    between two looks at an empty queue. `budget`: jobs that are begun at most in any hour, so that whatever goes wrong
    costs no more than that (None: as many as there are). `grace`: seconds that `stop` waits for what is running; what
    takes longer is let go, and another worker begins it again. `report` is called with each `Done`, on the thread that
    did the job. `stopping`: an event of yours that ends it, for a signal's handler.
    """

    def __init__(
        self,
        store: MemoryStore,
        handlers: Handlers,
        *,
        concurrency: int = 1,
        lease: float = 60.0,
        poll: float = 1.0,
        budget: int | None = 1_000,
        grace: float = 20.0,
        report: Callable[[Done], None] | None = None,
        stopping: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if concurrency < 1 or lease <= 0 or poll <= 0 or grace < 0 or (budget is not None and budget < 1):
            raise UsageError("a worker needs a concurrency and a budget of 1 or more, and seconds above 0 for the rest")
        self._store = store
        self._handlers = dict(handlers)
        self._concurrency, self._lease, self._poll = concurrency, lease, poll
        self._budget, self._grace = budget, grace
        self._report = report
        self._clock = clock
        self._stopping, self._over = stopping or threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._begun: deque[float] = deque()
        self._rung: float | None = None
        self._running: dict[str, Job] = {}
        self._threads: list[threading.Thread] = []
        self._failure: StoreError | None = None

    def start(self) -> Self:
        """Begin to work; UsageError when it has begun already."""
        self._begin(until_idle=False)
        return self

    def stop(self) -> bool:
        """Claim no more, wait up to `grace` seconds for what is running, and let go of what is not over by then.
        Returns whether everything was finished. Stopping twice is allowed."""
        self._stopping.set()
        until = time.monotonic() + self._grace
        workers = [thread for thread in self._threads if thread.name != HEART]
        for thread in workers:
            thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            left, self._running = list(self._running.values()), {}
        self._over.set()
        for thread in self._threads:
            if thread.name == HEART:
                thread.join()
        for job in left:
            try:
                self._store.jobs.release(job)
            except (Conflict, StoreError) as error:
                log.warning(
                    "job %s (%s) was not over, and begins again when its lease ends: %s", job.id, job.kind, error
                )
            else:
                log.warning("job %s (%s) was not over; it was let go and begins again", job.id, job.kind)
        return not left

    def drain(self) -> bool:
        """Do what is due now, and return whether everything that was begun was finished. It ends when nothing is due,
        the budget is used up, or `stopping` is set. StoreError when the store does not answer."""
        self._begin(until_idle=True)
        for thread in self._threads:
            while thread.name != HEART and thread.is_alive() and not self._stopping.is_set():
                thread.join(LOOK)
        finished = self.stop()
        if self._failure is not None:
            raise self._failure
        return finished

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -------------------------------------------------------------------------------------------------------- the work

    def _begin(self, *, until_idle: bool) -> None:
        if self._threads:
            raise UsageError("this worker has begun already; make another one")
        # Daemons: a handler that hangs does not keep the program from ending, and its job is let go.
        names = [f"everthread-worker-{number}" for number in range(1, self._concurrency + 1)]
        self._threads = [
            threading.Thread(target=self._work, name=name, args=(until_idle,), daemon=True) for name in names
        ]
        self._threads.append(threading.Thread(target=self._beat, name=HEART, daemon=True))
        for thread in self._threads:
            thread.start()

    def _work(self, until_idle: bool) -> None:
        pause = self._poll
        while not self._stopping.is_set():
            try:
                self._ring()
                if self._one():
                    pause = self._poll
                    continue
                if until_idle:
                    return
            except StoreError as error:
                if until_idle:
                    self._failure = error
                    return
                # It may be locked, full or away for a while; a worker that ended would be missed by nobody.
                pause = min(pause * 2, SLOWEST)
                log.warning("the worker waits %.0f seconds, since the store does not answer: %s", pause, error)
            self._stopping.wait(pause)

    def _one(self) -> bool:
        """Try one job; False when none is due or the budget is used up."""
        job = self._claimed()
        if job is None:
            return False
        began = time.monotonic()
        outcome, why = "done", None
        try:
            self._handlers[job.kind](job)
        except Exception as error:  # a handler may raise anything; it is kept with the job
            outcome, why = "failed", wordless(error)
        with self._lock:
            if self._running.pop(job.id, None) is None:
                return True  # it was let go while it ran: the job is another worker's
        try:
            if why is None:
                self._store.jobs.complete(job)
            else:
                self._store.jobs.fail(job, why)
        except Conflict as lost:
            outcome, why = "lost", str(lost)
        if why is not None:
            log.warning("job %s (%s), attempt %d: %s, %s", job.id, job.kind, job.attempts, outcome, why)
        if self._report is not None:
            self._report(Done(job, outcome, why, time.monotonic() - began))
        return True

    def _ring(self) -> None:
        """Let tasks ring that are due, once in `poll` seconds, whatever else there is to do."""
        with self._lock:
            now = self._clock()
            if self._rung is not None and now < self._rung + self._poll:
                return
            self._rung = now
        self._store.tasks.ring(now_utc())

    def _claimed(self) -> Job | None:
        """The next job, within the budget; it is running from now on."""
        with self._lock:
            now = self._clock()
            while self._begun and self._begun[0] <= now - HOUR:
                self._begun.popleft()
            if self._budget is not None and len(self._begun) >= self._budget:
                return None
            job = self._store.jobs.claim(list(self._handlers), seconds=self._lease)
            if job is not None:
                self._begun.append(now)
                self._running[job.id] = job
            return job

    def _beat(self) -> None:
        """Prolong the leases of what is running."""
        while not self._over.wait(self._lease / 3):
            with self._lock:
                running = list(self._running.values())
            for job in running:
                try:
                    self._store.jobs.heartbeat(job, seconds=self._lease)
                except (Conflict, StoreError) as error:
                    # Its end will tell: it still counts if nobody else has begun.
                    log.warning("the lease on job %s was not prolonged: %s", job.id, error)
