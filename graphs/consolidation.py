"""The background pass as a graph: what is over ends, what says the same is merged."""

from __future__ import annotations

from langgraph.graph import END, START

from everthread.graphs.gate import MemoryGraph
from everthread.nodes.consolidate import Expire, Merge
from everthread.nodes.state import MemoryState
from everthread.stores.identity import MemoryContext

__all__ = ["create_consolidation_graph"]


def create_consolidation_graph() -> MemoryGraph[MemoryState, MemoryContext, MemoryState, MemoryState]:
    """START -> expire -> merge -> END, over the memory of the run's own user. Its `receipts` say what was done."""
    graph = MemoryGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("expire", Expire())
    graph.add_node("merge", Merge())
    graph.add_edge(START, "expire")
    graph.add_edge("expire", "merge")
    graph.add_edge("merge", END)
    return graph
