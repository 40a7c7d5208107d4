"""How large a thread's file grows: our agent and LangChain's stock agent in one run.

    python benchmarks/threads.py

What a long thread with tools and compaction costs, `long_threads.py` measures; it follows in the same run.

200 turns; each message, asked or answered, is 500 characters of random words. Our agent recalls 8 records each turn,
out of 1,000, and checkpoints through `open_checkpointer`; the stock agent (`create_agent`, `add_messages`) recalls
nothing and checkpoints through `SqliteSaver`. A size is that of the database after its log was written back.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from everthread import Authority, Identity, Record, Scope
from everthread.graphs import create_memory_agent
from everthread.nodes import Retrieve
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Change, Provenance

TURNS, CHARACTERS, RECORDS, RECALLED = 200, 500, 1_000, 8
ANA = Identity(tenant="bench", user="ana")

_random = random.Random(4711)
_words = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(4, 9))) for _ in range(5_000)]
_facts = [" ".join(_random.choices(_words, k=6)) for _ in range(RECORDS)]


def graph(model: BaseChatModel) -> Any:
    """The builder that is measured: the agent, recalling exactly as many records each turn."""
    builder = create_memory_agent(model, recall="automatic")
    del builder.nodes["retrieve"]
    return builder.add_node("retrieve", Retrieve(limit=RECALLED, budget_tokens=10_000, floor=None))


def filled(text: str) -> str:
    """`text`, continued with random words to the length of a message."""
    while len(text) < CHARACTERS:
        text += " " + _random.choice(_words)
    return text[:CHARACTERS]


def question() -> str:
    """A message about eight of the records."""
    return filled(" ".join(" ".join(fact.split()[:4]) for fact in _random.sample(_facts, RECALLED)))


def replies() -> BaseChatModel:
    """A model that answers each turn with a message of random words."""
    return FakeListChatModel(responses=[filled("") for _ in range(TURNS)])


def remember(store: MemoryStore) -> None:
    """Put the records into the store."""
    source = Provenance(source="user", extracted_by="bench", observed_at=datetime(2026, 1, 1, tzinfo=UTC))
    changes = [
        Change(
            action="create",
            record=Record(
                statement=fact,
                scope=Scope(owner="user", owner_id="ana"),
                provenance=source,
                write_reason="bench",
                authority=Authority.USER_EXPLICIT,
            ),
            rule="bench",
            reason="bench",
        )
        for fact in _facts
    ]
    for start in range(0, RECORDS, 250):
        store.commit(ANA, changes[start : start + 250], key=f"bench:{start}")


@contextmanager
def ours(home: str) -> Iterator[Callable[[str], Any]]:
    """A turn of our agent."""
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        remember(store)
        agent = graph(replies()).compile(checkpointer=saver, store=store)
        yield lambda text: agent.invoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}}, context=ANA
        )


@contextmanager
def stock(home: str) -> Iterator[Callable[..., Any]]:
    """A turn of the stock agent."""
    connection = sqlite3.connect(f"{home}/stock.db", check_same_thread=False)
    agent = create_agent(replies(), checkpointer=SqliteSaver(connection))
    yield lambda text, durability="async": agent.invoke(
        {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}}, durability=durability
    )
    connection.close()


def measure(name: str, agent: Any, home: str, file: str) -> float:
    """Run the turns and print a line; returns the size of the file in megabytes."""
    times, references = [], []
    with agent(home) as turn:
        for _ in range(TURNS):
            text, start = question(), time.perf_counter()
            result = turn(text)
            times.append((time.perf_counter() - start) * 1_000)
            references.append(len(result.get("recalled", [])))
    size = (Path(home) / file).stat().st_size / 1e6
    print(
        f"{name:38} {size:7.2f} MB  {statistics.median(times):6.1f} ms/turn (median)"
        f"  {len(result['messages'])} messages, {statistics.mean(references):.1f} references a turn"
    )
    return size


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"N = {TURNS} turns of {CHARACTERS} characters, {RECORDS} records, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as home:
        small = measure("everthread, threads.db", ours, home, "threads.db")
        large = measure("create_agent + SqliteSaver, stock.db", stock, home, "stock.db")
    print(f"ratio: {large / small:.0f} to 1; target: threads.db below 5 MB: {'reached' if small < 5 else 'MISSED'}")
    import long_threads  # not above: it stands on `turn.py`, which stands on this

    long_threads.main()


if __name__ == "__main__":
    main()
