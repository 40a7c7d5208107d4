"""The one door to long-term memory as a graph of its own: put it after an agent of yours.

START -> propose -> validate -> resolve -> commit -> [wider scope?] -> review -> END
            ^--------- resumed after a crash ---------+
"""

from __future__ import annotations

from langgraph.graph import END, START

from everthread.graphs.gate import MemoryGraph
from everthread.graphs.soundness import with_messages
from everthread.nodes.extract import Extractor
from everthread.nodes.extract.later import When
from everthread.nodes.extract.node import new_window
from everthread.nodes.extract.steps import (
    Commit,
    Propose,
    RememberOutput,
    RememberState,
    Resolve,
    Review,
    Validate,
    is_reviewed,
    unless_lost,
)
from everthread.stores.identity import MemoryContext

__all__ = ["create_remember_graph"]


def create_remember_graph(
    extractor: Extractor | None = None,
    *,
    trusted_tools: frozenset[str] = frozenset(),
    when: When | None = None,
    exclude_external: bool = False,
) -> MemoryGraph[RememberState, MemoryContext, RememberState, RememberOutput]:
    """A builder. Give the compiled graph the thread's messages, and, when it runs again in a thread, the `flushed_to`
    that it returned: what it has seen before enters neither the graph nor its checkpoints. It needs a checkpointer (its
    own or its host's), since a review interrupts it.

    `when`, as in `Extract`: an extractor that calls a model leaves a job, and the graph ends. What waits for review is
    then decided on outside it, by `everthread review`. `trusted_tools` and `exclude_external` are those of `Extract`.

    What waits for review is pending in the store before anybody is asked, so that a review may also happen elsewhere,
    later, or never.
    """
    graph = MemoryGraph(RememberState, context_schema=MemoryContext, output_schema=RememberOutput)
    graph.narrow = lambda given: new_window(with_messages(given))
    # A run that a crash cut off begins again with `propose`, so its steps are worth no checkpoints of their own.
    graph.inside = "exit"
    propose = Propose(extractor, when, trusted_tools=trusted_tools, exclude_external=exclude_external)
    graph.add_node("propose", propose, destinations=("validate", END))
    graph.add_node("validate", Validate(trusted_tools))
    graph.add_node("resolve", Resolve())
    graph.add_node("commit", Commit())
    graph.add_node("review", Review())
    graph.add_edge(START, "propose")
    graph.add_conditional_edges("validate", unless_lost("resolve"), ["resolve", "propose"])
    graph.add_conditional_edges("resolve", unless_lost("commit"), ["commit", "propose"])
    graph.add_conditional_edges("commit", is_reviewed, ["review", "propose", END])
    graph.add_edge("review", END)
    return graph
