"""The thread-scoped side: LangGraph's own savers, with a lease on each thread and a fence against stale writers.

with open_checkpointer("sqlite:./data") as saver:
    graph = builder.compile(checkpointer=saver)
"""

from everthread.stores.checkpoints.opening import open_checkpointer
from everthread.stores.checkpoints.saver import Saver
from everthread.stores.checkpoints.sqlite import SqliteSaver

__all__ = ["Saver", "SqliteSaver", "open_checkpointer"]
