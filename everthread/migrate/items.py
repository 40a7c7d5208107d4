"""What other memories hold, one item at a time, as it stands in their files. Nothing is judged here.

A file is opened read only, and read whole before anything is written. It must not be a file that this process has open
elsewhere: closing it here would drop SQLite's locks there.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from everthread.errors import StoreError, UsageError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

__all__ = ["Item", "Layout", "Skipped", "items_of", "read"]

Layout = Literal["langgraph", "langmem", "mem0"]
"""How the source is laid out. langmem's is LangGraph's, with values of its own."""

_ALL = 2**31 - 1
"""A limit that takes everything at once: pages of a store are cut by time, and items of one time may change places."""
_MEM0_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
"""Fields by which mem0 says whose a memory is, in the order in which they make a namespace."""


class Item(NamedTuple):
    """One memory of the source."""

    namespace: tuple[str, ...]
    """Its labels. mem0 has none: they are the names and values of its owner fields, or `history` for its database."""
    key: str
    """Its id in that namespace."""
    value: Mapping[str, Any]
    """The value as stored."""
    at: datetime | None = None
    """When it was last written, aware; None when the source does not say."""
    expires_at: datetime | None = None
    """When the source would drop it."""
    by_model: bool = False
    """Whether the source says that the assistant said it, not the user."""


class Skipped(NamedTuple):
    """An item that cannot be read, or that the source itself has deleted."""

    why: str
    """The reason, without a word of it."""


def read(path: Path, layout: Layout) -> list[Item | Skipped]:
    """Every item of a file, by namespace and key: LangGraph's SqliteStore (also langmem's), mem0's history database, or
    a JSON export of mem0's memories.

    Raises UsageError when the file is missing or is none of these, StoreError when it cannot be read.
    """
    if is_url(str(path)):
        raise UsageError("a URL is no file; use postgres_items(url, layout) of everthread.migrate")
    if not path.is_file():
        raise UsageError(f"{path} is not a file; name the SQLite file or the JSON export to import")
    try:
        with path.open("rb") as file:
            is_sqlite = file.read(16) == b"SQLite format 3\x00"
        if is_sqlite:
            return _read_sqlite(path, layout)
        if layout == "mem0":
            return [mem0_item(each) for each in _exported(path)]
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path} cannot be read ({error}); copy it with its -wal file, and import the copy") from error
    raise UsageError(f"{path} is not a SQLite file; --from {layout} reads the file of LangGraph's SqliteStore")


def is_url(source: str) -> bool:
    """Whether a source is written as a URL, or as another way to a database, and not as a path: it may hold a password,
    so no message may name it. Of a URL that was taken for a path one slash is left."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|.*\bpassword\s*=", source) is not None


def items_of(store: BaseStore) -> Iterator[Item]:
    """Every item of any LangGraph store that is open: PostgresStore, InMemoryStore, or a store of the host's own.

    By namespace. What a store with a TTL has dropped is not there; when the rest would expire it does not tell.
    """
    for namespace in sorted(set(map(tuple, store.list_namespaces(limit=_ALL)))):
        # a search goes into deeper namespaces too: those have their own turn
        for found in store.search(namespace, limit=_ALL, refresh_ttl=False):
            if tuple(found.namespace) == namespace:
                yield Item(namespace, found.key, found.value, _moment(found.updated_at))


def _read_sqlite(path: Path, layout: Layout) -> list[Item | Skipped]:
    table = "history" if layout == "mem0" else "store"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # one torn text is one item's trouble
        columns = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
        needed = {"memory_id", "new_memory"} if layout == "mem0" else {"prefix", "key", "value"}
        if not needed <= columns:
            raise UsageError(f"{path} has no table {table!r} as {layout} makes it; choose another --from")
        return list(_history(connection) if layout == "mem0" else _stored(connection))


def _stored(connection: sqlite3.Connection) -> Iterator[Item | Skipped]:
    """The rows of LangGraph's SqliteStore; files of its first versions have no expiry."""
    for row in map(dict, connection.execute("SELECT * FROM store ORDER BY prefix, key")):
        yield stored_item(row)


def stored_item(row: Mapping[str, Any]) -> Item | Skipped:
    """A row of the table `store` of LangGraph's SqliteStore or PostgresStore. They allow no "." in a label."""
    value = json_object(row["value"])
    if value is None:
        return Skipped("its value is not a JSON object")
    written = _moment(row.get("updated_at") or row.get("created_at"))
    return Item(tuple(str(row["prefix"]).split(".")), str(row["key"]), value, written, _moment(row.get("expires_at")))


def json_object(text: Any) -> dict[str, Any] | None:
    """The object that a JSON text holds; None when it holds none."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _history(connection: sqlite3.Connection) -> Iterator[Item | Skipped]:
    """What each memory came to in mem0's history. It does not say whose it is: the namespace is `history`."""
    latest = {row["memory_id"]: row for row in map(dict, connection.execute("SELECT * FROM history ORDER BY rowid"))}
    for id, row in sorted(latest.items(), key=lambda pair: str(pair[0])):
        if row.get("is_deleted") or row.get("event") == "DELETE" or row["new_memory"] is None:
            yield Skipped("the source deleted it")
            continue
        written = _moment(row.get("updated_at")) or _moment(row.get("created_at"))
        by_model = row.get("role") == "assistant"
        yield Item(("history",), str(id), {"memory": row["new_memory"]}, written, by_model=by_model)


def _exported(path: Path) -> list[Any]:
    """The memories of an export: an array, or what `get_all` returns."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is neither a SQLite file nor JSON; export mem0's memories with get_all()") from error
    if isinstance(found, dict):
        found = found.get("results", found.get("memories"))
    if not isinstance(found, list):
        raise UsageError(f"{path} holds no list of memories; write [...] or {{'results': [...]}}")
    return found


def mem0_item(found: Any) -> Item | Skipped:
    """A memory as mem0 exports it."""
    if not isinstance(found, dict) or not found.get("id"):
        return Skipped("it is not a memory with an id")
    owners = [(name, str(found[name])) for name in _MEM0_OWNERS if found.get(name)]
    return Item(
        tuple(label for owner in owners for label in owner) or ("nobody",),
        str(found["id"]),
        found,
        _moment(found.get("updated_at")) or _moment(found.get("created_at")),
        _moment(found.get("expiration_date")),
        "assistant" in (found.get("attributed_to"), found.get("role")),
    )


def _moment(value: Any) -> datetime | None:
    """A time as these files write it, in UTC; without an offset it is UTC (SQLite's CURRENT_TIMESTAMP)."""
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
