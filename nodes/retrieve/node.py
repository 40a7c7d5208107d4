"""The retrieve node."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from everthread.errors import StoreError
from everthread.nodes.node import Node, Steps, announce, context_of, memory_of, named_thread, store_of
from everthread.nodes.retrieve.pack import pack
from everthread.nodes.retrieve.query import queries_of
from everthread.nodes.state import MemoryState, MemoryUpdate, Reference
from everthread.stores.ranking import FLOOR
from everthread.stores.record import Hit

__all__ = ["Retrieve"]


class Retrieve(Node):
    """Finds what long-term memory knows about the request, or nothing (R188, R194).

    `limit`: records at most. `budget_tokens`: what the memory block may take. `floor`: hits that score below it are not
    used; None only ranks.

    Recall fails open: when the store cannot be searched the turn goes on without memory and says so in the stream. An
    identity that is missing or a store that is not ours still raises.
    """

    reads_messages = True

    def __init__(self, *, limit: int = 5, budget_tokens: int = 1_200, floor: float | None = FLOOR) -> None:
        self.limit = limit
        self.budget_tokens = budget_tokens
        self.floor = floor

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `recalled`: references (id, revision, score, why), the best first; never texts."""
        yield from ()
        context, store = context_of(runtime), store_of(runtime)
        queries = queries_of(state.get("messages", []))
        nothing: MemoryUpdate = {"recalled": []} if state.get("recalled") else {}
        if not queries:
            return nothing
        if memory_of(runtime) == "off":
            announce(runtime, "retrieve", "skipped", reason="memory is off for this run or thread, or by consent")
            return nothing
        try:
            for query in queries:
                recall = store.recall(
                    context.identity,
                    query,
                    limit=self.limit,
                    thread_id=named_thread(runtime),
                    as_of=context.as_of,
                    floor=self.floor,
                )
                if recall.hits:
                    break
        except StoreError as error:
            announce(runtime, "retrieve", "degraded", reason=str(error))
            return {"recalled": []}
        kept, left_out = pack(recall.hits, self.budget_tokens)
        announce(
            runtime,
            "retrieve",
            "recalled" if kept else "abstained",
            hits=[{"id": hit.record_id, "score": round(hit.score, 3), "why": hit.why} for hit in kept],
            over_budget=[hit.record_id for hit in left_out],
            abstained=recall.abstained,
            degraded=list(recall.degraded),
        )
        return {"recalled": [_reference(hit) for hit in kept]}


def _reference(hit: Hit) -> Reference:
    """A hit without a word of its text: checkpoints hold references, so that an erased record is gone from them too."""
    signals = hit.signals.model_dump()
    why = ", ".join(f"{name} {value:.2f}" for name, value in signals.items() if value)
    return {"id": hit.record_id or "", "revision": hit.revision or 1, "score": round(hit.score, 4), "why": why}
