"""Where the threads' file is, whether it is one, and what its driver's errors mean.

The file is opened by the `sqlite3` module alone: a second driver in the same process would drop its POSIX locks.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everthread.errors import StoreError, UsageError
from everthread.stores.files import make_private, patiently
from everthread.stores.open import refuse_keywords

FILE_NAME = "threads.db"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: "C:" is a drive
_DATABASE_SUFFIXES = {".db", ".sqlite", ".sqlite3"}
_SYNCHRONOUS = {"OFF", "NORMAL", "FULL", "EXTRA"}

_MEANINGS = {
    sqlite3.SQLITE_NOTADB: "is not a SQLite database, or is encrypted; choose another home or file",
    sqlite3.SQLITE_CORRUPT: "is corrupt; restore a backup",
    sqlite3.SQLITE_READONLY: "is read-only; check the permissions of the file and its folder",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full or the file reached its size limit; nothing was written",
    sqlite3.SQLITE_BUSY: "is locked by another process; try again",
    sqlite3.SQLITE_LOCKED: "is locked by another connection; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its folder exists and may be written",
    sqlite3.SQLITE_PERM: "cannot be opened; check the permissions of the file and its folder",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk",
}


def path_of(url: str) -> str:
    """The database file that `url` names: `sqlite:DIR` and a plain directory mean `DIR/threads.db`.

    Raises UsageError for an empty address and for another scheme.
    """
    refuse_keywords(url)
    scheme = _SCHEME.match(url)
    if scheme and scheme[1].lower() != "sqlite":
        raise UsageError(f'{scheme[1]}: is not a kind of checkpointer; write "sqlite:DIR" or "sqlite::memory:"')
    place = url[scheme.end() :] if scheme else url
    if place == ":memory:":
        return place
    if not place:
        raise UsageError('the checkpointer has no place to store threads in; write "sqlite:DIR" or "sqlite::memory:"')
    # sqlite:///abs and sqlite://rel, as other tools write them
    path = Path(place.removeprefix("//") if scheme else place).expanduser()
    return str(path if path.suffix in _DATABASE_SUFFIXES and not path.is_dir() else path / FILE_NAME)


def connect(path: str, *, synchronous: str, busy_timeout: float) -> sqlite3.Connection:
    """An open connection, write-ahead logging on, in autocommit mode; creates the folder.

    Raises StoreError when the file cannot be used and UsageError when it is another program's database.
    """
    if synchronous.upper() not in _SYNCHRONOUS:
        raise UsageError(f"synchronous={synchronous!r} is not one of {', '.join(sorted(_SYNCHRONOUS))}")
    if path != ":memory:":
        make_private(Path(path))
    with translated(path):
        connection = sqlite3.connect(path, timeout=busy_timeout, check_same_thread=False, isolation_level=None)
        try:
            _check_ownership(connection, path)
            patiently(busy_timeout, _is_busy, lambda: connection.execute("PRAGMA journal_mode=WAL"))
            for pragma in (f"synchronous={synchronous}", "secure_delete=ON", "temp_store=MEMORY"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
    return connection


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _check_ownership(connection: sqlite3.Connection, path: str) -> None:
    # Looked at before anything is changed. A file of LangGraph's own saver is welcome.
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "checkpoints" not in tables:
        raise UsageError(f"{path} is a SQLite database of another program; choose another home or file")


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the driver's errors into ours, once, at the edge; the driver's error stays as the cause."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        if "closed" in str(error):
            raise UsageError(f"{path} is closed; open the checkpointer again") from error
        raise
    except sqlite3.Error as error:
        # The low byte is the error; the rest of an extended code says where in SQLite it arose.
        meaning = _MEANINGS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if meaning is None:
            raise
        raise StoreError(f"{path} {meaning}") from error
