"""A home's files, and those that leave it: made for their owner alone, and opened while others open them too."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from everthread.errors import EverthreadError, StoreError, UsageError

__all__ = ["make_private", "patiently", "write_private"]

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


def write_private(path: Path, lines: Iterable[str], *, force: bool = False) -> None:
    """Write lines to a file that its owner alone can read, whole or not at all; a new one, or with `force` in the place
    of what is there.

    Raises UsageError when something is there already, StoreError when it cannot be written, and lets pass what `lines`
    raises. Nothing is left behind then.
    """
    if not force and os.path.lexists(path):
        raise UsageError(f"{path} exists already; choose another name, or replace it with --force")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it")
    unfinished = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            for line in lines:
                # what no UTF-8 can hold is shown as such; JSON has it escaped
                file.write(line.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(unfinished, path, force=force)
    except EverthreadError:
        raise  # of `lines`; AccessDenied is an OSError as well
    except FileExistsError as error:
        raise UsageError(f"{path} exists already; choose another name, or replace it with --force") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}); nothing is there now") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _put_in_place(unfinished: Path, path: Path, *, force: bool) -> None:
    """Give a written file its name; without `force`, FileExistsError when another has taken it meanwhile."""
    if force:
        unfinished.replace(path)
        return
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        unfinished.replace(path)


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
