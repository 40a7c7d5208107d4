"""Runs of one thread: they wait for each other, lose nothing, are the thread's own user's, and know when they are."""

from __future__ import annotations

import asyncio
import gc
import operator
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from support.models import FakeModel
from support.savers import lose_leases, put_clock_ahead
from support.threads import echo, echo_graph, on, said, say, stored_text
from typing_extensions import TypedDict

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied, Conflict, StoreError, UsageError
from everthread.graphs import create_memory_agent
from everthread.graphs.gate import GatedGraph, MemoryGraph, at_time, gate
from everthread.nodes import Extract
from everthread.nodes.tool_calls import INTERRUPTED
from everthread.stores import MemoryStore, SqliteStore, open_checkpointer, open_store
from everthread.stores.checkpoints import Saver, SqliteSaver
from everthread.stores.checkpoints.postgres import PostgresSaver

Durability = Literal["sync", "async", "exit"]
DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")


@pytest.fixture
def saver(threads_url: str) -> Iterator[Saver]:
    with open_checkpointer(threads_url) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}") as opened:
        yield opened


def ungated(saver: Any, node: Any = None) -> Any:
    """The same graph, compiled by LangGraph alone."""
    return StateGraph.compile(echo_graph(node) if node else echo_graph(), checkpointer=saver)


def _began(saver: Saver, text: str) -> bool:
    """Whether a run with this input has stored all that comes before its first node; in one look, since the head may
    be another one at the next."""
    head = ungated(saver).get_state(on("t"))
    last = [message.text for message in head.values.get("messages", [])][-1:]
    return head.metadata is not None and head.metadata["source"] == "loop" and last == [text]


def both_sides(count: int, prefix: str = "") -> list[str]:
    return sorted(
        [f"{prefix}{number}" for number in range(count)] + [f"re: {prefix}{number}" for number in range(count)]
    )


# ---------------------------------------------------------------------------------------------------- one run at a time


@pytest.mark.parametrize("durability", DURABILITIES)
def test_eight_threads_keep_every_message(saver: Saver, durability: Durability) -> None:
    graph = echo_graph().compile(checkpointer=saver)

    def run(number: int) -> None:
        graph.invoke(say(str(number)), on("t"), durability=durability)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert sorted(said(graph, "t")) == both_sides(8)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_eight_tasks_keep_every_message(saver: Saver, durability: Durability) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    await asyncio.gather(*(graph.ainvoke(say(str(n)), on("t"), durability=durability) for n in range(8)))
    assert sorted(said(graph, "t")) == both_sides(8)


async def test_runs_in_asyncios_threads_do_not_starve_the_one_that_holds_the_thread(saver: Saver) -> None:
    async def aecho(state: MemoryState) -> dict[str, Any]:
        return echo(state)

    graph = gate(ungated(saver, RunnableLambda(echo, aecho)))
    waiting = [asyncio.to_thread(graph.invoke, say(str(number)), on("t")) for number in range(40)]
    await asyncio.gather(graph.ainvoke(say("40"), on("t")), *waiting)
    assert sorted(said(graph, "t")) == both_sides(41)


RUN_FOUR = """
import sys
from everthread.stores import open_checkpointer
from support.savers import lose_leases, put_clock_ahead
from support.threads import echo, echo_graph, on, say
with open_checkpointer(sys.argv[1]) as saver:
    graph = echo_graph().compile(checkpointer=saver)
    for number in range(4):
        graph.invoke(say(sys.argv[2] + str(number)), on("t"))
"""


def in_another_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n{code}"
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


def test_two_processes_keep_every_message(saver: Saver, threads_url: str) -> None:
    processes = [in_another_process(RUN_FOUR, threads_url, name) for name in ("a", "b")]
    for process in processes:
        with process:
            assert process.wait(60) == 0
    graph = echo_graph().compile(checkpointer=saver)
    assert sorted(said(graph, "t")) == sorted(both_sides(4, "a") + both_sides(4, "b"))


DIE = """
import sys, time
from everthread.stores import open_checkpointer
from support.savers import lose_leases, put_clock_ahead
from support.threads import echo, echo_graph, on, say

def node(state):
    print("in the node", flush=True)
    time.sleep(60)

saver = open_checkpointer(sys.argv[1], lease_seconds=3600)
echo_graph(node).compile(checkpointer=saver).invoke(say("before the end"), on("t"), durability="sync")
"""


def test_a_run_is_resumed_at_once_after_its_process_was_killed(threads_url: str) -> None:
    with (
        open_checkpointer(threads_url, lease_seconds=3600) as saver,  # nobody waits for such a lease to run out
        in_another_process(DIE, threads_url) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "in the node\n"
        with pytest.raises(Conflict, match="thread 't' is busy"):
            gate(ungated(saver), timeout=0).invoke(None, on("t"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        graph = gate(ungated(saver))
        graph.invoke(None, on("t"))
        assert said(graph, "t") == ["before the end", "re: before the end"]


def test_a_stream_that_is_left_gives_the_thread_back(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    for _ in graph.stream(say("one"), on("t")):
        break
    stream = graph.stream(say("two"), on("t"))
    next(stream)
    with pytest.raises(Conflict):
        graph.invoke(say("three"), on("t"))
    stream.close()  # type: ignore[attr-defined]
    graph.invoke(say("four"), on("t"))
    assert said(graph, "t")[-2:] == ["four", "re: four"]


async def test_an_async_stream_that_is_left_gives_the_thread_back(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    stream = graph.astream(say("one"), on("t"))
    await anext(stream)
    with pytest.raises(Conflict):
        await graph.ainvoke(say("two"), on("t"))
    await stream.aclose()  # type: ignore[attr-defined]
    await graph.ainvoke(say("three"), on("t"))

    async for _ in graph.astream(say("four"), on("t")):
        break
    gc.collect()
    await gate(graph).ainvoke(say("five"), on("t"))
    assert said(graph, "t")[-2:] == ["five", "re: five"]


async def test_a_cancelled_run_gives_the_thread_back(saver: Saver) -> None:
    entered = asyncio.Event()

    async def stay(state: MemoryState) -> None:
        entered.set()
        await asyncio.sleep(60)

    graph = gate(ungated(saver, stay))
    running = asyncio.create_task(graph.ainvoke(say("one"), on("t")))
    await entered.wait()
    waiting = asyncio.create_task(graph.ainvoke(say("two"), on("t")))
    await asyncio.sleep(0.02)
    for task in (waiting, running):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await gate(ungated(saver)).ainvoke(say("three"), on("t"))
    assert said(graph, "t")[-2:] == ["three", "re: three"]


def test_a_failing_run_gives_the_thread_back(saver: Saver) -> None:
    def fail(state: MemoryState) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gate(ungated(saver, fail)).invoke(say("one"), on("t"))
    graph = gate(ungated(saver), timeout=0)
    graph.invoke(None, on("t"))
    assert said(graph, "t") == ["one", "re: one"]


def test_a_run_started_inside_a_run_of_its_thread_is_refused_at_once(saver: Saver) -> None:
    inner: dict[str, Any] = {}

    def call_itself(state: MemoryState) -> None:
        inner["graph"].invoke(say("again"), on("t"))

    inner["graph"] = gate(ungated(saver, call_itself), timeout=3600)
    with pytest.raises(Conflict, match="thread 't' is busy"):
        inner["graph"].invoke(say("one"), on("t"))


def test_a_state_update_waits_like_a_run(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    graph.invoke(say("one"), on("t"))
    with saver.turn("t"), pytest.raises(Conflict):
        graph.update_state(on("t"), say("two"), as_node="echo")
    graph.update_state(on("t"), say("three"), as_node="echo")
    assert said(graph, "t") == ["one", "re: one", "three"]


async def test_an_async_state_update_waits_like_a_run(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    await graph.ainvoke(say("one"), on("t"))
    async with saver.aturn("t"):
        with pytest.raises(Conflict):
            await graph.aupdate_state(on("t"), say("two"), as_node="echo")
    await graph.aupdate_state(on("t"), say("three"), as_node="echo")
    assert said(graph, "t") == ["one", "re: one", "three"]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_event_streams_hold_the_thread(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    with saver.turn("t"):
        with pytest.raises(Conflict):
            _ = graph.stream_events(say("one"), on("t"), version="v3").output
        with pytest.raises(Conflict):
            _ = [each async for each in graph.astream_events(say("one"), on("t"), version="v2")]
    assert graph.stream_events(say("one"), on("t"), version="v3").output is not None
    run = await graph.astream_events(say("two"), on("t"), version="v3")
    await run.output()
    _ = [each async for each in graph.astream_events(say("three"), on("t"), version="v2")]
    assert said(graph, "t") == ["one", "re: one", "two", "re: two", "three", "re: three"]
    with saver.turn("t", timeout=0):
        pass


def test_a_gate_survives_configuration_and_copies(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0)
    copies = [graph.with_config({"tags": ["x"]}), graph.copy({"name": "other"}), gate(graph, timeout=0)]
    assert [(type(each), each.timeout) for each in copies] == [(GatedGraph, 0)] * 3
    with saver.turn("t"):
        for each in copies:
            with pytest.raises(Conflict):
                each.invoke(say("one"), on("t"))


def test_a_thread_bound_by_with_config_is_the_one_that_is_held(saver: Saver) -> None:
    graph = gate(ungated(saver), timeout=0).with_config(on("t"))
    with saver.turn("t"), pytest.raises(Conflict):
        graph.invoke(say("one"))


def test_other_savers_and_no_saver_work_as_ever() -> None:
    assert [m.text for m in echo_graph().compile().invoke(say("one"))["messages"]] == ["one", "re: one"]
    graph = echo_graph().compile(checkpointer=InMemorySaver())
    graph.invoke(say("one"), on("t"))
    assert said(graph, "t") == ["one", "re: one"]


def test_a_builder_is_not_a_graph() -> None:
    with pytest.raises(UsageError, match=r"gate\(builder\.compile"):
        gate(echo_graph())  # type: ignore[arg-type]


def test_a_memory_graph_compiles_to_a_gated_one() -> None:
    assert isinstance(echo_graph().compile(), GatedGraph)
    assert isinstance(MemoryGraph(MemoryState), StateGraph)
    assert isinstance(echo_graph().compile(), CompiledStateGraph)


# ------------------------------------------------------------------------------------------------------------ the fence


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("begun", [False, True])
def test_a_stale_writer_gets_a_conflict_and_the_winner_loses_nothing(
    saver: Saver, durability: Durability, begun: bool
) -> None:
    graph = gate(ungated(saver))
    if begun:
        graph.invoke(say("before"), on("t"))
    before = said(graph, "t")

    def overtaken(state: MemoryState) -> dict[str, Any]:
        if state["messages"][-1].text == "slow":
            faster = ungated(saver)
            while durability != "exit" and not _began(saver, "slow"):
                pass  # what it wrote so far is stored in the background
            worker = threading.Thread(target=faster.invoke, args=(say("fast"), on("t")))
            worker.start()
            worker.join(60)
        return {"messages": [AIMessage("stale")]}

    with pytest.raises(Conflict, match="thread 't' was continued by another run") as caught:
        ungated(saver, overtaken).invoke(say("slow"), on("t"), durability=durability)
    head = graph.get_state(on("t"))
    assert caught.value.winner == head.config["configurable"]["checkpoint_id"]
    kept = said(graph, "t")
    assert kept[: len(before)] == before
    assert kept[-2:] == ["fast", "re: fast"]
    assert "stale" not in kept
    graph.invoke(say("after"), on("t"))
    assert said(graph, "t") == [*kept, "after", "re: after"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_without_a_gate_no_run_that_succeeds_loses_a_message(saver: Saver, durability: Durability) -> None:
    graph, succeeded = ungated(saver), []

    def run(number: int) -> None:
        try:
            graph.invoke(say(str(number)), on("t"), durability=durability)
        except Conflict:
            return
        succeeded.extend([str(number), f"re: {number}"])

    workers = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert succeeded
    assert sorted(set(succeeded) - set(said(graph, "t"))) == []


def test_of_two_that_loaded_the_same_head_only_the_first_to_write_gets_in(saver: Saver) -> None:
    graph = ungated(saver)
    graph.invoke(say("one"), on("t"))
    first, second = saver.get_tuple(on("t")), saver.get_tuple(on("t"))
    assert first is not None and second is not None
    saver.put_writes(first.config, [("messages", [HumanMessage("a")])], "first")
    with pytest.raises(Conflict):
        saver.put_writes(second.config, [("messages", [HumanMessage("b")])], "second")
    saver.put_writes(first.config, [("messages", [HumanMessage("c")])], "first again")


def test_a_run_that_loaded_in_the_middle_of_another_does_not_write_after_it(saver: Saver) -> None:
    graph = ungated(saver)
    graph.invoke(say("one"), on("t"))
    first = saver.get_tuple(on("t"))
    assert first is not None
    saver.put_writes(first.config, [("messages", [HumanMessage("a")])], "first")
    second = saver.get_tuple(on("t"))
    assert second is not None
    saver.put_writes(first.config, [("messages", [HumanMessage("b")])], "first again")
    with pytest.raises(Conflict):
        saver.put_writes(second.config, [("messages", [HumanMessage("c")])], "second")


class BothLoadFirst(Saver):
    """A saver whose loads wait for one another, so that a race is certain."""

    loads: threading.Barrier | None = None

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        if self.loads:
            self.loads.wait(60)
        return found


class OnFile(BothLoadFirst, SqliteSaver):
    """In a file."""


class OnServer(BothLoadFirst, PostgresSaver):
    """On a server."""


def test_of_two_updates_of_a_new_thread_only_the_first_gets_in(threads_url: str) -> None:
    path = threads_url.removeprefix("sqlite:")
    with OnServer(threads_url) if path == threads_url else OnFile(f"{path}/threads.db") as saver:
        graph = ungated(saver)
        saver.loads = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(graph.update_state, on("t"), say(text), "echo") for text in ("a", "b")]
        saver.loads = None
        assert sorted(type(future.exception()).__name__ for future in futures) == ["Conflict", "NoneType"]
        assert len(said(graph, "t")) == 1


def test_a_tool_that_writes_checkpoints_makes_a_run_stale(saver: Saver) -> None:
    """Whoever calls the saver without a graph chooses where it writes; a run that loaded before does not write over
    it."""

    def overtaken(state: MemoryState) -> dict[str, Any]:
        saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
        return {"messages": [AIMessage("stale")]}

    with pytest.raises(Conflict):
        ungated(saver, overtaken).invoke(say("slow"), on("t"))


def test_a_clock_that_was_set_back_does_not_hide_a_checkpoint(saver: Saver) -> None:
    graph = ungated(saver)
    graph.invoke(say("one"), on("t"))
    put_clock_ahead(saver)
    with pytest.raises(StoreError, match="clock is behind"):
        graph.invoke(say("two"), on("t"))


# ------------------------------------------------------------------------------------------ what must pass all the same


class Tally(TypedDict):
    seen: Annotated[list[str], operator.add]


def branching(saver: Saver) -> GatedGraph:
    """Parallel branches, a fan-out by Send, and a question at the end."""
    graph = MemoryGraph(Tally)
    graph.add_node("left", lambda state: {"seen": ["left"]})
    graph.add_node("right", lambda state: {"seen": ["right"]})
    graph.add_node("many", lambda item: {"seen": [item["name"]]})
    graph.add_node("ask", lambda state: {"seen": [interrupt("go on?")]})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_conditional_edges("left", lambda state: [Send("many", {"name": f"item {n}"}) for n in range(3)], ["many"])
    graph.add_edge(["many", "right"], "ask")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_branches_and_interrupts_pass_the_fence(saver: Saver, durability: Durability) -> None:
    graph = branching(saver)
    result = graph.invoke({"seen": []}, on("t"), durability=durability)
    assert [each.value for each in result["__interrupt__"]] == ["go on?"]
    result = graph.invoke(Command(resume="yes"), on("t"), durability=durability)
    assert result["seen"] == ["left", "right", "item 0", "item 1", "item 2", "yes"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_branches_and_interrupts_pass_the_fence_under_asyncio(saver: Saver, durability: Durability) -> None:
    graph = branching(saver)
    await graph.ainvoke({"seen": []}, on("t"), durability=durability)
    result = await graph.ainvoke(Command(resume="yes"), on("t"), durability=durability)
    assert result["seen"] == ["left", "right", "item 0", "item 1", "item 2", "yes"]


def with_subgraph(saver: Saver, inner: GatedGraph | None = None) -> GatedGraph:
    """A host whose subgraph asks twice."""

    def ask(state: Tally) -> dict[str, Any]:
        return {"seen": [interrupt("first?"), interrupt("second?")]}

    subgraph = MemoryGraph(Tally)
    subgraph.add_node("think", lambda state: {"seen": ["thought"]})
    subgraph.add_node("ask", ask)
    subgraph.add_edge(START, "think")
    subgraph.add_edge("think", "ask")
    graph = MemoryGraph(Tally)
    graph.add_node("inner", subgraph.compile())
    graph.add_edge(START, "inner")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_subgraph_that_asks_passes_the_gate_and_the_fence(saver: Saver, durability: Durability) -> None:
    graph = with_subgraph(saver)
    graph.invoke({"seen": ["input"]}, on("t"), durability=durability)
    graph.invoke(Command(resume="a"), graph.get_state(on("t")).config, durability=durability)
    result = graph.invoke(Command(resume="b"), on("t"), durability=durability)
    assert result["seen"] == ["input", "input", "thought", "a", "b"]
    interrupted = next(each for each in graph.get_state_history(on("t")) if each.next)
    replayed = graph.invoke(None, interrupted.config, durability=durability)
    assert [each.value for each in replayed["__interrupt__"]] == ["first?"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_forks_and_replays_pass(saver: Saver, durability: Durability) -> None:
    graph = gate(ungated(saver))
    for number in range(3):
        graph.invoke(say(str(number)), on("t"), durability=durability)
    after_first = next(each for each in graph.get_state_history(on("t")) if len(each.values["messages"]) == 2)
    graph.invoke(say("instead"), after_first.config, durability=durability)
    assert said(graph, "t") == ["0", "re: 0", "instead", "re: instead"]
    graph.invoke(None, after_first.config, durability=durability)
    edited = graph.update_state(after_first.config, say("edited"), as_node="__start__")
    graph.invoke(None, edited, durability=durability)
    assert said(graph, "t") == ["0", "re: 0", "edited", "re: edited"]
    copied = graph.update_state(after_first.config, None, as_node="__copy__")
    graph.invoke(say("on the copy"), copied, durability=durability)
    graph.invoke(say("on"), on("t"), durability=durability)
    assert said(graph, "t") == ["0", "re: 0", "on the copy", "re: on the copy", "on", "re: on"]


def test_the_first_checkpoint_can_be_copied(saver: Saver) -> None:
    graph = gate(ungated(saver))
    graph.invoke(say("one"), on("t"))
    first = list(graph.get_state_history(on("t")))[-1]
    graph.invoke(None, graph.update_state(first.config, None, as_node="__copy__"))
    assert said(graph, "t") == ["one", "re: one"]


def test_a_state_can_be_written_before_the_first_run(saver: Saver) -> None:
    graph = gate(ungated(saver))
    graph.update_state(on("t"), say("zero"), as_node="__start__")
    graph.invoke(None, on("t"))
    graph.bulk_update_state(on("t"), [[update(say("one"))], [update(say("two"))]])
    assert said(graph, "t") == ["zero", "re: zero", "one", "two"]


def update(values: Any) -> Any:
    from langgraph.types import StateUpdate

    return StateUpdate(values, "echo", None)


# ------------------------------------------------------------------------------------------------------ whose, and when


@dataclass(frozen=True)
class HostContext:
    """A host's own context, which carries an identity among other things."""

    identity: Any
    locale: str


def remembering(node: Any, saver: Saver, store: Any, schema: Any = MemoryContext) -> GatedGraph:
    graph = MemoryGraph(MemoryState, context_schema=schema)
    graph.add_node("echo", node)
    graph.add_edge(START, "echo")
    return graph.compile(checkpointer=saver, store=store)


def note(contexts: list[Any]) -> Any:
    def node(state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        contexts.append(runtime.context)
        return {"messages": [AIMessage("noted")]}

    return node


async def test_another_users_words_never_enter_a_thread(
    saver: Saver, store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    contexts: list[Any] = []
    graph = remembering(note(contexts), saver, store)
    graph.invoke(say("mine"), on("t"), context=ana)
    before = stored_text(saver)
    for other in (ben, stranger, MemoryContext(identity=ben, memory="off")):
        with pytest.raises(AccessDenied):
            graph.invoke(say("intruder"), on("t"), context=other)
        with pytest.raises(AccessDenied):
            await graph.ainvoke(say("intruder"), on("t"), context=other)
        with pytest.raises(AccessDenied):
            list(graph.stream(Command(update=say("intruder")), on("t"), context=other))
    assert stored_text(saver) == before
    assert contexts == [ana]


async def test_a_run_without_an_identity_is_refused(saver: Saver, store: MemoryStore) -> None:
    graph = remembering(note([]), saver, store)
    with pytest.raises(AccessDenied, match="no identity in the run's context"):
        graph.invoke(say("who am I?"), on("t"))
    with pytest.raises(AccessDenied, match="no identity in the run's context"):
        await graph.ainvoke(say("who am I?"), on("t"))
    with pytest.raises(AccessDenied):
        graph.invoke(say("who am I?"), on("t", identity={"tenant": "acme", "user": "ana"}))
    assert stored_text(saver) == ""


def test_an_identity_can_be_plain_data(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    contexts: list[Any] = []
    graph = remembering(note(contexts), saver, store)
    plain = {"tenant": "acme", "user": "ana", "project": "billing"}
    graph.invoke(say("one"), on("t"), context=plain)
    graph.invoke(say("two"), on("t"), context={"identity": plain, "memory": "read"})
    assert contexts == [MemoryContext(identity=ana), MemoryContext(identity=ana, memory="read")]


def test_a_store_that_is_not_ours_asks_for_no_identity(saver: Saver) -> None:
    contexts: list[Any] = []
    remembering(note(contexts), saver, InMemoryStore(), schema=None).invoke(say("one"), on("t"))
    assert contexts == [None]


def test_a_fork_recalls_as_of_its_checkpoint(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    contexts: list[Any] = []
    graph = remembering(note(contexts), saver, store)
    for number in range(3):
        graph.invoke(say(str(number)), on("t"), context=ana)
    contexts.clear()
    history = list(graph.get_state_history(on("t")))
    old = next(each for each in history if len(each.values["messages"]) == 2)
    assert old.created_at is not None
    then = datetime.fromisoformat(old.created_at)
    graph.invoke(say("fork"), old.config, context=ana)
    graph.invoke(say("fork"), old.config, context=MemoryContext(identity=ana, memory="read"))
    long_ago = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
    graph.invoke(say("fork"), old.config, context=MemoryContext(identity=ana, as_of=long_ago))
    assert contexts == [
        MemoryContext(identity=ana, as_of=then),
        MemoryContext(identity=ana, as_of=then, memory="read"),
        MemoryContext(identity=ana, as_of=long_ago),
    ]


async def test_resuming_the_head_is_no_replay(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    contexts: list[Any] = []
    graph = remembering(note(contexts), saver, store)
    graph.invoke(say("one"), on("t"), context=ana)
    await graph.ainvoke(say("two"), graph.get_state(on("t")).config, context=ana)
    old = list(graph.get_state_history(on("t")))[-1]
    await graph.ainvoke(None, old.config, context=ana)
    graph.invoke(say("on"), on("t"), context=ana)
    assert [getattr(each, "as_of", None) is None for each in contexts] == [True, True, False, True]


def test_a_hosts_own_context_keeps_its_other_fields(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    contexts: list[Any] = []
    graph = remembering(note(contexts), saver, store, schema=HostContext)
    graph.invoke(say("one"), on("t"), context=HostContext(ana, "de"))
    old = list(graph.get_state_history(on("t")))[-1]
    graph.invoke(None, old.config, context=HostContext(ana, "de"))
    assert old.created_at is not None
    then = MemoryContext(identity=ana, as_of=datetime.fromisoformat(old.created_at))
    assert contexts == [HostContext(ana, "de"), HostContext(then, "de")]


def test_a_context_of_any_kind_can_be_put_back_in_time(ana: Identity) -> None:
    class Plain:
        def __init__(self) -> None:
            self.identity: Any = ana
            self.locale = "de"

    moment = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    then = MemoryContext(identity=ana, as_of=moment)
    before = Plain()
    after = at_time(before, moment)
    assert (after.identity, after.locale, before.identity) == (then, "de", ana)
    assert at_time({"identity": ana, "locale": "de"}, moment) == {
        "identity": ana,
        "locale": "de",
        "as_of": moment,
        "memory": "on",
    }


def test_a_gated_subgraph_uses_its_hosts_thread_and_identity(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    contexts: list[Any] = []
    inner = MemoryGraph(MemoryState, context_schema=MemoryContext)
    inner.add_node("note", note(contexts))
    inner.add_edge(START, "note")
    graph = MemoryGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    compiled = graph.compile(checkpointer=saver, store=store)
    compiled.invoke(say("one"), on("t"), context=ana)
    assert contexts == [ana]
    assert said(compiled, "t") == ["one", "noted"]


def test_a_child_run_on_its_own_thread_enters_by_the_gate(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    child = remembering(note([]), saver, store)

    def delegate(state: MemoryState, config: RunnableConfig, runtime: Runtime[Any]) -> dict[str, Any]:
        result = child.invoke(say("do this"), on("child"), context=runtime.context)
        return {"messages": [AIMessage(result["messages"][-1].text)]}

    graph = remembering(delegate, saver, store)
    graph.invoke(say("one"), on("t"), context=ana)
    assert [said(graph, "t"), said(child, "child")] == [["one", "noted"], ["do this", "noted"]]
    assert isinstance(store, SqliteStore)
    assert sorted(each.thread_id for each in store.transcripts.threads(ana)) == ["child", "t"]


async def test_synchronous_runs_that_wait_do_not_starve_the_run_that_they_wait_for(
    saver: Saver, store: MemoryStore, ana: Identity
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    entered, go_on, blocking = asyncio.Event(), asyncio.Event(), threading.Event()

    async def slowly(state: MemoryState) -> dict[str, Any]:
        entered.set()
        await go_on.wait()
        return echo(state)

    builder = echo_graph(RunnableLambda(echo, slowly))
    builder.add_node("extract", Extract())
    builder.add_edge("echo", "extract")
    graph = gate(StateGraph.compile(builder, checkpointer=saver, store=store))

    def wait_for_it() -> Any:
        blocking.set()
        return graph.invoke(say("second", "u2"), on("t"), context=ana)

    first = asyncio.create_task(graph.ainvoke(say("I prefer short reports.", "u1"), on("t"), context=ana))
    await entered.wait()
    # The only thread of the loop's own pool now waits for the first run.
    second = asyncio.create_task(asyncio.to_thread(wait_for_it))
    while not blocking.is_set():
        await asyncio.sleep(0.01)
    go_on.set()
    await first
    await second
    assert said(graph, "t") == ["I prefer short reports.", "re: I prefer short reports.", "second", "re: second"]
    assert [record.statement for record in store.records(ana)] == ["The user prefers short reports."]


# --------------------------------------------------------------------------------- the whole agent, many runs at a time


@pytest.fixture
def agent(saver: Saver, store: MemoryStore) -> GatedGraph:
    return create_memory_agent(Echoing()).compile(checkpointer=saver, store=store)


class Echoing(FakeModel):
    """Answers "re: ..." to the last message."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"re: {messages[-1].text}"))])


@pytest.mark.parametrize("durability", DURABILITIES)
def test_eight_threads_of_one_agent_get_eight_replies(agent: GatedGraph, ana: Identity, durability: Durability) -> None:
    def run(number: int) -> str:
        result = agent.invoke(say(str(number)), on("t"), context=ana, durability=durability)
        return str(result["messages"][-1].text)

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(run, range(8)))
    assert replies == [f"re: {number}" for number in range(8)]
    assert sorted(said(agent, "t")) == both_sides(8)
    assert [each.startswith("re:") for each in said(agent, "t")] == [False, True] * 8


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_eight_tasks_of_one_agent_get_eight_replies(
    agent: GatedGraph, ana: Identity, durability: Durability
) -> None:
    results = await asyncio.gather(
        *(agent.ainvoke(say(str(n)), on("t"), context=ana, durability=durability) for n in range(8))
    )
    assert [each["messages"][-1].text for each in results] == [f"re: {number}" for number in range(8)]
    assert sorted(said(agent, "t")) == both_sides(8)


def test_runs_of_different_threads_go_on_at_the_same_time(saver: Saver) -> None:
    """Each waits inside its node for the other, which would never come if one held the other up."""
    meet = threading.Barrier(2, timeout=60)

    def met(state: MemoryState) -> dict[str, Any]:
        meet.wait()
        return echo(state)

    graph = echo_graph(met).compile(checkpointer=saver)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda thread: graph.invoke(say("hi"), on(thread)), ("a", "b")))
    assert [said(graph, "a"), said(graph, "b")] == [["hi", "re: hi"]] * 2


# ------------------------------------------------------------------------------------------- a run that lost its thread


def overtaken(saver: Saver, store: MemoryStore, ana: Identity) -> Any:
    """A gated graph whose run on "slow" hangs for longer than its lease, so that another run takes the thread."""

    def hang(state: MemoryState) -> dict[str, Any]:
        if state["messages"][-1].text == "slow":
            lose_leases(saver)
            worker = threading.Thread(target=lambda: graph.invoke(say("fast", "f"), on("t"), context=ana))
            worker.start()
            worker.join(60)
            return {"messages": [AIMessage("stale")]}
        return echo(state)

    graph: Any = remembering(hang, saver, store)
    return graph


def test_the_input_of_a_run_that_lost_its_thread_waits_in_the_inbox(
    saver: Saver, store: MemoryStore, ana: Identity
) -> None:
    graph = overtaken(saver, store, ana)
    with pytest.raises(Conflict, match="the input s1 of this run waits in the inbox") as caught:
        graph.invoke(say("slow", "s1"), on("t"), context=ana, durability="exit")
    assert (caught.value.thread_id, caught.value.inputs) == ("t", ("s1",))
    assert store.inbox.pending(ana, "t") == [("s1", "slow")]
    agent = create_memory_agent(Echoing()).compile(checkpointer=saver, store=store)
    agent.invoke(say("and on", "o"), on("t"), context=ana)
    assert said(agent, "t")[:4] == ["fast", "re: fast", "and on", "slow"]
    agent.invoke(say("on", "p"), on("t"), context=ana)
    assert store.inbox.pending(ana, "t") == []


async def test_the_same_under_asyncio(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    graph = overtaken(saver, store, ana)
    with pytest.raises(Conflict) as caught:
        await graph.ainvoke(say("slow", "s1"), on("t"), context=ana, durability="exit")
    assert caught.value.inputs == ("s1",)
    assert store.inbox.pending(ana, "t") == [("s1", "slow")]


def test_an_input_without_an_id_is_the_callers_to_send_again(saver: Saver, store: MemoryStore, ana: Identity) -> None:
    graph = overtaken(saver, store, ana)
    with pytest.raises(Conflict, match="run its input again") as caught:
        graph.invoke({"messages": [("user", "slow")]}, on("t"), context=ana, durability="exit")
    assert (caught.value.inputs, store.inbox.pending(ana, "t")) == ((), [])


# ------------------------------------------------------------------------------ a new input while a question is pending


@tool
def pay(amount: int) -> str:
    """Pay, once a person has agreed."""
    return f"paid {amount}: {interrupt('May I pay?')}"


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_new_input_while_a_tool_asks_is_answered(
    saver: Saver, store: MemoryStore, ana: Identity, durability: Durability
) -> None:
    call = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "c"}])
    model = FakeModel(replies=[call, "Then I do not pay."])
    agent = create_memory_agent(model, [pay]).compile(checkpointer=saver, store=store)
    asked = agent.invoke(say("Pay 5."), on("t"), context=ana, durability=durability)
    assert [each.value for each in asked["__interrupt__"]] == ["May I pay?"]
    result = agent.invoke(say("No, never mind."), on("t"), context=ana, durability=durability)
    assert result["messages"][-1].text == "Then I do not pay."
    assert [(message.type, message.text) for message in model.prompts[1] if message.type != "system"] == [
        ("human", "Pay 5."),
        ("ai", ""),
        ("tool", INTERRUPTED),
        ("human", "No, never mind."),
    ]
    assert agent.get_state(on("t")).next == ()


@tool
async def atake(what: str) -> str:
    """Take something, once a person has agreed."""
    await asyncio.sleep(0.05 if what == "red" else 0)
    return f"took {what}: {interrupt(f'May I take {what}?')}"


@tool
def take(what: str) -> str:
    """Take something, once a person has agreed."""
    time.sleep(0.05 if what == "red" else 0)
    return f"took {what}: {interrupt(f'May I take {what}?')}"


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("first", ["red", "blue"])
async def test_of_parallel_calls_that_ask_each_gets_its_own_answer_and_the_others_run_once(
    saver: Saver, store: MemoryStore, ana: Identity, how: str, first: str
) -> None:
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    name = "take" if how == "sync" else "atake"
    wanted = [(name, {"what": "red"}), ("look", {}), (name, {"what": "blue"})]
    calls = [{"name": each, "args": args, "id": f"c{n}"} for n, (each, args) in enumerate(wanted)]
    model = FakeModel(replies=[AIMessage("", tool_calls=calls), "Done."])
    agent = create_memory_agent(model, [take, atake, look]).compile(checkpointer=saver, store=store)

    async def step(given: Any) -> Any:
        if how == "async":
            return await agent.ainvoke(given, on("t"), context=ana)
        return await asyncio.to_thread(agent.invoke, given, on("t"), context=ana)

    state = await step(say("Take both."))
    questions = {each.value: each.id for each in state["__interrupt__"]}
    assert sorted(questions) == ["May I take blue?", "May I take red?"]
    second = "blue" if first == "red" else "red"
    for what in (first, second):
        state = await step(Command(resume={questions[f"May I take {what}?"]: f"the {what} one"}))
    assert [message.text for message in state["messages"] if message.type == "tool"] == [
        "took red: the red one",
        "seen",
        "took blue: the blue one",
    ]
    assert (ran, state["messages"][-1].text, len(model.prompts)) == (["look"], "Done.", 2)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_new_input_while_a_subgraph_asks_is_answered(saver: Saver, durability: Durability) -> None:
    def ask(state: MemoryState) -> dict[str, Any]:
        if state["messages"][-1].text == "ask me":
            interrupt("yes?")
        return echo(state)

    host = MemoryGraph(MemoryState)
    host.add_node("inner", echo_graph(ask).compile())
    host.add_edge(START, "inner")
    graph = host.compile(checkpointer=saver)
    assert "__interrupt__" in await graph.ainvoke(say("ask me"), on("t"), durability=durability)
    result = await graph.ainvoke(say("something else"), on("t"), durability=durability)
    assert "__interrupt__" not in result
    assert said(graph, "t") == ["ask me", "something else", "re: something else"]
