"""What a user agrees to holds in every turn: nothing is learnt, or nothing is recalled either (R289)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from support.models import FakeModel
from support.records import keep, learnt

from everthread import Identity
from everthread.errors import AccessDenied
from everthread.graphs import create_memory_agent
from everthread.nodes import Reason, Retrieve, memory_block, runtime_for
from everthread.stores import MemoryStore, open_checkpointer, open_store

TEA = "I prefer tea over coffee."
ASKED = "Does Ana prefer tea or coffee?"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[MemoryStore, Any]]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"id": "call_1", "name": name, "args": args}])


def told_by_tools(state: Any) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def test_who_agrees_to_reading_only_is_reminded_and_not_learnt_from(
    home: tuple[MemoryStore, Any], ana: Identity
) -> None:
    store, saver = home
    (tea,) = keep(store, ana, learnt("Ana prefers tea over coffee"))
    store.set_consent(ana, "read")
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    events = list(agent.stream(say("I prefer trains over planes."), at("a"), context=ana, stream_mode="custom"))
    assert [event for event in events if event["node"] == "extract"] == [
        {"node": "extract", "event": "skipped", "reason": "memory is read for this user, by consent"}
    ]
    assert "prefers tea" in agent.invoke(say(ASKED), at("b"), context=ana)["messages"][-1].text
    assert store.records(ana, statuses=("active", "pending")) == [tea]
    assert store.transcripts.read(ana, "a") == []


def test_who_does_not_agree_is_neither_reminded_nor_learnt_from(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    (tea,) = keep(store, ana, learnt("Ana prefers tea over coffee"))
    store.set_consent(ana, "off")
    model = FakeModel(replies=[calling("memory_search", query=ASKED), "I do not know."])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    events = list(agent.stream(say(ASKED), at("a"), context=ana, stream_mode="custom"))
    assert [event for event in events if event["node"] == "retrieve"] == [
        {
            "node": "retrieve",
            "event": "skipped",
            "reason": "memory is off for this run or thread, or by consent",
        }
    ]
    assert told_by_tools(agent.get_state(at("a")).values) == [
        "Not done: memory is off in this run or thread, or by the user's consent; it is not searched"
    ]
    assert [prompt for prompt in model.prompts if "prefers tea" in str(prompt)] == []
    assert store.records(ana) == [tea], "the user can still see it"


def test_consent_that_is_taken_back_holds_for_what_was_recalled_before(
    home: tuple[MemoryStore, Any], ana: Identity
) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana prefers tea over coffee"))
    runtime, model = runtime_for(ana, store, "a"), FakeModel()
    recalled: Any = Retrieve()(say(ASKED), runtime)
    state: Any = {**say(ASKED), **recalled}
    assert "prefers tea" in memory_block(state, runtime)
    store.set_consent(ana, "off")
    Reason(model)(state, runtime)
    assert memory_block(state, runtime) == ""
    assert "prefers tea" not in str(model.prompts)


def test_a_store_may_wait_for_each_user_to_agree(tmp_path: Path, ana: Identity) -> None:
    with (
        open_store(f"sqlite:{tmp_path}", default_consent="off") as store,
        open_checkpointer(f"sqlite:{tmp_path}") as saver,
    ):
        agent = create_memory_agent().compile(checkpointer=saver, store=store)
        agent.invoke(say(TEA), at("a"), context=ana)
        assert store.records(ana) == []
        store.set_consent(ana, "on")
        agent.invoke(say(TEA), at("b"), context=ana)
        assert [record.statement for record in store.records(ana)] == ["The user prefers tea over coffee."]


def test_saving_is_refused_and_forgetting_is_not(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, saver = home
    (tea,) = keep(store, ana, learnt("Ana prefers tea over coffee"))
    store.set_consent(ana, "read")
    replies = [calling("memory_save", statement=TEA), calling("memory_forget", ids=[tea.id]), "Done."]
    agent = create_memory_agent(FakeModel(replies=replies)).compile(checkpointer=saver, store=store)
    saved, forgotten = told_by_tools(agent.invoke(say(TEA), at("a"), context=ana))
    why = "memory is read for this user, by consent; nothing can be saved until it is 'on'"
    assert saved == f"Not done: memory is not writable: {why}"
    assert forgotten.startswith("Forgotten: 1")
    assert store.record(ana, tea.id) is None


def test_other_peoples_tools_get_nothing_without_consent(home: tuple[MemoryStore, Any], ana: Identity) -> None:
    store, _ = home
    (tea,) = keep(store, ana, learnt("Ana prefers tea over coffee"))
    bound, mine = store.bound(ana), ("everthread", "acme", "user", "ana")
    assert [item.key for item in bound.search(mine, query="tea")] == [tea.id]
    store.set_consent(ana, "off")
    assert (bound.search(mine, query="tea"), bound.get(mine, tea.id)) == ([], None)
    assert bound.list_namespaces(prefix=("everthread",)) == []
    with pytest.raises(AccessDenied, match="consent"):
        bound.put(mine, "k", {"content": "Ana prefers trains"})
