"""Memory from elsewhere into the store: LangGraph's own stores, langmem's and mem0's layouts.

    maps = load_maps(Path("map.toml"), "langgraph")
    report = migrate(store, read(Path("old.db"), "langgraph"), maps, layout="langgraph", identity_for=..., dry_run=True)

What comes in passes the rules of extraction, names where it came from, and has at most the authority of what a user
implied. A second run adds nothing.
"""

from everthread.migrate.items import Item, Layout, Skipped, items_of, read
from everthread.migrate.mapping import Map, load_maps
from everthread.migrate.migration import migrate
from everthread.migrate.report import MigrationReport, RefusedCount

__all__ = [
    "Item",
    "Layout",
    "Map",
    "MigrationReport",
    "RefusedCount",
    "Skipped",
    "items_of",
    "load_maps",
    "migrate",
    "read",
]
