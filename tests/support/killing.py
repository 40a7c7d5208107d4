"""Runs a scenario again and again, killed after its first, second, ... durable step, and then resumed.

    python tests/support/killing.py FOLDER SCENARIO...

A step is a call that writes, or asks the extractor: what is watched is wrapped from outside, nothing in the product
knows of it. Each run is a fork of this process, which has imported everything and has nothing open. Prints one
JSON object: for each scenario, what was left by a run that nobody killed, and by each other one after it was resumed.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

from everthread import Identity, MemoryContext, MemoryState
from everthread.graphs import create_memory_agent, create_remember_graph, gate
from everthread.nodes import Extract, job_handlers
from everthread.nodes.extract import Candidate, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.extract.rereading import read_again
from everthread.nodes.node import Ask, drive
from everthread.stores import MemoryStore, Worker, open_checkpointer, open_store
from everthread.stores.messages import from_messages
from support.models import FakeModel

ANA = Identity(tenant="acme", user="ana")
AT: Any = {"configurable": {"thread_id": "t1"}}
TURNS = (
    "I live in Oslo. I prefer short reports.",
    "Actually, I live in Bergen. Remind me on 2099-01-05 at 9:00 to call Bob.",
)
WRITES = {
    "transcripts": ("bind", "append"),
    "artifacts": ("put",),
    "tasks": ("create", "deliver"),
    "inbox": ("promote",),
    "jobs": ("enqueue", "claim", "complete", "fail", "gate"),
}
ALL: Any = ("pending", "active", "contested", "superseded", "expired", "archived", "rejected")
LEASE = 0.2
AT_ONCE = 2


class Steps:
    """Counts what was done, and kills the process after so many."""

    def __init__(self, last: int | None) -> None:
        self.done = 0
        self.last = last
        self._lock = threading.Lock()

    def watch(self, owner: Any, *names: str) -> None:
        """Count the calls of these methods."""
        for name in names:
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            self.step()
            return result

        return call

    def step(self) -> None:
        with self._lock:
            self.done += 1
            if self.done == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


class Rules(RuleExtractor):
    """The rules; asking them is a step, and they work as if by a model when told to."""

    def __init__(self, steps: Steps, calls_model: bool) -> None:
        self.steps = steps
        self.calls_model = calls_model

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        self.steps.step()
        return (yield from super().propose(window))


Scene = Callable[[MemoryStore, Any, Steps, str], None]


def agent(store: MemoryStore, saver: Any, steps: Steps, how: str) -> None:
    """Two turns of the whole agent, each resumed where it was killed, or sent if it was not."""
    rules = Rules(steps, calls_model="job" in how)
    graph = create_memory_agent(FakeModel(), extractor=rules).compile(checkpointer=saver, store=store)
    _talk(graph, "async" if "async" in how else "sync")
    _work(store, rules)


def throttled(store: MemoryStore, saver: Any, steps: Steps, how: str) -> None:
    """A graph of one node that extracts once a day: the first turn is learnt from, the second waits."""
    builder = StateGraph(MemoryState, context_schema=MemoryContext)
    builder.add_node("answer", lambda state: {"messages": [("ai", "ok")]})
    builder.add_node("extract", Extract(Rules(steps, False), mode="throttled", every=timedelta(days=1)))
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "extract")
    builder.add_edge("extract", END)
    _talk(gate(builder.compile(checkpointer=saver, store=store)), "sync")


def remember(store: MemoryStore, saver: Any, steps: Steps, how: str) -> None:
    """The remember graph after an agent of one's own."""
    rules = Rules(steps, calls_model="job" in how)
    graph = create_remember_graph(rules).compile(checkpointer=saver, store=store)
    said = conversation()
    for number in range(len(TURNS)):
        state = graph.get_state(AT)
        if state.tasks:
            graph.invoke(None, AT, context=ANA, durability="sync")
            state = graph.get_state(AT)
        seen = state.values.get("flushed_to")
        if seen is None or said.index(by_id(said, seen)) < 2 * number + 1:
            window = said[: 2 * number + 2]
            known = {"flushed_to": seen} if seen else {}
            graph.invoke({"messages": list(window), **known}, AT, context=ANA, durability="sync")
    if graph.get_state(AT).tasks:
        graph.invoke(None, AT, context=ANA, durability="sync")
    _work(store, rules)


def conversation() -> list[AnyMessage]:
    """The turns, each with its answer."""
    return [
        each for n, text in enumerate(TURNS) for each in (HumanMessage(text, id=f"u{n}"), AIMessage("ok", id=f"a{n}"))
    ]


def by_id(said: list[AnyMessage], id: str) -> AnyMessage:
    """The message of this id."""
    return next(message for message in said if message.id == id)


def extract(store: MemoryStore, saver: Any, steps: Steps, how: str) -> None:
    """A thread that was only read in."""
    store.transcripts.append(ANA, from_messages("t1", conversation(), identity=ANA))
    drive(read_again(ANA, store, "t1", Rules(steps, False), window_tokens=1, again="again" in how))


SCENES: dict[str, Scene] = {
    "agent": agent,
    "agent-job": agent,
    "agent-async": agent,
    "throttled": throttled,
    "remember": remember,
    "remember-job": remember,
    "extract": extract,
    "extract-again": extract,
}


def _talk(graph: Any, durability: str) -> None:
    for number, text in enumerate(TURNS):
        state = graph.get_state(AT)
        if state.tasks:  # `next` leaves out a step whose writes are kept already, and whose checkpoint is not
            graph.invoke(None, AT, context=ANA, durability=durability)
            state = graph.get_state(AT)
        if all(message.id != f"u{number}" for message in state.values.get("messages", [])):
            graph.invoke({"messages": [HumanMessage(text, id=f"u{number}")]}, AT, context=ANA, durability=durability)
    if graph.get_state(AT).tasks:
        graph.invoke(None, AT, context=ANA, durability=durability)


def _work(store: MemoryStore, rules: Rules) -> None:
    """A worker until nothing waits or runs; what a killed one held is claimed again when its lease is over.

    Both are asked in one look: between two, a lease may end, and what ran would be counted as neither.
    """
    while any(job.status in ("waiting", "running") for job in store.jobs.of(ANA)):
        Worker(store, job_handlers(store, rules), lease=LEASE).drain()
        time.sleep(LEASE / 5)


def run(scenario: str, home: Path, last: int | None) -> int:
    """The scenario in this process, which dies at its step `last`; returns how many steps there were."""
    steps = Steps(last)
    with opened(home) as (store, saver):
        for part, names in WRITES.items():
            steps.watch(getattr(store, part), *names)
        steps.watch(store, "commit", "note", "cite")
        steps.watch(saver, "put", "put_writes")
        SCENES[scenario](store, saver, steps, scenario)
    return steps.done


def resumed(scenario: str, home: Path) -> dict[str, Any]:
    """The scenario again, to its end; returns what both runs have left."""
    run(scenario, home, None)
    return left(home)


def left(home: Path) -> dict[str, Any]:
    """Records with their history, receipts, transcript, tasks, jobs and the watermark."""
    with opened(home) as (store, saver):
        records = store.records(ANA, statuses=ALL)
        receipts = {receipt.id: receipt for each in records for receipt in store.receipts(ANA, each.id)}
        saved = saver.get_tuple(AT)
        flushed = saved.checkpoint["channel_values"].get("flushed_to") if saved else None
        said = store.transcripts.read(ANA, "t1")
        return {
            "records": sorted(
                [
                    [each.statement, each.status, each.provenance.message_ids, len(each.confirmed_by)]
                    for each in store.history(ANA, record.id)
                ]
                for record in records
            ),
            "receipts": sorted(
                sorted([decision.outcome, decision.rule, list(decision.evidence)] for decision in receipt.decisions)
                for receipt in receipts.values()
            ),
            "tasks": [[task.text, str(task.due_at)] for task in store.tasks.of(ANA)],
            "jobs": [[job.kind, job.status] for job in store.jobs.of(ANA)],
            "said": [[line.source, line.text] for line in said],
            "seen": next((number for number, line in enumerate(said, 1) if line.message_id == flushed), 0),
        }


@contextmanager
def opened(home: Path) -> Iterator[tuple[MemoryStore, Any]]:
    """Both files. No power is cut here, so nobody waits for the disk."""
    with open_store(f"sqlite:{home}", embedder="none", synchronous="OFF") as store:
        with open_checkpointer(f"sqlite:{home}", synchronous="OFF") as saver:
            yield store, saver


class Fork:
    """A fork of this process that works."""

    def __init__(self, work: Callable[[], Any]) -> None:
        reader, writer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            try:
                os.write(writer, json.dumps(work()).encode())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writer)
        self._answer = os.fdopen(reader, "rb")

    def result(self) -> Any:
        """What `work` returned; None when it was killed. What else ended it ends this process, too."""
        with self._answer:
            found = self._answer.read()
        _, status = os.waitpid(self._child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return None
        if status:
            raise SystemExit(f"the run ended with {status}")
        return json.loads(found)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of forks that work at the same time."""
    return [fork.result() for fork in [Fork(work) for work in works]]


def killed_at_each_step(scenario: str, folder: Path) -> dict[str, Any]:
    """What the whole run left, and by step what was left when it was killed there and resumed."""
    template = folder / "empty"
    with opened(template):
        pass
    run(scenario, folder / "warm", None)  # imports and caches, for all that are forked from here
    gc.freeze()

    def home(name: str) -> Path:
        return Path(shutil.copytree(template, folder / name))

    (whole,) = at_once(partial(resumed, scenario, home("whole")))
    outcomes: dict[int, Any] = {}
    for first in count(1, AT_ONCE):
        homes = {last: home(f"killed-{last}") for last in range(first, first + AT_ONCE)}
        ended = at_once(*(partial(run, scenario, place, last) for last, place in homes.items()))
        killed = [last for last, steps in zip(homes, ended, strict=True) if steps is None]
        outcomes |= zip(killed, at_once(*(partial(resumed, scenario, homes[last]) for last in killed)), strict=True)
        for place in homes.values():
            shutil.rmtree(place)
        if len(killed) < AT_ONCE:
            return {"whole": whole, "killed": outcomes}
    raise AssertionError("unreachable")


if __name__ == "__main__":
    print(json.dumps({each: killed_at_each_step(each, Path(sys.argv[1]) / each) for each in sys.argv[2:]}))
