"""What a server keeps as samples of columns, for its planner (`pg_stats`): they outlive the rows that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

__all__ = ["forget_samples"]

SAMPLED = """
SELECT DISTINCT
    attrelid::regclass::text, quote_ident(attname), format_type(atttypid, atttypmod),
    CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
LEFT JOIN pg_inherits ON inhparent = attrelid LEFT JOIN pg_class AS part ON part.oid = inhrelid
WHERE pg_class.relnamespace = quote_ident(current_schema())::regnamespace AND pg_class.relname = ANY (%s)
    AND pg_has_role(pg_class.relowner, 'USAGE') AND attstattarget = 0 AND attnum > 0 AND NOT attisdropped
    AND attgenerated = '' AND EXISTS (
        SELECT FROM pg_stats WHERE schemaname = current_schema() AND pg_stats.attname = pg_attribute.attname
            AND tablename IN (pg_class.relname, part.relname)
    )
"""
FORGET = "ALTER TABLE {} ALTER COLUMN {} TYPE {}, ALTER COLUMN {} SET STORAGE {}"
"""A column that gets the type that it has loses its samples, and keeps its rows and indexes as they are."""


def forget_samples(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Remove the samples of those columns of which none are to be taken any more (`SET STATISTICS 0`). There are none,
    once this was done. Another role's tables are left as they are. It waits ten seconds for whoever uses a table, and
    raises psycopg's errors."""
    for table, column, kind, storage in connection.execute(SAMPLED, (list(tables),)).fetchall():
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute(FORGET.format(table, column, kind, column, storage).encode())
