"""How long a recall takes in one user's memory of 1,000 records and 5,000 messages, and the block made of it.

    python benchmarks/recall.py [--records 1000] [--messages 5000]

Texts are made words by their rank (Zipf), 30 a message, 20 messages a thread. Median and 95th percentile
of 200 questions of six words, warm; cold is the first one of a store that was just opened. "Without embedding" is the
same with the query's vector taken from memory.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from everthread import Evidence, Identity, Record, Scope
from everthread.nodes.block import render
from everthread.stores import open_store
from everthread.stores.embedding import StaticEmbedder, Tokens
from everthread.stores.record import Change, Hit, Provenance
from stores import SHARES, WORDS  # noqa: TID251 - the benchmark beside this file

ANA = Identity(tenant="benchmark", user="ana")
NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)
QUESTIONS = 200


class Remembering(StaticEmbedder):
    """The built-in embedder, which does not embed the same question twice."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Tokens] = {}

    def embed_tokens(self, text: str) -> Tokens:
        if text not in self._known:
            self._known[text] = super().embed_tokens(text)
        return self._known[text]


def texts(count: int, words: int, seed: int) -> list[str]:
    """Texts of made words, the first of them the most frequent."""
    chosen = np.random.default_rng(seed).choice(WORDS, size=(count, words), p=SHARES / SHARES.sum())
    return [" ".join(row) for row in chosen]


def fill(store: Any, records: int, messages: int) -> None:
    """Write the memory of one user."""
    said = [
        Evidence(
            thread_id=f"thread-{n // 20}",
            message_id=f"m{n}",
            role="user",
            text=text,
            at=NOON + timedelta(minutes=n),
            source="user",
        )
        for n, text in enumerate(texts(messages, 30, seed=1))
    ]
    store.transcripts.append(ANA, said)
    origin = Provenance(
        source="user", thread_id="thread-0", message_ids=("m0",), extracted_by="rules/1", observed_at=NOON
    )
    changes = [
        Change(
            action="create",
            record=Record(
                statement=text,
                scope=Scope(owner="user", owner_id=ANA.user),
                provenance=origin,
                authority="user_explicit",
                write_reason="the user said so",
            ),
            rule="new",
            reason="nothing like it was known",
        )
        for text in texts(records, 30, seed=2)
    ]
    store.commit(ANA, changes, key="fill")


def milliseconds(work: Callable[[], Any]) -> float:
    """How long `work` takes."""
    started = time.perf_counter()
    work()
    return 1_000 * (time.perf_counter() - started)


def spread(times: Sequence[float]) -> str:
    """Median and 95th percentile."""
    return f"{np.median(times):6.2f} / {np.percentile(times, 95):6.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=5_000)
    arguments = parser.parse_args()
    questions = texts(QUESTIONS, 6, seed=3)
    both = {"records", "evidence"}
    with TemporaryDirectory() as home:
        with open_store(f"sqlite:{home}") as store:
            fill(store, arguments.records, arguments.messages)
        with open_store(f"sqlite:{home}") as store:
            cold = milliseconds(lambda: store.recall(ANA, questions[0], sources=both))
            print(f"{arguments.records:,} records, {arguments.messages:,} messages, {os.cpu_count()} cores")
            print(f"cold, with embedding          {cold:6.2f} ms")
            for sources in ({"records"}, {"evidence"}, both):
                times = [milliseconds(lambda: store.recall(ANA, text, sources=sources)) for text in questions]  # noqa: B023 - called at once
                print(f"{' and '.join(sorted(sources)):30}{spread(times)}")
            hits: list[Sequence[Hit]] = [store.recall(ANA, text).hits for text in questions]
            found = [store.records(ANA, ids=[hit.record_id for hit in some if hit.record_id]) for some in hits]
            print(f"{'the block of ten records':30}{spread([milliseconds(lambda: render(some)) for some in found])}")  # noqa: B023
        with open_store(f"sqlite:{home}", embedder=Remembering()) as store:
            for text in questions:
                store.recall(ANA, text, sources=both)
            times = [milliseconds(lambda: store.recall(ANA, text, sources=both)) for text in questions]  # noqa: B023
            print(f"{'both, without embedding':30}{spread(times)}")


if __name__ == "__main__":
    main()
