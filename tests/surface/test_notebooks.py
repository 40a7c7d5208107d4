"""The notebooks run from top to bottom, and show what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SHOWN = {
    "01_a_turn_step_by_step": ("mermaid", "PostgreSQL", "CockroachDB", "superseded", "verified"),
    "02_why_this_memory": (
        "keyword #1, semantic #1",
        "graph #1",
        "| The coffee machine is on the third floor. | 0.00 | - | dropped: it shares no word with the question",
        "| The billing database may be SQLite. | **untrusted** | its trust of 0.17 is below 0.3 |",
        "| Answers are in German. | shown | how the user wants to be answered |",
        "| The billing database listens on port 5432. | **refuted** |",
        "| Backups of billing run at four in the morning. | shown | stands against mem_",
        "| 账单数据库由小林维护。 | shown | the search found it |",
        "hits: 0; abstained: nothing reaches the floor",
        "a marker in the answer: False",
        "iVBORw0KGgo",  # the chart, a PNG
    ),
    "03_what_it_refuses_to_learn": (
        "validate -.-> resolve;",
        "| **refused** | orders | it tries to direct the agent, and the user did not say it |",
        "| **refused** | assistant-guess |",
        "| **pending** | not-in-source | its words are not in the messages it points to |",
        "pay1@evil.example. | pending | external | 4 |",
        "abstained: nothing that may be read",
        "我的密码是 hunter2hunter2。 | **refused** | secret |",
        "| **refused** | do-not-remember |",
        "| session:a report | session |",
        "| user:ana | long_term | 用户希望以后都这样：报告都用中文写。 |",
        "| web: Ana's editor is Emacs. | **pending** | untrusted-source |",
        "| **superseded** | newer |",
        "verified",
        "| **refused** | tombstone | the same was erased before, and is not learnt again |",
        "| sealed |  | evidence: 2, record: 1 |",
    ),
    "04_resume_fork_time_travel": (
        "exit code: -9",
        "next: ('tools',)",
        "| tuesday day-2 | 114 | the process that died |",
        "| tuesday day-3 | 121 | this notebook |",
        "c2 --> c3",
        "fork: as it was",
        "| as it was on Tuesday | Project billing: We decided to use PostgreSQL",
        "| as it is | Project billing: we decided to use CockroachDB",
        "| messages at the end | 8 | 9 |",
        "| notices | 0 | 1 |",
        "| answer | - Project billing: We decided to use PostgreSQL",
        "3 entries in the ledger",
        "| Tell the team | completed | True |",
    ),
    "05_into_your_own_graph": (
        "MemoryMiddleware.before_agent",
        "retrieve --> answer;",
        "two nodes: 5 lines",
        "middleware: 2 lines",
        "| host | - | - | I have no memory of that. |",
        "The user prefers tea over coffee. | 0.86: semantic 1.00",
        "| host with two nodes | human ai | 3 |",
        "threads.db, KB",
    ),
}
"""What each notebook must show, by its name."""


def texts(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What its cells have put out: printed, as Markdown or as plain text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield from (output.get("text", ""), *output.get("data", {}).values())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = "\n".join(texts(notebook))
    assert "stderr" not in [output.get("name") for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [wanted for wanted in SHOWN[path.stem] if wanted not in shown] == []


def test_each_notebook_is_kept_with_its_outputs() -> None:
    assert sorted(SHOWN) == [path.stem for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        kept = "\n".join(texts(nbformat.read(path, as_version=4)))  # type: ignore[no-untyped-call]
        assert [wanted for wanted in SHOWN[path.stem] if wanted not in kept] == []
