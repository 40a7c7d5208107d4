"""What people compose: builders whose `.compile(checkpointer=, store=)` makes a graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everthread.graphs.gate import gate

if TYPE_CHECKING:
    from everthread.graphs.agent import create_memory_agent as create_memory_agent
    from everthread.graphs.compaction import acompact_now as acompact_now
    from everthread.graphs.compaction import compact_now as compact_now
    from everthread.graphs.consolidation import create_consolidation_graph as create_consolidation_graph
    from everthread.graphs.middleware import MemoryMiddleware as MemoryMiddleware
    from everthread.graphs.recall import create_recall_graph as create_recall_graph
    from everthread.graphs.remember import create_remember_graph as create_remember_graph

_HOMES = {
    "MemoryMiddleware": "everthread.graphs.middleware",
    "acompact_now": "everthread.graphs.compaction",
    "compact_now": "everthread.graphs.compaction",
    "create_consolidation_graph": "everthread.graphs.consolidation",
    "create_memory_agent": "everthread.graphs.agent",
    "create_recall_graph": "everthread.graphs.recall",
    "create_remember_graph": "everthread.graphs.remember",
}
__all__ = [
    "MemoryMiddleware",
    "acompact_now",
    "compact_now",
    "create_consolidation_graph",
    "create_memory_agent",
    "create_recall_graph",
    "create_remember_graph",
    "gate",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
