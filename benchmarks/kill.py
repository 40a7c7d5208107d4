"""What a kill costs a thread: a scripted run of 50 turns with tools is killed with -9 at random points, and resumed.

    python -m benchmarks.kill [--kills 200] [--turns 50] [--durability sync]

Each turn calls two tools in parallel: one that looks something up, and one that books it, outside, under the
idempotency key "thread id + tool call id". The model makes new ids of calls at each reply, as real ones do. The thread
is compacted on the way. A run is killed again and again, each time after a random moment, and resumed as a host would
(`invoke(None)` when something is pending, else the next message); at its end the thread must read as that of a run
that nobody killed, and each booking must have taken effect once. Then the next run begins, until there were enough
kills.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store

ANA = Identity(tenant="kill", user="ana")
AT: Any = {"configurable": {"thread_id": "t"}}
Durability = Literal["sync", "async", "exit"]


class Scripted(BaseChatModel):
    """Calls both tools for what the user said, then reports what they returned."""

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        asked = next(each for each in reversed(messages) if isinstance(each, HumanMessage))
        results = [each.text for each in messages[messages.index(asked) :] if isinstance(each, ToolMessage)]
        if results:
            reply = AIMessage(f"We decided on {asked.text.split()[-1]}: {'; '.join(each[:40] for each in results)}")
        else:
            what = {"what": asked.text.split()[-1]}
            calls = [{"name": name, "args": what, "id": f"call_{uuid4().hex}"} for name in ("look", "book")]
            reply = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, AIMessage]:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def tools_at(outside: Path) -> list[BaseTool]:
    """A tool that looks, and one that books in a folder: a file for each key, made once."""

    @tool
    def look(what: str) -> str:
        """Look it up."""
        return f"{what} costs {len(what)}. " + "It is in stock. " * 40

    @tool
    def book(what: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Book it, once for each key."""
        key = f"{AT['configurable']['thread_id']}-{runtime.tool_call_id}"
        try:
            with (outside / key).open("x") as file:
                file.write(what)
        except FileExistsError:
            (outside / f"again-{key}-{uuid4().hex}").touch()
        return f"{what} is booked."

    return [look, book]


def run(home: Path, turns: int, durability: Durability) -> None:
    """The script from wherever the thread stands to its end."""
    with open_store(f"sqlite:{home}", embedder="none") as store, open_checkpointer(f"sqlite:{home}") as saver:
        (home / "outside").mkdir(exist_ok=True)
        builder = create_memory_agent(Scripted(), tools_at(home / "outside"), recall="automatic", max_tokens=3_000)
        graph = builder.compile(checkpointer=saver, store=store)
        for number in range(turns):
            state = graph.get_state(AT)
            if state.tasks:
                graph.invoke(None, AT, context=ANA, durability=durability)
                state = graph.get_state(AT)
            if all(message.id != f"u{number}" for message in state.values.get("messages", [])):
                said = HumanMessage(f"Please book room-{number}", id=f"u{number}")
                graph.invoke({"messages": [said]}, AT, context=ANA, durability=durability)
        if graph.get_state(AT).tasks:
            graph.invoke(None, AT, context=ANA, durability=durability)


def thread_of(home: Path) -> list[Any]:
    """What the thread says, without ids that differ from run to run, and where its window starts."""
    with open_store(f"sqlite:{home}", embedder="none") as store, open_checkpointer(f"sqlite:{home}") as saver:
        graph = create_memory_agent(Scripted(), tools_at(home), max_tokens=3_000).compile(
            checkpointer=saver, store=store
        )
        return [_line(message) for message in graph.get_state(AT).values["messages"]]


def _line(message: AnyMessage) -> list[Any]:
    calls = [[call["name"], call["args"]] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return [message.type, message.text, calls]


def booked(home: Path) -> Counter[str]:
    """How often each booking took effect."""
    return Counter(file.read_text() for file in (home / "outside").iterdir() if not file.name.startswith("again-"))


def in_fork(work: Callable[[], None], after: float | None = None) -> bool:
    """Do `work` in a process of its own, killed `after` so many seconds; whether it came to its end."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    ends = None if after is None else time.monotonic() + after
    while ends is not None and time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return _ended(status)
        time.sleep(0.002)
    if ends is not None:
        os.kill(child, signal.SIGKILL)
    return _ended(os.waitpid(child, 0)[1])


def _ended(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return False
    if status:
        raise RuntimeError("the scripted run failed; its error stands above")
    return True


def kill_rounds(kills: int, turns: int, seed: int, durability: Durability = "sync") -> dict[str, Any]:
    """Runs, each killed and resumed until it ends, until there were so many kills."""
    chance = random.Random(seed)
    found: Counter[str] = Counter(kills=0, runs=0, threads_that_differ=0, booked_twice=0, never_booked=0, again=0)
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole"
        whole.mkdir()
        start = time.monotonic()
        in_fork(lambda: run(whole, turns, durability))
        takes = time.monotonic() - start
        expected = thread_of(whole)
        while found["kills"] < kills:
            found["runs"] += 1
            home = Path(folder) / f"run-{found['runs']}"
            home.mkdir()
            while not in_fork(
                lambda: run(home, turns, durability),  # noqa: B023 - called at once
                chance.uniform(0.0, takes / 4) if found["kills"] < kills else None,
            ):
                found["kills"] += 1
            bookings = booked(home)
            found["threads_that_differ"] += thread_of(home) != expected
            found["booked_twice"] += sum(count > 1 for count in bookings.values())
            found["never_booked"] += turns - len(bookings)
            found["again"] += sum(file.name.startswith("again-") for file in (home / "outside").iterdir())
    return {**found, "messages": len(expected), "seconds_of_a_run": round(takes, 1)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--turns", type=int, default=50)
    options.add_argument("--durability", choices=("sync", "async", "exit"), default="sync")
    options.add_argument("--seed", type=int, default=4711)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    found = kill_rounds(chosen.kills, chosen.turns, chosen.seed, chosen.durability)
    print(json.dumps(found, indent=2) if chosen.json else ", ".join(f"{key} {value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
