"""A connection to a SQLite file: apsw's, and what the tables ask of one besides (`stores/database.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import apsw

from everthread.stores.database import Kept, Rows, Taken, one

__all__ = ["Connection"]


class Connection(apsw.Connection):
    """See `stores.database.Connection`."""

    def unlocked(self, sql: str, values: Sequence[Any], /) -> Rows:
        return self.execute(sql, values).fetchall()

    def streamed(self, sql: str, values: Mapping[str, Any], /) -> Iterable[Any]:
        return self.execute(sql, values)

    def try_lock(self, name: str) -> bool:
        return True  # a file has one writer

    def of(self, tenant: str | None) -> AbstractContextManager[None]:
        """Nothing is keyed by tenant here."""
        return nullcontext()

    def kept(self, name: str) -> Any:
        return one(self, "SELECT value FROM meta WHERE name = ?", name)

    def keep(self, name: str, value: Kept) -> None:
        self.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, value))

    def keep_first(self, name: str, value: Kept) -> Any:
        self.execute("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
        return self.kept(name)

    def all_kept(self) -> list[tuple[str, Kept]]:
        return [(str(name), value) for name, value in self.execute("SELECT name, value FROM meta ORDER BY name")]

    def tables(self) -> dict[str, str]:
        found = self.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
        known = {str(name): bool(without) for name, without in found if not str(name).startswith("sqlite_")}
        return {table: self._key(table) if without else "rowid" for table, without in known.items()}

    def columns(self, table: str) -> list[str]:
        return [str(name) for (name,) in self.execute("SELECT name FROM pragma_table_info(?)", (table,))]

    def _key(self, table: str) -> str:
        """The columns of the primary key, in its order."""
        found = self.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))
        return ", ".join(str(name) for (name,) in found)

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(names))
        try:
            self.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
        except apsw.ConstraintError as error:
            raise Taken(table) from error

    def last_numbers(self, tables: Sequence[str]) -> list[tuple[str, int]]:
        counters = "SELECT name, seq FROM sqlite_sequence WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"
        return [(str(name), int(seq)) for name, seq in self.execute(counters, (json.dumps(list(tables)),))]

    def go_on_after(self, table: str, number: int) -> None:
        self.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))
