"""A transaction that may be a dry run: it does all of it, so that it foresees what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from everthread.stores.database import Connection, Database

__all__ = ["writing"]


@contextmanager
def writing(database: Database, tenant: str, *, dry_run: bool) -> Iterator[Connection]:
    """A transaction in the lane of one tenant; rolled back at its end for a dry run."""
    try:
        with database.write(tenant) as connection:
            yield connection
            if dry_run:
                raise _Undo
    except _Undo:
        return


class _Undo(Exception):
    """Ends the transaction of a dry run."""
