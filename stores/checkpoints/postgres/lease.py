"""One run of a thread at a time: a session's advisory lock on each thread that a run of this process holds.

The server knows when a session ends: a killed owner's threads are free at once. Of a process that hangs it hears
nothing for longer than `seconds`, since no heart beats there, and ends its session. The session is a connection of its
own. Where it is lost, so are its locks, and another run may go on: each run that held a thread by it gets a Conflict
when it next writes.

Within one session a lock can be taken twice, so who holds what in this process is noted here as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from everthread.errors import UsageError
from everthread.stores.checkpoints.lease import Holder
from everthread.stores.checkpoints.postgres.keys import number_of
from everthread.stores.checkpoints.postgres.server import end_when_idle, is_alive, translated

__all__ = ["Leases"]

Connection = psycopg.Connection[Any]

_TAKE = "SELECT pg_try_advisory_lock(%s)"
_RELEASE = "SELECT pg_advisory_unlock(%s)"


class Held(NamedTuple):
    """A thread that a run of this process took."""

    token: str
    by: Connection


class Leases:
    """The threads that this process holds on one server, and the heart that keeps its session."""

    def __init__(
        self,
        connection: Connection,
        connect: Callable[[], Connection],
        place: str,
        schema: str,
        retire: Callable[[str], None],
        seconds: float,
    ) -> None:
        """`retire(thread_id)`: let those who have loaded a thread no longer write. `seconds`: how long a process that
        hangs keeps its threads."""
        self.seconds = seconds
        self._connection, self._connect = connection, connect
        self._place, self._schema, self._retire = place, schema, retire
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._heart: threading.Thread | None = None
        self._kept: Connection | None = None
        """The connection that ends when no heart beats."""

    def holder(self, thread_id: str) -> Holder | None:
        """None: only an attempt can tell."""
        return None

    def take(self, thread_id: str, token: str, wanting: Holder | None) -> bool:
        """Take the thread if no run holds it."""
        with self._lock, translated(self._place):
            if self._closed.is_set():
                raise UsageError(f"{self._place} is closed; open the checkpointer again")
            held = self._held.get(thread_id)
            if held and self._is_held(held):
                return False
            if not is_alive(self._connection):
                self._connection.close()
                self._connection = self._connect()
            row = self._connection.execute(_TAKE, (self._number(thread_id),)).fetchone()
            if not (row and row[0]):
                return False
            self._held[thread_id] = Held(token, self._connection)
            self._keep()
        if held:  # its run lost it, and does not know yet
            self._retire(thread_id)
        return True

    def lost(self, thread_id: str) -> bool:
        """Whether a run of this process held the thread by a connection that is gone."""
        with self._lock:
            held = self._held.get(thread_id)
            return held is not None and not self._is_held(held)

    def release(self, token: str) -> None:
        """Give the thread back. Nothing happens when this run does not hold it."""
        with self._lock:
            for thread_id, held in list(self._held.items()):
                if held.token == token:
                    del self._held[thread_id]
                    if self._is_held(held):
                        self._unlock(held, thread_id)

    def close(self) -> None:
        """Give every thread back."""
        self._closed.set()
        with self._lock:
            self._held.clear()
            self._connection.close()
            heart = self._heart
        if heart is not None:
            heart.join()

    def _keep(self) -> None:
        if self._kept is not self._connection:
            end_when_idle(self._connection, self.seconds)
            self._kept = self._connection
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="everthread-leases", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        while not self._closed.wait(self.seconds / 3):
            with self._lock:
                if self._closed.is_set():
                    return
                idle = not self._held
                try:
                    if is_alive(self._connection):
                        # nothing is held: the session may be as quiet as it likes
                        end_when_idle(self._connection, 0 if idle else self.seconds)
                except psycopg.Error:
                    self._connection.close()  # the next writer of each run that held a thread by it is told
                if idle:
                    self._heart = self._kept = None
                    return

    def _is_held(self, held: Held) -> bool:
        return held.by is self._connection and is_alive(held.by)

    def _unlock(self, held: Held, thread_id: str) -> None:
        try:
            held.by.execute(_RELEASE, (self._number(thread_id),))
        except psycopg.OperationalError:
            held.by.close()  # and the server has given back what it held

    def _number(self, thread_id: str) -> int:
        return number_of("lease", self._schema, thread_id)
