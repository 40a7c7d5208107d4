"""`everthread tasks`: what is to be done is listed, added, put off and crossed out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from everthread.cli import app


@pytest.fixture(autouse=True)
def in_shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine stands in one time zone, whichever it really is."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        yield
    time.tzset()


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["tasks", *arguments, "--home", str(home), "--user", "ana"])


def run_json(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(home: Path, *arguments: str) -> str:
    result = run(home, *arguments)
    assert result.exit_code in (1, 2), result.output
    return result.stderr


def test_tasks_are_added_listed_and_crossed_out(tmp_path: Path) -> None:
    assert run(tmp_path).stdout == "nothing is to be done\n"
    (build,) = run_json(tmp_path, "--add", "构建 build")
    check, _ = run_json(tmp_path, "--add", "check", "--after", build["id"])
    header, first, second = run(tmp_path).stdout.splitlines()
    assert header == "task\tstatus\tdue\ttold\tresult\twaits for\tthread\tid"
    assert first == f"check\tblocked\t\t\t\t{build['id']}\t\t{check['id']}"
    assert second == f"构建 build\tscheduled\t\t\t\t\t\t{build['id']}"
    assert "waits for" in refused(tmp_path, "--done", check["id"])
    assert [task["id"] for task in run_json(tmp_path, "--done", build["id"])] == [check["id"]]
    assert run_json(tmp_path, "--cancel", check["id"]) == []
    assert [(task["text"], task["status"]) for task in run_json(tmp_path, "--all")] == [
        ("check", "cancelled"),
        ("构建 build", "completed"),
    ]
    assert "is completed and cannot become" in refused(tmp_path, "--done", build["id"])


@pytest.mark.parametrize("when", ["tomorrow at 9", "明天上午9点"])
def test_a_due_time_in_words_is_meant_where_the_machine_stands(tmp_path: Path, when: str) -> None:
    before = datetime.now().astimezone()
    (task,) = run_json(tmp_path, "--add", "check", "--due", when)
    after = datetime.now().astimezone()
    due = datetime.fromisoformat(task["due_at"])
    assert task["due_at"] == f"{due:%Y-%m-%d}T09:00:00+08:00"
    assert due.date() - timedelta(days=1) in (before.date(), after.date()), "it may be midnight"
    assert f"{due:%Y-%m-%d} 09:00 UTC+08:00" in run(tmp_path).stdout


def test_a_due_time_is_changed(tmp_path: Path) -> None:
    (task,) = run_json(tmp_path, "--add", "check", "--due", "2099-05-08T09:00")
    assert task["due_at"] == "2099-05-08T09:00:00+08:00"
    (later,) = run_json(tmp_path, "--reschedule", task["id"], "--due", "2099-05-09T09:00+02:00")
    assert datetime.fromisoformat(later["due_at"]) == datetime.fromisoformat("2099-05-09T09:00+02:00")
    (never,) = run_json(tmp_path, "--reschedule", task["id"])
    assert never["due_at"] is None


def test_what_is_due_is_said_in_the_next_chat_whatever_its_thread(tmp_path: Path) -> None:
    (task,) = run_json(tmp_path, "--add", "检查迁移", "--due", "2020-05-08T09:00")
    said = [
        CliRunner().invoke(app, ["chat", "Hello.", "--thread", thread, "--home", str(tmp_path), "--user", "ana"]).stdout
        for thread in ("monday", "monday", "tuesday")
    ]
    assert ["提醒，时间 2020-05-08 09:00 UTC+08:00：检查迁移" in each for each in said] == [True, False, False]
    (told,) = run_json(tmp_path)
    assert (told["id"], told["status"], told["told_at"] is None) == (task["id"], "scheduled", False)


def test_what_is_wrong_is_named_with_the_remedy(tmp_path: Path) -> None:
    assert "'soonish' not understood" in refused(tmp_path, "--add", "check", "--due", "soonish")
    assert "--add TEXT, or --reschedule ID" in refused(tmp_path, "--due", "tomorrow")
    assert "--after is for a new task" in refused(tmp_path, "--after", "task_1")
    assert "no task 'task_1'" in refused(tmp_path, "--done", "task_1")
    assert run_json(tmp_path, "--all") == []
