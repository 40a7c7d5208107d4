"""The store at scale: search, writes, disk and memory, ours beside LangGraph's SqliteStore and InMemoryStore.

    python -m benchmarks.stores [--json] [--chart FILE] [--scale 0.05]
    python -m benchmarks.stores --postgres [URL]           on a PostgreSQL server, beside LangGraph's store there

Vectors are made beforehand (256 numbers, topics and noise) and looked up, so that no embedder hides the store. Ours
searches words and vectors of one scope and keeps history, audit log and all indexes; the peers search vectors alone.
Each step runs in a process of its own: `cold` is the first search of a scope in a fresh process, `warm` a later one.
A record is one sentence of 200 characters. SqliteStore needs a `sqlite3` that loads extensions: Python's own, or
`pip install pysqlite3-binary`; `--chart` needs matplotlib. `--scale 1` takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

DIMS, CHARACTERS, TOPICS, LIMIT = 256, 200, 500, 10
BATCH = 1_000
PEER_LIMIT = 200_000
"""Records that a peer is given at most: beyond, it only gets slower."""

Vectors = NDArray[np.float32]


class Layout(NamedTuple):
    """So many scopes with so many records each."""

    scopes: int
    records: int

    @property
    def total(self) -> int:
        return self.scopes * self.records

    def __str__(self) -> str:
        return f"{self.scopes:,} x {self.records:,}"


# --------------------------------------------------------------------------------------------------------------- data

_chance = np.random.default_rng(4711)
LETTERS = list("abcdefghijklmnopqrstuvwxyz")
WORDS = np.array(["".join(_chance.choice(LETTERS, n)) for n in _chance.integers(3, 10, 20_000)])
SHARES = 1 / np.arange(10, 10 + len(WORDS))
CENTRES = _chance.normal(size=(TOPICS, DIMS)).astype(np.float32)


def made(scope: int, count: int) -> tuple[list[str], Vectors]:
    """The texts and vectors of a scope: the same in every process."""
    chance = np.random.default_rng([scope, count])
    words = chance.choice(WORDS, size=(count, 40), p=SHARES / SHARES.sum())
    texts = [" ".join(row)[: CHARACTERS - 8] + f" {n:07d}" for n, row in enumerate(words)]
    vectors = CENTRES[chance.integers(TOPICS, size=count)] + chance.normal(size=(count, DIMS)).astype(np.float32)
    return texts, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def asked(layout: Layout, scope: int, count: int) -> list[tuple[str, Vectors]]:
    """Questions about a scope: five words of a record, and a vector near its own."""
    texts, vectors = made(scope, layout.records)
    chance = np.random.default_rng([scope, count, 1])
    chosen = chance.integers(len(texts), size=count)
    near = vectors[chosen] + 0.04 * chance.normal(size=(count, DIMS)).astype(np.float32)
    questions = [" ".join(texts[n].split()[3:8]) for n in chosen]
    return list(zip(questions, near / np.linalg.norm(near, axis=1, keepdims=True), strict=True))


class LookUp:
    """An embedder that has every vector already, for ours and (as LangChain `Embeddings`) for the peers."""

    id, dims = "look-up/256", DIMS

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Vectors] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text. (SqliteStore sends the whole document, whatever `fields` says.)"""
        return np.array([self.known[json.loads(text)["text"] if text[0] == "{" else text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """One unit vector."""
        return self.known[text]


# ------------------------------------------------------------------------------------------------------------ stores


class Ours:
    """everthread's SqliteStore."""

    name = "everthread"

    def __init__(self, home: str, *, durable: bool = True) -> None:
        from everthread.stores import SqliteStore
        from everthread.stores.embedding import StaticEmbedder, Tokens

        class Known(LookUp, StaticEmbedder):
            """As fast as the built-in one: no thread guards against its hanging."""

            def embed_tokens(self, text: str) -> Tokens:
                return Tokens([(0, len(text))], self.known[text][None])

        self.embedder = Known()
        self.store = SqliteStore(f"{home}/memory.db", embedder=self.embedder, synchronous="FULL" if durable else "OFF")

    def prepared(self, scope: int, texts: Sequence[str]) -> Callable[[], Any]:
        """The write of these texts into a scope; building the records is the caller's work, and not measured."""
        from everthread import Identity, Record, Scope
        from everthread.stores.record import Change, Provenance, now_utc

        who = Identity(tenant="bench", user=f"user-{scope}")
        origin = Provenance(
            source="user", thread_id=f"thread-{scope}", message_ids=("m1",), actor=who.user, observed_at=now_utc(),
            extracted_by="rules/1",
        )  # fmt: skip
        changes = [
            Change(
                action="create",
                record=Record(
                    statement=text, scope=Scope(owner="user", owner_id=who.user), provenance=origin,
                    authority="user_explicit", write_reason="the user said so",
                ),
                rule="new",
                reason="nothing like it was known",
            )
            for text in texts
        ]  # fmt: skip
        return lambda: self.store.commit(who, changes, key=f"{scope}/{texts[0]}")

    def search(self, scope: int, text: str) -> list[str]:
        """The best texts for a question."""
        from everthread import Identity

        who = Identity(tenant="bench", user=f"user-{scope}")
        return [hit.statement for hit in self.store.recall(who, text, limit=LIMIT).hits]


class Peer:
    """A store of LangGraph's, on vectors alone."""

    def __init__(self, store: Any, embedder: LookUp) -> None:
        self.store, self.embedder = store, embedder

    def prepared(self, scope: int, texts: Sequence[str]) -> Callable[[], Any]:
        """The write of these texts into a namespace."""
        from langgraph.store.base import PutOp

        ops = [PutOp(("bench", f"user-{scope}"), text, {"text": text}) for text in texts]
        return lambda: self.store.batch(ops)

    def search(self, scope: int, text: str) -> list[str]:
        """The best texts for a question."""
        return [item.value["text"] for item in self.store.search(("bench", f"user-{scope}"), query=text, limit=LIMIT)]


def opened(name: str, home: str, *, durable: bool = True) -> Any:
    """A store by its name."""
    if name == "everthread":
        return Ours(home, durable=durable)
    from langchain_core.embeddings import Embeddings

    class Known(LookUp, Embeddings):
        pass

    embedder: Any = Known()
    index: Any = {"dims": DIMS, "embed": embedder, "fields": ["text"]}
    if name == "InMemoryStore":
        from langgraph.store.memory import InMemoryStore

        return Peer(InMemoryStore(index=index), embedder)
    with_extensions()
    from langgraph.store.sqlite import SqliteStore

    manager = SqliteStore.from_conn_string(f"{home}/peer.db", index=index)
    store = manager.__enter__()
    store.manager = manager  # kept open as long as the store is
    store.setup()
    if not durable:
        store.conn.execute("PRAGMA synchronous=OFF")
    return Peer(store, embedder)


def with_extensions() -> None:
    """Let `sqlite3` load extensions: by Python's own, or by pysqlite3 in its place."""
    import sqlite3

    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3

        sys.modules["sqlite3"] = pysqlite3
        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


# ------------------------------------------------------------------------------------------------------------- steps


def milliseconds(work: Callable[[], Any]) -> float:
    """How long `work` takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1_000


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {"median": round(float(np.median(values)), 3), "p95": round(float(np.percentile(values, 95)), 3)}


def fill(name: str, home: str, layout: Layout, *, durable: bool = False) -> tuple[Any, float]:
    """Write a whole layout; returns the store and the seconds spent in it."""
    store, seconds = opened(name, home, durable=durable), 0.0
    for scope in range(layout.scopes):
        texts, vectors = made(scope, layout.records)
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            store.embedder.known = dict(zip(part, vectors[start : start + BATCH], strict=True))
            seconds += milliseconds(store.prepared(scope, part)) / 1_000
    return store, seconds


def serve(store: Any, layout: Layout, repeats: int, scopes: int) -> dict[str, Any]:
    """Ask about some scopes: the first question of each is cold, the others are warm."""
    cold, warm, found = [], [], []
    for scope in np.linspace(0, layout.scopes - 1, min(scopes, layout.scopes)).astype(int).tolist():
        texts, vectors = made(scope, layout.records)
        questions = asked(layout, scope, repeats)
        store.embedder.known = dict(questions)
        times = [milliseconds(lambda: store.search(scope, text)) for text, _ in questions]  # noqa: B023 - called at once
        cold.append(times[0])
        warm.extend(times[1:])
        found.extend(by_vectors(store, scope, vector, texts, vectors) for _, vector in questions[:5])
    return {"cold": spread(cold), "warm": spread(warm), "vector_recall": round(statistics.mean(found), 4)}


def by_vectors(store: Any, scope: int, vector: Vectors, texts: Sequence[str], vectors: Vectors) -> float:
    """Share of the exact nearest (float32, centred as ours are) that a question without known words finds."""
    mean = vectors.sum(axis=0) / (len(vectors) + 20) if isinstance(store, Ours) else np.zeros(DIMS, np.float32)
    centred = vectors - mean
    likeness = centred @ (vector - mean) / np.linalg.norm(centred, axis=1)
    exact = {texts[n] for n in np.argsort(-likeness)[:LIMIT] if likeness[n] > 0 or not isinstance(store, Ours)}
    store.embedder.known = {"qqqqzzzz": vector}
    return len(exact & set(store.search(scope, "qqqqzzzz"))) / len(exact)


def step_fill(name: str, home: str, layout: Layout, **_: Any) -> dict[str, Any]:
    """Fill without waiting for the disk."""
    store, seconds = fill(name, home, layout)
    if name == "everthread":
        store.store.close()
    size = sum(file.stat().st_size for file in Path(home).iterdir())
    return {"per_second": round(layout.total / seconds), "bytes_per_record": round(size / layout.total)}


def step_serve(name: str, home: str, layout: Layout, repeats: int, scopes: int, **_: Any) -> dict[str, Any]:
    """Search what was filled, in a fresh process."""
    store = opened(name, home)
    return {**serve(store, layout, repeats, scopes), **memory()}


def step_in_memory(name: str, home: str, layout: Layout, repeats: int, scopes: int, **_: Any) -> dict[str, Any]:
    """Fill and search in one process: there is no file."""
    store, seconds = fill(name, home, layout)
    return {"per_second": round(layout.total / seconds), **serve(store, layout, repeats, scopes), **memory()}


def step_write(name: str, home: str, layout: Layout, **_: Any) -> dict[str, Any]:
    """Durable writes: batches of 1,000 into one scope, then single ones."""
    store, seconds = fill(name, home, layout, durable=True)
    texts, vectors = made(layout.scopes, 200)
    store.embedder.known = dict(zip(texts, vectors, strict=True))
    single = [milliseconds(store.prepared(layout.scopes, [text])) for text in texts]
    return {"bulk_per_second": round(layout.total / seconds), "single_ms": spread(single)}


def step_follow(name: str, home: str, layout: Layout, repeats: int, **_: Any) -> dict[str, Any]:
    """A write and then a search of the scope it went to, again and again."""
    store = opened(name, home)
    questions = asked(layout, 0, repeats)
    texts, vectors = made(10**6, repeats)
    store.embedder.known = dict(questions) | dict(zip(texts, vectors, strict=True))
    store.search(0, questions[0][0])
    times = []
    for text, (question, _) in zip(texts, questions, strict=True):
        store.prepared(0, [text])()
        times.append(milliseconds(lambda: store.search(0, question)))  # noqa: B023 - called at once
    return {"after_a_write": spread(times)}


def memory() -> dict[str, float]:
    """Megabytes that the process holds now."""
    return {"rss_mb": round(psutil.Process().memory_info().rss / 2**20, 1)}


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "fill": step_fill, "serve": step_serve, "in_memory": step_in_memory, "write": step_write, "follow": step_follow,
}  # fmt: skip


def run(step: str, name: str, home: str, layout: Layout, **options: Any) -> dict[str, Any]:
    """A step in a process of its own; when it cannot run, why."""
    asked_for = json.dumps({"step": step, "name": name, "home": home, "layout": layout, **options})
    command = [sys.executable, __file__, "--step", asked_for]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Else numpy's threads spin on the cores that others need, and the peers' searches are measured by luck."""


# ------------------------------------------------------------------------------------------------------------ report


def fsync(home: str) -> float:
    """Milliseconds that the disk takes to keep one page (median of 50)."""
    with (Path(home) / "page").open("wb", buffering=0) as file:

        def keep() -> None:
            file.write(bytes(4_096))
            os.fsync(file.fileno())

        return round(statistics.median(milliseconds(keep) for _ in range(50)), 3)


def layouts(scale: float) -> list[Layout]:
    """Many small scopes, one big one, and sizes in between: totals of 10,000, 200,000 and 1,000,000 for the growth."""
    part = max(1, round(1_000 * min(1.0, scale * 10)))
    return [
        Layout(max(1, round(100_000 * scale)), 20),
        Layout(1, max(100, round(100_000 * scale))),
        *(Layout(max(1, round(n * scale)), part) for n in (10, 200, 1_000)),
    ]


def measured(layout: Layout, *, repeats: int, scopes: int, peer_limit: int) -> Iterator[dict[str, Any]]:
    """One row a store for a layout."""
    options = {"repeats": repeats, "scopes": scopes}
    with tempfile.TemporaryDirectory() as home:
        row = {"store": "everthread", **run("fill", "everthread", home, layout)}
        row |= run("serve", "everthread", home, layout, **options)
        yield row | run("follow", "everthread", home, layout, **options)
    if layout.total > peer_limit:
        return
    with tempfile.TemporaryDirectory() as home:
        row = {"store": "SqliteStore", **run("fill", "SqliteStore", home, layout)}
        yield row | run("serve", "SqliteStore", home, layout, **options | {"repeats": min(repeats, 6)})
    options["repeats"] = min(repeats, 6)
    yield {"store": "InMemoryStore", **run("in_memory", "InMemoryStore", "", layout, **options)}


def report(scale: float, peer_limit: int) -> Iterator[dict[str, Any]]:
    """All figures, row by row, as they are measured."""
    with tempfile.TemporaryDirectory() as home:
        yield {"machine": {"cores": os.cpu_count(), "fsync_ms": fsync(home)}, "dims": DIMS, "characters": CHARACTERS}
    for layout in layouts(scale):
        for row in measured(layout, repeats=20, scopes=10, peer_limit=peer_limit):
            yield {"layout": str(layout), "records": layout.total, "scope": layout.records, **row}
    for name in ("everthread", "SqliteStore"):
        with tempfile.TemporaryDirectory() as home:
            yield {"store": name, "writes": run("write", name, home, Layout(1, max(2_000, round(20_000 * scale))))}


def chart(rows: Sequence[dict[str, Any]], file: str) -> None:
    """Latency against the number of records in the store, for scopes of one size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.6), dpi=112)
    grown = [row for row in rows if "warm" in row and row["scope"] not in (20, row["records"])]
    for name in dict.fromkeys(row["store"] for row in grown):
        points = sorted((row["records"], row["warm"]["median"]) for row in grown if row["store"] == name)
        (line,) = axes.plot(*zip(*points, strict=True), "o-", linewidth=2)
        label = name + (" (words and vectors)" if name == "everthread" else " (vectors)")
        axes.annotate(label, points[-1], (9, -4), textcoords="offset points", color=line.get_color())
    sizes = sorted({row["records"] for row in grown})
    axes.set(xscale="log", xlabel="records in the store", ylabel="median of a warm search, ms", ylim=0)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 1.4, sizes[-1] * 14)
    axes.set_title(f"Search of {grown[0]['scope']:,} records", loc="left")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(file)


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    parts = [str(row.get("layout", "")), str(row.get("store", "machine"))]
    for key, value in row.items():
        if key in ("layout", "store", "records", "scope"):
            continue
        if isinstance(value, dict):
            value = " ".join(f"{name} {item}" for name, item in value.items())
        parts.append(f"{key}: {value}")
    return " | ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print all figures as one JSON object")
    parser.add_argument("--chart", metavar="FILE", help="draw latency against size into a PNG")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes; 0.01 takes seconds")
    parser.add_argument("--peer-limit", type=int, default=PEER_LIMIT, help="peers get no layout with more records")
    parser.add_argument("--postgres", nargs="?", const="", metavar="URL", help="on this server, or one of its own")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.postgres is not None:
        from benchmarks.postgres import report as on_a_server

        on_a_server(options.postgres or None, max(1, round(200 * options.scale)), as_json=options.json)
        return
    if options.step:
        given = json.loads(options.step)
        print(json.dumps(STEPS[given.pop("step")](**given | {"layout": Layout(*given["layout"])})))
        return
    rows = []
    for row in report(options.scale, options.peer_limit):
        rows.append(row)
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps({"rows": rows}, indent=1))
    if options.chart:
        chart(rows, options.chart)


if __name__ == "__main__":
    main()
