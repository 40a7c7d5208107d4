"""The thread-scoped side: LangGraph's own SQLite saver, with a lease on each thread and a fence against stale writers.

with open_checkpointer("sqlite:./data") as saver:
    graph = builder.compile(checkpointer=saver)
"""

from everthread.stores.checkpoints.saver import Saver, open_checkpointer

__all__ = ["Saver", "open_checkpointer"]
