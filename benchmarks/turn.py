"""What a turn costs beside model and embedder: our agent and LangChain's stock agent in one run.

    python benchmarks/turn.py

The conversation of `threads.py`: messages of 500 characters, asked and answered, 1,000 records in scope, 8 of them
recalled in each turn; the stock agent recalls nothing. Both agents answer by turns, so that whatever else the machine
does falls on both; measured are the turns after the first 200, as LangGraph runs them by default and then with
`durability="exit"`, which checkpoints once a run. The time inside the embedder is measured and left out.

The stock saver waits for the disk five times a turn, ours once (transcript and memory), so that which of them is faster
depends on the disk: its own speed is printed beside them.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from threads import ANA, CHARACTERS, RECORDS, TURNS, graph, question, remember, replies, stock

from everthread.stores import open_checkpointer, open_store
from everthread.stores.embedding import StaticEmbedder, Tokens, Vectors

MEASURED, TARGET = 60, 35.0


class TimedEmbedder(StaticEmbedder):
    """The built-in embedder, with a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text."""
        start = time.perf_counter()
        vectors = super().embed_documents(texts)
        self.seconds += time.perf_counter() - start
        return vectors

    def embed_tokens(self, text: str) -> Tokens:
        """The rows of a query."""
        start = time.perf_counter()
        tokens = super().embed_tokens(text)
        self.seconds += time.perf_counter() - start
        return tokens


def milliseconds(work: Callable[[], Any]) -> float:
    """How long `work` takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1_000


def fsync(home: str) -> float:
    """Milliseconds that the disk takes to keep one page (median of 50)."""
    with (Path(home) / "page").open("wb", buffering=0) as file:

        def keep() -> None:
            file.write(bytes(4_096))
            os.fsync(file.fileno())

        return statistics.median(milliseconds(keep) for _ in range(50))


def measure(ours: Callable[..., Any], peer: Callable[..., Any], embedder: TimedEmbedder) -> tuple[float, float]:
    """Medians of a turn of each, in milliseconds, over as many turns as are measured."""
    own, other = [], []
    for _ in range(MEASURED):
        text, before = question(), embedder.seconds
        took = milliseconds(lambda: ours(text))  # noqa: B023 - called at once
        own.append(took - (embedder.seconds - before) * 1_000)
        other.append(milliseconds(lambda: peer(text)))  # noqa: B023 - called at once
    return statistics.median(own), statistics.median(other)


def report(durability: str, own: float, peer: float) -> None:
    print(f'durability="{durability}"')
    print(f"  everthread create_memory_agent       {own:6.1f} ms a turn (median of {MEASURED})")
    print(f"  langchain create_agent + SqliteSaver {peer:6.1f} ms a turn   ratio {own / peer:.2f}")


def main() -> None:
    warnings.simplefilter("ignore")
    embedder = TimedEmbedder()
    with (
        tempfile.TemporaryDirectory() as home,
        open_store(f"sqlite:{home}", embedder=embedder) as store,
        open_checkpointer(f"sqlite:{home}") as saver,
        stock(home) as peer,
    ):
        print(f"{TURNS} turns of {CHARACTERS} characters in the thread, {RECORDS} records, {os.cpu_count()} cores")
        print(f"fsync of a page: {fsync(home):.2f} ms (median of 50)")
        remember(store)
        agent = graph(replies()).compile(checkpointer=saver, store=store)
        config: Any = {"configurable": {"thread_id": "t"}}

        def ours(text: str, durability: Literal["async", "exit"] = "async") -> Any:
            return agent.invoke({"messages": [("user", text)]}, config, context=ANA, durability=durability)

        for _ in range(TURNS):
            text = question()
            ours(text)
            peer(text)
        own, other = measure(ours, peer, embedder)
        report("async", own, other)
        report("exit", *measure(lambda text: ours(text, "exit"), lambda text: peer(text, "exit"), embedder))
    reached = "reached" if own < TARGET else "MISSED"
    print(f"target: below {TARGET:.0f} ms: {reached}; below the stock agent: {'reached' if own < other else 'MISSED'}")


if __name__ == "__main__":
    main()
