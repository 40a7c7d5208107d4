"""What memory costs an agent that is there already: a host graph with recall and remember, and `create_agent` with
MemoryMiddleware beside `create_agent` with LangChain's SummarizationMiddleware.

    python benchmarks/host.py

The conversation of `threads.py`: messages of 500 characters of random words, asked and answered, 1,000 records in
scope. No model takes time: both answer at once, the summaries of the peer included.

The host is one node that answers, over `add_messages`. The same host is then given memory by nodes, by graphs, or by
calls inside that node, on its own state or on `MemoryState`; all of them answer turn by turn, so that whatever else the
machine does falls on all. The cost of memory is the median of a turn's difference to the host without it, each over the
last turns; beside it, of the processor's time alone, which other programs on the machine disturb less.

The agents have the same budget for a request, at two sizes: one that 200 turns do not fill, and one that they fill
several times. The peer checkpoints through LangGraph's `SqliteSaver`.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from threads import ANA, CHARACTERS, RECORDS, TURNS, filled, question, remember, replies
from typing_extensions import TypedDict

from everthread import MemoryState
from everthread.graphs import MemoryMiddleware, create_recall_graph, create_remember_graph, gate
from everthread.nodes import Extract, Reference, Retrieve
from everthread.stores import open_checkpointer, open_store

MEASURED = 60
BUDGETS = (100_000, 12_000)
"""Tokens that a request may take."""
LIMIT_MS, LIMIT_GROWTH, SMALLER = 15.0, 0.2, 20


class Own(TypedDict, total=False):
    """A host's own state, with the two channels that memory keeps between turns."""

    messages: Annotated[list[AnyMessage], add_messages]
    recalled: list[Reference]
    flushed_to: str


def answer(state: Any) -> Any:
    return {"messages": [AIMessage(filled(""))]}


def host(schema: Any, **nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    """A graph of these nodes in a row."""
    graph = StateGraph(schema)
    graph.add_sequence([*nodes.items()])
    graph.add_edge(START, next(iter(nodes)))
    return graph


def by_nodes(schema: Any) -> StateGraph[Any, Any, Any, Any]:
    return host(schema, retrieve=Retrieve(), answer=answer, extract=Extract())


def by_graphs(schema: Any) -> StateGraph[Any, Any, Any, Any]:
    recall, learn = create_recall_graph().compile(checkpointer=False), create_remember_graph().compile()
    return host(schema, recall=recall, answer=answer, remember=learn)


def by_calls(schema: Any) -> StateGraph[Any, Any, Any, Any]:
    retrieve, extract = Retrieve(), Extract()

    def remembering(state: Any, runtime: Runtime[Any]) -> Any:
        found = retrieve(state, runtime)
        told: Any = {**state, **found, "messages": add_messages(state["messages"], answer(state)["messages"])}
        return {**found, "messages": told["messages"][-1:], **extract(told, runtime)}

    return host(schema, answer=remembering)


HOSTS: dict[str, Callable[[], StateGraph[Any, Any, Any, Any]]] = {
    "host alone, add_messages": lambda: host(Own, answer=answer),
    "  + nodes": lambda: by_nodes(Own),
    "  + graphs": lambda: by_graphs(Own),
    "  + calls": lambda: by_calls(Own),
    "host alone, MemoryState": lambda: host(MemoryState, answer=answer),
    "  + nodes, MemoryState": lambda: by_nodes(MemoryState),
    "  + graphs, MemoryState": lambda: by_graphs(MemoryState),
    "  + calls, MemoryState": lambda: by_calls(MemoryState),
}


def size(path: Path) -> float:
    """Megabytes of a threads file once its log is written back."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size / 1e6


class Took(NamedTuple):
    """Milliseconds of a turn."""

    wall: float
    processor: float


def timed(turn: Callable[[str], Any], text: str) -> Took:
    """What a turn took."""
    wall, processor = time.perf_counter(), time.process_time()
    turn(text)
    return Took((time.perf_counter() - wall) * 1_000, (time.process_time() - processor) * 1_000)


def median(took: Iterable[Took]) -> Took:
    """Each of its parts by itself."""
    walls, processors = zip(*took, strict=True)
    return Took(statistics.median(walls), statistics.median(processors))


def interleaved(turns: dict[str, Callable[[str], Any]]) -> dict[str, list[Took]]:
    """What the last turns of each took, one after the other."""
    took: dict[str, list[Took]] = {name: [] for name in turns}
    for _ in range(TURNS):
        text = question()
        for name, turn in turns.items():
            took[name].append(timed(turn, text))
    return {name: each[-MEASURED:] for name, each in took.items()}


def asking(graph: Any) -> Callable[[str], Any]:
    """A turn of a graph, on behalf of the same user, in the same thread."""
    config: Any = {"configurable": {"thread_id": "t"}}
    return lambda text: graph.invoke({"messages": [HumanMessage(text)]}, config, context=ANA)


def hosts(home: Path) -> None:
    """The host graph: what memory adds to a turn and to the file."""
    with ExitStack() as stack:
        turns = {}
        for number, (name, build) in enumerate(HOSTS.items()):
            store = stack.enter_context(open_store(f"sqlite:{home}/{number}"))
            saver = stack.enter_context(open_checkpointer(f"sqlite:{home}/{number}"))
            remember(store)
            turns[name] = asking(gate(build().compile(checkpointer=saver, store=store)))
        took = interleaved(turns)
    sizes = {name: size(home / str(number) / "threads.db") for number, name in enumerate(HOSTS)}
    alone = ""
    for name, each in took.items():
        usual = median(each)
        print(f"{name:26} {usual.wall:6.1f} ms a turn ({usual.processor:5.1f})  {sizes[name]:6.2f} MB", end="")
        if not name.startswith(" "):
            alone = name
            print()
            continue
        pairs = zip(each, took[alone], strict=True)
        cost = median(Took(mine.wall - bare.wall, mine.processor - bare.processor) for mine, bare in pairs)
        growth = sizes[name] / sizes[alone] - 1
        print(
            f"  memory: {cost.wall:+5.1f} ms ({cost.processor:+5.1f}; {LIMIT_MS:.0f}: {said(cost.wall < LIMIT_MS)}), "
            f"file {growth:+.0%} ({LIMIT_GROWTH:.0%}: {said(growth < LIMIT_GROWTH)})"
        )


def agents(home: Path, budget: int) -> None:
    """`create_agent` with either middleware: a turn at the end, and the file."""
    peer_file = home / f"peer-{budget}.db"
    ours_home = home / f"ours-{budget}"
    with (
        open_store(f"sqlite:{ours_home}") as store,
        open_checkpointer(f"sqlite:{ours_home}") as saver,
        SqliteSaver.from_conn_string(str(peer_file)) as peer_saver,
    ):
        remember(store)
        memory = MemoryMiddleware(max_tokens=budget)
        ours = create_agent(Model(), middleware=[memory], state_schema=MemoryState, checkpointer=saver, store=store)
        summary = SummarizationMiddleware(model=Model(), trigger=("tokens", budget), keep=("tokens", budget // 2))
        peer = create_agent(Model(), middleware=[summary], checkpointer=peer_saver)
        took = interleaved({"ours": asking(gate(ours)), "peer": asking(peer)})
        kept = [len(each.get_state({"configurable": {"thread_id": "t"}}).values["messages"]) for each in (ours, peer)]
    own, other = (median(took[name]) for name in ("ours", "peer"))
    small, large = size(ours_home / "threads.db"), size(peer_file)
    print(f"a request of at most {budget:,} tokens")
    for name, usual, megabytes, count in (
        ("MemoryMiddleware", own, small, kept[0]),
        ("SummarizationMiddleware", other, large, kept[1]),
    ):
        print(
            f"  {name:23} {usual.wall:6.1f} ms a turn ({usual.processor:5.1f})  {megabytes:6.2f} MB  {count} messages"
        )
    ratio = f"size {large / small:.0f} to 1 (target {SMALLER}): {said(large > SMALLER * small)}"
    print(f"  less time: {said(own.wall < other.wall)}; {ratio}")


def said(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def Model() -> Any:
    """A model that answers at once with 500 characters, and takes tools."""
    model = replies()
    object.__setattr__(model, "bind_tools", lambda tools, **options: model)
    return model


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"N = {TURNS} turns of {CHARACTERS} characters, {RECORDS} records, {os.cpu_count()} cores")
    print(f"medians of the last {MEASURED} turns; in brackets the processor's time")
    with tempfile.TemporaryDirectory() as home:
        hosts(Path(home))
        for budget in BUDGETS:
            agents(Path(home), budget)


if __name__ == "__main__":
    main()
