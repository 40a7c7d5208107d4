"""The background pass as nodes, and the node of a turn that runs it when it is due."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from everthread.nodes.consolidate.handlers import job_handlers
from everthread.nodes.consolidate.passes import expire, merge
from everthread.nodes.extract import Extractor, RuleExtractor
from everthread.nodes.extract.later import When, is_late
from everthread.nodes.node import Node, Steps, announce, context_of, identity_of, store_of
from everthread.nodes.state import MemoryState, MemoryUpdate, with_receipt
from everthread.stores.contract import MemoryStore
from everthread.stores.jobs import Handlers
from everthread.stores.record import Receipt

__all__ = ["Consolidate", "Expire", "Merge"]


class Expire(Node):
    """Ends the records whose time is over, in every scope that the run's identity reads. Returns `receipts`."""

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns the receipt's id in `receipts`, or nothing when no record was due."""
        yield from ()
        return _receipts(state, runtime, "expire", expire(identity_of(runtime), store_of(runtime)))


class Merge(Node):
    """Merges the user's records that say the same. Returns `receipts`."""

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns the receipt's id in `receipts`, after those of the earlier step."""
        yield from ()
        return _receipts(state, runtime, "merge", merge(identity_of(runtime), store_of(runtime)))


class Consolidate(Node):
    """Runs what is due in the background, within a small budget; a worker does the same when one runs.

    `limit`: jobs at most in one turn, so that a turn is never held up for long. `extractor`: whose late extractions it
    does, rules by default; those of one that works by jobs (`when`, as in `Extract`) are left to a worker, so that no
    reply waits for a model.
    """

    def __init__(
        self,
        extractor: Extractor | None = None,
        *,
        limit: int = 4,
        trusted_tools: frozenset[str] = frozenset(),
        when: When | None = None,
    ) -> None:
        self.extractor = extractor or RuleExtractor()
        self.late = is_late(self.extractor, when)
        self.limit = limit
        self.trusted_tools = trusted_tools

    def due(self, state: MemoryState, runtime: Runtime[Any]) -> bool:
        """Whether work waits and this run may do it."""
        if context_of(runtime).memory != "on":
            return False
        store = store_of(runtime)
        return store.jobs.waiting([*self._handlers(store)]) > 0

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns nothing: what it did is in the store, and in the stream."""
        yield from ()
        store = store_of(runtime)
        done = store.jobs.drain(self._handlers(store), limit=self.limit)
        announce(runtime, "consolidate", "drained", jobs=done)
        return {}

    def _handlers(self, store: MemoryStore) -> Handlers:
        """What it can do, by the kind of the job."""
        extractors = [] if self.late else [self.extractor]
        handlers = job_handlers(store, *extractors, trusted_tools=self.trusted_tools)
        # the indexes of a large scope take minutes: until a worker has made them it is read whole
        return {kind: handler for kind, handler in handlers.items() if kind != "index"}


def _receipts(state: MemoryState, runtime: Runtime[Any], event: str, receipt: Receipt | None) -> MemoryUpdate:
    announce(runtime, "consolidate", event, decisions=len(receipt.decisions) if receipt else 0)
    return {"receipts": with_receipt(state, receipt.id)} if receipt else {}
