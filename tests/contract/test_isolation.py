"""What every backend promises about borders: what an identity may not read neither comes back nor counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from support.records import NOON, create, keep, learnt, write

from everthread import Evidence, Identity, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.nodes import Retrieve, memory_block, runtime_for
from everthread.stores import MemoryStore
from everthread.stores.access import may_read, unfit
from everthread.stores.identity import Owner, Within
from everthread.stores.record import Change, Governance, Record, Selection

from .conftest import OpenStore

QUESTION = "which train does Ana take to Brno?"


def everything(store: MemoryStore, identity: Identity, thread_id: str | None = None) -> list[Any]:
    """All that an identity gets to see of records, by every door."""
    return [
        store.recall(identity, QUESTION, thread_id=thread_id, now=NOON, explain=True),
        store.records(identity, thread_id=thread_id),
        store.current(identity, "ana", "train", thread_id=thread_id, now=NOON),
        store.recall(identity, QUESTION, sources={"evidence"}, now=NOON),
        store.transcripts.threads(identity),
        store.bound(identity, thread_id=thread_id).search((), query=QUESTION, limit=100),
        store.bound(identity, thread_id=thread_id).list_namespaces(),
    ]


def ride(text: str, owner: str = "user", owner_id: str = "ana", **fields: Any) -> Record:
    return learnt(text, owner, owner_id, **({"subject": "ana", "predicate": "train", "value": text} | fields))


def test_other_tenants_and_users_change_nothing(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    keep(store, ana, ride("Ana takes the night train to Brno"), ride("Ana takes the bus to Prague"))
    before = everything(store, ana)
    for identity in (ben, stranger):
        rides = [ride(f"Ana takes train {n} to Brno", owner_id=identity.user) for n in range(50)]
        keep(store, identity, *rides)
        message = Evidence(
            thread_id=f"of-{identity.tenant}", message_id="m1", role="user", text=QUESTION, at=NOON, source="user"
        )
        store.transcripts.append(identity, [message])
    assert everything(store, ana) == before


BOT = Identity(
    tenant="acme",
    user="ana",
    project="billing",
    agent="bot",
    agent_version="2.0",
    team="core",
    organization="acme",
    application="app",
    environment="prod",
)
"""Somebody who carries every name that a record can be bound to."""
CURATOR = BOT.model_copy(update={"roles": frozenset({"curator"})})
ASKED = (QUESTION, "安娜坐什么火车去布尔诺？", "Which flamingo is it?")
TOLD = ("Ana takes the night train to Brno, number {}", "安娜坐火车去布尔诺，第{}次。", "Flamingo {}")
MISFITS: tuple[dict[str, Any], ...] = (
    {"status": "pending"},
    {"expires_at": NOON},
    {"valid_to": NOON},
    {"valid_from": NOON + timedelta(days=900)},
    {"environment": "dev"},
    {"agent_family": "bot", "agent_versions": ">=3"},
    {"agent_family": "another"},
)
"""What keeps a record that may be read from holding here and now."""


def test_nothing_that_may_not_be_read_changes_a_request_or_a_word_of_its_explanation(store: MemoryStore) -> None:
    known(store)
    before = seen_in_a_turn(store)
    assert all(block for _, block in before[:2])
    for n, text in enumerate(TOLD):
        for owner, owner_id, fields in (
            ("user", "ana", {"tenant": "other"}),
            ("user", "ben", {"user": "ben"}),
            *((owner, "other", {owner: "other"}) for owner in ("project", "agent", "team", "organization")),
        ):
            keep(store, CURATOR.model_copy(update=fields), learnt(text.format(n), owner, owner_id))
        for name in ("application", "project", "agent"):
            elsewhere = Scope(owner="user", owner_id="ana", within=Within.model_validate({name: "other"}))
            wish: dict[str, Any] = {"content_type": "preference", "concerns": "expression"}
            record = learnt(text.format(name), scope=elsewhere, **wish)
            write(store, BOT.model_copy(update={name: "other"}), create(record))
        write(store, BOT, create(learnt(text.format(n), "session", "other")), thread_id="other")
        for readers in ("role:curator", "ben"):
            secret = learnt(text.format(readers), "project", "billing", governance=Governance(readable_by=(readers,)))
            write(store, CURATOR, create(secret))
        for identity in (BOT.model_copy(update={"user": "ben"}), BOT.model_copy(update={"tenant": "other"})):
            store.transcripts.append(identity, [words(f"of-{identity.tenant}-{identity.user}", f"m{n}", text)])
    assert seen_in_a_turn(store) == before


def test_nothing_that_does_not_hold_here_and_now_changes_a_request(store: MemoryStore) -> None:
    known(store)
    before = [turn for turn, _ in seen_in_a_turn(store, explain=False)]
    for text in TOLD:
        for owner, owner_id in (("user", "ana"), ("project", "billing")):
            for fields in MISFITS:
                write(store, CURATOR, create(learnt(text.format(len(fields)), owner, owner_id, **fields)))
            (over,) = keep(store, CURATOR, learnt(text.format("x"), owner, owner_id))
            end = Change(action="end", target=over.id, expected=1, status="archived", rule="r", reason="it is over")
            write(store, CURATOR, end)
    assert [turn for turn, _ in seen_in_a_turn(store, explain=False)] == before


def known(store: MemoryStore) -> None:
    """What is known and may be read, in two languages and from two owners, and what was said."""
    wish: dict[str, Any] = {"content_type": "preference", "concerns": "expression"}
    keep(store, BOT, learnt("Ana takes the night train to Brno"), learnt("安娜坐夜车去布尔诺。"))
    keep(store, CURATOR, learnt("We take the train to Brno", "project", "billing"), learnt("Answers are short", **wish))
    store.transcripts.append(BOT, [words("mine", "m1", QUESTION)])


def words(thread_id: str, message_id: str, text: str) -> Evidence:
    return Evidence(thread_id=thread_id, message_id=message_id, role="user", text=text, at=NOON, source="user")


def seen_in_a_turn(store: MemoryStore, *, explain: bool = True) -> list[tuple[Any, str]]:
    """What a turn with each question recalls and says about it, and the block that the model would read."""
    seen = []
    for question in ASKED:
        told: list[Any] = []
        runtime = runtime_for(BOT, store, "here", stream_writer=told.append)
        state: Any = {"messages": [HumanMessage(question, id="q")]}
        update: Any = Retrieve(sources=("records", "evidence"), explain=explain)(state, runtime)
        seen.append(((update, told), memory_block({**state, **update}, runtime, markers=True)))
    return seen


def test_the_same_user_id_in_two_tenants_is_two_people(store: MemoryStore, ana: Identity, stranger: Identity) -> None:
    (record,) = keep(store, ana, ride("Ana takes the night train to Brno"))
    assert store.record(stranger, record.id) is None
    assert store.history(stranger, record.id) == []
    assert store.records(stranger, ids=[record.id]) == []
    nothing = store.recall(stranger, QUESTION, sources={"evidence"})
    assert everything(store, stranger)[1:] == [[], [], nothing, [], [], []]
    assert store.events(stranger) == []


@pytest.mark.parametrize(
    ("tenant", "other"), [("a", "ab"), ("a", "a/records/user"), ("a.b", "a"), ("%", "x"), ("_", "x"), ("a", "A")]
)
def test_names_that_look_alike_are_different_tenants(store: MemoryStore, tenant: str, other: str) -> None:
    inside, outside = (Identity(tenant=name, user="ana") for name in (tenant, other))
    (record,) = keep(store, outside, ride("Ana takes the night train to Brno"))
    assert store.record(inside, record.id) is None
    assert store.recall(inside, QUESTION).hits == ()
    assert store.records(inside) == []
    assert store.search(Scope(owner="user", owner_id="ana").namespace(tenant)[:2]) == []


def test_a_session_is_not_recalled_in_another(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, ride("Ana takes the slow train to Brno"))
    before = everything(store, ana, "t2")
    keep(store, ana, ride("Ana takes the fast train to Brno", "session", "t1"), thread_id="t1")
    assert everything(store, ana, "t2") == before
    assert len(store.recall(ana, QUESTION, thread_id="t1").hits) == 2


def test_a_session_belongs_to_one_user(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (record,) = keep(store, ana, ride("Ana takes the fast train", "session", "t1"), thread_id="t1")
    assert everything(store, ben, "t1")[1:3] == [[], []]
    assert store.record(ben, record.id) is None
    change = Change(action="end", target=record.id, expected=1, status="archived", rule="r", reason="x")
    with pytest.raises(UsageError, match="no record"):
        write(store, ben, change, thread_id="t1")


def test_a_record_with_named_readers_is_for_them(store: MemoryStore, ana: Identity) -> None:
    curator = Identity(tenant="acme", user="cleo", project="billing", roles=frozenset({"curator"}))
    ben = Identity(tenant="acme", user="ben", project="billing")
    keep(store, ana, ride("We take the train to Brno", "project", "billing"))
    before = everything(store, ben)
    secret = ride("We take the car to Brno", "project", "billing", governance=Governance(readable_by=("role:curator",)))
    write(store, ana, create(secret))
    assert everything(store, ben) == before
    assert store.record(ana, secret.id) is None
    assert store.record(curator, secret.id) is not None
    assert len(store.recall(curator, "train car Brno").hits) == 2


def test_restricted_records_are_not_in_plain_reads(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt("Ana takes the train", governance=Governance(readable_by=("ana",))))
    assert store.search(("everthread", "acme"), query="train") == []


def test_a_scope_that_is_not_the_callers_is_denied(store: MemoryStore, ana: Identity) -> None:
    theirs: list[tuple[Owner, str]] = [("user", "ben"), ("project", "secret"), ("session", "t9")]
    for scope in (Scope(owner=owner, owner_id=owner_id) for owner, owner_id in theirs):
        with pytest.raises(AccessDenied, match=scope.owner_id):
            store.recall(ana, QUESTION, scopes=[scope])
        with pytest.raises(AccessDenied, match=scope.owner_id):
            store.records(ana, scopes=[scope])
    with pytest.raises(AccessDenied, match="ben"):
        store.erase(ana, Selection(scope=Scope(owner="user", owner_id="ben")), reason="curious")


def test_the_past_has_the_same_borders(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    (record,) = keep(store, ana, ride("Ana takes the night train to Brno"))
    then = record.recorded_at + timedelta(days=1)
    for identity in (ben, stranger):
        assert store.recall(identity, QUESTION, as_of=then).hits == ()
        assert store.records(identity, as_of=then) == []
        assert store.records(identity, ids=[record.id], as_of=then) == []
        assert store.record(identity, record.id, as_of=then) is None
        assert store.current(identity, "ana", "train", as_of=then) == []


def test_a_lone_surrogate_in_a_name_is_an_error_of_the_caller(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="surrogate"):
        store.record(ana, "\ud800")
    with pytest.raises(UsageError, match="surrogate"):
        store.current(ana, "\ud800", "train")


def test_a_shared_record_does_not_tell_what_else_a_turn_decided(store: MemoryStore, ana: Identity) -> None:
    ben = Identity(tenant="acme", user="ben", project="billing")
    shared, private = learnt("We take the train", "project", "billing"), learnt("Ana fears flying")
    write(store, ana, create(shared), create(private))
    (mine,), (seen,) = store.receipts(ana, shared.id), store.receipts(ben, shared.id)
    assert [decision.record_id for decision in mine.decisions] == [shared.id, private.id]
    assert [decision.record_id for decision in seen.decisions] == [shared.id]
    assert store.receipts(ben, private.id) == []


# --- plain LangGraph operations


def test_plain_reads_see_records(store: MemoryStore, ana: Identity) -> None:
    mine, ours = keep(store, ana, ride("Ana takes the train"), ride("We take the bus", "project", "billing"))
    namespace = mine.scope.namespace("acme")
    item = store.get(namespace, mine.id)
    assert item is not None
    assert (item.key, item.namespace, item.value["statement"]) == (mine.id, namespace, "Ana takes the train")
    assert (item.created_at, item.updated_at) == (mine.recorded_at, mine.recorded_at)
    assert store.get(ours.scope.namespace("acme"), mine.id) is None
    found = store.search(("everthread", "acme"), query="train")
    assert [(hit.key, hit.score is not None) for hit in found] == [(mine.id, True), (ours.id, True)]
    assert [hit.key for hit in store.search(namespace)] == [mine.id]
    assert [hit.key for hit in store.search(("everthread", "acme"), filter={"value": "We take the bus"})] == [ours.id]
    assert store.list_namespaces(prefix=("everthread", "acme")) == [ours.scope.namespace("acme"), namespace]


def test_plain_reads_must_name_the_tenant(store: MemoryStore) -> None:
    reads: list[Callable[[], object]] = [
        lambda: store.search(("everthread",)),
        lambda: store.search(("everthread",), query="train"),
        lambda: store.list_namespaces(prefix=("everthread",)),
        lambda: store.list_namespaces(prefix=("everthread", "*")),
        lambda: store.get(("everthread",), "mem_1"),
    ]
    for read in reads:
        with pytest.raises(UsageError, match="tenant"):
            read()


def test_plain_listings_do_not_show_tenants(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, ride("Ana takes the train"))
    store.put(("notes",), "k", {"text": "mine"})
    assert store.list_namespaces() == [("notes",)]
    assert [item.key for item in store.search(())] == ["k"]


def test_plain_writes_are_shown_the_door(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, ride("Ana takes the train"))
    namespace = record.scope.namespace("acme")
    attempts: list[Callable[[], object]] = [
        lambda: store.put(namespace, "k", {"statement": "Ana is an admin"}),
        lambda: store.delete(namespace, record.id),
    ]
    for attempt in attempts:
        with pytest.raises(UsageError, match="commit"):
            attempt()
    assert store.record(ana, record.id) == record


def test_plain_items_are_kept_beside(store: MemoryStore) -> None:
    store.put(("notes", "ana"), "k", {"text": "buy tea"})
    item = store.get(("notes", "ana"), "k")
    assert item is not None
    assert item.value == {"text": "buy tea"}


# --- the query and the rule agree


LABELS = st.sampled_from(["x", "y"])
MAYBE = st.none() | LABELS
OWNERS: tuple[Owner, ...] = ("user", "project", "team", "organization")


@st.composite
def records(draw: st.DrawFn) -> Record:
    owner: Owner = draw(st.sampled_from(OWNERS))
    within = Within(application=draw(MAYBE), project=None if owner == "project" else draw(MAYBE), thread=draw(MAYBE))
    family = draw(MAYBE)
    readers = draw(st.lists(st.sampled_from(["x", "y", "role:curator"]), max_size=2))
    starts, ends, expires = (draw(st.none() | st.sampled_from([-1, 0, 1])) for _ in range(3))
    if starts is not None and ends is not None and ends <= starts:
        ends = starts + 1
    day = timedelta(days=1)
    return learnt(
        "The train to Brno",
        scope=Scope(owner=owner, owner_id=draw(LABELS), within=within),
        agent_family=family,
        agent_versions=draw(st.none() | st.just(">=2")) if family else None,
        environment=draw(MAYBE),
        governance=Governance(readable_by=tuple(readers)),
        valid_from=None if starts is None else NOON + starts * day,
        valid_to=None if ends is None else NOON + ends * day,
        expires_at=None if expires is None else NOON + expires * day,
    )


@st.composite
def identities(draw: st.DrawFn) -> Identity:
    return Identity(
        tenant="acme",
        user=draw(LABELS),
        application=draw(MAYBE),
        project=draw(MAYBE),
        team=draw(MAYBE),
        organization=draw(MAYBE),
        agent=draw(MAYBE),
        agent_version=draw(st.none() | st.sampled_from(["1.0", "2.0"])),
        environment=draw(MAYBE),
        roles=draw(st.sampled_from([frozenset(), frozenset({"curator"})])),
    )


def writer_of(record: Record) -> Identity:
    fields = {record.scope.owner: record.scope.owner_id} | {"user": record.scope.owner_id}
    return Identity(tenant="acme", roles=frozenset({"curator"}), **fields)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), min_size=1, max_size=12), st.lists(identities(), min_size=1, max_size=6), MAYBE)
def test_queries_read_what_the_rules_allow(
    open_empty: OpenStore, written: list[Record], readers: list[Identity], thread_id: str | None
) -> None:
    with open_empty(embedder="none") as store:
        for record in written:
            write(store, writer_of(record), create(record))
        for identity in readers:
            readable = {
                record.id
                for record in written
                if may_read(identity, record, author=writer_of(record).user, thread_id=thread_id or "")
            }
            fitting = {record.id for record in written if unfit(record, identity, NOON) is None}
            recall = store.recall(identity, "train", limit=50, thread_id=thread_id, now=NOON, explain=True)
            told = {hit.record_id for hit in (*recall.hits, *recall.dropped)}
            # all say the same, so all but one are dropped as duplicates
            assert {hit.record_id for hit in recall.hits} <= readable & fitting
            assert told == readable
