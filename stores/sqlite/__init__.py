"""The store in one SQLite file: no server, no key."""

from everthread.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
