"""The newest records, and no more than were asked for, whoever owns them."""

from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON, Clock, keep, learnt

from everthread import Identity
from everthread.stores import MemoryStore
from everthread.stores.record import Governance

ANA = Identity(tenant="acme", user="ana", project="p")


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 99])
def test_a_limit_takes_the_newest_of_all_owners(reopen: Any, limit: int) -> None:
    clock = Clock()
    store: MemoryStore = reopen(embedder="none", clock=clock)
    written = []
    for n in range(12):
        clock.now = NOON + timedelta(seconds=n)
        fields: dict[str, Any] = {"governance": Governance(readable_by=("ben",))} if n % 5 == 4 else {}
        owner = ("project", "p") if n % 3 == 0 else ("user", "ana")
        record = learnt(f"thing {n}", *owner, valid_to=NOON if n == 11 else None, **fields)
        written += keep(store, ANA, record)
    newest = [record for record in reversed(written) if not record.governance.readable_by]
    assert store.records(ANA, limit=limit) == newest[:limit]
    assert store.records(ANA, limit=limit, now=NOON) == newest[1:][:limit]
    assert store.records(ANA, limit=limit, as_of=NOON + timedelta(seconds=6)) == newest[-6:][:limit]
