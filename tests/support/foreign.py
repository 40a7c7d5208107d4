"""Files as other memories write them: LangGraph's own store, and mem0's history database and export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.store.sqlite import SqliteStore

__all__ = ["history_db", "langgraph_db", "mem0_export"]

Put = tuple[tuple[str, ...], str, Mapping[str, Any]]


def langgraph_db(path: Path, puts: Iterable[Put], *, at: str | None = None) -> Path:
    """A file that LangGraph's SqliteStore wrote; `at` is the time that its rows then have, as SQLite writes it."""
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        for namespace, key, value in puts:
            store.put(namespace, key, dict(value))
    if at is not None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE store SET updated_at = ?", (at,))
    return path


def mem0_export(path: Path, memories: Any) -> Path:
    """What mem0's `get_all` returned, as JSON."""
    path.write_text(json.dumps(memories), encoding="utf-8")
    return path


def history_db(path: Path, rows: Iterable[tuple[Any, ...]]) -> Path:
    """mem0's history: (memory_id, new_memory, event, created_at, updated_at, is_deleted, role), oldest first."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
            "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        connection.executemany(
            "INSERT INTO history (id, memory_id, new_memory, event, created_at, updated_at, is_deleted, role) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(f"h{number}", *row) for number, row in enumerate(rows)],
        )
    return path
