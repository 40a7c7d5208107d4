"""How well what was said is found again, on public conversations, beside BM25 alone.

    python benchmarks/recall.py --data DIR          DIR holds locomo/, madial/, longmemeval/ (those that exist are run)

Turn R@k: mean share of a question's evidence turns among the first k. Session any@k / all@k: whether one, or each, of
the sessions that hold evidence is among the first k sessions, ranked by their best turn. Each conversation is the
memory of one user, written by `store.transcripts.append` and asked by `store.recall(..., sources={"evidence"})`;
`scoring` is the same without the store. Milliseconds are those of a query for ten hits, the first of a conversation
included. The peer is SQLite's FTS5 (porter stems, CJK as bigrams) over speaker and text.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
from datasets import Conversation, Message, Question, locomo, longmemeval, madial

from everthread import Evidence, Identity
from everthread.stores import MemoryStore, open_store
from everthread.stores.embedding import resolve_embedder
from everthread.stores.scoring import Corpus, Document, Query, encode, pieces
from everthread.stores.text import STOP_WORDS, UNSPACED

Ranker = Callable[[str, int], list[str]]
"""A question and a limit in, message ids out, best first."""
DEPTH = 300
"""How many messages are asked for: enough to rank sessions by their best turn."""
REPORTS: dict[str, list[str]] = {
    "locomo": ["turn R@1", "turn R@5", "turn R@10", "turn R@20", "session any@5", "turn MRR"],
    "locomo-5": ["turn R@1", "turn R@5", "turn R@10", "turn R@20", "session any@5", "turn MRR"],
    "madial-zh": ["turn R@5", "turn R@10", "turn MRR"],
    "madial-en": ["turn R@5", "turn R@10", "turn MRR"],
    "longmemeval": [
        *(f"session {which}@{k}" for which in ("any", "all") for k in (1, 5, 10)),
        "turn any@5",
        "turn all@5",
        "turn MRR",
    ],
}
"""The figures of each set. locomo: categories 1 to 4; locomo-5: adversarial, the wrong person is asked about."""


def by_store(store: MemoryStore, conversation: Conversation) -> Ranker:
    """The public API, each conversation as the messages of its own user."""
    identity = Identity(tenant="benchmark", user=conversation.name)
    store.transcripts.append(identity, [_evidence(conversation.name, message) for message in conversation.messages])

    def rank(text: str, limit: int) -> list[str]:
        found = store.recall(identity, text, limit=limit, sources={"evidence"})
        return [hit.message_ids[0] for hit in found.hits]

    return rank


def _evidence(name: str, message: Message) -> Evidence:
    return Evidence(
        thread_id=f"{name}/{message.thread}",
        message_id=message.id,
        role="user",
        speaker=message.speaker or None,
        text=message.text,
        at=message.at,
        source="user",
    )


def by_scoring(conversation: Conversation) -> Ranker:
    """The scoring alone, without a store: what is lost or won between this and the public API is the store's."""
    embedder = resolve_embedder(None)
    assert embedder is not None
    rows = []
    for message in conversation.messages:
        document = Document(message.id, message.text, message.speaker or None, message.at, message.thread)
        blob = encode(document, embedder.embed_documents(pieces(document)))
        rows.append((message.id, message.thread, message.speaker or None, blob))
    corpus = Corpus.from_rows(rows)

    def rank(text: str, limit: int) -> list[str]:
        order = (-corpus.score(Query.of(text, embedder.embed_query(text))).fused).argsort(kind="stable")
        return [corpus.ids[n] for n in order[:limit]]

    return rank


def by_bm25(conversation: Conversation) -> Ranker:
    """FTS5 with its own bm25(), porter stems, English stop words dropped."""
    database = apsw.Connection(":memory:")
    database.execute("CREATE VIRTUAL TABLE said USING fts5(words, tokenize='porter unicode61')")
    with database:
        database.executemany(
            "INSERT INTO said(rowid, words) VALUES (?, ?)",
            [(n, _spaced(f"{m.speaker}: {m.text}")) for n, m in enumerate(conversation.messages)],
        )

    def rank(text: str, limit: int) -> list[str]:
        words = re.findall(r"\w+", _spaced(text.lower()))
        words = [word for word in words if word not in STOP_WORDS] or words
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        found = database.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (match, limit))
        return [conversation.messages[rowid].id for (rowid,) in found]

    return rank


def _spaced(text: str) -> str:
    """CJK as bigrams, so that the peer can find it at all."""

    def bigrams(match: re.Match[str]) -> str:
        run = match[0]
        return f" {' '.join(run[n : n + 2] for n in range(max(1, len(run) - 1)))} "

    return re.sub(f"[{UNSPACED}]+", bigrams, text)


def figures(question: Question, ranked: list[str], thread_of: dict[str, str]) -> Iterator[tuple[str, float]]:
    """Every figure of one question, by name."""
    gold = question.gold
    sessions = list(dict.fromkeys(thread_of[message_id] for message_id in ranked))
    gold_sessions = {thread_of[message_id] for message_id in gold}
    for k in (1, 5, 10, 20):
        found = gold & set(ranked[:k])
        yield f"turn R@{k}", len(found) / len(gold)
        yield f"turn any@{k}", float(bool(found))
        yield f"turn all@{k}", float(found == gold)
        near = gold_sessions & set(sessions[:k])
        yield f"session any@{k}", float(bool(near))
        yield f"session all@{k}", float(near == gold_sessions)
    yield "turn MRR", next((1 / n for n, message_id in enumerate(ranked, 1) if message_id in gold), 0.0)


class Run:
    """The figures of one way to rank, over all conversations."""

    def __init__(self, name: str, build: Callable[[Conversation], Ranker]) -> None:
        self.name = name
        self._build = build
        self._figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._messages = 0
        self._building = 0.0
        self._asking: list[float] = []

    def add(self, conversation: Conversation) -> None:
        """Build one conversation and ask its questions."""
        started = time.perf_counter()
        rank = self._build(conversation)
        self._building += time.perf_counter() - started
        self._messages += len(conversation.messages)
        thread_of = {message.id: message.thread for message in conversation.messages}
        for question in conversation.questions:
            started = time.perf_counter()
            rank(question.text, 10)
            self._asking.append(time.perf_counter() - started)
            ranked = rank(question.text, DEPTH)
            for name, value in figures(question, ranked, thread_of):
                self._figures[question.kind][name].append(value)

    def line(self, kind: str) -> str:
        """The set's figures in percent, as a row of its table."""
        found = self._figures[kind]
        return "".join(f"{100 * sum(found[name]) / len(found[name]):>15.1f}" for name in REPORTS[kind])

    def asked(self, kind: str) -> int:
        """How many questions of a set were asked."""
        return len(self._figures[kind]["turn MRR"]) if kind in self._figures else 0

    def speed(self) -> str:
        """Messages a second and milliseconds a query."""
        median = sorted(self._asking)[len(self._asking) // 2]
        return (
            f"{self._messages} messages at {self._messages / self._building:,.0f} a second; "
            f"{len(self._asking)} queries, {1000 * sum(self._asking) / len(self._asking):.2f} ms each "
            f"(median {1000 * median:.2f})"
        )


def conversations(data: Path) -> Iterable[Conversation]:
    """Those whose files are there."""
    if (path := data / "locomo" / "locomo_dev5.json").exists():
        yield from locomo(path)
    if (folder := data / "madial").exists():
        yield from madial(folder, "zh")
        yield from madial(folder, "en")
    if (folder := data / "longmemeval").exists():
        yield from longmemeval(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with locomo/, madial/, longmemeval/")
    arguments = parser.parse_args()
    with TemporaryDirectory() as home, open_store(f"sqlite:{home}") as store:
        runs = [Run("everthread", partial(by_store, store)), Run("scoring", by_scoring), Run("BM25 (FTS5)", by_bm25)]
        for conversation in conversations(arguments.data):
            for run in runs:
                run.add(conversation)
    for kind, names in REPORTS.items():
        if runs[0].asked(kind):
            print(f"\n{kind}, N={runs[0].asked(kind)}\n{'':14}" + "".join(f"{name:>15}" for name in names))
            for run in runs:
                print(f"{run.name:14}{run.line(kind)}")
    print()
    for run in runs:
        print(f"{run.name:14}{run.speed()}")
    print(f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
