"""Memory from elsewhere into the store: LangGraph's own stores, langmem's and mem0's layouts.

    maps = load_maps(Path("map.toml"), "langgraph")
    report = migrate(store, read(Path("old.db"), "langgraph"), maps, layout="langgraph", identity_for=..., dry_run=True)

What comes in passes the rules of extraction, names where it came from, and has at most the authority of what a user
implied. A second run adds nothing. `postgres_items` reads the same from PostgreSQL, by URL. `restore` brings back an
export of everthread's own, whole.
"""

from typing import TYPE_CHECKING, Any

from everthread.migrate.items import Item, Layout, Skipped, items_of, read
from everthread.migrate.mapping import Map, load_maps
from everthread.migrate.migration import migrate
from everthread.migrate.report import MigrationReport, RefusedCount
from everthread.migrate.restore import RestoreReport, is_export, restore

if TYPE_CHECKING:
    from everthread.migrate.postgres import PostgresSource as PostgresSource
    from everthread.migrate.postgres import postgres_items as postgres_items

__all__ = [
    "Item",
    "Layout",
    "Map",
    "MigrationReport",
    "PostgresSource",
    "RefusedCount",
    "RestoreReport",
    "Skipped",
    "is_export",
    "items_of",
    "load_maps",
    "migrate",
    "postgres_items",
    "read",
    "restore",
]


def __getattr__(name: str) -> Any:
    """Import what needs psycopg when it is first used; UsageError when that is missing."""
    if name in ("PostgresSource", "postgres_items"):
        from everthread.migrate import postgres

        return getattr(postgres, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
