"""The whole turn with the real OpenAI client, against a server of our own on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from openai import APIConnectionError, BadRequestError
from support.openai_server import (
    CallTools,
    CutOff,
    Dropped,
    OpenAIServer,
    Overflow,
    RateLimited,
    Say,
    Structured,
)

from everthread import Identity
from everthread.errors import ModelReplyError
from everthread.graphs import create_memory_agent
from everthread.nodes import job_handlers
from everthread.nodes.extract import ModelExtractor
from everthread.stores import MemoryStore, Worker, open_checkpointer, open_store

AT: Any = {"configurable": {"thread_id": "a"}}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[MemoryStore, Any]]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def said(agent: Any) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in agent.get_state(AT).values["messages"]]


def test_parallel_tool_calls_are_answered(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    script = (CallTools([("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]), Say("3 and 7"))
    with OpenAIServer(*script) as server:
        agent = create_memory_agent(server.model(), [add]).compile(checkpointer=home[1], store=home[0])
        state = agent.invoke(ask("Add 1 and 2, and 3 and 4."), AT, context=ana)
    assert [message.text for message in state["messages"] if isinstance(message, ToolMessage)] == ["3", "7"]
    assert state["messages"][-1].text == "3 and 7"
    assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "assistant", "tool", "tool"]


def test_the_model_saves_searches_and_forgets_by_its_tools(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store = home[0]
    with OpenAIServer(
        CallTools([("memory_save", {"statement": "The user works in Lisbon."})]), Say("Saved.")
    ) as server:
        agent = create_memory_agent(server.model()).compile(checkpointer=home[1], store=store)
        agent.invoke(ask("I work in Lisbon."), AT, context=ana)
    (record,) = store.records(ana)
    assert "Lisbon" in record.statement
    with OpenAIServer(
        CallTools([("memory_search", {"query": "where does the user work"})]),
        CallTools([("memory_forget", {"ids": [record.id]})]),
        Say("Forgotten."),
    ) as server:
        agent = create_memory_agent(server.model(), recall="on_demand").compile(checkpointer=home[1], store=store)
        agent.invoke(ask("Forget where I work."), AT, context=ana)
    assert "Lisbon" in str(server.requests[1]["messages"][-1])
    assert store.records(ana) == []
    assert "Lisbon" not in str(server.requests[2]["messages"][-2]), "an erased memory is not in an old tool result"


def test_tokens_stream_and_the_reply_is_whole(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(Say("one two three")) as server:
        agent = create_memory_agent(server.model()).compile(checkpointer=home[1], store=home[0])
        parts = [
            part.text for part, _ in agent.stream(ask("Count."), AT, context=ana, stream_mode="messages") if part.text
        ]
    assert len(parts) > 1
    assert "".join(parts) == "one two three"
    assert said(agent) == [("human", "Count."), ("ai", "one two three")]


def test_an_overflow_from_the_provider_compacts_and_goes_on(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(Say("one"), Say("two"), Say("three"), Overflow(), Say("four")) as server:
        agent = create_memory_agent(server.model(), keep_tokens=60).compile(checkpointer=home[1], store=home[0])
        for text in ("first " * 60, "second " * 60, "third " * 60):
            agent.invoke(ask(text), AT, context=ana)
        state = agent.invoke(ask("fourth"), AT, context=ana)
    assert state["messages"][-1].text == "four"
    assert "thread_summary" in str(server.requests[-1]["messages"])
    assert len(str(server.requests[-1]["messages"])) < len(str(server.requests[-2]["messages"]))


def test_an_overflow_twice_is_the_providers_error(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(Overflow(), Overflow(), Overflow()) as server:
        agent = create_memory_agent(server.model()).compile(checkpointer=home[1], store=home[0])
        with pytest.raises(BadRequestError):
            agent.invoke(ask("hello"), AT, context=ana)
    assert len(server.requests) == 2


def test_a_rate_limit_is_waited_out(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(RateLimited(), Say("hello")) as server:
        agent = create_memory_agent(server.model(max_retries=2)).compile(checkpointer=home[1], store=home[0])
        agent.invoke(ask("hi"), AT, context=ana)
    assert said(agent) == [("human", "hi"), ("ai", "hello")]


def test_a_dropped_connection_keeps_the_turn_to_be_resumed(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(Dropped(), Say("back again")) as server:
        agent = create_memory_agent(server.model()).compile(checkpointer=home[1], store=home[0])
        with pytest.raises(APIConnectionError):
            agent.invoke(ask("hi"), AT, context=ana)
        assert agent.get_state(AT).next == ("reason",)
        agent.invoke(None, AT, context=ana)
    assert said(agent) == [("human", "hi"), ("ai", "back again")]


def test_a_stream_that_is_cut_off_is_an_error_and_not_a_reply(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    with OpenAIServer(CutOff("half an ans"), Say("a whole answer")) as server:
        agent = create_memory_agent(server.model(streaming=True)).compile(checkpointer=home[1], store=home[0])
        with pytest.raises(ModelReplyError, match="finish"):
            agent.invoke(ask("hi"), AT, context=ana)
        agent.invoke(None, AT, context=ana)
    assert said(agent) == [("human", "hi"), ("ai", "a whole answer")]


def candidate() -> dict[str, Any]:
    return {
        "statement": "The user's favourite colour is teal.",
        "content_type": "preference",
        "owner": "user",
        "reach": "lasting",
        "messages": [1],
        "write_reason": "the user said so",
    }


def test_an_extractor_with_a_model_learns_by_structure_after_the_reply(
    home: tuple[MemoryStore, Any], ana: Identity
) -> None:
    with OpenAIServer(Say("Nice."), Structured({"candidates": [candidate()]})) as server:
        model = server.model()
        extractor = ModelExtractor(model)
        agent = create_memory_agent(model, extractor=extractor).compile(checkpointer=home[1], store=home[0])
        agent.invoke(ask("My favourite colour is teal."), AT, context=ana)
        assert (len(server.requests), home[0].records(ana)) == (1, [])
        assert Worker(home[0], job_handlers(home[0], extractor)).drain()
    (record,) = home[0].records(ana)
    assert (record.statement, record.authority) == ("The user's favourite colour is teal.", "user_explicit")


def test_prose_where_structure_was_asked_is_repaired_once(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    script = (Say("Nice."), Say("I think teal is lovely."), Structured({"candidates": [candidate()]}))
    with OpenAIServer(*script) as server:
        model = server.model()
        graph = create_memory_agent(model, extractor=ModelExtractor(model), when="inline")
        graph.compile(checkpointer=home[1], store=home[0]).invoke(ask("My favourite colour is teal."), AT, context=ana)
    assert [record.statement for record in home[0].records(ana)] == ["The user's favourite colour is teal."]


def test_prose_twice_fails_visibly_and_is_tried_again(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    script = (Say("Nice."), Say("prose"), Say("more prose"), Structured({"candidates": [candidate()]}))
    with OpenAIServer(*script) as server:
        model = server.model()
        extractor = ModelExtractor(model)
        graph = create_memory_agent(model, extractor=extractor, when="inline")
        agent = graph.compile(checkpointer=saver, store=store)
        agent.invoke(ask("My favourite colour is teal."), AT, context=ana)
        assert said(agent) == [("human", "My favourite colour is teal."), ("ai", "Nice.")]
        [job] = store.jobs.of(ana)
        assert (job.status, job.thread_id, store.records(ana)) == ("waiting", "a", [])
        store.jobs.retry(ana, job.id)
        assert Worker(store, job_handlers(store, extractor)).drain()
    assert [record.statement for record in store.records(ana)] == ["The user's favourite colour is teal."]
