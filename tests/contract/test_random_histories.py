"""Whatever users do to memory, in whatever order: the history, the index and the log agree with the records."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.records import learnt, said_by, write

from everthread import Identity, Record
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Selection, Status, now_utc

ANY: tuple[Status, ...] = ("pending", "active", "contested", "superseded", "expired", "archived", "rejected")
PEOPLE = [
    Identity(tenant="acme", user="ana", project="p"),
    Identity(tenant="acme", user="ben", project="p"),
    Identity(tenant="acme", user="cleo", project="p", roles=frozenset({"curator"})),
]


def invented(chance: Random, identity: Identity) -> Record:
    owner, owner_id = chance.choice([("user", identity.user), ("project", "p")])
    return learnt(
        f"thing {chance.randrange(10**6)} of {chance.randrange(20)}",
        owner,
        owner_id,
        status=chance.choice(["active", "pending"]),
        authority=chance.choice(["user_explicit", "inferred"]),
    )


def act(chance: Random, store: MemoryStore, identity: Identity) -> None:
    known = store.records(identity, statuses=ANY)
    action: Any = chance.choice(
        ["create", "supersede", "narrow", "contest", "confirm", "revise", "end"] * 3 + ["erase"]
    )
    fields: dict[str, Any] = {"action": action, "rule": "r", "reason": "x"}
    if action == "create" or not known:
        write(store, identity, Change(**fields | {"action": "create"}, record=invented(chance, identity)))
        return
    target = chance.choice(known)
    fields |= {"target": target.id, "expected": target.revision}
    if action == "erase":
        assert store.erase(identity, Selection(record_ids=(target.id,)), reason="asked").verified
    elif action == "confirm":
        write(store, identity, Change(**fields, source=said_by(identity.user, f"t{chance.random()}")))
    elif action == "end":
        write(store, identity, Change(**fields, status=chance.choice(["archived", "expired", "rejected"])))
    elif action == "revise":
        update = {"statement": f"{target.statement} again", "status": chance.choice(["active", "pending"])}
        write(store, identity, Change(**fields, record=target.model_copy(update=update | {"ended_at": None})))
    else:
        write(store, identity, Change(**fields, record=invented(chance, identity)))


@pytest.mark.parametrize("seed", range(4))
def test_the_store_stays_sound(reopen: Any, seed: int) -> None:
    chance = Random(seed)
    store: MemoryStore = reopen(embedder="none", synchronous="OFF")
    moments = []
    done = 0
    for n in range(300):
        if n % 50 == 49:
            moments.append(now_utc())
        try:
            act(chance, store, chance.choice(PEOPLE))
            done += 1
        except (AccessDenied, UsageError):
            pass  # refused, and nothing is half written: what follows would show it
    assert done > 50
    assert [finding for finding in store.doctor() if not finding.ok] == []
    times = [None, *moments]
    before = [store.recall(identity, "thing of 7", limit=50, as_of=at) for identity in PEOPLE for at in times]
    for identity in PEOPLE:
        for at in moments:
            stood = {(record.id, record.revision, record.statement) for record in store.records(identity, as_of=at)}
            recall = store.recall(identity, "thing", limit=500, as_of=at, explain=True)
            found = [(hit.record_id, hit.revision, hit.statement) for hit in (*recall.hits, *recall.dropped)]
            assert (set(found), len(found)) == (stood, len(stood)), "found then is what stood then"
    store.rebuild()
    assert [store.recall(identity, "thing of 7", limit=50, as_of=at) for identity in PEOPLE for at in times] == before
