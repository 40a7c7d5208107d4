"""Where a home's files come from: made for their owner alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from everthread.errors import StoreError

__all__ = ["make_private"]


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
