"""The background pass as nodes, and the node of a turn that runs it when it is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.runtime import Runtime

from everthread.nodes.consolidate.plan import plan_expiry, plan_merge
from everthread.nodes.extract import Extractor, RuleExtractor
from everthread.nodes.extract.later import extracting, job_kind
from everthread.nodes.node import Node, Steps, announce, context_of, identity_of, store_of
from everthread.nodes.state import MemoryState, MemoryUpdate, with_receipt
from everthread.stores.contract import Job, MemoryStore
from everthread.stores.identity import Identity, Scope
from everthread.stores.record import Change, Receipt, Record, now_utc

__all__ = ["Consolidate", "Expire", "Merge"]


class Expire(Node):
    """Ends the user's records whose time is over. Returns `receipts`."""

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
    does, rules by default.
    """

    def __init__(
        self,
        extractor: Extractor | None = None,
        *,
        limit: int = 4,
        trusted_tools: frozenset[str] = frozenset(),
    ) -> None:
        self.extractor = extractor or RuleExtractor()
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

    def _handlers(self, store: MemoryStore) -> dict[str, Callable[[Job], None]]:
        """What it can do, by the kind of the job."""
        return {
            **store.handlers(),
            "consolidate": consolidating(store),
            job_kind(self.extractor): extracting(store, self.extractor, self.trusted_tools),
        }


def consolidating(store: MemoryStore) -> Callable[[Job], None]:
    """The handler of `consolidate` jobs: the whole background pass for the job's user."""

    def handle(job: Job) -> None:
        identity = Identity(tenant=job.tenant, user=job.user)
        expire(identity, store)
        merge(identity, store)

    return handle


def expire(identity: Identity, store: MemoryStore) -> Receipt | None:
    """End the user's records whose time is over; the receipt, or None when none was."""
    return _committed(identity, store, "expire", plan_expiry(_own(identity, store), now_utc()))


def merge(identity: Identity, store: MemoryStore) -> Receipt | None:
    """Merge the user's records that say the same; the receipt, or None when none did."""
    return _committed(identity, store, "merge", plan_merge(_own(identity, store)))


def _own(identity: Identity, store: MemoryStore) -> list[Record]:
    return store.records(identity, scopes=[Scope(owner="user", owner_id=identity.user)])


def _committed(identity: Identity, store: MemoryStore, what: str, changes: Sequence[Change]) -> Receipt | None:
    if not changes:
        return None
    seen = ",".join(f"{change.target}:{change.expected}" for change in changes)
    return store.commit(identity, changes, key=f"{what}:{seen}")


def _receipts(state: MemoryState, runtime: Runtime[Any], event: str, receipt: Receipt | None) -> MemoryUpdate:
    announce(runtime, "consolidate", event, decisions=len(receipt.decisions) if receipt else 0)
    return {"receipts": with_receipt(state, receipt.id)} if receipt else {}
