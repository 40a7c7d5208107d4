"""Dead versions of rows: they are taken out of tables, and it is looked at who still sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from everthread.errors import StoreError

__all__ = ["vacuum"]

HELD_UP = """
SELECT (
    SELECT count(*) FROM pg_stat_activity
    WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
        AND age(backend_xmin) > age(%(now)s::xid) AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
) + (SELECT count(*) FROM pg_replication_slots WHERE age(xmin) > age(%(now)s::xid))
"""
"""Sessions that still see the state before a transaction: of this database, and of replicas that say what they read
(`hot_standby_feedback`), which are of none. One that vacuums looks at no rows that are dead."""


def vacuum(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Remove the dead versions of rows that were deleted or changed in these tables of the search path. StoreError when
    a session that began before still sees them. The server's log and copies, and the unused space of its pages, are not
    reached."""
    cursor = connection.cursor(row_factory=tuple_row)
    ((now,),) = cursor.execute("SELECT pg_current_xact_id()::xid::text").fetchall()
    cursor.execute(sql.SQL("VACUUM {}").format(sql.SQL(", ").join(map(sql.Identifier, tables))))
    ((sessions,),) = cursor.execute(HELD_UP, {"now": now}).fetchall()
    if sessions:
        raise StoreError(
            f"{sessions} sessions, here or on replicas, still see the state before; end their transactions"
        )
