"""What a turn costs beside model and embedder: our agent and LangChain's stock agent in one run.

200 turns in the thread, 1,000 records in scope, SQLite on this disk. Prints medians over the last turns.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from everthread import Authority, Identity, Record, Scope
from everthread.graphs import create_memory_agent
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Change, Provenance

TURNS, MEASURED, RECORDS = 200, 40, 1_000
ANA = Identity(tenant="bench", user="ana")
WORDS = [line.strip() for line in "invoice report table meeting deploy branch coffee garden river train".split()]


def sentence(rng: random.Random, characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += rng.choice(WORDS) + str(rng.randrange(1_000)) + " "
    return text[:characters]


def fill(store: MemoryStore, rng: random.Random) -> None:
    source = Provenance(source="user", extracted_by="bench", observed_at=datetime(2026, 1, 1, tzinfo=UTC))
    for start in range(0, RECORDS, 250):
        changes = [
            Change(
                action="create",
                record=Record(
                    statement=f"Note {n}: {sentence(rng, 80)}",
                    scope=Scope(owner="user", owner_id="ana"),
                    provenance=source,
                    write_reason="bench",
                    authority=Authority.USER_EXPLICIT,
                ),
                rule="bench",
                reason="bench",
            )
            for n in range(start, start + 250)
        ]
        store.commit(ANA, changes, key=f"bench:{start}")


def run(name: str, turn: Callable[[str], Any], rng: random.Random) -> float:
    times = []
    for _ in range(TURNS + MEASURED):
        text = sentence(rng, 200)
        start = time.perf_counter()
        turn(text)
        times.append((time.perf_counter() - start) * 1_000)
    median = statistics.median(times[-MEASURED:])
    print(f"{name:48} {median:8.1f} ms a turn (median of {MEASURED} after {TURNS} turns)")
    return median


def stock(directory: str) -> Callable[[str], Any]:
    from langchain.agents import create_agent
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = SqliteSaver(sqlite3.connect(f"{directory}/stock.db", check_same_thread=False))
    agent = create_agent(FakeListChatModel(responses=["fine"]), checkpointer=saver)
    return lambda text: agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"cores {os.cpu_count()}, N = {TURNS} turns, {RECORDS} records")
    with tempfile.TemporaryDirectory() as directory:
        with open_store(f"sqlite:{directory}") as store, open_checkpointer(f"sqlite:{directory}") as saver:
            fill(store, random.Random(1))
            agent = create_memory_agent(FakeListChatModel(responses=["fine"]), recall="automatic").compile(
                checkpointer=saver, store=store
            )
            ours = run(
                "everthread create_memory_agent",
                lambda text: agent.invoke(
                    {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}}, context=ANA
                ),
                random.Random(2),
            )
        peer = run("langchain create_agent + SqliteSaver", stock(directory), random.Random(2))
    print(f"ratio everthread / stock: {ours / peer:.2f}")


if __name__ == "__main__":
    main()
