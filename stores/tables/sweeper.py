"""The thread that deletes expired items while a store is open."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from everthread.errors import StoreError

__all__ = ["Sweeper", "ended"]

log = logging.getLogger("everthread.stores")


def ended() -> Future[None]:
    """The future of a sweeper that had nothing to do."""
    future: Future[None] = Future()
    future.set_result(None)
    return future


class Sweeper:
    """Calls `sweep` every so often, from `start` to `stop`, on a daemon thread."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def start(self, minutes: float) -> Future[None]:
        """Begin, unless it runs already. The future ends with the sweeper, fails with it, and stops it if cancelled."""
        with self._starting:
            future: Future[None] = Future()
            future.add_done_callback(lambda done: self._stop.set() if done.cancelled() else None)
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(
                    target=self._run, args=(minutes * 60, future), name="everthread-sweeper", daemon=True
                )
                self._thread.start()
            return future

    def stop(self, timeout: float | None = None) -> bool:
        """End it and wait; False when it is still busy after `timeout` seconds."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _run(self, seconds: float, future: Future[None]) -> None:
        try:
            while not self._stop.wait(seconds):
                try:
                    self._sweep()
                except StoreError as error:
                    # Locked or full now, perhaps not at the next round; what has expired is not readable meanwhile.
                    log.warning("expired items were not deleted: %s", error)
        except BaseException as error:
            if not future.cancelled():
                future.set_exception(error)
            raise
        if not future.cancelled():
            future.set_result(None)
