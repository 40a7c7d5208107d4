"""everthread: memory for LangGraph agents, as a graph you can read, step through and resume."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everthread.nodes.state import MemoryState as MemoryState
    from everthread.stores.identity import Identity as Identity
    from everthread.stores.identity import MemoryContext as MemoryContext
    from everthread.stores.identity import Scope as Scope
    from everthread.stores.record import Authority as Authority
    from everthread.stores.record import Evidence as Evidence
    from everthread.stores.record import Record as Record

_HOMES = {
    "Authority": "everthread.stores.record",
    "Evidence": "everthread.stores.record",
    "Identity": "everthread.stores.identity",
    "MemoryContext": "everthread.stores.identity",
    "MemoryState": "everthread.nodes.state",
    "Record": "everthread.stores.record",
    "Scope": "everthread.stores.identity",
}
__all__ = ["Authority", "Evidence", "Identity", "MemoryContext", "MemoryState", "Record", "Scope", "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts fast."""
    if name == "__version__":
        return version("everthread")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
