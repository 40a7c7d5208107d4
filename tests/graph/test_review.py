"""Review beside a running conversation: what waits holds nobody up, and a sub-agent's candidates are its parent's."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from everthread import Authority, Identity, MemoryContext, MemoryState, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.graphs import create_memory_agent
from everthread.nodes import Extract, as_agent, door
from everthread.nodes.extract import Candidate
from everthread.nodes.extract.candidate import Window
from everthread.nodes.extract.promotion import promote
from everthread.nodes.extract.review import review, waiting
from everthread.nodes.node import Ask
from everthread.stores import MemoryStore, open_checkpointer, open_store, thread_config

LIMIT = "The billing API rejects batches over 100 invoices."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}") as store:
        yield store


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Any]:
    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield saver


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


def test_what_waits_never_holds_up_a_chat(store: MemoryStore, saver: Any, ana: Identity) -> None:
    member = ana.model_copy(update={"organization": "acme"})
    agent = create_memory_agent(extractor=Policies()).compile(checkpointer=saver, store=store)
    config: Any = thread_config(member, "chat")
    for said in ("Deploys need two approvals.", "Friday is deploy day."):
        output = agent.invoke({"messages": [("user", said)]}, config, context=member)
        assert "__interrupt__" not in output
        assert isinstance(output["messages"][-1], AIMessage)
    assert agent.get_state(config).next == ()
    assert [each.record.statement for each in waiting(store, member)] == [
        "Deploys need two approvals.",
        "Friday is deploy day.",
    ]


class Observations:
    """Takes what a tool returned for something that its agent should know."""

    id = "observations/1"
    calls_model = False

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        yield from ()
        return [
            Candidate(
                statement=line.text,
                subject="billing API",
                predicate="batch limit",
                value="100 invoices",
                owner="agent",
                messages=(number,),
                write_reason="a limit of the API",
            )
            for number, line in enumerate(window.lines, 1)
            if line.source == "tool"
        ]


def clerk_agent() -> Any:
    """A sub-agent that calls the billing API and learns about it, for itself. It keeps no state of its own."""

    def work(state: MemoryState) -> MemoryState:
        ask = str(state["messages"][-1].id)
        call = {"name": "billing_api", "args": {}, "id": f"call-{ask}"}
        return {
            "messages": [
                AIMessage("", tool_calls=[call], id=f"call-{ask}"),
                ToolMessage(LIMIT, name="billing_api", tool_call_id=call["id"], id=f"result-{ask}"),
                AIMessage("I sent them by hundreds.", id=f"report-{ask}"),
            ]
        }

    graph = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("work", work)
    graph.add_node("extract", Extract(Observations(), trusted_tools=frozenset({"billing_api"})))
    graph.add_edge(START, "work")
    graph.add_edge("work", "extract")
    return graph.compile(checkpointer=False)


def supervisor(store: MemoryStore, saver: Any) -> Any:
    """An agent whose only step is to let its clerk do the work."""
    clerk = clerk_agent()

    def delegate(state: MemoryState, runtime: Runtime[MemoryContext]) -> MemoryState:
        brief = HumanMessage("Send all invoices.", name="supervisor", id=f"brief-{state['messages'][-1].id}")
        reply = clerk.invoke({"messages": [brief]}, context=as_agent(runtime, "clerk", memory="on"))
        return {"messages": [AIMessage(reply["messages"][-1].text, name="clerk")]}

    graph = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("delegate", delegate)
    graph.add_edge(START, "delegate")
    return graph.compile(checkpointer=saver, store=store)


def ask(app: Any, identity: Identity, thread: str, text: str) -> None:
    said = {"messages": [HumanMessage(text, id=f"{thread}-1")]}
    output = app.invoke(said, {"configurable": {"thread_id": thread}}, context=identity)
    assert "__interrupt__" not in output
    assert output["messages"][-1].text == "I sent them by hundreds."


def test_a_sub_agent_learns_for_itself_and_its_parent_decides_what_grows_wider(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    parent = ana.model_copy(update={"agent": "supervisor", "roles": frozenset({"curator"})})
    clerk = ana.model_copy(update={"agent": "clerk"})
    app = supervisor(store, saver)

    ask(app, parent, "may", "Bill May.")
    [seen] = waiting(store, clerk)
    assert (seen.record.scope, seen.record.authority) == (Scope(owner="agent", owner_id="clerk"), Authority.TOOL)
    assert waiting(store, parent) == []  # what the clerk learns is the clerk's

    once = promote(store, parent, seen.record.id, to="project", reason="every agent meets it", of=clerk)
    assert [(each.outcome, each.rule) for each in once.decisions] == [("refused", "too-few-threads")]

    ask(app, parent, "june", "Bill June.")
    [seen] = waiting(store, clerk)
    assert len(seen.record.confirmed_by) == 1
    twice = promote(store, parent, seen.record.id, to="project", reason="every agent meets it", of=clerk)
    promoted = str(twice.decisions[0].record_id)

    with pytest.raises(AccessDenied):
        review(store, clerk, promoted, "approve")
    review(store, parent, promoted, "approve")
    [kept] = store.records(ana)
    assert (kept.statement, str(kept.scope), kept.authority) == (LIMIT, "project:billing", Authority.TOOL)
    assert [(edge.kind, edge.target) for edge in kept.relations] == [("derived_from", seen.record.id)]
    to_parent = promote(store, parent, seen.record.id, to="agent", reason="it plans the batches", of=clerk)
    assert [each.record.scope.owner_id for each in waiting(store, parent)] == ["supervisor"]
    assert to_parent.decisions[0].outcome == "pending"


def test_a_sub_agent_cannot_write_for_its_parent_or_the_project(store: MemoryStore, ana: Identity) -> None:
    clerk = ana.model_copy(update={"agent": "clerk"})
    tool = store.bound(clerk, remember=door(store))
    with pytest.raises((AccessDenied, UsageError)):
        tool.put(("everthread", "acme", "agent", "supervisor"), "note", {"content": LIMIT})
    tool.put(("everthread", "acme", "project", "billing"), "note", {"content": LIMIT})
    tool.put(("everthread", "acme", "agent", "clerk"), "note", {"content": LIMIT})
    assert store.records(clerk) == []
    assert sorted(str(each.record.scope) for each in waiting(store, clerk)) == ["agent:clerk", "project:billing"]
