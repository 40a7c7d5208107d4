"""What a server keeps as samples of columns, for its planner (`pg_stats`): they outlive the rows that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

__all__ = ["forget_samples"]

SAMPLED = """
WITH sampled AS MATERIALIZED (
    SELECT DISTINCT coalesce(inhparent, pg_class.oid) AS place, attname
    FROM pg_stats JOIN pg_class
        ON relname = tablename AND relnamespace = quote_ident(current_schema())::regnamespace
    LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
    WHERE schemaname = current_schema()
)
SELECT
    attrelid::regclass::text, quote_ident(attname), format_type(atttypid, atttypmod),
    CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN sampled USING (attname)
WHERE place = attrelid AND pg_class.relname = ANY (%s)
    AND pg_has_role(pg_class.relowner, 'USAGE') AND attstattarget = 0 AND attnum > 0 AND attgenerated = ''
    AND NOT EXISTS (
        SELECT FROM pg_attrdef JOIN pg_depend ON classid = 'pg_attrdef'::regclass AND objid = pg_attrdef.oid
        WHERE refclassid = 'pg_class'::regclass AND refobjid = attrelid AND refobjsubid = attnum AND adnum <> attnum
    )
"""
"""A column that others are computed from cannot be given a type: the audit log's details, which are ids and counts."""
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
