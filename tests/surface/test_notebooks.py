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
    "05_into_your_own_graph": (
        "MemoryMiddleware.before_agent",
        "retrieve --> answer;",
        "two nodes: 5 lines",
        "middleware: 2 lines",
        "| host | - | - | I have no memory of that. |",
        "The user prefers tea over coffee. | 0.89: semantic 1.00",
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
