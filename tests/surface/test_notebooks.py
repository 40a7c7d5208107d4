"""The notebooks run from top to bottom, and show what they say."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = "\n".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))
    assert "stderr" not in [output.get("name") for cell in notebook.cells for output in cell.get("outputs", [])]
    for wanted in ("mermaid", "PostgreSQL", "CockroachDB", "superseded", "verified"):
        assert wanted in shown
