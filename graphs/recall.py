"""Recall as a graph of its own: put it before an agent of yours."""

from __future__ import annotations

from langgraph.graph import END, START
from typing_extensions import TypedDict

from everthread.graphs.gate import MemoryGraph
from everthread.graphs.soundness import with_messages
from everthread.nodes import Retrieve
from everthread.nodes.state import MemoryState, Reference
from everthread.stores.identity import MemoryContext

__all__ = ["create_recall_graph"]


class RecallOutput(TypedDict):
    """What recall gives its host: references, never messages, so that nothing is stored twice."""

    recalled: list[Reference]
    """What was recalled, the best first; its texts through `memory_block(state, runtime)`."""


def create_recall_graph(
    retrieve: Retrieve | None = None,
) -> MemoryGraph[MemoryState, MemoryContext, MemoryState, RecallOutput]:
    """START -> retrieve -> END. Compile with `checkpointer=False` as a node of a host's graph: it keeps no state."""
    graph = MemoryGraph(MemoryState, context_schema=MemoryContext, output_schema=RecallOutput)
    graph.narrow = with_messages
    graph.add_node("retrieve", retrieve or Retrieve())
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", END)
    return graph
