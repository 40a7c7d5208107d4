"""What the tables need of a database, whichever it is: transactions, and connections that speak SQL.

The SQL of a store is written once, in the part of the language that SQLite and PostgreSQL share, with the functions
for JSON that SQLite has (the migrations of PostgreSQL define them there) and its marks for values: `?`, `?1`, `:name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

__all__ = ["EVERY", "Connection", "Cursor", "Database", "Kept", "Lane", "Rows", "Runs", "Taken", "one"]

EVERY = 2**63 - 1
"""A limit that is none."""

Rows = list[tuple[Any, ...]]
Kept = str | int | bytes
"""What a store keeps about itself under a name."""


class Lane(str):
    """A lane of what is no tenant's; any other name of a lane is a tenant."""


class Taken(Exception):
    """A row's key is there already. Raised by `Connection.insert` alone."""


class Cursor(Protocol):
    """The rows of a statement; none of one that has none."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row; None when there is none."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""

    def getdescription(self) -> Any:
        """A tuple for each column, its name first."""


class Runs(Protocol):
    """What runs a statement."""

    def execute(self, sql: str, values: Any = None, /) -> Cursor:
        """Run one statement; `values` is a sequence for `?`, a mapping for `:name`."""


class Connection(Runs, Protocol):
    """A connection, inside of a transaction."""

    def executemany(self, sql: str, values: Iterable[Any], /) -> object:
        """Run one statement for each of the values."""

    def streamed(self, sql: str, values: Mapping[str, Any], /) -> Iterable[Any]:
        """The rows of a SELECT, fetched as they are read; one is read to its end before another."""

    def unlocked(self, sql: str, values: Sequence[Any], /) -> Rows:
        """The rows that a SELECT of one table finds, locked until the end of the transaction; those that another
        transaction has locked are left out, not waited for."""

    def try_lock(self, name: str) -> bool:
        """Take the lock of this name until the end of the transaction, if nobody has it; never waits."""

    def of(self, tenant: str | None) -> AbstractContextManager[None]:
        """Inside the `with`, statements are about the rows of this tenant; about those of all for None. Where tables
        are keyed by tenant, they can then be found at all where a statement does not name it; elsewhere it changes
        nothing."""

    def changes(self) -> int:
        """How many rows the last statement has changed."""

    def total_changes(self) -> int:
        """How many rows were changed on this connection."""

    def kept(self, name: str) -> Any:
        """What the store keeps about itself under this name; None for nothing."""

    def keep(self, name: str, value: Kept) -> None:
        """Keep it, in place of what was kept."""

    def keep_first(self, name: str, value: Kept) -> Any:
        """Keep it unless something is kept under this name; returns what is kept."""

    def all_kept(self) -> list[tuple[str, Kept]]:
        """Every name with what is kept under it, by name."""

    def tables(self) -> dict[str, str]:
        """Each table, and the columns by which its rows are ordered the same each time."""

    def columns(self, table: str) -> list[str]:
        """The columns of a table, without those that are computed."""

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows as they are. Raises Taken when the key of one is there."""

    def last_numbers(self, tables: Sequence[str]) -> list[tuple[str, int]]:
        """Which number each of these tables gave out last, if any; by table."""

    def go_on_after(self, table: str, number: int) -> None:
        """Let a table give out the numbers after this one."""


class Database(Protocol):
    """Where the tables are. `read()` gives a connection of this thread, `write()` a transaction."""

    @property
    def path(self) -> str:
        """What it is called in messages; holds no password."""

    def read(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """A connection to read with, about one tenant or all (`Connection.of`); everything read inside one `with` is
        one consistent state."""

    def write(self, lane: str | None = None, *, of: str | None = None) -> AbstractContextManager[Connection]:
        """A transaction: committed when the block ends, rolled back whole on any exception. Nested calls join it.

        There is one at a time. Where a database can have several, those of different lanes run beside each other; one
        without a lane runs alone. A lane is the tenant whom the transaction is about, unless it is a `Lane`; `of` names
        the tenant of one that runs alone, None for all."""

    def beside(self) -> AbstractContextManager[Connection]:
        """A transaction like those of `write`, that waits for none of them where a database can have several: what it
        changes stands on locks of rows alone."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """A connection of its own to one consistent state, to be read at length."""

    @property
    def apart(self) -> bool:
        """Whether what a tenant has lies apart from what others have, and is read alone."""

    def scrub(self, tenant: str | None = None) -> None:
        """Leave nothing of what was deleted where this database can see to it, of one tenant or of all; StoreError when
        it cannot now. What does not lie apart is seen to whole."""

    def files(self) -> list[Path]:
        """The files that are searched for what was erased; none where they are the server's own."""

    def backups(self) -> list[Path]:
        """The copies that were made before migrations, the oldest version first."""

    def about(self, connection: Connection) -> str:
        """The versions of its schema and of what runs it, and which copies there are."""

    def damage(self, connection: Connection) -> list[str]:
        """What is not sound, by the database's own check; empty when all is."""

    def close(self) -> None:
        """Release files or connections. Closing twice is allowed."""


def one(connection: Runs, sql: str, *values: Any) -> Any:
    """The single value of a query's first row; None when it has no row."""
    row = connection.execute(sql, values).fetchone()
    return row[0] if row is not None else None
