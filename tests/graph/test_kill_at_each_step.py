"""Killed between any two durable steps and resumed, a run leaves what it leaves when nobody kills it.

Each scenario is a process that forks itself: one run to see how many steps there are, then one for each step, which is
really killed there (SIGKILL) and then resumed as a host would. The steps are calls of the store and the checkpointer
that write, and the question to the extractor: see `support/killing.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KILLING = Path(__file__).parents[1] / "support" / "killing.py"
WHOLE: dict[str, Any] = {
    "records": [
        [["The user lives in Bergen.", "active", ["u1"], 0]],
        [["The user lives in Oslo.", "active", ["u0"], 0], ["The user lives in Oslo.", "superseded", ["u0"], 0]],
        [["The user prefers short reports.", "active", ["u0"], 0]],
    ],
    "receipts": [
        [["created", "accepted", ["u0"]], ["created", "accepted", ["u0"]]],
        [["refused", "became-task", ["u1"]], ["superseded", "newer", ["u1"]]],
    ],
    "tasks": [["Call Bob", "2099-01-05 09:00:00+00:00"]],
    "jobs": [],
    "said": [
        ["user", "I live in Oslo. I prefer short reports."],
        ["assistant", "ok"],
        ["user", "Actually, I live in Bergen. Remind me on 2099-01-05 at 9:00 to call Bob."],
        ["assistant", "ok"],
    ],
    "seen": 4,
}
JOBS = {"jobs": [["extract:rules/1", "done"], ["extract:rules/1", "done"]]}
HALF: dict[str, Any] = {
    "records": [
        [["The user lives in Oslo.", "active", ["u0"], 0]],
        [["The user prefers short reports.", "active", ["u0"], 0]],
    ],
    "receipts": WHOLE["receipts"][:1],
    "tasks": [],
    "seen": 2,
}


EXPECTED: dict[str, tuple[dict[str, Any], int]] = {
    "agent": (WHOLE, 25),
    "agent-job": (WHOLE | JOBS, 30),
    "remember": (WHOLE, 20),
    "remember-job": (WHOLE | JOBS, 20),
    "throttled": (WHOLE | HALF, 15),
    "extract": (WHOLE | {"seen": 0}, 4),
    "extract-again": (WHOLE | {"seen": 0}, 4),
}
"""What each scenario leaves, and how many steps it has at least."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By scenario: what the whole run left, and what each killed and resumed one did."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, str(KILLING), str(folder), *EXPECTED, "agent-async"]
    run = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(KILLING.parents[1])}, check=False
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("scenario", EXPECTED)
def test_a_kill_between_any_two_steps_neither_loses_nor_doubles(left: dict[str, Any], scenario: str) -> None:
    expected, steps = EXPECTED[scenario]
    whole, killed = left[scenario]["whole"], [*left[scenario]["killed"].values()]
    assert whole == expected
    assert len(killed) >= steps
    assert [each for each in killed if each != whole] == []


def test_with_checkpoints_written_behind_a_kill_costs_a_reply_at_most(left: dict[str, Any]) -> None:
    """LangGraph's default durability: the checkpoint of a reply may come after what the next node wrote. The reply is
    then made again, and the transcript has both; nothing is learnt twice."""
    whole, killed = left["agent-async"]["whole"], [*left["agent-async"]["killed"].values()]
    assert whole == WHOLE
    assert [each for each in killed if each["records"] != whole["records"] or each["tasks"] != whole["tasks"]] == []
    assert all([line for line in each["said"] if line[0] == "user"] == whole["said"][::2] for each in killed)
