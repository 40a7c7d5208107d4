"""One SQLite file: opened with apsw, one writer, several readers, numbered migrations.

apsw brings its own current SQLite, since most Python builds (pyenv, macOS) lack loadable extensions in `sqlite3`. A
file opened here is never opened by the `sqlite3` module in the same process: POSIX locks would be lost.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import apsw
import sqlite_vec

from everthread.errors import StoreError, UsageError
from everthread.stores.database import Connection as AnyConnection
from everthread.stores.database import one
from everthread.stores.files import make_private, patiently
from everthread.stores.origin import Origin
from everthread.stores.sqlite.connection import Connection
from everthread.stores.tables.audit import link

APPLICATION_ID = 0x65767468
"""`evth`, in the file's header: tells our files from others'."""

BACKUP_DAYS = 30.0
"""How long the copy is kept that is made before an older file is migrated."""


class Database:
    """A memory file. `read()` gives a connection that nobody else has; `write()` a transaction, one at a time.

    A file of an older version is copied beside itself (`memory.db.v3.bak`) and then migrated. The copy is removed when
    the file is opened after `backup_days`.

    Raises StoreError when the file is corrupt, read-only, full or locked for longer than `busy_timeout` seconds, and
    UsageError when it is a database of something else, or of a newer version.
    """

    apart = False

    def __init__(
        self,
        path: str,
        *,
        busy_timeout: float = 30.0,
        synchronous: str = "FULL",
        backup_days: float = BACKUP_DAYS,
    ) -> None:
        self.path = path
        self._backup_days = backup_days
        self._timeout = int(busy_timeout * 1000)
        self._synchronous = synchronous
        self._writing = threading.RLock()
        self._local = threading.local()
        self._open: list[Connection] = []
        # To read with, lent for one read: a thread may end with each turn, as those do that run tools.
        self._idle: list[Connection] = []
        self._closed = False
        self._origin = Origin()
        # An in-memory database lives in one connection, which every thread then shares under the lock.
        self._shared = None
        try:
            self._writer = self._connect()
            if path == ":memory:":
                self._shared = self._writer
            with translated(path):
                self._migrate(self._writer)
                self._drop_expired_backups()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Connection:
        if self.path != ":memory:":
            make_private(Path(self.path))
        with translated(self.path):
            connection = Connection(self.path)
            self._open.append(connection)
            connection.set_busy_timeout(self._timeout)
            # Before anything is set: a journal mode is written into the file, and it may be another program's.
            self._check_ownership(connection)
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.enable_load_extension(False)
            patiently(
                self._timeout / 1000,
                lambda error: isinstance(error, apsw.BusyError),
                lambda: connection.execute("PRAGMA journal_mode=WAL").fetchall(),
            )
            for pragma in (
                f"synchronous={self._synchronous}",
                "secure_delete=ON",
                "foreign_keys=ON",
                "temp_store=MEMORY",
            ):
                connection.execute(f"PRAGMA {pragma}")
        return connection

    def _check_ownership(self, connection: Connection) -> None:
        # In one statement: another process may be making the file at this moment.
        found = connection.execute(
            "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id"
        ).fetchone()
        if found is not None and found[0] != APPLICATION_ID and found[1]:
            raise UsageError(f"{self.path} is a SQLite database of another program; choose another home or file")

    def _migrate(self, connection: Connection) -> None:
        """Run the numbered scripts that this file has not seen. Several processes may start at once."""
        scripts = migrations()
        newest = max(scripts)
        version = one(connection, "PRAGMA user_version")
        if version > newest:
            raise UsageError(f"{self.path} was written by a newer everthread (schema {version}); upgrade everthread")
        if version == newest:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = one(connection, "PRAGMA user_version")
            if 0 < version < newest:
                self._back_up(version)
            for number, script in scripts.items():
                if number > version:
                    run_script(connection, script)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={newest}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # -------------------------------------------------------------------------------------------------------- backups

    def _back_up(self, version: int) -> None:
        """Copy the file as it is; whoever calls holds the write lock, so that nobody migrates it meanwhile."""
        target = Path(f"{self.path}.v{version}.bak")
        unfinished = target.with_suffix(".tmp")
        unfinished.unlink(missing_ok=True)
        with closing(Connection(self.path)) as reader:
            reader.execute("VACUUM INTO ?", (str(unfinished),))
        shutil.copymode(self.path, unfinished)
        unfinished.replace(target)

    def backups(self) -> list[Path]:
        """The copies that were made before migrations, the oldest version first."""
        file = Path(self.path)
        if self.path == ":memory:":
            return []
        name = re.compile(re.escape(file.name) + r"\.v(\d+)\.bak")
        found = [(int(match[1]), path) for path in file.parent.iterdir() if (match := name.fullmatch(path.name))]
        return [path for _, path in sorted(found)]

    def expiry(self, backup: Path) -> float:
        """When a backup expires, in seconds since 1970."""
        return backup.stat().st_mtime + self._backup_days * 24 * 60 * 60

    def _drop_expired_backups(self) -> None:
        for backup in self.backups():
            if self.expiry(backup) <= time.time():
                backup.unlink(missing_ok=True)  # another process may have been first

    # ----------------------------------------------------------------------------------------------- reads and writes

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:
        """A connection to read with; everything read inside one `with` is one consistent state. It ends in the thread
        in which it began."""
        self._check_open()
        if self._shared is not None or getattr(self._local, "in_write", False):
            with self._writing, translated(self.path):
                yield self._writer
            return
        reading: Connection | None = getattr(self._local, "reading", None)
        if reading is not None:
            yield reading
            return
        self._local.reading = connection = self._reader()
        try:
            with translated(self.path):
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
                    self._idle.append(connection)
        finally:
            self._local.reading = None

    def _reader(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection of its own to one consistent state, to be read at length, whatever this thread or another reads
        and writes meanwhile. What is in memory is copied."""
        self._check_open()
        with translated(self.path):
            if self._shared is not None:
                with closing(Connection(":memory:")) as copy:
                    with self._writing, copy.backup("main", self._shared, "main") as backup:
                        backup.step()
                    yield copy
                return
            connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            except apsw.ConnectionClosedError as error:
                raise UsageError(f"{self.path} was closed while it was being read; read it to its end first") from error
            finally:
                connection.close()
                with self._writing:
                    self._open = [each for each in self._open if each is not connection]

    @contextmanager
    def write(self, lane: str | None = None, *, of: str | None = None) -> Iterator[Connection]:
        """A transaction: committed when the block ends, rolled back whole on any exception. Nested calls join it.
        A file has one writer, whatever its lane."""
        self._check_open()
        with self._writing, translated(self.path):
            if getattr(self._local, "in_write", False):
                yield self._writer
                return
            self._writer.execute("BEGIN IMMEDIATE")
            self._local.in_write = True
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._local.in_write = False

    def beside(self) -> AbstractContextManager[Connection]:
        """A transaction: a file has one writer."""
        return self.write()

    def scrub(self, tenant: str | None = None) -> None:
        """Rewrite the file without its free pages and empty the WAL, so that erased bytes are nowhere in it."""
        with self._writing, translated(self.path):
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def files(self) -> list[Path]:
        """The file, and what SQLite keeps beside it."""
        if self.path == ":memory:":
            return []
        return [found for suffix in ("", "-wal", "-shm") if (found := Path(self.path + suffix)).exists()]

    def about(self, connection: AnyConnection) -> str:
        """The versions of the schema and of SQLite, and until when copies are kept."""
        copies = "".join(
            f"; a copy from before a migration, {path.name}, is kept until "
            f"{datetime.fromtimestamp(self.expiry(path), UTC):%Y-%m-%d}"
            for path in self.backups()
        )
        return f"schema {one(connection, 'PRAGMA user_version')}, SQLite {apsw.sqlite_lib_version()}{copies}"

    def damage(self, connection: AnyConnection) -> list[str]:
        """What SQLite's own check finds."""
        return [str(text) for (text,) in connection.execute("PRAGMA integrity_check(5)") if text != "ok"]

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self.path} is closed; open the store again")
        if self.path != ":memory:":  # of which a fork has a copy
            self._origin.check(self.path)

    def close(self) -> None:
        """Close every connection. Closing twice is allowed; in a fork, the connections are left to who opened them."""
        if not self._origin.is_here:
            self._closed = True
            return
        with self._writing:
            self._closed = True
            for connection in self._open:
                connection.close()
            self._open.clear()
            self._idle.clear()


def migrations() -> dict[int, str]:
    """The scripts that make a file what it is, by number, in order. New ones are appended, none is ever changed."""
    folder = files("everthread.stores.sqlite").joinpath("migrations")
    scripts = {int(entry.name[:4]): entry for entry in folder.iterdir() if entry.name.endswith(".sql")}
    return {number: scripts[number].read_text(encoding="utf-8") for number in sorted(scripts)}


def run_script(connection: apsw.Connection, script: str) -> None:
    """Run a migration, with the functions that it may call."""
    connection.create_scalar_function("audit_link", lambda last, *row: link(last, row), 6, deterministic=True)
    connection.execute(script)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn apsw's errors into ours, once, at the edge; the driver's error stays as the cause."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError("an id, key or name has a lone surrogate, which is not valid Unicode; leave it out") from error
    except apsw.NotADBError as error:
        raise StoreError(f"{path} is not a SQLite database, or is encrypted; choose another home or file") from error
    except apsw.CorruptError as error:
        raise StoreError(f"{path} is corrupt; restore a backup, then run `everthread doctor`") from error
    except apsw.ReadOnlyError as error:
        raise StoreError(f"{path} is read-only; check the permissions of the file and its folder") from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: the disk is full or the file reached its size limit; nothing was written") from error
    except apsw.BusyError as error:
        raise StoreError(f"{path} is locked by another process; try again, or raise busy_timeout") from error
    except apsw.CantOpenError as error:
        raise StoreError(f"{path} cannot be opened; check that its folder exists and may be written") from error
    except apsw.IOError as error:
        raise StoreError(f"{path}: reading or writing failed ({error}); check the disk") from error
