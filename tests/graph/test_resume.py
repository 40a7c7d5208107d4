"""Resume, new thread, fork: three meanings, and the order in which a turn begins (docs/threads.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from support.models import FakeModel

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied
from everthread.graphs import create_memory_agent, gate
from everthread.nodes import Compact, Extract, Flush, Restore, Retrieve, memory_block, request, resume_task
from everthread.stores import open_checkpointer, open_store
from everthread.stores.record import Selection, now_utc

POSTGRES = "We decided to use PostgreSQL for the billing database because we need row-level security."
COCKROACH = "Actually, we decided to use CockroachDB for the billing database because we need several regions."
WHICH = "Which database did we decide on for billing?"


@contextmanager
def opened(home: Path) -> Iterator[Any]:
    """Store and saver, as a process has them."""
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def told(model: FakeModel, prompt: int = -1) -> str:
    return "\n".join(message.text for message in model.prompts[prompt])


@tool
def drop() -> str:
    """Drop the table, if a person says so."""
    return f"dropped: {interrupt('Drop it?')}"


CALL = AIMessage(content="", tool_calls=[{"name": "drop", "args": {}, "id": "c1", "type": "tool_call"}])


class Host(MemoryState, total=False):
    """A host's state."""

    plan: list[str]
    permissions: dict[str, bool]


def host(store: Any, saver: Any) -> Any:
    def reason(state: Host, runtime: Runtime[MemoryContext]) -> Any:
        shown = "\n".join(message.text for message in request(state, runtime))
        return {"messages": [AIMessage(memory_block(state, runtime))], "plan": [*state.get("plan", []), shown]}

    nodes: dict[str, Any] = {"restore": Restore(), "retrieve": Retrieve(), "flush": Flush(keep_tokens=60)}
    nodes |= {"compact": Compact(keep_tokens=60), "reason": reason, "extract": Extract()}
    graph = StateGraph(Host, context_schema=MemoryContext)
    for name, after in zip(nodes, [*list(nodes)[1:], END], strict=True):
        graph.add_node(name, nodes[name])
        graph.add_edge(name, after)
    graph.add_edge(START, "restore")
    return gate(graph.compile(checkpointer=saver, store=store))


def test_a_resume_in_a_new_process_finds_everything_where_it_was(tmp_path: Path, ana: Identity) -> None:
    with opened(tmp_path) as (store, saver):
        agent = host(store, saver)
        agent.invoke(
            {**say("My task is to migrate billing. " * 20), "permissions": {"shell": False}}, at("a"), context=ana
        )
        agent.invoke(say("Words. " * 60), at("a"), context=ana)
        before = agent.get_state(at("a")).values
        task = store.tasks.create(ana, "publish", thread_id="a")
    with opened(tmp_path) as (store, saver):
        store.tasks.finish(ana, task.id, "published")
        agent = host(store, saver)
        after = agent.invoke(say("Go on."), at("a"), context=ana)
    assert before["window"]["summary"]
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert (after["permissions"], after["plan"][:2]) == ({"shell": False}, before["plan"])
    assert "migrate billing" in after["plan"][-1], "the summary stands for what is no longer shown"
    assert "Result: published" in after["plan"][-1]


def test_a_resume_sees_the_pending_interrupt_and_a_new_thread_does_not(tmp_path: Path, ana: Identity) -> None:
    model = FakeModel(replies=[CALL, "done"])
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(model, [drop]).compile(checkpointer=saver, store=store)
        (asked,) = agent.invoke(say("Drop the table."), at("a"), context=ana)["__interrupt__"]
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(model, [drop]).compile(checkpointer=saver, store=store)
        assert agent.get_state(at("a")).interrupts == (asked,)
        assert agent.get_state(at("b")).interrupts == ()
        agent.invoke(Command(resume="no"), at("a"), context=ana)
    assert (asked.value, model.prompts[-1][-1].text) == ("Drop it?", "dropped: no")


def test_a_new_thread_never_searches_old_ones_by_itself(tmp_path: Path, ana: Identity) -> None:
    model = FakeModel()
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
        agent.invoke(say("Is the word on the door Xylophon?"), at("a"), context=ana)
        state = agent.invoke(say("What is the word on the door?"), at("b"), context=ana)
        found = store.recall(ana, "What is the word on the door?", sources={"evidence"})
    assert any("Xylophon" in hit.statement for hit in found.hits), "it is there to be found by who asks"
    assert "Xylophon" not in told(model)
    assert (state.get("recalled", []), state.get("window", {})) == ([], {})


def test_a_task_goes_on_in_a_new_thread_from_its_state_alone(tmp_path: Path, ana: Identity) -> None:
    model = FakeModel()
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
        for n in range(5):
            said = "My task is to migrate billing." if n == 4 else f"The word on door {n} is Xylophon."
            agent.invoke(say(said), at("a"), context=ana)
        agent.invoke(resume_task(store, ana, "a", into="b"), at("b"), context=ana)
    assert "migrate billing" in told(model)
    assert "Xylophon" not in told(model)


def test_a_fork_sees_memory_and_channels_as_they_were_and_is_told_nothing(tmp_path: Path, ana: Identity) -> None:
    with opened(tmp_path) as (store, saver):
        agent = host(store, saver)
        agent.invoke(say(POSTGRES), at("monday"), context=ana)
        agent.invoke({**say(WHICH), "permissions": {"shell": True}}, at("tuesday"), context=ana)
        agent.invoke(say(COCKROACH), at("wednesday"), context=ana)
        agent.invoke({**say("Thanks."), "permissions": {"shell": False}}, at("tuesday"), context=ana)
        store.tasks.create(ana, "call Ben", due_at=now_utc() - timedelta(minutes=1))
        old = next(
            each
            for each in agent.get_state_history(at("tuesday"))
            if each.next == ("retrieve",) and len(each.values["messages"]) == 1
        )
        fork = agent.invoke(None, old.config, context=ana)
        assert [message.type for message in fork["messages"]] == ["human", "ai"]
        assert ("PostgreSQL" in fork["messages"][-1].text, "CockroachDB" in fork["messages"][-1].text) == (True, False)
        assert (fork["permissions"], len(fork["plan"])) == ({"shell": True}, 1)
        now = agent.invoke(say(WHICH), at("tuesday"), context=ana)
        assert "CockroachDB" in now["messages"][-1].text, "after its first run a fork is the head, and today's"
        assert "call Ben" in now["plan"][-1]


@pytest.mark.parametrize("is_async", [False, True])
def test_whose_thread_it_is_is_asked_before_the_thread_is_waited_for(
    tmp_path: Path, ana: Identity, ben: Identity, is_async: bool
) -> None:
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
        agent.invoke(say("Hello."), at("a"), context=ana)
        before = agent.get_state(at("a")).values
        with saver.turn("a", 0.0), pytest.raises(AccessDenied):
            if is_async:
                asyncio.run(agent.ainvoke(say("Let me in."), at("a"), context=ben))
            else:
                agent.invoke(say("Let me in."), at("a"), context=ben)
        assert agent.get_state(at("a")).values == before


def test_what_arrived_stands_behind_the_users_words_in_this_order(tmp_path: Path, ana: Identity) -> None:
    with opened(tmp_path) as (store, saver):
        rules = ["Use tabs."]
        model = FakeModel(replies=["ok", RuntimeError("down"), "ok"])
        agent = create_memory_agent(model, [drop], instructions=lambda: rules[-1]).compile(
            checkpointer=saver, store=store
        )
        agent.invoke(say("Hello."), at("a"), context=ana)
        agent.update_state(at("a"), {"messages": [CALL]}, as_node="reason")
        store.inbox.admit(ana, "a", "m1", "From outside.")
        store.tasks.create(ana, "call Ben", due_at=now_utc() - timedelta(minutes=1))
        rules.append("Use spaces.")
        with pytest.raises(RuntimeError, match="down"):
            agent.invoke(say("And?"), at("a"), context=ana)
        arrived = agent.get_state(at("a")).values["messages"][3:]
    assert [(message.type, message.text.split(",")[0][:28]) for message in arrived] == [
        ("human", "And?"),
        ("human", "From outside."),
        ("tool", "This tool call was interrupt"),
        ("human", "<notice>Reminder"),
        ("human", "<notice>The project instruct"),
    ]


def test_a_message_that_is_changed_is_kept_as_it_was_said_and_both_are_erased(tmp_path: Path, ana: Identity) -> None:
    model = FakeModel()
    with opened(tmp_path) as (store, saver):
        agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
        agent.invoke({"messages": [HumanMessage("Is Lapsang a tea?", id="m1")]}, at("a"), context=ana)
        agent.update_state(at("a"), {"messages": [HumanMessage("Is Keemun a tea?", id="m1")]})
        agent.invoke(say("And is it black?"), at("a"), context=ana)
        assert "Keemun" in told(model) and "Lapsang" not in told(model)
        assert [said.text for said in store.transcripts.read(ana, "a", ids=["m1"])] == ["Is Lapsang a tea?"]
        chosen = Selection(thread_id="a", message_ids=("m1",))
        store.erase(ana, chosen, reason="asked", with_source=True, threads=saver)
        assert store.transcripts.read(ana, "a", ids=["m1"]) == []
        assert saver.holds(["Lapsang", "Keemun"], ["a"]) == []
