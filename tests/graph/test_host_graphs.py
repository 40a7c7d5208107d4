"""Nodes in a graph of the host's own, and what a host does to a thread of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from everthread import Identity, MemoryContext
from everthread.graphs import create_memory_agent
from everthread.nodes import Extract, Reference, Retrieve, memory_block
from everthread.stores import MemoryStore, open_checkpointer, open_store


class HostState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    recalled: list[Reference]


def answer(state: HostState, runtime: Runtime[MemoryContext]) -> dict[str, Any]:
    return {"messages": [AIMessage(memory_block(state, runtime) or "no memory")]}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[MemoryStore, Any]]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def test_nodes_work_in_a_graph_whose_messages_are_add_messages(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    graph = StateGraph(HostState, context_schema=MemoryContext)
    graph.add_node("retrieve", Retrieve())
    graph.add_node("answer", answer)
    graph.add_node("extract", Extract())
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_edge("answer", "extract")
    graph.add_edge("extract", END)
    host = graph.compile(checkpointer=saver, store=store)
    context = MemoryContext(identity=ana)
    host.invoke(say("I prefer tea over coffee."), on("monday"), context=context)
    state = host.invoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=context)
    assert [message.type for message in state["messages"]] == ["human", "ai"]
    assert store.records(ana)[0].statement in state["messages"][-1].text


@pytest.mark.parametrize("stopped_before", ["retrieve", "reason", "extract"])
async def test_a_thread_can_be_edited_wherever_it_stopped(
    home: tuple[MemoryStore, Any], ana: Identity, stopped_before: str
) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    await agent.ainvoke(say("How do I like my reports?"), on("a"), context=ana, interrupt_before=[stopped_before])
    asked = agent.get_state(on("a")).values["messages"][0]
    edit = {"messages": [HumanMessage("I prefer long reports.", id=asked.id)]}
    agent.update_state(on("a"), edit)
    await agent.aupdate_state(on("a"), edit)
    await agent.ainvoke(None, on("a"), context=ana)
    assert [record.statement for record in store.records(ana)] == ["The user prefers long reports."]


def test_a_short_question_is_not_answered_from_what_was_said_before_it(
    home: tuple[MemoryStore, Any], ana: Identity
) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    for text in (
        "I prefer short reports with a table at the end.",
        "We decided to use PostgreSQL for the billing database because we need row-level security.",
        "How do I like my reports?",
    ):
        state = agent.invoke(say(text), on("a"), context=ana)
    (wanted,) = (record for record in store.records(ana) if "reports" in record.statement)
    assert [reference["id"] for reference in state["recalled"]] == [wanted.id]
