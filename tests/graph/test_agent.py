"""The whole turn: what is said in one thread is known in the next, to the same user and to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from support.models import FakeModel
from support.openai_server import OpenAIServer, Say

from everthread import Identity
from everthread.errors import AccessDenied, ModelReplyError, UsageError
from everthread.graphs import create_memory_agent
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Selection


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[MemoryStore, Any]]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def ask(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def test_a_preference_from_one_thread_is_cited_in_another(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer short reports with a table at the end."), at("a"), context=ana)
    reply = agent.invoke(ask("How do I like my reports?"), at("b"), context=ana)["messages"][-1].text
    record = store.records(ana)[0]
    assert record.statement in reply
    assert f"{record.provenance.observed_at:%Y-%m-%d}" in reply
    assert "thread a" in reply


def test_chinese_works_the_same(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("我喜欢简短的报告，最后附上表格。"), at("a"), context=ana)
    reply = agent.invoke(ask("我喜欢什么样的报告？"), at("b"), context=ana)["messages"][-1].text
    assert store.records(ana)[0].statement in reply


def test_a_model_may_be_given_by_its_name(
    home: tuple[MemoryStore, Any], ana: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, saver = home
    with OpenAIServer(Say("hello")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "unused")
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        agent = create_memory_agent("openai:gpt-test", recall="automatic").compile(checkpointer=saver, store=store)
        assert agent.invoke(ask("hi"), at("a"), context=ana)["messages"][-1].text == "hello"
    with pytest.raises(UsageError, match="provider:name"):
        create_memory_agent("gpt-test")


def test_another_user_recalls_nothing(home: tuple[MemoryStore, Any], ana: Identity, ben: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer short reports with a table at the end."), at("a"), context=ana)
    state = agent.invoke(ask("How do I like my reports?"), at("b"), context=ben)
    assert state.get("recalled", []) == []
    assert store.records(ben) == []


def test_a_thread_of_another_user_is_refused_and_untouched(
    home: tuple[MemoryStore, Any], ana: Identity, ben: Identity
) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("Hello."), at("a"), context=ana)
    before = agent.get_state(at("a")).values["messages"]
    with pytest.raises(AccessDenied):
        agent.invoke(ask("Let me in."), at("a"), context=ben)
    assert agent.get_state(at("a")).values["messages"] == before


def test_a_run_without_context_is_refused(home: tuple[MemoryStore, Any]) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    with pytest.raises(AccessDenied, match="context"):
        agent.invoke(ask("Hello."), at("a"))


def test_the_stream_tells_what_each_node_did(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    events = list(
        agent.stream(ask("I prefer short reports."), at("a"), context=ana, stream_mode="custom", durability="sync")
    )
    assert [event["node"] for event in events if event["event"] in ("restored", "abstained", "asking", "answered")] == [
        "restore",
        "retrieve",
        "reason",
        "reason",
    ]
    assert any(event["node"] == "extract" for event in events)


def test_checkpoints_hold_references_and_no_memory(
    home: tuple[MemoryStore, Any], ana: Identity, tmp_path: Path
) -> None:
    store, saver = home
    model = FakeModel(replies=["noted", "as you like it"])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer zebra-striped reports."), at("a"), context=ana)
    state = agent.invoke(ask("How do I like my reports?"), at("b"), context=ana)
    assert [set(reference) for reference in state["recalled"]] == [{"id", "revision", "score", "why"}]
    assert "zebra" in model.prompts[-1][0].text
    assert "zebra" not in str(agent.get_state(at("b")).values)


def test_an_erased_record_is_gone_from_an_old_checkpoint(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    model = FakeModel(replies=["noted", "so so"])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer zebra-striped reports."), at("a"), context=ana)
    agent.invoke(ask("How do I like my reports?"), at("b"), context=ana)
    before_reason = next(s for s in agent.get_state_history(at("b")) if s.next == ("reason",))
    store.erase(ana, Selection(record_ids=(store.records(ana)[0].id,)), reason="asked to")
    agent.invoke(None, before_reason.config, context=ana)
    assert "zebra" not in str(model.prompts[-1])


def test_memory_off_neither_recalls_nor_learns(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    from everthread import MemoryContext

    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer short reports."), at("a"), context=MemoryContext(identity=ana, memory="off"))
    assert store.records(ana) == []
    assert store.transcripts.read(ana, "a") == []


def test_memory_read_recalls_and_does_not_learn(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    from everthread import MemoryContext

    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("I prefer short reports."), at("a"), context=ana)
    reading = MemoryContext(identity=ana, memory="read")
    state = agent.invoke(ask("I prefer long reports, how do I like my reports?"), at("b"), context=reading)
    assert [reference["id"] for reference in state["recalled"]] == [store.records(ana)[0].id]
    assert len(store.records(ana)) == 1


def test_async_does_the_same(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)

    async def two_turns() -> str:
        await agent.ainvoke(ask("I prefer short reports."), at("a"), context=ana)
        state = await agent.ainvoke(ask("How do I like my reports?"), at("b"), context=ana)
        return str(state["messages"][-1].text)

    assert store.records(ana) == []
    assert "short reports" in asyncio.run(two_turns())


def test_remember_and_forget_go_through_the_tools(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    agent.invoke(ask("Remember that the staging database is called heron."), at("a"), context=ana)
    assert [("heron" in record.statement) for record in store.records(ana)] == [True]
    agent.invoke(ask("Forget the name of the staging database heron."), at("a"), context=ana)
    assert store.records(ana) == []


def test_a_large_tool_result_is_kept_as_an_artifact(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home

    @tool
    def dump() -> str:
        """Dump everything."""
        return "head " + "x" * 60_000 + " tail"

    call = AIMessage(content="", tool_calls=[{"name": "dump", "args": {}, "id": "c1", "type": "tool_call"}])
    model = FakeModel(replies=[call, "done"])
    agent = create_memory_agent(model, [dump]).compile(checkpointer=saver, store=store)
    state = agent.invoke(ask("Dump it."), at("a"), context=ana)
    (result,) = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert len(result.text) < 10_000
    assert result.text.startswith("head x") and " tail" in result.text
    assert state["messages"][-1].text == "done"
    assert [said.text for said in store.transcripts.read(ana, "a") if said.role == "tool"] == [
        "head " + "x" * 60_000 + " tail"
    ]


def test_receipts_are_of_this_turn(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    (receipt,) = agent.invoke(ask("I prefer short reports."), at("a"), context=ana)["receipts"]
    assert store.receipt(ana, receipt) is not None
    assert agent.invoke(ask("And the weather?"), at("a"), context=ana)["receipts"] == []


def test_a_long_thread_is_compacted_and_loses_nothing(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent(FakeModel(), max_tokens=1_500, keep_tokens=600).compile(checkpointer=saver, store=store)
    for turn in range(12):
        agent.invoke(ask(f"Item {turn}: " + "we looked at the numbers again and again. " * 12), at("a"), context=ana)
    state = agent.get_state(at("a")).values
    assert len([m for m in state["messages"] if isinstance(m, HumanMessage)]) == 12
    assert state["window"]["cut"] in {message.id for message in state["messages"]}
    assert store.artifacts.get(ana, state["window"]["summary"]) is not None
    assert len(store.transcripts.read(ana, "a")) == 24


def test_an_overflow_compacts_and_asks_once_more(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home

    class TooLong(Exception):
        code = "context_length_exceeded"

    model = FakeModel(replies=["one", "two", "three", TooLong("too long"), "four"])
    agent = create_memory_agent(model, keep_tokens=50).compile(checkpointer=saver, store=store)
    for text in ("first " * 40, "second " * 40, "third " * 40):
        agent.invoke(ask(text), at("a"), context=ana)
    state = agent.invoke(ask("fourth"), at("a"), context=ana)
    assert state["messages"][-1].text == "four"
    assert state["window"]["summary"].startswith("sha256:")
    assert len(model.prompts[-1]) < len(model.prompts[-2])


def test_an_overflow_that_compaction_cannot_help_is_raised(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home

    class TooLong(Exception):
        code = "context_length_exceeded"

    model = FakeModel(replies=[TooLong("too long")])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    with pytest.raises(TooLong):
        agent.invoke(ask("hello"), at("a"), context=ana)
    assert len(model.prompts) == 2


def test_an_unusable_reply_keeps_the_input_for_another_try(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    model = FakeModel(replies=[AIMessage(content=""), "now it works"])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    with pytest.raises(ModelReplyError):
        agent.invoke(ask("hello"), at("a"), context=ana)
    state = agent.invoke(None, at("a"), context=ana)
    assert [message.text for message in state["messages"]] == ["hello", "now it works"]


def test_text_of_any_kind_survives_a_turn(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    odd = "nul \x00 emoji 🦓 عربي"
    agent.invoke(ask(odd), at("a"), context=ana)
    assert agent.get_state(at("a")).values["messages"][0].content == odd
    assert store.transcripts.read(ana, "a")[0].text == odd


def test_a_count_of_the_hosts_own_says_what_is_too_long(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    plain: Any = {"recall": "automatic", "max_tokens": 6_000}
    thousands = create_memory_agent(FakeModel(), counter=lambda messages: 1_000 * len(messages), **plain)
    for name, builder in (("estimated", create_memory_agent(FakeModel(), **plain)), ("counted", thousands)):
        agent = builder.compile(checkpointer=saver, store=store)
        for n in range(5):
            agent.invoke(ask(f"Number {n}."), at(name), context=ana)
    cuts = {name: agent.get_state(at(name)).values.get("window", {}).get("cut") for name in ("estimated", "counted")}
    assert cuts["estimated"] is None
    assert cuts["counted"] in [message.id for message in agent.get_state(at("counted")).values["messages"]]


def test_a_system_prompt_that_leaves_no_room_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(UsageError) as refused:
        create_memory_agent(FakeModel(), recall="automatic", system_prompt="Be kind. " * 500, max_tokens=1_000)
    assert str(refused.value) == (
        "system prompt and tools take 1120 tokens of the 1000 that a request may take; shorten them, or raise "
        "max_tokens"
    )
