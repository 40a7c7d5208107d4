"""The command line with files that are broken and text that no encoding has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from everthread.cli import app

GARBAGE = b"this is no database, and it is long enough to look like one" * 100


def run(home: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana"])


@pytest.mark.parametrize("name", ["memory.db", "threads.db"])
def test_doctor_names_the_file_that_is_broken(tmp_path: Path, name: str) -> None:
    run(tmp_path, "chat", "I prefer short reports.")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"{name}{suffix}").unlink(missing_ok=True)
    (tmp_path / name).write_bytes(GARBAGE)
    result = run(tmp_path, "doctor", "--json")
    broken = [finding for finding in json.loads(result.stdout)["findings"] if not finding["ok"]]
    assert result.exit_code == 1
    assert [finding["detail"].split(" is ")[0] for finding in broken] == [str(tmp_path / name)]


def test_doctor_tells_that_threads_are_intact(tmp_path: Path) -> None:
    run(tmp_path, "chat", "I prefer short reports.")
    findings = json.loads(run(tmp_path, "doctor", "--json").stdout)["findings"]
    assert findings[-1] == {"check": "threads are intact", "ok": True, "detail": "1 threads", "remedy": None}


@pytest.mark.parametrize("odd", ["nul \x00 and half \udcff", "half \ud800 a pair", "🦓 مرحبا \u202e back"])
def test_text_of_any_kind_is_said_found_and_printed(tmp_path: Path, odd: str) -> None:
    said = run(tmp_path, "chat", f"I prefer striped reports {odd}", "--json")
    assert (said.exit_code, json.loads(said.stdout)["thread_id"][:5]) == (0, "main-")
    found = run(tmp_path, "recall", f"striped reports {odd}", "--sources", "records,evidence", "--json")
    assert found.exit_code == 0
    assert any("striped" in hit["statement"] for hit in json.loads(found.stdout)["hits"])
    assert run(tmp_path, "recall", f"striped {odd}", "--sources", "evidence").exit_code == 0
    assert run(tmp_path, "list", "--json").exit_code == 0
