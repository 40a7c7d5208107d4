"""Dead versions of rows: they are taken out of tables, and it is looked at who still sees them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from everthread.errors import StoreError

__all__ = ["vacuum"]

PATIENCE = 3.0
"""Seconds to wait for sessions that see the state before: a recall is soon over, and so is an ANALYZE of the server."""
HELD_UP = """
SELECT (
    SELECT count(*) FROM pg_stat_activity
    WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
        AND greatest(age(backend_xmin), age(backend_xid)) > age(%(now)s::xid)
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
) + (SELECT count(*) FROM pg_replication_slots WHERE age(xmin) > age(%(now)s::xid))
+ (
    SELECT count(*) FROM pg_prepared_xacts
    WHERE database = current_database() AND age(transaction) > age(%(now)s::xid)
)
"""
"""Sessions that still see the state before a transaction, or began to write before it: of this database, and of
replicas that say what they read (`hot_standby_feedback`), which are of none. One that vacuums looks at no dead rows."""


def vacuum(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Remove the dead versions of rows that were deleted or changed in these tables of the search path. StoreError when
    a session that began before still sees them after `PATIENCE`. The server's log and copies, and the unused space of
    its pages, are not reached."""
    cursor = connection.cursor(row_factory=tuple_row)
    ((now,),) = cursor.execute("SELECT pg_current_xact_id()::xid::text").fetchall()
    # One that ends while tables are vacuumed has kept dead rows in those that were done before.
    before = _held_up(cursor, now, time.monotonic() + PATIENCE)
    cursor.execute(sql.SQL("VACUUM {}").format(sql.SQL(", ").join(map(sql.Identifier, tables))))
    if sessions := max(before, _held_up(cursor, now, 0.0)):
        raise StoreError(
            f"{sessions} sessions, here or on replicas, still see the state before; end their transactions"
        )


def _held_up(cursor: psycopg.Cursor[Any], now: str, until: float) -> int:
    """How many sessions see the state before `now`, when there are none or it is as late as `until`."""
    while True:
        ((sessions,),) = cursor.execute(HELD_UP, {"now": now}).fetchall()
        if not sessions or time.monotonic() >= until:
            return int(sessions)
        time.sleep(0.02)
