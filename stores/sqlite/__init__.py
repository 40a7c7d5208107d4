"""The store in one SQLite file: no server, no key."""

from everthread.stores.sqlite.aio import AsyncSqliteStore
from everthread.stores.sqlite.store import SqliteStore

__all__ = ["AsyncSqliteStore", "SqliteStore"]
