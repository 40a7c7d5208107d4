"""Compaction that was asked for, between two turns."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.types import interrupt
from support.models import FakeModel
from support.threads import echo_graph, on, said, say

from everthread import Identity
from everthread.errors import AccessDenied, Conflict, ModelReplyError, UsageError
from everthread.graphs import acompact_now, compact_now, create_memory_agent
from everthread.graphs.gate import GatedGraph
from everthread.nodes.compact import Summary
from everthread.nodes.node import Ask
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.checkpoints import Saver


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Saver]:
    with open_checkpointer(f"sqlite:{tmp_path}") as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}", embedder="none") as opened:
        yield opened


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(replies=["It is confirmed."])


@pytest.fixture
def agent(model: FakeModel, saver: Saver, store: MemoryStore) -> GatedGraph:
    return create_memory_agent(model).compile(checkpointer=saver, store=store)


def talk(agent: GatedGraph, ana: Identity, turns: int = 4) -> None:
    for number in range(turns):
        agent.invoke(say(f"We decided on option {number}.", f"u{number}"), on("t"), context=ana)


def test_the_last_turn_stays_and_the_rest_is_summarised(agent: GatedGraph, model: FakeModel, ana: Identity) -> None:
    talk(agent, ana)
    before = said(agent, "t")
    assert compact_now(agent, on("t"), context=ana)
    state = agent.get_state(on("t"))
    assert (said(agent, "t"), state.next) == (before, ())
    assert len(model.prompts) == 4
    agent.invoke(say("And now?", "u4"), on("t"), context=ana)
    sent = [message.text for message in model.prompts[-1] if message.type != "system"]
    assert "We decided on option 0." in sent[0]
    assert sent[1:] == ["We decided on option 3.", "It is confirmed.", "And now?"] or sent[1:] == [
        "It is confirmed.",
        "And now?",
    ]


async def test_the_same_under_asyncio_and_not_twice(agent: GatedGraph, ana: Identity) -> None:
    talk(agent, ana)
    assert await acompact_now(agent, on("t"), context=ana)
    window = agent.get_state(on("t")).values["window"]
    assert not await acompact_now(agent, on("t"), context=ana)
    assert agent.get_state(on("t")).values["window"] == window


def test_what_is_kept_can_be_chosen(agent: GatedGraph, ana: Identity) -> None:
    talk(agent, ana)
    assert not compact_now(agent, on("t"), context=ana, keep_tokens=10_000)


def test_another_users_thread_is_refused(agent: GatedGraph, ana: Identity, ben: Identity) -> None:
    talk(agent, ana, turns=1)
    with pytest.raises(AccessDenied):
        compact_now(agent, on("t"), context=ben)


def test_it_waits_for_a_run(agent: GatedGraph, saver: Saver, ana: Identity) -> None:
    talk(agent, ana, turns=1)
    agent.timeout = 0.05
    with saver.turn("t"), pytest.raises(Conflict, match="busy"):
        compact_now(agent, on("t"), context=ana)


def test_a_turn_that_is_not_over_is_not_compacted(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return str(interrupt("May I?"))

    call = AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "c"}])
    agent = create_memory_agent(FakeModel(replies=[call]), [pay]).compile(checkpointer=saver, store=store)
    agent.invoke(say("Pay."), on("t"), context=ana)
    with pytest.raises(UsageError, match="not over"):
        compact_now(agent, on("t"), context=ana)


@pytest.mark.parametrize("config", [{}, on("t")])
def test_what_cannot_be_compacted_says_so(saver: Saver, store: MemoryStore, ana: Identity, config: Any) -> None:
    graph = echo_graph().compile(checkpointer=saver, store=store)
    with pytest.raises(UsageError, match=r"name the thread|compacts nothing"):
        compact_now(graph, config, context=ana)


class Silent:
    """A summariser that has nothing to say."""

    def summarise(self, previous: str, messages: Sequence[BaseMessage]) -> Generator[Ask, Any, Summary]:
        yield from ()
        return Summary("", "silent/1")


async def test_without_a_usable_summary_it_says_so_and_nothing_moves(
    saver: Saver, store: MemoryStore, ana: Identity
) -> None:
    agent = create_memory_agent(FakeModel(), summariser=Silent()).compile(checkpointer=saver, store=store)
    talk(agent, ana)
    for compact in (compact_now, acompact_now):
        with pytest.raises(ModelReplyError, match="thread t was not compacted: the summary is empty"):
            moved: Any = compact(agent, on("t"), context=ana)
            await moved
    assert "cut" not in agent.get_state(on("t")).values.get("window", {})


def test_so_many_turns_are_kept_on_request(agent: GatedGraph, ana: Identity) -> None:
    talk(agent, ana)
    assert compact_now(agent, on("t"), context=ana, keep_turns=2)
    assert agent.get_state(on("t")).values["window"]["cut"] == "u2"


def test_an_agent_keeps_so_many_turns_by_itself(
    model: FakeModel, saver: Saver, store: MemoryStore, ana: Identity
) -> None:
    agent = create_memory_agent(model, keep_turns=2).compile(checkpointer=saver, store=store)
    talk(agent, ana, turns=5)
    assert agent.get_state(on("t")).values["window"]["cut"] == "u3"
    shown = [message.text for message in model.prompts[-1] if message.type == "human"]
    assert shown[1:] == ["We decided on option 3.", "We decided on option 4."]
