"""The remember graph: the one door, step by step, with a review that can wait."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied, UsageError
from everthread.graphs import create_remember_graph
from everthread.nodes.extract import Candidate
from everthread.nodes.extract.candidate import Window
from everthread.nodes.node import Ask
from everthread.stores import MemoryStore, open_checkpointer, open_store

T1: RunnableConfig = {"configurable": {"thread_id": "t1"}}
RULE = "Deploys need two approvals."


class Policies:
    """Takes every user message for something that holds in the whole organization."""

    id = "policies/1"
    calls_model = False

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        yield from ()
        return [
            Candidate(statement=line.text, owner="organization", messages=(number,), write_reason="a policy")
            for number, line in enumerate(window.lines, 1)
            if line.source == "user"
        ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}") as store:
        yield store


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Any]:
    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield saver


@pytest.fixture
def member(ana: Identity) -> Identity:
    return ana.model_copy(update={"organization": "acme"})


@pytest.fixture
def curator(member: Identity) -> Identity:
    return member.model_copy(update={"roles": frozenset({"curator"})})


def window(*said: str, first: int = 1) -> dict[str, Any]:
    messages = [
        message
        for number, text in enumerate(said, first)
        for message in (HumanMessage(text, id=f"h{number}"), AIMessage("OK.", id=f"a{number}"))
    ]
    return {"messages": messages}


def waiting_ids(output: dict[str, Any]) -> list[str]:
    return [shown["id"] for shown in output["__interrupt__"][0].value["review"]]


def statuses(store: MemoryStore, identity: Identity) -> list[tuple[str, str]]:
    every: Any = ("pending", "active", "superseded", "archived", "rejected")
    return sorted((record.statement, record.status) for record in store.records(identity, statuses=every))


def test_it_is_drawn_as_it_works() -> None:
    edges = {(edge.source, edge.target) for edge in create_remember_graph().compile().get_graph().edges}
    assert edges == {
        ("__start__", "propose"),
        ("propose", "validate"),
        ("propose", "__end__"),
        ("validate", "resolve"),
        ("validate", "propose"),
        ("resolve", "commit"),
        ("resolve", "propose"),
        ("commit", "propose"),
        ("commit", "review"),
        ("commit", "__end__"),
        ("review", "__end__"),
    }


def test_a_window_goes_through_the_door_once(store: MemoryStore, saver: Any, ana: Identity) -> None:
    graph = create_remember_graph().compile(checkpointer=saver, store=store)
    first = graph.invoke(window("I prefer short reports."), T1, context=ana)
    assert (first["flushed_to"], len(first["receipts"])) == ("a1", 1)
    assert statuses(store, ana) == [("The user prefers short reports.", "active")]
    again = graph.invoke(window("I prefer short reports."), T1, context=ana)
    assert again == {"flushed_to": "a1", "receipts": []}
    third = graph.invoke(window("我喜欢长报告。", first=2), T1, context=ana)
    assert third["flushed_to"] == "a2"
    assert statuses(store, ana) == [("The user prefers short reports.", "superseded"), ("用户喜欢长报告。", "active")]


async def test_async_is_the_same(store: MemoryStore, saver: Any, ana: Identity) -> None:
    graph = create_remember_graph().compile(checkpointer=saver, store=store)
    output = await graph.ainvoke(window("I prefer short reports."), T1, context=ana)
    assert output["flushed_to"] == "a1"
    assert statuses(store, ana) == [("The user prefers short reports.", "active")]


def test_a_wider_scope_waits_in_the_store_before_anybody_is_asked(
    store: MemoryStore, saver: Any, member: Identity
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    output = graph.invoke(window(RULE), T1, context=member)
    [record_id] = waiting_ids(output)
    assert statuses(store, member) == [(RULE, "pending")]
    assert store.record(member, record_id) is not None
    assert RULE not in repr(output["__interrupt__"])


@pytest.mark.parametrize(("verdict", "status"), [("approve", "active"), ("reject", "rejected")])
def test_a_reviewer_decides(
    store: MemoryStore, saver: Any, member: Identity, curator: Identity, verdict: str, status: str
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    output = graph.invoke(Command(resume={record_id: verdict}), T1, context=curator)
    assert len(output["receipts"]) == 2
    assert statuses(store, member) == [(RULE, status)]


def test_a_reviewer_may_edit_with_a_reason(store: MemoryStore, saver: Any, member: Identity, curator: Identity) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    verdict = {"verdict": "edit", "statement": "Deploys need three approvals.", "reason": "since May"}
    output = graph.invoke(Command(resume={record_id: verdict}), T1, context=curator)
    assert statuses(store, member) == [("Deploys need three approvals.", "active")]
    receipt = store.receipt(curator, output["receipts"][-1])
    assert receipt is not None
    assert [(each.rule, each.reason) for each in receipt.decisions] == [("edited", "since May")]


def test_who_may_not_decide_decides_nothing(
    store: MemoryStore, saver: Any, member: Identity, curator: Identity
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    with pytest.raises(AccessDenied):
        graph.invoke(Command(resume={record_id: "approve"}), T1, context=member)
    assert statuses(store, member) == [(RULE, "pending")]
    graph.invoke(Command(resume={record_id: "approve"}), T1, context=curator)
    assert statuses(store, member) == [(RULE, "active")]


@pytest.mark.parametrize("verdicts", ["yes", {"mem_other": "approve"}, {"ID": "maybe"}, {"ID": {"verdict": "edit"}}])
def test_a_verdict_that_says_nothing_clear_is_refused(
    store: MemoryStore, saver: Any, member: Identity, curator: Identity, verdicts: Any
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    if isinstance(verdicts, dict):
        verdicts = {record_id if key == "ID" else key: value for key, value in verdicts.items()}
    with pytest.raises(UsageError):
        graph.invoke(Command(resume=verdicts), T1, context=curator)
    assert statuses(store, member) == [(RULE, "pending")]


def test_what_is_not_named_stays_pending(store: MemoryStore, saver: Any, member: Identity, curator: Identity) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    ids = waiting_ids(graph.invoke(window(RULE, "Friday is deploy day."), T1, context=member))
    graph.invoke(Command(resume={ids[0]: "approve"}), T1, context=curator)
    assert statuses(store, member) == [(RULE, "active"), ("Friday is deploy day.", "pending")]


def test_a_review_elsewhere_leaves_nothing_to_ask(
    store: MemoryStore, saver: Any, member: Identity, curator: Identity
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    graph.invoke(Command(resume={record_id: "approve"}), T1, context=curator)
    assert graph.invoke(window(first=9), T1, context=curator) == {"flushed_to": "a1", "receipts": []}


@pytest.mark.parametrize("step", ["validate", "resolve", "commit"])
def test_a_run_that_stops_at_any_step_resumes_and_writes_once(
    store: MemoryStore, saver: Any, ana: Identity, step: str
) -> None:
    graph = create_remember_graph().compile(checkpointer=saver, store=store, interrupt_before=[step])
    graph.invoke(window("I prefer short reports."), T1, context=ana)
    assert statuses(store, ana) == []
    # Another process, which has only what is on disk: untracked channels are lost.
    resumed = create_remember_graph().compile(checkpointer=saver, store=store)
    output = resumed.invoke(None, T1, context=ana)
    assert output["flushed_to"] == "a1"
    assert statuses(store, ana) == [("The user prefers short reports.", "active")]


def test_no_word_of_it_is_in_the_checkpoints(
    store: MemoryStore, saver: Any, member: Identity, curator: Identity, tmp_path: Path
) -> None:
    graph = create_remember_graph(Policies()).compile(checkpointer=saver, store=store)
    [record_id] = waiting_ids(graph.invoke(window(RULE), T1, context=member))
    graph.invoke(Command(resume={record_id: "approve"}), T1, context=curator)
    files = [path for path in tmp_path.iterdir() if path.name.startswith("threads.db")]
    assert files
    assert all(b"two approvals" not in path.read_bytes() for path in files)


def test_without_memory_it_does_nothing(store: MemoryStore, saver: Any, ana: Identity) -> None:
    graph = create_remember_graph().compile(checkpointer=saver, store=store)
    graph.invoke(window("I prefer short reports."), T1, context=MemoryContext(identity=ana, memory="read"))
    assert statuses(store, ana) == []
    assert store.transcripts.read(ana, "t1") == []


def test_inside_a_hosts_graph_it_takes_the_messages_and_gives_back_the_watermark(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    output = inside_a_host(store, saver).invoke(window("I prefer short reports."), T1, context=ana)
    assert output["flushed_to"] == "a1"
    assert [message.id for message in output["messages"]] == ["h1", "a1"]
    assert statuses(store, ana) == [("The user prefers short reports.", "active")]


def inside_a_host(store: MemoryStore, saver: Any, **options: Any) -> Any:
    """A host whose only node is the remember graph."""
    host = StateGraph(MemoryState, context_schema=MemoryContext)
    host.add_node("remember", create_remember_graph().compile(**options))
    host.add_edge(START, "remember")
    return host.compile(checkpointer=saver, store=store)


@pytest.mark.parametrize("step", ["validate", "resolve", "commit"])
def test_inside_a_host_a_run_that_stops_at_any_step_resumes_and_writes_once(
    store: MemoryStore, saver: Any, ana: Identity, step: str
) -> None:
    inside_a_host(store, saver, interrupt_before=[step]).invoke(window("I prefer short reports."), T1, context=ana)
    assert statuses(store, ana) == []
    output = inside_a_host(store, saver).invoke(None, T1, context=ana)
    assert output["flushed_to"] == "a1"
    assert statuses(store, ana) == [("The user prefers short reports.", "active")]


async def test_inside_a_host_a_run_that_goes_through_stores_no_step(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    host = inside_a_host(store, saver)
    host.invoke(window("I prefer short reports."), T1, context=ana)
    await host.ainvoke({"messages": [HumanMessage("And long mails.", id="h2")]}, T1, context=ana)
    assert {each.config["configurable"]["checkpoint_ns"] for each in saver.list(T1)} == {""}
