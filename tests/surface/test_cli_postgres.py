"""The command line over a PostgreSQL server: `--store postgresql://...`, memory and threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.full import ANA as FULL
from support.full import fill, other_users
from support.postgres import Postgres
from support.records import create, learnt
from typer.testing import CliRunner, Result

from everthread.cli import app
from everthread.stores import open_store
from everthread.stores.transfer import Row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in which nothing is to appear: all is kept on the server."""
    return tmp_path / "home"


def run(postgres: Postgres, home: Path, *arguments: str) -> Result:
    where = ["--store", postgres.url, "--home", str(home), "--user", "ana"]
    return CliRunner().invoke(app, [*arguments, *where])


def done(postgres: Postgres, home: Path, *arguments: str) -> str:
    result = run(postgres, home, *arguments)
    assert result.exit_code == 0, (arguments, result.output)
    return result.output


def test_what_is_said_is_learnt_recalled_corrected_and_erased(postgres: Postgres, home: Path) -> None:
    assert "kept: The user prefers short reports." in done(
        postgres, home, "chat", "I prefer short reports.", "--thread", "monday"
    )
    assert "The user prefers short reports." in done(postgres, home, "chat", "How do I like my reports?")
    (record,) = json.loads(done(postgres, home, "list", "--json"))
    told = {
        "recall": done(postgres, home, "recall", "reports", "--explain"),
        **{command: done(postgres, home, command, record["id"]) for command in ("show", "history", "why")},
    }
    assert {command: "The user prefers short reports." in said for command, said in told.items()} == dict.fromkeys(
        told, True
    )
    assert "kept mem_" in done(postgres, home, "correct", record["id"], "I prefer long reports.")
    (corrected,) = json.loads(done(postgres, home, "list", "--json"))
    assert corrected["statement"] == "I prefer long reports."
    assert "verified" in done(postgres, home, "verify", corrected["id"])
    assert "entries verified" in done(postgres, home, "audit")
    assert "monday" in done(postgres, home, "threads")
    assert "checkpoint" in done(postgres, home, "forget", "--thread", "monday", "--with-source", "--yes")
    assert "archived" in done(postgres, home, "archive", corrected["id"])
    assert json.loads(done(postgres, home, "list", "--json")) == []
    assert not home.exists()


def test_background_work_consent_and_care(postgres: Postgres, home: Path) -> None:
    done(postgres, home, "chat", "Remind me on 2099-01-05 at 9:00 to call Bob.")
    assert "Call Bob" in done(postgres, home, "tasks")
    assert "nothing waits" in done(postgres, home, "jobs")
    assert json.loads(done(postgres, home, "worker", "--once", "--concurrency", "2", "--json"))["failed"] == 0
    for command in (("extract", "--all"), ("consolidate",), ("review",), ("consent", "read"), ("consent", "on")):
        done(postgres, home, *command)
    findings = json.loads(done(postgres, home, "doctor", "--json"))
    assert [found for found in findings["findings"] if not found["ok"]] == []
    assert not home.exists()


def test_a_schema_has_memory_and_threads_of_its_own(postgres: Postgres, home: Path) -> None:
    team = Postgres(f"{postgres.url}{'&' if '?' in postgres.url else '?'}schema=team&partitions=1")
    done(team, home, "chat", "I prefer short reports.", "--thread", "monday")
    assert "monday" in done(team, home, "threads")
    findings = json.loads(done(team, home, "doctor", "--json"))
    assert [found for found in findings["findings"] if not found["ok"]] == []
    assert findings["store"].endswith("schema=team")
    there = "SELECT count(*) > 0 FROM team_threads.checkpoints"
    assert postgres.run(there) == [(True,)]
    assert "1 thread;" in done(team, home, "forget", "--thread", "monday", "--with-source", "--yes")
    assert postgres.run(there) == [(False,)]
    assert done(postgres, home, "list", "--json") == "[]\n"
    assert not home.exists()


def test_an_export_comes_back_on_a_server(postgres: Postgres, home: Path, tmp_path: Path) -> None:
    done(postgres, home, "chat", "I prefer short reports.")
    file = str(tmp_path / "ana.jsonl")
    done(postgres, home, "export", "--output", file)
    elsewhere = Postgres(f"{postgres.url}{'&' if '?' in postgres.url else '?'}schema=elsewhere")
    done(elsewhere, home, "import", file, "--as-is")
    assert done(elsewhere, home, "list", "--json") == done(postgres, home, "list", "--json")


def test_a_server_that_is_not_there_is_one_line(home: Path) -> None:
    for command in (("list",), ("chat", "hello"), ("worker", "--once"), ("doctor",), ("doctor", "--json")):
        nowhere = Postgres("postgresql://ana:secretword@127.0.0.1:1/nowhere?connect_timeout=2")
        result = run(nowhere, home, *command)
        assert result.exit_code == 1
        assert "cannot be reached" in result.output
        assert "secretword" not in result.output
        assert "Traceback" not in result.output


# --------------------------------------------------------------------------------------------------------------- copy

KILLED = """
import os, signal, sys
from everthread.stores import open_store
from everthread.stores.transfer import copy

with open_store(sys.argv[1]) as source, open_store(sys.argv[2]) as target:
    copy(source, target, advance=lambda count: os.kill(os.getpid(), signal.SIGKILL))
"""


def rows_of(url: str) -> list[Row]:
    with open_store(url, embedder="none") as store, store.transfer.snapshot() as snapshot:
        # the backends have their columns in different orders
        return sorted(snapshot.dump(), key=lambda row: (row.table, sorted(map(repr, row.values.items()))))


def copied(source: str, target: str) -> Any:
    result = CliRunner().invoke(app, ["copy", source, target, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_store_goes_to_a_server_and_back_row_by_row_killed_on_the_way(postgres: Postgres, tmp_path: Path) -> None:
    here, back = str(tmp_path / "here"), str(tmp_path / "back")
    with open_store(here, embedder="none") as store:
        fill(store)
        other_users(store)
        store.commit(FULL, [create(learnt(f"fact number {n}")) for n in range(500)], key="many")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for source, target in ((here, postgres.url), (postgres.url, back)):
        killed = subprocess.run([sys.executable, "-c", KILLED, source, target], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL
        report = copied(source, target)
        assert (report["resumed_at"], report["already"]) == (1000, False)
        assert rows_of(target) == rows_of(source)
        assert copied(source, target)["already"]
    with open_store(here, embedder="none") as first, open_store(back, embedder="none") as last:
        assert last.records(FULL) == first.records(FULL)
        assert [last.history(FULL, each.id) for each in last.records(FULL)] == [
            first.history(FULL, each.id) for each in first.records(FULL)
        ]
        assert last.audit(FULL) == first.audit(FULL)
        assert last.verify_audit("acme") == first.verify_audit("acme")
        assert last.verify_audit().ok
    user = ["--tenant", "acme", "--user", "ana", "--store", f"sqlite:{back}"]
    audited = CliRunner().invoke(app, ["audit", *user])
    assert audited.exit_code == 0
    assert "entries verified" in audited.output


def test_places_that_cannot_be_copied_are_named_without_a_password(postgres: Postgres, tmp_path: Path) -> None:
    role = postgres.guarded("a password of eight words")
    url = postgres.url_of(role, "a password of eight words")
    for source, target in ((url, str(tmp_path / "new")), (url, url)):
        result = CliRunner().invoke(app, ["copy", source, target])
        assert result.exit_code == 2
        assert "there is no store at postgresql://" in result.output
        assert "eight" not in result.output
    open_store(postgres.url, embedder="none").close()
    postgres.run("GRANT USAGE ON SCHEMA everthread TO {}", role)
    same = CliRunner().invoke(app, ["copy", url, postgres.url])
    assert same.exit_code == 2
    assert "are the same store" in same.output
    assert not (tmp_path / "new").exists()
