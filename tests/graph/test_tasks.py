"""Tasks in a thread: a reminder rings once wherever its user is, background work reports before the next step, and what
one thread does stays out of another."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from support.models import FakeModel

from everthread import Identity, MemoryContext, MemoryState
from everthread.graphs import MemoryMiddleware, create_memory_agent, gate
from everthread.nodes import Compact, Extract, Flush, Restore, as_agent, request
from everthread.nodes.node import identity_of, store_of, thread_of
from everthread.nodes.reason import tool_node
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Selection, now_utc

SHANGHAI, DENVER = timezone(timedelta(hours=8)), timezone(timedelta(hours=-6))
Home = tuple[MemoryStore, Any]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str, said_at: datetime | None = None) -> Any:
    kwargs = {"at": said_at.isoformat()} if said_at else {}
    return {"messages": [HumanMessage(text, additional_kwargs=kwargs)]}


def prompt(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def told(model: FakeModel) -> list[int]:
    """How many notices each request had."""
    return [sum(message.text.startswith("<notice>") for message in asked) for asked in model.prompts]


def calls(*names: str) -> AIMessage:
    """A reply that calls these tools at once."""
    made = [{"name": name, "args": {}, "id": f"c-{name}", "type": "tool_call"} for name in names]
    return AIMessage(content="", tool_calls=made)


# --- a reminder said in chat


@pytest.mark.parametrize(
    ("said", "task", "rings"),
    [
        ("Remind me to check the migration in 30 minutes.", "Check the migration", "Reminder, due {}: {}"),
        ("30分钟后提醒我检查迁移。", "检查迁移", "提醒，时间 {}：{}"),
    ],
)
@pytest.mark.parametrize("zone", [SHANGHAI, DENVER])
def test_a_reminder_rings_once_in_the_thread_that_its_user_comes_back_to(
    home: Home, ana: Identity, ben: Identity, said: str, task: str, rings: str, zone: timezone
) -> None:
    store, saver = home
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    said_at = datetime.now(zone) - timedelta(hours=2)
    agent.invoke(say(said, said_at), at("a"), context=ana)
    (made,) = store.tasks.of(ana)
    assert (made.text, made.due_at, made.said_in) == (task, said_at + timedelta(minutes=30), "a")
    assert made.due_at is not None and made.due_at.utcoffset() == zone.utcoffset(None)
    assert store.records(ana) == [], "it is to be done, and no fact"

    for thread, who in [("ben", ben), ("b", ana), ("a", ana), ("c", ana), ("b", ana)]:
        agent.invoke(say("Hello."), at(thread), context=who)
    assert told(model) == [0, 0, 1, 0, 0, 1], "once, in thread b, which has it from then on"
    expected = rings.format(f"{made.due_at:%Y-%m-%d %H:%M %Z}", task)
    assert f"<notice>{expected}</notice>" in prompt(model.prompts[2])
    (now,) = store.tasks.of(ana)
    assert (now.status, now.told_at is None) == ("scheduled", False)


@pytest.mark.parametrize("said", ["Remind me to call Ben tomorrow at 9.", "明天上午9点提醒我给本打电话。"])
def test_tomorrow_at_nine_is_the_speakers(home: Home, ana: Identity, said: str) -> None:
    store, saver = home
    agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    for thread, zone in [("a", SHANGHAI), ("b", DENVER)]:
        now = datetime.now(zone)
        agent.invoke(say(said, now), at(thread), context=ana)
        (task,) = store.tasks.of(ana, thread_id=thread)
        wanted = (now + timedelta(days=1)).replace(hour=9, minute=0, second=0, microsecond=0)
        assert task.due_at is not None
        assert task.due_at.isoformat() == wanted.isoformat()


def test_a_reminder_goes_with_the_thread_in_which_it_was_said(home: Home, ana: Identity) -> None:
    store, saver = home
    agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    agent.invoke(say("Remind me to call Xylophon tomorrow at 9."), at("a"), context=ana)
    erasure = store.erase(ana, Selection(thread_id="a"), reason="asked to", with_source=True, threads=saver)
    assert (erasure.verified, erasure.erased["tasks"], store.tasks.of(ana)) == (True, 1, [])


# --- a notice is given once, whatever happens in between


def due(store: MemoryStore, ana: Identity, text: str = "call Ben", **options: Any) -> str:
    return store.tasks.create(ana, text, due_at=now_utc() - timedelta(minutes=1), **options).id


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_fails_gives_its_notice_when_it_is_tried_again(home: Home, ana: Identity, durability: Any) -> None:
    store, saver = home
    model = FakeModel(replies=[RuntimeError("down"), "elsewhere", "again", "and on"])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    due(store, ana)
    with pytest.raises(RuntimeError, match="down"):
        agent.invoke(say("Hello."), at("a"), context=ana, durability=durability)
    agent.invoke(say("Hello."), at("b"), context=ana, durability=durability)
    agent.invoke(None, at("a"), context=ana, durability=durability)
    agent.invoke(say("And?"), at("a"), context=ana, durability=durability)
    assert told(model) == [1, 0, 1, 1]
    assert store.tasks.of(ana)[0].told_at is not None


DYING = """
import os, signal, sys

from langchain_core.messages import HumanMessage
from support.models import FakeModel

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store


class Dying(FakeModel):
    def _generate(self, *args, **options):
        os.kill(os.getpid(), signal.SIGKILL)


with open_store(sys.argv[1]) as store, open_checkpointer(sys.argv[1]) as saver:
    agent = create_memory_agent(Dying()).compile(checkpointer=saver, store=store)
    said = {"messages": [HumanMessage("Hello.")]}
    config = {"configurable": {"thread_id": "a"}}
    agent.invoke(said, config, context=Identity(tenant="acme", user="ana", project="billing"), durability=sys.argv[2])
"""


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_process_that_is_killed_after_its_notice_was_claimed_gives_it_once_when_it_is_resumed(
    home: Home, ana: Identity, tmp_path: Path, durability: str
) -> None:
    store, saver = home
    due(store, ana)
    command = [sys.executable, "-c", DYING, f"sqlite:{tmp_path}", durability]
    died = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    agent.invoke(say("Hello."), at("b"), context=ana)
    assert told(model) == [0], "thread a has it"
    resumed = None if agent.get_state(at("a")).next else say("Hello.")
    agent.invoke(resumed, at("a"), context=ana)
    agent.invoke(say("And?"), at("a"), context=ana)
    assert told(model) == [0, 1, 1]
    assert store.tasks.of(ana)[0].told_at is not None


def test_of_eight_threads_at_once_one_is_told(home: Home, ana: Identity) -> None:
    store, saver = home
    due(store, ana)
    models = [FakeModel() for _ in range(8)]

    def turn(number: int) -> None:
        agent = create_memory_agent(models[number]).compile(checkpointer=saver, store=store)
        agent.invoke(say("Hello."), at(f"t{number}"), context=ana)

    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(turn, range(8)))
    assert sorted(told(model) for model in models) == [[0, 0]] * 7 + [[1, 1]]


def test_what_was_told_does_not_stand_in_each_later_request(home: Home, ana: Identity) -> None:
    store, saver = home
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    due(store, ana)
    for thread in ("a", "a", "b"):
        agent.invoke(say("Hello."), at(thread), context=ana)
    assert "call Ben" not in prompt(model.prompts[2])


def test_a_process_that_dies_before_the_checkpoint_gives_it_again(home: Home, ana: Identity) -> None:
    store, saver = home
    due(store, ana)

    class Killed(BaseException):
        """Nothing of the run is kept, as when the process is killed under durability exit."""

    class Dying(FakeModel):
        def _generate(self, *args: Any, **options: Any) -> Any:
            super()._generate(*args, **options)
            raise Killed

    model, dying = FakeModel(), Dying()
    with pytest.raises(Killed):
        create_memory_agent(dying).compile(store=store, checkpointer=False).invoke(say("Hello."), at("a"), context=ana)
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    agent.invoke(say("Hello."), at("a"), context=ana)
    assert (told(dying), told(model)) == ([1], [1])


def test_a_run_from_an_old_checkpoint_is_told_nothing_that_came_later(home: Home, ana: Identity) -> None:
    store, saver = home
    model = FakeModel()
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    for text in ("One.", "Two."):
        agent.invoke(say(text), at("a"), context=ana)
    due(store, ana)
    store.inbox.admit(ana, "a", "m1", "From outside.")
    old = next(each for each in agent.get_state_history(at("a")) if each.next == ("restore",))
    agent.invoke(None, old.config, context=ana)
    assert (told(model), "From outside." in prompt(model.prompts[-1])) == ([0, 0, 0], False)
    agent.invoke(say("Three."), at("a"), context=ana)
    assert (told(model)[-1], "From outside." in prompt(model.prompts[-1])) == (1, True)


# --- background work and steers, before the next reasoning step


@tool
def build(runtime: ToolRuntime[Any, Any]) -> str:
    """Build in the background; here it is over before the tool returns."""
    store, who = store_of(runtime), identity_of(runtime)
    task = store.tasks.create(who, "build 构建", thread_id=thread_of(runtime))
    store.tasks.finish(who, store.tasks.start(who, task.id).id, "2 warnings")
    return "started"


@tool
def wait(runtime: ToolRuntime[Any, Any]) -> str:
    """The user says something meanwhile."""
    store = store_of(runtime)
    store.inbox.admit(identity_of(runtime), "a", "q1", "Then tidy up.")
    for id, text in [("s1", "Use zsh."), ("s2", "No.")]:
        store.inbox.admit(identity_of(runtime), "a", id, text, delivery="steer")
    return "waited"


def agents(model: FakeModel, home: Home, **options: Any) -> dict[str, Any]:
    store, saver = home
    middleware = MemoryMiddleware(**options)
    made = create_agent(model, [build, wait], middleware=[middleware], checkpointer=saver, store=store)
    ours = create_memory_agent(model, [build, wait])
    return {"graph": ours.compile(checkpointer=saver, store=store), "middleware": gate(made)}


@pytest.mark.parametrize("kind", ["graph", "middleware"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_in_the_background_reaches_the_model_before_its_next_step(
    home: Home, ana: Identity, kind: str, is_async: bool
) -> None:
    model = FakeModel(replies=[calls("build"), "built", "ok"])
    agent = agents(model, home)[kind]
    if is_async:
        asyncio.run(agent.ainvoke(say("Build it."), at("a"), context=ana))
    else:
        agent.invoke(say("Build it."), at("a"), context=ana)
    assert told(model) == [0, 1]
    assert model.prompts[1][-1].text == '<notice>Background task "build 构建" finished. Result: 2 warnings</notice>'
    state = agent.invoke(say("Thanks."), at("a"), context=ana)
    assert told(model) == [0, 1, 1]
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "human", "ai", "human", "ai"]
    store, _ = home
    assert [(task.status, task.told_at is None) for task in store.tasks.of(ana)] == [("completed", False)]


@pytest.mark.parametrize("kind", ["graph", "middleware"])
def test_steers_reach_a_running_turn_and_what_is_queued_comes_one_at_a_time(
    home: Home, ana: Identity, kind: str
) -> None:
    model = FakeModel(replies=[calls("wait"), "ok"])
    agent = agents(model, home)[kind]
    agent.invoke(say("Do it."), at("a"), context=ana)
    assert [message.text for message in model.prompts[1] if message.type == "human"] == ["Do it.", "Use zsh.", "No."]
    store, _ = home
    store.inbox.admit(ana, "a", "q2", "And go home.")
    for _ in range(2):
        state = agent.invoke({"messages": []}, at("a"), context=ana)
    said = [(message.id, message.text) for message in state["messages"] if message.type == "human"][1:]
    assert said == [("s1", "Use zsh."), ("s2", "No."), ("q1", "Then tidy up."), ("q2", "And go home.")]


def test_two_results_at_once_bring_a_notice_once(home: Home, ana: Identity) -> None:
    store, saver = home
    store.tasks.finish(ana, store.tasks.create(ana, "index").id, "done")
    looked: list[int] = []

    @tool
    def look() -> str:
        """Look."""
        looked.append(1)
        return "seen"

    graph = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("tools", tool_node([look, wait]))
    graph.add_edge(START, "tools")
    agent = gate(graph.compile(checkpointer=saver, store=store))
    state = agent.invoke({"messages": [HumanMessage("Look."), calls("look", "wait")]}, at("a"), context=ana)
    assert sum(message.text.startswith("<notice>") for message in state["messages"]) == 1


def test_of_an_oversized_result_the_notice_has_the_beginning_and_where_the_whole_is(home: Home, ana: Identity) -> None:
    store, saver = home
    task = store.tasks.create(ana, "index " + "y" * 40_000)
    store.tasks.finish(ana, task.id, "head " + "x" * 40_000 + " tail")
    model = FakeModel()
    create_memory_agent(model).compile(checkpointer=saver, store=store).invoke(say("Hello."), at("a"), context=ana)
    (artifact,) = store.artifacts.of_thread(ana, "a")
    assert len(prompt(model.prompts[0])) < 5_000
    assert f"characters left out; the whole result is kept as {artifact.id}]" in prompt(model.prompts[0])
    assert artifact.text.endswith("x tail")


def test_a_sub_agent_is_told_nothing_and_takes_nothing_from_its_supervisor(home: Home, ana: Identity) -> None:
    store, saver = home
    sub_model = FakeModel(replies=[calls("wait"), "found"])
    sub: Any = create_agent(sub_model, [wait], middleware=[MemoryMiddleware()], checkpointer=False)
    own_model = FakeModel(replies=["found too"])
    own = create_memory_agent(own_model).compile(checkpointer=False)

    @tool
    def delegate(runtime: ToolRuntime[Any, Any]) -> str:
        """Ask both sub-agents."""
        due(store, ana)
        brief = {"messages": [HumanMessage("Find it.", name="supervisor")]}
        context = as_agent(runtime, "researcher")
        return " ".join(each.invoke(brief, context=context)["messages"][-1].text for each in (sub, own))

    model = FakeModel(replies=[calls("delegate"), "ok"])
    agent = create_memory_agent(model, [delegate]).compile(checkpointer=saver, store=store)
    agent.invoke(say("Find it."), at("a"), context=ana)
    assert (told(sub_model), told(own_model), told(model)) == ([0, 0], [0], [0, 1])
    assert "Use zsh." not in prompt(sub_model.prompts[1])
    assert "Use zsh." in prompt(model.prompts[1])


# --- compaction touches none of it


class Host(MemoryState, total=False):
    """A host's state: what its work needs, beside what was said."""

    plan: list[str]
    todos: list[dict[str, Any]]
    permissions: dict[str, bool]
    goal: str
    activated_tools: list[str]


WORK: dict[str, Any] = {
    "plan": ["read", "decide 决定"],
    "todos": [{"id": 1, "after": []}, {"id": 2, "after": [1]}],
    "permissions": {"shell": True, "network": False},
    "goal": "move to row-level security",
    "activated_tools": ["shell"],
}


async def test_compaction_touches_no_channel_of_the_host_and_no_task(home: Home, ana: Identity) -> None:
    store, saver = home
    todo = store.tasks.create(ana, "decide", thread_id="a")
    waits = store.tasks.create(ana, "tell everybody", after=[todo.id], due_at=now_utc() + timedelta(days=1))
    started = store.tasks.start(ana, todo.id)

    def reason(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        return {"messages": [AIMessage(f"{len(request(state, runtime))} messages")]}

    steps: list[Any] = [Restore(), Flush(keep_tokens=60), Compact(keep_tokens=60), reason, Extract()]
    names = ["restore", "flush", "compact", "reason", "extract"]
    graph = StateGraph(Host, context_schema=MemoryContext)
    for name, step, after in zip(names, steps, [*names[1:], END], strict=True):
        graph.add_node(name, step)
        graph.add_edge(name, after)
    graph.add_edge(START, "restore")
    agent = gate(graph.compile(checkpointer=saver, store=store))
    await agent.ainvoke({**say("Words. " * 40), **WORK}, at("a"), context=ana)
    for invoke in (agent.invoke, agent.invoke, agent.invoke):
        invoke(say("More words. " * 40), at("a"), context=ana)
    state = agent.get_state(at("a")).values
    assert state["window"]["summary"]
    assert {name: state[name] for name in WORK} == WORK
    assert store.tasks.of(ana) == [waits, started]


# --- nothing of task A reaches task B


def turns(marker: str) -> list[str]:
    """What is said in a thread whose every word is marked, apart from its rules for this conversation."""
    talk = [f"{marker} item {n}: " + f"we looked at {marker} numbers again and again. " * 40 for n in range(8)]
    return [
        f"My task is to migrate {marker}.",
        f"In this conversation, call the service {marker}phoenix.",
        f"这次的报告都叫{marker}报告。",
        f"Fetch the {marker} log.",
        *talk,
        f"Where do we stand with {marker}, and what is the service called?",
    ]


def member(model: FakeModel, marker: str, home: Home) -> Any:
    """An agent of its own for a thread: its instructions and its tool's result are marked, too."""
    store, saver = home

    @tool
    def fetch() -> str:
        """Fetch."""
        return f"{marker} " * 20_000

    agent = create_memory_agent(model, [fetch], instructions=f"Write like {marker}.", max_tokens=2_500, keep_tokens=900)
    return agent.compile(checkpointer=saver, store=store)


@pytest.mark.parametrize("parallel", [False, True])
def test_nothing_of_one_task_reaches_another_and_what_is_shared_names_its_writer(
    home: Home, ana: Identity, ben: Identity, parallel: bool
) -> None:
    store, saver = home
    markers = {"a": "Alphazulu", "b": "Bravoyankee"}
    models = {thread: FakeModel(replies=["ok", "ok", "ok", calls("fetch"), *["ok"] * 99]) for thread in markers}
    agents = {thread: member(models[thread], marker, home) for thread, marker in markers.items()}
    said = {thread: turns(marker) for thread, marker in markers.items()}
    for thread, marker in markers.items():
        store.tasks.finish(ana, store.tasks.create(ana, f"index {marker}", thread_id=thread).id, "done")
        store.tasks.create(ana, f"publish {marker}", thread_id=thread)

    def run(thread: str, first: int, last: int) -> None:
        for text in said[thread][first:last]:
            agents[thread].invoke(say(text), at(thread), context=ana)

    if parallel:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda thread: run(thread, 0, 99), markers))
    else:
        for turn in range(len(said["a"])):
            for thread in markers:
                run(thread, turn, turn + 1)

    for thread, marker in markers.items():
        (other,) = {*markers.values()} - {marker}
        asked = "\n".join(prompt(each) for each in models[thread].prompts)
        state = agents[thread].get_state(at(thread)).values
        assert state["window"]["summary"] and state["window"]["task_state"], "it was compacted"
        assert f'<notice>Background task "index {marker}" finished.' in asked
        assert "sha256:" in asked, "an oversized result was put aside"
        assert f"Write like {marker}." in asked
        assert f"{marker}phoenix" in prompt(models[thread].prompts[-1][:1]), "what holds for this conversation"
        assert asked.count(other) == 0, f"{other} has reached thread {thread}"

    # What is the user's reaches both, and what a member gave to the project names who did.
    agents["a"].invoke(say("I prefer short reports."), at("a"), context=ana)
    decided = "We decided to use PostgreSQL for the billing database because we need row-level security."
    shared = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    ben = ben.model_copy(update={"project": "billing"})
    shared.invoke(say(decided), at("ben"), context=ben)
    for thread in markers:
        for question in ("How do I like my reports?", "Which database did we decide on for billing?"):
            agents[thread].invoke(say(question), at(thread), context=ana)
        first, second = (asked[0].text for asked in models[thread].prompts[-2:])
        assert "The user prefers short reports." in first
        assert "[project:billing | fact | from user ben, thread ben |" in second
