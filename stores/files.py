"""A home's files: made for their owner alone, and opened while others open them too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from everthread.errors import StoreError

__all__ = ["make_private", "patiently"]

Result = TypeVar("Result")


def make_private(path: Path) -> None:
    """Make a database's folder and the file itself, readable by their owner alone, when they are not there yet.

    SQLite gives the files beside it (`-wal`, `-shm`) the same permissions. What exists keeps its own. StoreError when
    the folder cannot be made.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent} cannot be made ({error.strerror}); choose another home") from error
    with suppress(OSError):  # SQLite opens it next, and says what is wrong with it
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def patiently(seconds: float, busy: Callable[[Exception], bool], action: Callable[[], Result]) -> Result:
    """What `action` returns, tried again while its error is a `busy` one, for so many seconds; then that error.

    For what SQLite's own busy timeout leaves out: a new file is switched to write-ahead logging at once or not at all.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return action()
        except Exception as error:
            if not busy(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)
