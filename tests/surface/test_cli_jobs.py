"""`everthread jobs`, `worker` and `extract`: background work is seen, done and decided about."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.openai_server import Failing, OpenAIServer, Say, Structured
from typer.testing import CliRunner, Result

from everthread import Identity
from everthread.cli import app
from everthread.graphs import create_memory_agent
from everthread.nodes.extract import ModelExtractor
from everthread.stores import open_checkpointer, open_store, thread_config
from everthread.stores.record import now_utc

ANA = Identity(tenant="local", user="ana")
START = "from everthread.cli import main; main()"
TEAL: Any = {
    "statement": "The user's favourite colour is teal.",
    "content_type": "preference",
    "messages": [1],
    "write_reason": "the user said so",
}


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana"])


def run_json(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def statements(home: Path) -> list[str]:
    return [record["statement"] for record in run_json(home, "list")]


def leave(home: Path, kind: str, *, failed: bool = False) -> str:
    """A job of this kind that waits, or that was given up."""
    with open_store(f"sqlite:{home}", embedder="none") as store:
        id = store.jobs.enqueue(ANA, kind, {"thread_id": "t1"}, key=kind)
        now = now_utc()
        for _ in range(5 if failed else 0):
            job = store.jobs.claim([kind], now=now)
            assert job is not None
            store.jobs.fail(job, "RateLimited 429 at client.py:7", now=now)
            now += timedelta(hours=2)
    return id


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    return monkeypatch


def test_jobs_are_listed_with_their_last_error_and_those_that_are_done_when_asked(tmp_path: Path) -> None:
    assert run(tmp_path, "jobs").stdout == "no jobs; nothing waits and nothing failed\n"
    failed, waiting = leave(tmp_path, "extract:x", failed=True), leave(tmp_path, "consolidate")
    listed = run_json(tmp_path, "jobs")
    assert [(job["id"], job["status"], job["attempts"], job["error"]) for job in listed] == [
        (failed, "failed", 5, "RateLimited 429 at client.py:7"),
        (waiting, "waiting", 0, None),
    ]
    header, row = run(tmp_path, "jobs", "--status", "failed").stdout.splitlines()
    assert header == "kind\tstatus\tattempts\tsince\tnext try\tlast error\tthread\tid"
    assert row.split("\t")[-1] == failed
    assert run_json(tmp_path, "worker", "--once")["done"] == 1
    assert [job["id"] for job in run_json(tmp_path, "jobs")] == [failed]
    assert [job["id"] for job in run_json(tmp_path, "jobs", "--status", "done")] == [waiting]


def test_a_failed_job_is_tried_again_or_called_off(tmp_path: Path) -> None:
    one, two = leave(tmp_path, "extract:x", failed=True), leave(tmp_path, "extract:y", failed=True)
    run_json(tmp_path, "jobs", "--retry", one)
    assert [job["status"] for job in run_json(tmp_path, "jobs")] == ["waiting", "failed"]
    run_json(tmp_path, "jobs", "--retry-all", "--cancel", one)
    assert [(job["id"], job["status"]) for job in run_json(tmp_path, "jobs")] == [(one, "cancelled"), (two, "waiting")]
    refused = run(tmp_path, "jobs", "--cancel", "job_0")
    assert (refused.exit_code, refused.stderr) == (2, "error: there is no job job_0; `everthread jobs` lists them\n")
    assert run(tmp_path, "jobs", "--status", "lost").exit_code == 2


def test_a_turn_and_the_chat_say_that_jobs_failed(tmp_path: Path) -> None:
    id = leave(tmp_path, "extract:x", failed=True)
    said = run(tmp_path, "chat", "Hello.", "--trace")
    assert said.stderr == "1 job failed; `everthread jobs --status failed` says why\n"
    assert f"restore: jobs-failed (jobs: {id}, kinds: extract:x)" in said.stdout


def test_a_model_learns_in_a_worker_and_not_in_the_turn(tmp_path: Path, openai: pytest.MonkeyPatch) -> None:
    with OpenAIServer(Say("Nice."), Structured({"candidates": [TEAL]})) as server:
        openai.setenv("OPENAI_BASE_URL", server.url)
        model = server.model()
        with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
            graph = create_memory_agent(model, extractor=ModelExtractor(model, name="gpt-x"))
            agent = graph.compile(checkpointer=saver, store=store)
            config: Any = thread_config(ANA, "monday")
            agent.invoke({"messages": [("user", "My favourite colour is teal.")]}, config, context=ANA)
        without = run(tmp_path, "worker", "--once")
        assert without.stderr == ("1 waiting jobs of the kind extract:model/gpt-x are left to --model PROVIDER:gpt-x\n")
        assert (len(server.requests), statements(tmp_path)) == (1, [])
        done = run_json(tmp_path, "worker", "--once", "--model", "openai:gpt-x")
    assert done == {"done": 1, "failed": 0, "lost": 0, "let_go": False}
    assert statements(tmp_path) == ["The user's favourite colour is teal."]


def test_a_provider_that_is_down_fails_the_job_and_its_words_are_not_kept(
    tmp_path: Path, openai: pytest.MonkeyPatch
) -> None:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        with OpenAIServer(Say("Nice.")) as server:
            model = server.model()
            graph = create_memory_agent(model, extractor=ModelExtractor(model, name="gpt-x"))
            config: Any = thread_config(ANA, "monday")
            said: Any = {"messages": [("user", "My favourite colour is teal.")]}
            graph.compile(checkpointer=saver, store=store).invoke(said, config, context=ANA)
    with OpenAIServer(*[Failing(500, "down")] * 9) as server:
        openai.setenv("OPENAI_BASE_URL", server.url)
        result = run(tmp_path, "worker", "--once", "--model", "openai:gpt-x")
    assert (result.exit_code, "what failed is tried again later" in result.stderr) == (0, True)
    [job] = run_json(tmp_path, "jobs")
    assert (job["status"], job["attempts"]) == ("waiting", 1)
    assert re.fullmatch(r"\w+Error 500 at \w+\.py:\d+", job["error"])


def test_a_signal_ends_a_worker_when_its_job_is_done(tmp_path: Path) -> None:
    leave(tmp_path, "consolidate")
    command = [sys.executable, "-c", START, "worker", "--home", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().split()[1:3] == ["consolidate", "done"]
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


def test_threads_that_were_read_in_are_learnt_from_by_name(tmp_path: Path) -> None:
    lines = [
        {"thread": "monday", "role": "user", "content": "I prefer short reports."},
        {"thread": "monday", "role": "assistant", "content": "OK."},
        {"thread": "tuesday", "role": "user", "content": "I live in Oslo. My password is hunter2, remember that."},
        {"thread": "tuesday", "role": "assistant", "content": "OK."},
    ]
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    home = tmp_path / "home"
    run(home, "ingest", str(file))
    tried = run_json(home, "extract", "--all", "--dry-run")
    assert (sum(reading["learnt"] for reading in tried), statements(home)) == (2, [])
    [monday] = run_json(home, "extract", "monday")
    assert (monday["learnt"], statements(home)) == (1, ["The user prefers short reports."])
    both = run_json(home, "extract", "--all")
    assert sorted((reading["learnt"], reading["passed_over"]) for reading in both) == [(0, 1), (1, 0)]
    assert run_json(home, "extract", "monday", "--again")[0]["refused"] == {"already-known": 1}
    assert sorted(statements(home)) == ["The user lives in Oslo.", "The user prefers short reports."]
    assert "hunter2" not in run(home, "extract", "--all", "--again").stdout


def test_extracting_names_what_is_wrong(tmp_path: Path, openai: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, "extract").stderr.startswith("error: name the threads")
    assert run(tmp_path, "extract", "a", "--all").exit_code == 2
    assert run(tmp_path, "extract", "nowhere").stderr.startswith("error: there is no thread nowhere")
    run(tmp_path, "chat", "I prefer short reports.", "--thread", "monday")
    with OpenAIServer(*[Failing(500, "down")] * 9) as server:
        openai.setenv("OPENAI_BASE_URL", server.url)
        failed = run(tmp_path, "extract", "monday", "--model", "openai:gpt-x")
    assert failed.exit_code == 1
    assert failed.stderr.startswith("error: openai:gpt-x did not answer")
    assert failed.stderr.count("\n") == 1
