"""The demo tells its story in a process of its own, and a step that fails ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from everthread.cli.story import STEPS, NotShown, run, states_a_preference


def test_every_step_is_shown(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("everthread")
    told = subprocess.run(
        [command, "demo"], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert f"All {len(STEPS)} steps were shown and checked." in told.stdout
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_a_step_that_does_not_show_its_claim_fails() -> None:
    told = StringIO()
    with pytest.raises(NotShown, match="three memories"):
        run(Console(file=told), [with_one_memory_more])
    assert "steps were shown" not in told.getvalue()


def with_one_memory_more(home: Path, console: Console) -> None:
    """The demo's first step where its claim of three memories does not hold."""
    from everthread.cli.story import ANA, _elsewhere

    _elsewhere(home, ANA, "planning", "I prefer tea over coffee.")
    states_a_preference(home, console)
