"""What a long thread costs: 500 turns with tools, beside LangChain's stock agent with its summarisation.

    python benchmarks/long_threads.py [--turns 500]        (`threads.py` runs it too)

Each turn: a message of 500 characters, a call of a tool, its result of 1,000 characters, an answer of 500. Both agents
may fill 8,000 tokens and keep 4,000 verbatim. Ours is `create_memory_agent`: transcript, extraction and summary by
rules, recall in each turn. The peer is `create_agent` with `SummarizationMiddleware` on a scripted model, and the stock
`SqliteSaver`; it recalls and learns nothing. Both answer by turns, so that whatever else the machine does falls on
both. The model answers at once; the time inside the embedder is measured and left out, as in `turn.py`. Beside each
time stands the processor's, which a busy machine changes less. What a long thread costs more than a short one is
measured at one time: a turn of the long thread and one of a new one, by turns.

Then: how long a thread of 5,000 messages takes to be restored by a process that has just opened it (load and restore
node), and how long the compaction of 2,000 messages takes.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateUpdate
from turn import TimedEmbedder

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.nodes import Compact, Restore
from everthread.nodes.node import runtime_for
from everthread.nodes.state import NodeInput
from everthread.stores import open_checkpointer, open_store

TURNS, BUDGET, KEPT = 500, 8_000, 4_000
ANA = Identity(tenant="bench", user="ana")
AT: Any = {"configurable": {"thread_id": "t"}}
RESTORED, COMPACTED = 5_000, 2_000

_random = random.Random(4711)
_words = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(4, 9))) for _ in range(5_000)]


def text(characters: int) -> str:
    """Random words."""
    return " ".join(_random.choices(_words, k=characters // 5))[:characters]


class Scripted(BaseChatModel):
    """Calls the tool for what the user said, then answers."""

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            reply = AIMessage(text(500))
        elif messages[-1].text.startswith("turn"):
            name = messages[-1].text.split()[1]
            reply = AIMessage("", tool_calls=[{"name": "look", "args": {"what": name}, "id": f"call_{name}"}])
        else:
            reply = AIMessage(text(2_000))  # a summary
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, AIMessage]:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


@tool
def look(what: str) -> str:
    """Look it up."""
    return text(1_000)


class Cost(NamedTuple):
    """Milliseconds of a turn."""

    clock: float
    processor: float


def cost(work: Callable[[], Any], embedder: TimedEmbedder | None = None) -> Cost:
    """What `work` takes, without the time inside the embedder."""
    before = embedder.seconds if embedder else 0.0
    clock, processor = time.perf_counter(), time.process_time()
    work()
    outside = embedder.seconds - before if embedder else 0.0
    return Cost(
        (time.perf_counter() - clock - outside) * 1_000, max(0.0, time.process_time() - processor - outside) * 1_000
    )


def around(costs: list[Cost], turn: int) -> Cost:
    """The median of the eleven turns around this one."""
    return median(costs[max(0, min(turn, len(costs)) - 6) : turn + 5])


def median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(each.clock for each in costs), statistics.median(each.processor for each in costs))


def conversation(home: Path, turns: int) -> None:
    """Both agents, by turns; prints what they took and how large their files are."""
    embedder, ours, peers = TimedEmbedder(), list[Cost](), list[Cost]()
    connection = sqlite3.connect(home / "stock.db", check_same_thread=False)
    peer: Any = create_agent(
        Scripted(),
        [look],
        middleware=[SummarizationMiddleware(Scripted(), trigger=("tokens", BUDGET), keep=("tokens", KEPT))],
        checkpointer=SqliteSaver(connection),
    )
    with open_store(f"sqlite:{home}", embedder=embedder) as store, open_checkpointer(f"sqlite:{home}") as saver:
        builder = create_memory_agent(Scripted(), [look], recall="automatic", max_tokens=BUDGET, keep_tokens=KEPT)
        agent = builder.compile(checkpointer=saver, store=store)
        for number in range(turns):
            said: Any = {"messages": [HumanMessage(f"turn {number} {text(490)}")]}
            ours.append(cost(lambda: agent.invoke(said, AT, context=ANA), embedder))  # noqa: B023 - called at once
            peers.append(cost(lambda: peer.invoke(said, AT)))  # noqa: B023 - called at once
        kept = [len(each.get_state(AT).values["messages"]) for each in (agent, peer)]
        for each in (saver.conn, connection):
            each.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        small, large = ((home / name).stat().st_size / 1e6 for name in ("threads.db", "stock.db"))
        long, new = beside(agent, turns, embedder)
    connection.close()
    print(f"{turns} turns with a tool; milliseconds a turn (median of 11): clock / processor")
    for turn in [each for each in (10, 50, 100, 200, 300, 400, 500) if each <= turns]:
        mine, other = around(ours, turn), around(peers, turn)
        print(
            f"  turn {turn:4}  everthread {mine.clock:6.1f} / {mine.processor:5.1f}"
            f"   create_agent {other.clock:6.1f} / {other.processor:5.1f}"
        )
    first, last, at_200 = around(ours, 10), around(ours, turns), around(ours, 200)
    print(
        f"turn {turns} to turn 10, as they were: {last.clock / first.clock:.2f} (clock), "
        f"{last.processor / first.processor:.2f} (processor)"
    )
    print(
        f"the same at one time: {long.clock:.1f} / {long.processor:.1f} to {new.clock:.1f} / {new.processor:.1f}: "
        f"{long.clock / new.clock:.2f} (clock), {long.processor / new.processor:.2f} (processor); target 1.5: "
        f"{reached(long.processor <= 1.5 * new.processor)}"
    )
    below = at_200.clock < around(peers, 200).clock and last.clock < around(peers, turns).clock
    print(f"below the peer from turn 200 on: {reached(below)}")
    print(
        f"threads.db {small:.2f} MB ({kept[0]} messages), the peer's {large:.1f} MB ({kept[1]} messages): a "
        f"{large / small:.0f}th; target a 20th: {reached(20 * small <= large)}"
    )


def beside(agent: Any, turns: int, embedder: TimedEmbedder) -> tuple[Cost, Cost]:
    """A turn of the long thread, and one of new threads that are at turns 5 to 15: by turns, medians of 40."""
    long, new = list[Cost](), list[Cost]()
    for number in range(80):
        said: Any = {"messages": [HumanMessage(f"turn {number} {text(490)}")]}
        to: Any = {"configurable": {"thread_id": f"new {number // 20}"}}
        taken = cost(lambda: agent.invoke(said, to, context=ANA), embedder)  # noqa: B023 - called at once
        if 5 <= number % 20 < 15:
            said = {"messages": [HumanMessage(f"turn {turns + number} {text(490)}")]}
            new.append(taken)
            long.append(cost(lambda: agent.invoke(said, AT, context=ANA), embedder))  # noqa: B023 - called at once
    return median(long), median(new)


def restored(home: Path) -> None:
    """A thread of many messages, loaded and restored by a checkpointer that has just opened its file."""
    path, builder = f"sqlite:{home}", create_memory_agent(Scripted(), [look], recall="automatic")
    with open_store(path, embedder="none") as store, open_checkpointer(path) as saver:
        graph = builder.compile(checkpointer=saver, store=store)
        graph.bulk_update_state(AT, [[StateUpdate({"messages": turn(n)}, "reason")] for n in range(RESTORED // 4)])
    times = []
    for _ in range(7):
        with open_store(path, embedder="none") as store, open_checkpointer(path) as saver:
            graph, restore = builder.compile(checkpointer=saver, store=store), Restore()

            def load() -> None:
                state = graph.get_state(AT).values  # noqa: B023 - called at once
                assert len(state["messages"]) == RESTORED
                restore(cast(NodeInput, state), runtime_for(ANA, store, "t"))  # noqa: B023 - called at once

            times.append(cost(load))
    found = around(times, 1)
    print(
        f"restore of {RESTORED:,} messages: {found.clock:.0f} ms (processor {found.processor:.0f}); target 150: "
        f"{reached(found.processor < 150)}"
    )


def compacted(home: Path) -> None:
    """The compaction of many messages, by rules."""
    messages = [message for n in range(COMPACTED // 4 + 5) for message in turn(n)]
    with open_store(f"sqlite:{home}", embedder="none") as store:
        compact = Compact(keep_tokens=2_000)
        times = [
            cost(lambda: compact(NodeInput(messages=messages), runtime_for(ANA, store, f"thread {n}")))  # noqa: B023
            for n in range(7)
        ]
    found = around(times, 1)
    print(
        f"compaction of {COMPACTED:,} messages: {found.clock:.0f} ms (processor {found.processor:.0f}); target 300: "
        f"{reached(found.processor < 300)}"
    )


def turn(number: int) -> list[AnyMessage]:
    """The four messages of a turn."""
    call = {"name": "look", "args": {"what": str(number)}, "id": f"call_{number}"}
    return [
        HumanMessage(f"turn {number} {text(490)}", id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"c{number}"),
        ToolMessage(text(1_000), tool_call_id=f"call_{number}", name="look", id=f"r{number}"),
        AIMessage(f"We decided on {number}. {text(470)}", id=f"a{number}"),
    ]


def reached(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"


def main(turns: int = TURNS) -> None:
    warnings.simplefilter("ignore")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for part in (lambda home: conversation(home, turns), restored, compacted):
        with tempfile.TemporaryDirectory() as home:
            part(Path(home))
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=TURNS)
    main(options.parse_args().turns)
