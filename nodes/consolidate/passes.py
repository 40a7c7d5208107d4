"""The background pass over one user's records: planned by pure functions, committed here."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.nodes.consolidate.plan import plan_expiry, plan_merge
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, Scope
from everthread.stores.record import Change, Receipt, Record, now_utc

__all__ = ["expire", "merge"]


def expire(identity: Identity, store: MemoryStore) -> Receipt | None:
    """End the records whose time is over, in every scope that the identity reads; the receipt, or None when none
    was."""
    now = now_utc()
    return _committed(identity, store, "expire", plan_expiry(store.run_out(identity, now=now), now))


def merge(identity: Identity, store: MemoryStore) -> Receipt | None:
    """Merge the user's records that say the same; the receipt, or None when none did, or the user does not agree to
    be learnt from."""
    if store.consent(identity) != "on":
        return None
    return _committed(identity, store, "merge", plan_merge(_own(identity, store)))


def _own(identity: Identity, store: MemoryStore) -> list[Record]:
    return store.records(identity, scopes=[Scope(owner="user", owner_id=identity.user)])


def _committed(identity: Identity, store: MemoryStore, what: str, changes: Sequence[Change]) -> Receipt | None:
    if not changes:
        return None
    seen = ",".join(f"{change.target}:{change.expected}" for change in changes)
    return store.commit(identity, changes, key=f"{what}:{seen}")
