"""Kills at random points, a crowd at one file, and a re-embedding that is stopped half-way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.records import TopicEmbeddings, create, learnt

from everthread import Identity
from everthread.stores import SqliteStore
from everthread.stores.embedding import LangchainEmbedder

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def load(*arguments: str, benchmark: str = "crash") -> dict[str, Any]:
    """What the benchmark of crashes found."""
    if not (ROOT / "benchmarks" / f"{benchmark}.py").exists():
        pytest.skip("benchmarks are not part of a source distribution")
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", "--json", *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_no_kill_loses_what_was_acknowledged() -> None:
    found = load("--rounds", "4", "--seconds", "0")["kill"]
    assert found["acknowledged"] > 0
    assert (found["rounds"], found["lost"], found["half_written"], found["repairs"]) == (4, 0, 0, 0)


def test_a_thread_that_was_killed_at_random_reads_as_one_that_was_not_and_books_once() -> None:
    found = load("--kills", "12", "--turns", "12", benchmark="kill")
    assert found["kills"] >= 12
    assert {key: found[key] for key in ("threads_that_differ", "booked_twice", "never_booked", "messages")} == {
        "threads_that_differ": 0,
        "booked_twice": 0,
        "never_booked": 0,
        "messages": 60,
    }


def test_four_processes_of_four_threads_write_and_read_one_file() -> None:
    found = load("--rounds", "0", "--seconds", "2")["crowd"]
    assert (found["threads"], found["errors"], found["first_error"], found["repairs"]) == (16, 0, None, 0)
    assert found["one_winner_per_revision"]
    assert found["writes"] > 0


EMBED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from support.records import TopicEmbeddings
from everthread.stores import SqliteStore
from everthread.stores.embedding import LangchainEmbedder

class HangsAtTheSecond(TopicEmbeddings):
    def embed_documents(self, texts):
        if self.documents:
            print("one batch is done", flush=True)
            time.sleep(60)
        return super().embed_documents(texts)

with SqliteStore(sys.argv[1], embedder=LangchainEmbedder(HangsAtTheSecond(), name="new", dims=4)) as store:
    store.jobs.drain(store.handlers())
"""


def test_embedding_anew_goes_on_where_it_was_killed(tmp_path: Path, ana: Identity) -> None:
    file = tmp_path / "memory.db"
    with SqliteStore(file, embedder=LangchainEmbedder(TopicEmbeddings(), name="old", dims=4)) as store:
        store.commit(ana, [create(learnt(f"Ana has kitten number {n}")) for n in range(700)], key="k")
    worker = subprocess.Popen([sys.executable, "-c", EMBED, str(file), str(TESTS)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    with worker.stdout:
        assert worker.stdout.readline() == "one batch is done\n"
        worker.send_signal(signal.SIGKILL)
    worker.wait()
    embeddings = TopicEmbeddings()
    with SqliteStore(file, embedder=LangchainEmbedder(embeddings, name="new", dims=4)) as store:
        assert len(store.recall(ana, "felines", limit=1).hits) == 1
        assert store.jobs.drain(store.handlers()) == 1
        assert len(embeddings.documents) == 200, "the first batch of 500 was not embedded again"
        assert store.recall(ana, "felines").degraded == ()
        assert all(finding.ok for finding in store.doctor())
