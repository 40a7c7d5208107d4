"""One run of a thread at a time: a lease per thread, in the threads' own file.

A lease names its process. Whoever waits for it looks whether that process still lives, so a resume after `kill -9` goes
on at once; where it cannot look (another machine, another container) or the process hangs, a lease is given up when its
heartbeat has stood still for `seconds`. The heartbeat is a counter, and the waiter measures by its own monotonic clock:
no two clocks are ever compared, and a clock that is set back or forward changes nothing.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple, Protocol
from uuid import uuid4

import psutil

from everthread.errors import Conflict, StoreError, UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS leases (
    thread_id TEXT PRIMARY KEY,
    token     TEXT NOT NULL,     -- the run that holds the thread
    host      TEXT NOT NULL,     -- where its process lives
    pid       INTEGER NOT NULL,
    started   REAL NOT NULL,     -- seconds between the start of the machine and of the process
    beat      INTEGER NOT NULL   -- rises while the holder is well
) WITHOUT ROWID
"""

_HOLDER = "SELECT token, host, pid, started, beat FROM leases WHERE thread_id = ?"

# Takes a thread that is free, or that still has the holder and the beat that the waiter found wanting.
_TAKE = """
INSERT INTO leases (thread_id, token, host, pid, started, beat) VALUES (?, ?, ?, ?, ?, 0)
ON CONFLICT (thread_id) DO UPDATE
SET token = excluded.token, host = excluded.host, pid = excluded.pid, started = excluded.started, beat = 0
WHERE token = ? AND beat = ?
RETURNING 1
"""

# Only ever updates: a lease that was taken over is not revived by its old holder's heart.
_BEAT = "UPDATE leases SET beat = beat + 1 WHERE token = ?"

_RELEASE = "DELETE FROM leases WHERE token = ?"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
_LOOKS = 4
"""At so many looks at least, one after the other, a heart must have stood still."""
_START_TOLERANCE = 2.0
"""Seconds. The start of a process is read from two figures that the system rounds."""

OpenCursor = Callable[[], AbstractContextManager[sqlite3.Cursor]]


class Process(NamedTuple):
    """A process, told apart from a later one with the same number."""

    host: str
    pid: int
    started: float


class Holder(NamedTuple):
    """Who holds a thread."""

    token: str
    process: Process
    beat: int


@lru_cache(maxsize=1)
def _identified(pid: int) -> Process:
    return Process(_host(), pid, _started(psutil.Process(pid)))


def this_process() -> Process:
    """The process that runs this; another one after a fork."""
    return _identified(os.getpid())


def _host() -> str:
    # Two containers may share a name and a volume, and each has a process 1.
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(process: psutil.Process) -> float:
    return process.create_time() - psutil.boot_time()


def has_ended(process: Process) -> bool:
    """Whether `process` is known to be over. False when it lives, and when it is not ours to see."""
    me = this_process()
    if process.host != me.host:
        return False
    if process.pid == me.pid:
        return abs(process.started - me.started) > _START_TOLERANCE
    try:
        found = psutil.Process(process.pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return True
        return abs(_started(found) - process.started) > _START_TOLERANCE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


class Leasing(Protocol):
    """Where threads can be held."""

    seconds: float
    """How long a holder whose heart stands still keeps its thread."""

    def holder(self, thread_id: str) -> Holder | None:
        """Who holds the thread, or None: it is free, or only an attempt can tell."""

    def take(self, thread_id: str, token: str, wanting: Holder | None) -> bool:
        """Take the thread if it is free or `wanting` still holds it, with no beat since."""

    def lost(self, thread_id: str) -> bool:
        """Whether a run of this process is known to have lost the thread. False when none holds it."""

    def release(self, token: str) -> None:
        """Give the thread back. Nothing happens when this run does not hold it."""

    def close(self) -> None:
        """Give every thread back."""


def checked_seconds(lease_seconds: float) -> float:
    """`lease_seconds`, when a lease can last so long; UsageError otherwise."""
    if not 0 < lease_seconds <= 86_400:
        raise UsageError(f"lease_seconds={lease_seconds} is no time for a lease; write more than 0, at most a day")
    return lease_seconds


class Leases:
    """The leases that this process holds in one file, and the heart that keeps them."""

    def __init__(self, cursor: OpenCursor, seconds: float) -> None:
        self.cursor = cursor
        self.seconds = seconds
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    def holder(self, thread_id: str) -> Holder | None:
        """Who holds the thread, or None."""
        with self.cursor() as cursor:
            row = cursor.execute(_HOLDER, (thread_id,)).fetchone()
        return Holder(row[0], Process(row[1], row[2], row[3]), row[4]) if row else None

    def take(self, thread_id: str, token: str, wanting: Holder | None) -> bool:
        """Take the thread if it is free or `wanting` still holds it, with no beat since."""
        known = (wanting.token, wanting.beat) if wanting else (None, None)
        with self.cursor() as cursor:
            taken = cursor.execute(_TAKE, (thread_id, token, *this_process(), *known)).fetchone() is not None
        if taken:
            self._keep(token)
        return taken

    def lost(self, thread_id: str) -> bool:
        """Never known: whoever takes a thread over writes to the same file, and the fence sees that."""
        return False

    def release(self, token: str) -> None:
        """Give the thread back. Nothing happens when this run does not hold it."""
        with self._lock:
            self._held.discard(token)
        with self.cursor() as cursor:
            cursor.execute(_RELEASE, (token,))

    def close(self) -> None:
        """Give every thread back and stop the heart."""
        self._stop.set()
        with self._lock:
            held, heart = list(self._held), self._heart
            self._held.clear()
        if heart is not None:
            heart.join()
        if held:
            with self.cursor() as cursor:
                cursor.executemany(_RELEASE, [(token,) for token in held])

    def _keep(self, token: str) -> None:
        with self._lock:
            self._held.add(token)
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, name="everthread-leases", daemon=True)
                self._heart.start()

    def _beat(self) -> None:
        while not self._stop.wait(self.seconds / 3):
            with self._lock:
                held = list(self._held)
                if not held:  # idle: the next lease starts another heart
                    self._heart = None
                    return
            try:
                with self.cursor() as cursor:
                    cursor.executemany(_BEAT, [(token,) for token in held])
            except StoreError:
                # A full or locked file: try again. Should the thread be taken over meanwhile, the fence stops the run.
                continue


class Claim:
    """A run's wish to hold a thread. `attempt()` until it is True; `release()` in any case."""

    def __init__(
        self, leases: Leasing, thread_id: str, timeout: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.thread_id = thread_id
        self._leases = leases
        self._timeout = timeout
        self._clock = clock
        self._token = uuid4().hex
        self._seen: tuple[str, int] | None = None
        self._stood = 0.0
        self._looked = self._began = clock()
        self._pause = _FIRST_PAUSE

    def attempt(self) -> bool:
        """Try once, without waiting."""
        holder = self._leases.holder(self.thread_id)
        if holder is not None and not (self._stands_still(holder) or has_ended(holder.process)):
            return False
        return self._leases.take(self.thread_id, self._token, holder)

    def pause(self) -> float:
        """Seconds to wait before the next attempt; raises Conflict when the time is over."""
        if self._clock() - self._began >= self._timeout:
            raise Conflict(f"thread {self.thread_id!r} is busy: another run holds it; try again when it has ended")
        self._pause, now = min(self._pause * 1.5, _LONGEST_PAUSE), self._pause
        return now

    def release(self) -> None:
        """Give the thread back, if it was taken."""
        self._leases.release(self._token)

    def _stands_still(self, holder: Holder) -> bool:
        # Where the whole machine stood still, so did this waiter: what passed between two looks tells little.
        now, most = self._clock(), self._leases.seconds / _LOOKS
        seen, passed, self._looked = (holder.token, holder.beat), min(now - self._looked, most), now
        self._stood = self._stood + passed if seen == self._seen else 0.0
        self._seen = seen
        return self._stood > self._leases.seconds
