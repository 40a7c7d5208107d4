"""everthread: memory for LangGraph agents, as a graph you can read, step through and resume."""

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from everthread.errors import UsageError

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


_LANGGRAPH = "1.2.24"
"""The oldest LangGraph that has what we build on, as pyproject.toml says."""


def _check_langgraph() -> None:
    """UsageError when it is older; asked here, before anything of it is imported and misses a name."""
    try:
        found = version("langgraph")
    except PackageNotFoundError:  # bundled without its metadata: nobody can tell
        return
    here, oldest = ([int(number) for number in re.findall(r"\d+", each)[:3]] for each in (found, _LANGGRAPH))
    if here < oldest:
        raise UsageError(
            f"langgraph {found} is too old for everthread; pip install --upgrade 'langgraph>={_LANGGRAPH},<2'"
        )


_check_langgraph()


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts fast."""
    if name == "__version__":
        return version("everthread")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
