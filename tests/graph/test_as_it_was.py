"""A run from an old checkpoint recalls what was known then, unless it asks for now, and never what was erased."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.models import FakeModel
from support.records import NOON, create, keep, learnt, write

from everthread import Identity, MemoryContext, Record
from everthread.graphs import create_memory_agent
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Change, Selection, Status

Home = tuple[MemoryStore, Any]
Run = Callable[..., Awaitable[Any]]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a graph by `invoke`, or by `ainvoke`."""

    async def running(graph: Any, *args: Any, **options: Any) -> Any:
        return graph.invoke(*args, **options) if request.param == "sync" else await graph.ainvoke(*args, **options)

    return running


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def ask(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def change(action: Any, target: Record, record: Record | None = None, **fields: Any) -> Change:
    return Change(
        action=action, record=record, target=target.id, expected=1, rule="test", reason="it is so now", **fields
    )


QUESTION = "Which database, which editor, which city map, which language does Ana use?"
OLD = {
    "superseded": "Ana uses the database PostgreSQL.",
    "ended": "Ana uses the editor Emacs.",
    "erased": "Ana uses the city map of Zwickau.",
}
NEW = {"successor": "Ana uses the database CockroachDB.", "later": "Ana speaks the language 中文."}


async def a_thread_that_moved_on(home: Home, ana: Identity, run: Run) -> tuple[Any, FakeModel, Any]:
    """(agent, its model, the config of the checkpoint before retrieve), and then memory changed."""
    store, saver = home
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    superseded, ended, erased = keep(store, ana, *(learnt(text) for text in OLD.values()))
    await run(agent, ask(QUESTION), at("a"), context=ana)
    old = next(each for each in agent.get_state_history(at("a")) if each.next == ("retrieve",))
    write(store, ana, change("supersede", superseded, learnt(NEW["successor"])))
    write(store, ana, change("end", ended, status="archived"), create(learnt(NEW["later"])))
    store.erase(ana, Selection(record_ids=(erased.id,)), reason="asked to")
    return agent, model, old.config


def shown(model: FakeModel) -> set[str]:
    return {name for name, text in (OLD | NEW).items() if text in model.prompts[-1][0].text}


async def test_a_replay_recalls_the_revisions_of_then_but_what_was_erased(home: Home, ana: Identity, run: Run) -> None:
    agent, model, old = await a_thread_that_moved_on(home, ana, run)
    assert shown(model) == {"superseded", "ended", "erased"}
    await run(agent, None, old, context=ana)
    assert shown(model) == {"superseded", "ended"}


async def test_a_fork_with_another_question_recalls_as_of_its_checkpoint(home: Home, ana: Identity, run: Run) -> None:
    agent, model, old = await a_thread_that_moved_on(home, ana, run)
    forked = agent.update_state(old, {"messages": [HumanMessage("Which database and editor does Ana use?")]})
    await run(agent, None, {"configurable": {**forked["configurable"]}}, context=MemoryContext(identity=ana))
    # a fork is the thread's newest checkpoint: it goes on from now
    assert "successor" in shown(model)
    await run(agent, ask("Which database and editor does Ana use?"), old, context=ana)
    assert "superseded" in shown(model) and not {"successor", "later", "erased"} & shown(model)


async def test_a_fork_recalls_what_is_known_now_when_it_says_so(home: Home, ana: Identity, run: Run) -> None:
    agent, model, old = await a_thread_that_moved_on(home, ana, run)
    await run(agent, None, old, context=MemoryContext(identity=ana, as_of="now"))
    assert shown(model) == {"successor", "later"}
    plain = {"identity": ana.model_dump(), "as_of": "now"}
    await run(agent, None, old, context=plain)
    assert shown(model) == {"successor", "later"}


async def test_any_run_can_ask_for_memory_as_it_was(home: Home, ana: Identity, run: Run) -> None:
    agent, model, old = await a_thread_that_moved_on(home, ana, run)
    then = agent.get_state(old).created_at
    await run(agent, ask(QUESTION), at("b"), context=MemoryContext.model_validate({"identity": ana, "as_of": then}))
    assert shown(model) == {"superseded", "ended"}
    await run(agent, ask(QUESTION), at("c"), context=ana)
    assert shown(model) == {"successor", "later"}


@pytest.mark.parametrize("tool", ["memory_search", "memory_get"])
async def test_the_memory_tools_of_a_replay_see_memory_as_it_was(
    home: Home, ana: Identity, run: Run, tool: str
) -> None:
    agent, model, old = await a_thread_that_moved_on(home, ana, run)
    every = [record.id for record in home[0].records(ana, statuses=get_args(Status))]
    args: dict[str, Any] = {"query": QUESTION} if tool == "memory_search" else {"ids": every}
    call = AIMessage("", tool_calls=[{"id": "c1", "name": tool, "args": args}])
    model.replies = [*model.replies, call, "done"]
    await run(agent, None, old, context=ana)
    (result,) = [message.text for message in model.prompts[-1] if message.type == "tool"]
    assert OLD["superseded"] in result and NEW["successor"] not in result and OLD["erased"] not in result


async def test_a_replay_is_answered_as_the_user_wished_then(home: Home, ana: Identity, run: Run) -> None:
    store, saver = home
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    fields: Any = {"content_type": "preference", "concerns": "expression"}
    (old,) = keep(store, ana, learnt("回答用德语。", **fields))
    await run(agent, ask("What are two and two?"), at("a"), context=ana)
    before = next(each for each in agent.get_state_history(at("a")) if each.next == ("retrieve",)).config
    write(store, ana, change("supersede", old, learnt("回答用英语。", **fields)))
    await run(agent, None, before, context=ana)
    assert "回答用德语" in model.prompts[-1][0].text and "回答用英语" not in model.prompts[-1][0].text
    await run(agent, None, before, context=MemoryContext(identity=ana, as_of="now"))
    assert "回答用英语" in model.prompts[-1][0].text and "回答用德语" not in model.prompts[-1][0].text


async def test_evidence_of_a_replay_is_what_had_been_said_by_then(home: Home, ana: Identity, run: Run) -> None:
    from everthread import Evidence
    from everthread.nodes import Retrieve

    store, saver = home
    model = FakeModel()
    retrieve = Retrieve(sources=("evidence",))
    agent = create_memory_agent(model, retrieve=retrieve).compile(checkpointer=saver, store=store)

    def said(text: str, id: str, when: Any) -> None:
        message = Evidence(thread_id="x", message_id=id, role="user", text=text, at=when, source="user")
        store.transcripts.append(ana, [message])

    said("The vet of my greyhound is in Potsdam.", "m1", NOON - timedelta(days=1000))
    await run(agent, ask("Where is the vet of my greyhound?"), at("a"), context=ana)
    old = next(each for each in agent.get_state_history(at("a")) if each.next == ("retrieve",))
    said("The new vet of my greyhound is in Leipzig.", "m2", NOON + timedelta(days=100_000))
    await run(agent, None, old.config, context=ana)
    assert "Potsdam" in model.prompts[-1][0].text and "Leipzig" not in model.prompts[-1][0].text
