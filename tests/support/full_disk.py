"""A store whose disk is full."""

from everthread.stores import MemoryStore, SqliteStore

__all__ = ["fill_disk"]


def fill_disk(store: MemoryStore) -> None:
    """From now on the store's file cannot grow."""
    assert isinstance(store, SqliteStore)
    with store._database.write() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # SQLite raises it to the size that the file has
