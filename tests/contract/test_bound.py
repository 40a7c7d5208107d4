"""What every backend promises about a store that is bound to an identity."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from support.records import NOON, keep, learnt, said_by, write

from everthread import Authority, Identity, Record, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, Governance, Selection, Status

ANA, BEN, BILLING = (
    ("everthread", "acme", *place) for place in (("user", "ana"), ("user", "ben"), ("project", "billing"))
)
WAITING: tuple[Status, ...] = ("pending",)


@pytest.fixture
def tools(store: MemoryStore, ana: Identity) -> BaseStore:
    return store.bound(ana)


def approve(store: MemoryStore, identity: Identity, record: Record) -> Record:
    active = record.model_copy(update={"status": "active"})
    change = Change(action="revise", target=record.id, expected=record.revision, record=active, rule="r", reason="x")
    write(store, identity, change)
    (found,) = store.records(identity, ids=[record.id])
    return found


# --- records, read


def test_it_reads_what_its_identity_may_use_here_and_now(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    colleague = Identity(tenant="acme", user="ben", project="billing")
    shown = keep(store, ana, learnt("Ana likes trains"), learnt("Trains are booked by rail", "project", "billing"))
    keep(store, colleague, learnt("Ben likes trains", "user", "ben"))
    keep(
        store,
        colleague,
        learnt("Trains for Ben alone", "project", "billing", governance=Governance(readable_by=("ben",))),
    )
    keep(
        store,
        ana,
        learnt("Trains of yesterday", expires_at=NOON.replace(year=2020)),
        learnt("Trains elsewhere", environment="staging"),
        learnt("Trains in t1", scope=Scope(owner="user", owner_id="ana", within=Within(thread="t1"))),
        learnt("Perhaps trains", status="pending"),
    )
    keep(store, ana, learnt("Trains in this talk", "session", "t1"), thread_id="t1")
    by_id = {record.id: record for record in shown}
    for options in ({}, {"query": "trains"}, {"filter": {"status": "active"}}):
        found = tools.search(("everthread",), limit=100, **options)
        assert {item.key: item.value["statement"] for item in found} == {id: r.statement for id, r in by_id.items()}
    assert tools.list_namespaces() == [BILLING, ANA]
    assert {item.value["statement"] for item in store.bound(ana, thread_id="t1").search(("everthread",))} == {
        "Ana likes trains",
        "Trains are booked by rail",
        "Trains in t1",
        "Trains in this talk",
    }


def test_an_item_is_its_record(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana likes trains"))
    confirm = Change(action="confirm", target=record.id, expected=1, source=said_by("ana", "t2"), rule="r", reason="x")
    write(store, ana, confirm)
    (now,) = store.records(ana)
    item = tools.get(ANA, record.id)
    assert item is not None
    assert (item.namespace, item.key) == (ANA, record.id)
    assert Record.model_validate(item.value) == now
    assert (item.created_at, item.updated_at) == (record.recorded_at, now.recorded_at)
    assert tools.get(BILLING, record.id) is None


def test_another_tenants_or_users_namespace_is_empty(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    (mine,) = keep(store, ana, learnt("Ana likes trains"))
    for identity in (ben, stranger):
        tools = store.bound(identity)
        assert tools.get(ANA, mine.id) is None
        for prefix in ((), ("everthread",), ("everthread", "acme"), ANA[:3], ANA):
            assert tools.search(prefix) == []
            assert tools.search(prefix, query="trains", filter={"status": "active"}) == []
        assert tools.list_namespaces() == []
        assert tools.list_namespaces(prefix=("everthread", "acme")) == []


def test_a_prefix_narrows_to_whole_labels(store: MemoryStore, ana: Identity) -> None:
    tools = store.bound(ana.model_copy(update={"team": "a.b"}))
    curator = ana.model_copy(update={"team": "a.b", "roles": frozenset({"curator"})})
    scopes = (("user", "ana"), ("project", "billing"), ("team", "a.b"))
    mine, project, team = (keep(store, curator, learnt(f"Trains of a {owner}", owner, id))[0] for owner, id in scopes)

    def keys(*prefix: str) -> list[str]:
        return [item.key for item in tools.search(prefix)]

    assert keys("everthread") == keys("everthread", "acme") == [team.id, project.id, mine.id]
    assert keys("everthread", "acme", "project") == keys(*BILLING) == [project.id]
    assert keys("everthread", "acme", "team", "a%2Eb") == [team.id]
    assert keys("everthread", "acm") == keys("everthread", "acme", "use") == keys(*ANA, "more") == []
    assert tools.list_namespaces(max_depth=3, limit=2) == [BILLING[:3], ("everthread", "acme", "team")]
    assert tools.list_namespaces(suffix=("*", "ana")) == [ANA]


def test_a_query_ranks_as_recall_does_and_then_comes_the_rest(
    store: MemoryStore, tools: BaseStore, ana: Identity
) -> None:
    keep(store, ana, *(learnt(f"Trains go to platform {n}", tags=("even",) * (n % 2 == 0)) for n in range(4)))
    (other,) = keep(store, ana, learnt("Zlín has tall houses"))
    hits = store.recall(ana, "platform 2", limit=100).hits
    found = tools.search(("everthread",), query="platform 2", limit=100)
    assert [(item.key, item.score) for item in found[: len(hits)]] == [(hit.record_id, hit.score) for hit in hits]
    assert {item.key for item in found} == {record.id for record in store.records(ana)}
    assert [item.score for item in found[len(hits) :]] == [None] * (5 - len(hits))
    pages = [tools.search(ANA, query="platform 2", limit=2, offset=n) for n in (0, 2, 4, 6)]
    assert [item.key for page in pages for item in page] == [item.key for item in found]
    even = tools.search(ANA, query="platform 2", filter={"tags": ["even"]}, limit=1, offset=1)
    assert [item.value["statement"] for item in even] == ["Trains go to platform 0"]
    assert tools.search(ANA, query="platform 2", limit=0) == []
    assert other.id in {item.key for item in tools.search(ANA, limit=5)}


# --- records, written


def test_a_put_waits_for_review_whatever_it_says(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    boast: dict[str, Any] = {
        "content": "Ana prefers aisle seats",
        "content_type": "preference",
        "subject": "ana",
        "predicate": "seat",
        "value": "aisle",
        "authority": "policy",
        "status": "active",
        "provenance": {"source": "user"},
        "scope": {"owner": "organization", "owner_id": "x"},
        "confidence": 1,
    }
    tools.put(ANA, "seat", boast)
    (waiting,) = store.records(ana, statuses=WAITING)
    assert (waiting.statement, waiting.content_type, waiting.value) == (
        "Ana prefers aisle seats",
        "preference",
        "aisle",
    )
    assert (waiting.status, waiting.authority, waiting.stated) == ("pending", Authority.INFERRED, False)
    assert (waiting.provenance.source, waiting.provenance.actor) == ("agent", "ana")
    assert waiting.scope == Scope(owner="user", owner_id="ana")
    assert tools.get(ANA, "seat") is None
    assert tools.search(ANA) == []
    assert store.recall(ana, "seats").hits == ()
    assert [receipt.decisions[0].outcome for receipt in store.receipts(ana, waiting.id)] == ["pending"]


def test_what_was_approved_is_found_under_the_tools_own_key(
    store: MemoryStore, tools: BaseStore, ana: Identity
) -> None:
    tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    approved = approve(store, ana, store.records(ana, statuses=WAITING)[0])
    item = tools.get(ANA, "seat")
    assert item is not None and (item.key, item.value["statement"]) == ("seat", approved.statement)
    assert [found.key for found in tools.search(ANA)] == [approved.id]
    for place in ("middle", "window"):
        tools.put(ANA, "seat", {"content": f"Ana prefers {place} seats"})
    item = tools.get(ANA, "seat")
    assert item is not None and item.value["statement"] == "Ana prefers aisle seats"
    approve(store, ana, store.records(ana, statuses=WAITING)[0])
    item = tools.get(ANA, "seat")
    assert item is not None and item.value["statement"] == "Ana prefers window seats"
    assert [record.statement for record in store.records(ana)] == ["Ana prefers window seats"]
    assert store.records(ana, statuses=WAITING) == []
    tools.put(ANA, "seat", {"content": "Ana stands"})
    tools.delete(ANA, "seat")
    assert store.records(ana, statuses=("active", "pending")) == []


def test_the_same_put_again_changes_nothing_and_another_revises_what_waits(
    store: MemoryStore, tools: BaseStore, ana: Identity
) -> None:
    for text in ("aisle", "aisle", "window", "aisle"):
        tools.put(ANA, "seat", {"content": f"Ana prefers {text} seats"})
    (waiting,) = store.records(ana, statuses=WAITING)
    assert [revision.statement for revision in store.history(ana, waiting.id)] == [
        "Ana prefers aisle seats",
        "Ana prefers window seats",
        "Ana prefers aisle seats",
    ]


def test_a_put_over_a_record_proposes_what_supersedes_it(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    (known,) = keep(store, ana, learnt("Ana likes trains"))
    item = tools.get(ANA, known.id)
    assert item is not None
    tools.put(ANA, known.id, item.value)
    assert store.records(ana, statuses=WAITING) == []
    tools.put(ANA, known.id, item.value | {"statement": "Ana hates trains"})
    (waiting,) = store.records(ana, statuses=WAITING)
    assert [(relation.kind, relation.target) for relation in waiting.relations] == [("supersedes", known.id)]
    assert waiting.authority == Authority.INFERRED
    assert store.records(ana) == [known]


def test_two_users_keys_never_meet(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    for identity in (ana, ben.model_copy(update={"project": "billing"})):
        store.bound(identity).put(BILLING, "1", {"content": f"{identity.user} books by rail"})
    store.bound(stranger).put(("everthread", "other", "project", "billing"), "1", {"content": "By bus"})
    waiting = store.records(ana.model_copy(update={"roles": frozenset({"curator"})}), statuses=WAITING)
    assert sorted(record.statement for record in waiting) == ["ana books by rail", "ben books by rail"]


def test_a_put_that_cannot_be_a_record_is_refused_by_name(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    for namespace, value, message in (
        (ANA, {"note": "x"}, "value of 'k': nothing to remember in it; give it one of statement, content, text"),
        (ANA, {"content": "x" * 5_000}, "value of 'k': statement: .* 4000"),
        (ANA, {"content": "x", "importance": 7}, "value of 'k': importance"),
        (("everthread",), {"content": "x"}, r"name the scope .*'everthread', 'acme', 'user', 'ana'"),
        (ANA[:3], {"content": "x"}, "name the scope"),
    ):
        with pytest.raises(UsageError, match=message):
            tools.put(namespace, "k", value)
    assert store.records(ana, statuses=WAITING) == []


def test_another_scope_is_not_written(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    for namespace in (BEN, ("everthread", "other", "user", "ana"), ("everthread", "acme", "session", "t1")):
        for value in ({"content": "x"}, None):
            with pytest.raises(AccessDenied, match="ana has no part in"):
                tools.batch([PutOp(ANA, "fine", {"content": "y"}), PutOp(namespace, "k", value)])
    assert store.records(ana, statuses=WAITING) == []
    store.bound(ana, thread_id="t1").put(("everthread", "acme", "session", "t1"), "k", {"content": "We call it R"})
    assert [record.scope.owner for record in store.records(ana, statuses=WAITING, thread_id="t1")] == ["session"]


def test_a_delete_takes_back_what_the_tools_of_this_user_put(
    store: MemoryStore, tools: BaseStore, ana: Identity
) -> None:
    (known,) = keep(store, ana, learnt("Ana likes trains"))
    tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    (waiting,) = store.records(ana, statuses=WAITING)
    tools.delete(ANA, "seat")
    tools.delete(ANA, "seat")
    tools.delete(ANA, "nothing")
    assert [record.status for record in store.history(ana, waiting.id)] == ["pending", "archived"]
    with pytest.raises(AccessDenied, match=f"record {known.id} did not come from a tool of user ana"):
        tools.delete(ANA, known.id)
    assert store.records(ana) == [known]
    tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    assert [record.id for record in store.records(ana, statuses=WAITING)] == [waiting.id]


def test_a_colleagues_candidate_is_not_taken_back(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.bound(ana).put(BILLING, "1", {"content": "Trains are booked by rail"})
    (waiting,) = store.records(ana, statuses=WAITING)
    # to Ben there is no such candidate, and what there is not is deleted without a word
    store.bound(ben.model_copy(update={"project": "billing"})).delete(BILLING, waiting.id)
    assert store.records(ana, statuses=WAITING) == [waiting]


def test_what_was_erased_or_rejected_does_not_come_back(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    (waiting,) = store.records(ana, statuses=WAITING)
    rejected = Change(action="end", target=waiting.id, expected=1, status="rejected", rule="review", reason="no")
    write(store, ana, rejected)
    with pytest.raises(UsageError, match="'seat' was not kept: the same was rejected in review"):
        tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    store.erase(ana, Selection(record_ids=(waiting.id,)), reason="asked")
    with pytest.raises(UsageError, match="'seat' was not kept: the same was erased before"):
        tools.put(ANA, "seat", {"content": "Ana prefers aisle seats"})
    assert store.records(ana, statuses=WAITING) == []


def test_a_proposal_that_was_erased_is_not_made_again(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    (known,) = keep(store, ana, learnt("Ana likes trains"))
    for _ in range(2):
        tools.put(ANA, known.id, {"content": "Ana hates trains"})
    (waiting,) = store.records(ana, statuses=WAITING)
    store.erase(ana, Selection(record_ids=(waiting.id,)), reason="asked")
    with pytest.raises(UsageError, match="was not kept: the same was erased before"):
        tools.put(ANA, known.id, {"content": "Ana hates trains"})


def test_a_hosts_own_door_takes_the_candidates(store: MemoryStore, ana: Identity) -> None:
    taken: list[tuple[Identity, Record]] = []

    def door(identity: Identity, candidate: Record) -> None:
        taken.append((identity, candidate))

    tools = store.bound(ana, thread_id="t1", remember=door)
    tools.put(ANA, "seat", {"content": {"seat": "aisle", "of": "Ána"}})
    ((identity, candidate),) = taken
    assert (identity, candidate.statement) == (ana, '{"seat": "aisle", "of": "Ána"}')
    assert (candidate.status, candidate.authority, candidate.provenance.thread_id) == ("pending", "inferred", "t1")
    assert store.records(ana, statuses=WAITING) == []


# --- plain items


def test_two_users_items_never_meet(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    for identity in (ana, ben, stranger):
        store.bound(identity).put(("notes", "a"), "k", {"of": f"{identity.tenant}/{identity.user}"})
    for identity in (ana, ben, stranger):
        tools = store.bound(identity)
        item = tools.get(("notes", "a"), "k")
        assert item is not None
        assert (item.namespace, item.key, item.value) == (
            ("notes", "a"),
            "k",
            {"of": f"{identity.tenant}/{identity.user}"},
        )
        for prefix in ((), ("notes",), ("notes", "a")):
            assert tools.search(prefix) == [tools.search(("notes",))[0]]
        assert tools.list_namespaces() == [("notes", "a")]
    store.bound(ana).delete(("notes", "a"), "k")
    assert store.bound(ana).search(()) == []
    assert store.bound(ben).get(("notes", "a"), "k") is not None


def test_a_tool_cannot_name_its_way_out(store: MemoryStore, tools: BaseStore, ana: Identity, ben: Identity) -> None:
    store.bound(ben).put(("notes",), "k", {})
    store.put(("hosts",), "k", {})
    places = [labels for labels in store.list_namespaces() if labels != ("hosts",)]
    for namespace in (*places, ("hosts",)):
        assert tools.get(namespace, "k") is None
        assert tools.search(namespace) == []
        assert tools.list_namespaces(prefix=namespace) == []
        tools.put(namespace, "k", {"of": "ana"})
        assert tools.list_namespaces(suffix=namespace) == [namespace]
    assert [item.value for item in store.search(("hosts",))] == [{}]
    found = store.bound(ben).get(("notes",), "k")
    assert found is not None and found.value == {}


def test_a_host_may_name_a_shared_place(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.bound(ana, namespace=("shared", "notes")).put(("a",), "k", {"n": 1})
    item = store.bound(ben, namespace=("shared", "notes")).get(("a",), "k")
    assert item is not None and (item.namespace, item.value) == (("a",), {"n": 1})
    assert store.list_namespaces() == [("shared", "notes", "a")]
    for namespace in ((), ("everthread", "acme"), ("everthread-private", "acme", "ben")):
        with pytest.raises(UsageError, match="cannot hold the items of bound tools"):
            store.bound(ana, namespace=namespace)


def test_everything_is_searched_together(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    keep(store, ana, learnt("Ana likes trains"))
    tools.put(("notes",), "k", {"text": "trains"})
    assert [item.namespace for item in tools.search(())] == [("notes",), ANA]
    assert [item.namespace for item in tools.search((), limit=1, offset=1)] == [ANA]
    assert [(item.namespace, item.score is None) for item in tools.search((), query="trains")] == [
        (ANA, False),
        (("notes",), True),
    ]
    assert tools.list_namespaces() == [ANA, ("notes",)]


# --- batches


def test_a_batch_answers_in_order_and_reads_before_it_writes(
    store: MemoryStore, tools: BaseStore, ana: Identity
) -> None:
    (record,) = keep(store, ana, learnt("Ana likes trains"))
    tools.put(("notes",), "k", {"n": 1})
    results: list[Any] = tools.batch(
        [
            PutOp(("notes",), "k", {"n": 2}),
            GetOp(ANA, record.id),
            SearchOp(("notes",)),
            PutOp(ANA, "seat", {"content": "first"}),
            GetOp(("notes",), "k"),
            PutOp(ANA, "seat", {"content": "last"}),
            ListNamespacesOp(),
        ]
    )
    assert [results[n] for n in (0, 3, 5)] == [None, None, None]
    assert results[1].key == record.id
    assert (results[2][0].value, results[4].value) == ({"n": 1}, {"n": 1})
    assert results[6] == [ANA, ("notes",)]
    assert [found.statement for found in store.records(ana, statuses=WAITING)] == ["last"]
    assert tools.batch([]) == []


@pytest.mark.parametrize("namespace", [("a.b",), ("a", ""), ("everthread", "acme", "user", "a.na")])
def test_a_bad_namespace_is_refused_before_anything_is_written(
    store: MemoryStore, tools: BaseStore, ana: Identity, namespace: tuple[str, ...]
) -> None:
    for op in (PutOp(namespace, "k", {"content": "x"}), GetOp(namespace, "k"), SearchOp(namespace)):
        with pytest.raises(InvalidNamespaceError):
            tools.batch([PutOp(("notes",), "k", {}), PutOp(ANA, "k", {"content": "x"}), op])
    with pytest.raises(UsageError, match="must not be empty"):
        tools.batch([PutOp((), "k", {})])
    assert tools.search(()) == []
    assert store.records(ana, statuses=WAITING) == []


async def test_asynchronous_calls_do_the_same(store: MemoryStore, tools: BaseStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana likes trains"))
    await tools.aput(("notes",), "k", {"n": 1})
    await tools.aput(ANA, "seat", {"content": "Ana prefers aisle seats"})
    item = await tools.aget(ANA, record.id)
    assert item == tools.get(ANA, record.id)
    assert await tools.asearch((), query="trains") == tools.search((), query="trains")
    assert await tools.alist_namespaces() == tools.list_namespaces() == [ANA, ("notes",)]
    await tools.adelete(ANA, "seat")
    with pytest.raises(AccessDenied):
        await tools.adelete(ANA, record.id)
    assert store.records(ana, statuses=WAITING) == []
