"""What outlives a turn: long-term memory, and the thread-scoped checkpointer.

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver: ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everthread.stores.checkpoints import open_checkpointer as open_checkpointer
    from everthread.stores.contract import MemoryStore as MemoryStore
    from everthread.stores.open import open_store as open_store
    from everthread.stores.postgres import PostgresStore as PostgresStore
    from everthread.stores.record import Evidence as Evidence
    from everthread.stores.sqlite import SqliteStore as SqliteStore
    from everthread.stores.threads import thread_config as thread_config
    from everthread.stores.worker import Worker as Worker

_HOMES = {
    "Evidence": "everthread.stores.record",
    "MemoryStore": "everthread.stores.contract",
    "PostgresStore": "everthread.stores.postgres",
    "SqliteStore": "everthread.stores.sqlite",
    "Worker": "everthread.stores.worker",
    "open_checkpointer": "everthread.stores.checkpoints",
    "open_store": "everthread.stores.open",
    "thread_config": "everthread.stores.threads",
}
__all__ = [
    "Evidence",
    "MemoryStore",
    "PostgresStore",
    "SqliteStore",
    "Worker",
    "open_checkpointer",
    "open_store",
    "thread_config",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts fast."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
