"""The examples run as they stand, offline, and docs/composing.md shows them as they are."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMPOSING = ROOT / "docs" / "composing.md"
TEA = "The user prefers tea over coffee. (user:ana | preference | from user ana, thread monday"

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not part of a source distribution")


def output(name: str, home: Path) -> str:
    """What an example prints, run in an empty folder of its own; warnings are errors."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    run = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout


def test_the_host_without_memory_knows_nothing(tmp_path: Path) -> None:
    assert output("host.py", tmp_path).count("I have no memory of that.") == 2


@pytest.mark.parametrize("name", ["nodes_inlined.py", "middleware.py", "functions.py"])
def test_the_second_thread_knows_what_was_said_in_the_first(tmp_path: Path, name: str) -> None:
    said = output(name, tmp_path)
    monday, tuesday = said.split("tuesday: ", 1)
    assert monday.startswith("monday: I have no memory of that.")
    assert TEA in tuesday


def test_the_middleware_brings_the_memory_tools(tmp_path: Path) -> None:
    assert re.search(
        r"^tuesday: created mem_\w+ \(the user asked to keep it\)$", output("middleware.py", tmp_path), re.M
    )


def test_what_would_hold_for_everybody_is_reviewed_first(tmp_path: Path) -> None:
    first, rest = output("graphs_as_nodes.py", tmp_path).split("\n", 1)
    assert first == "to review: Every deploy must have two approvals. (organization:acme)"
    assert "Every deploy must have two approvals. (memory mem_" in rest


def test_each_sub_agent_has_its_own_memory_and_only_the_supervisor_learns(tmp_path: Path) -> None:
    said = output("supervisor.py", tmp_path)
    researcher, writer = said.split("writer: ", 1)
    assert ("the archive" in researcher, "the style guide" in researcher) == (True, False)
    assert ("the archive" in writer, "the style guide" in writer) == (False, True)
    assert said.endswith("learnt: ['The user prefers short reports.']\n")


def test_a_sub_agent_reports_at_once_and_from_the_background(tmp_path: Path) -> None:
    at_once, later, tasks = output("delegation.py", tmp_path).splitlines()
    assert at_once.startswith("at once: - Project billing: We decided to use PostgreSQL")
    assert at_once.endswith("Evidence: mem_...")
    assert later.startswith('later: <notice>Background task "Why do we use PostgreSQL?" finished. Result: From memory:')
    assert tasks == "tasks: [('Why do we use PostgreSQL?', 'completed')]"


def test_another_source_of_context_is_told_what_was_answered(tmp_path: Path) -> None:
    assert output("providers.py", tmp_path).startswith("answered: I have no memory of that.")


def code(name: str) -> list[str]:
    """The lines of an example, without its docstring and blank ones."""
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines[1:] if line.strip()]


def test_memory_takes_at_most_twelve_lines_of_the_hosts_code() -> None:
    added = [line for line in difflib.ndiff(code("host.py"), code("nodes_inlined.py")) if line.startswith("+ ")]
    assert len(added) == 12


def test_the_document_shows_each_example_as_it_is() -> None:
    shown = re.findall(r"<!-- examples/(\w+\.py) -->\n```python\n(.*?)```", COMPOSING.read_text(encoding="utf-8"), re.S)
    assert [name for name, _ in shown] == [
        "host.py",
        "nodes_inlined.py",
        "graphs_as_nodes.py",
        "middleware.py",
        "supervisor.py",
        "delegation.py",
        "functions.py",
        "providers.py",
    ]
    assert [name for name, text in shown if text != (EXAMPLES / name).read_text(encoding="utf-8")] == []


def test_there_is_no_other_code_in_the_document() -> None:
    text = COMPOSING.read_text(encoding="utf-8")
    assert text.count("```python") == text.count("<!-- examples/")
