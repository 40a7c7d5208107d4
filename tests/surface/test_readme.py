"""The examples of the README run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_first_example_remembers_across_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[0], "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "PostgreSQL" in said
    assert "thread monday" in said


def test_the_second_example_calls_a_node_alone(tmp_path: Path) -> None:
    from langchain_core.messages import HumanMessage

    from everthread import Identity
    from everthread.stores import open_store

    with open_store(f"sqlite:{tmp_path}") as store:
        names = {
            "ana": Identity(tenant="acme", user="ana"),
            "store": store,
            "messages": [HumanMessage("Which database?")],
        }
        exec(compile(EXAMPLES[1], "README.md", "exec"), names)
    assert names["update"] == {"recalled": []}


def test_every_command_in_the_readme_is_registered() -> None:
    from everthread.cli import app

    listed = set()
    for line in re.findall(r"^    everthread (.+?)(?:\s+#.*)?$", README, re.M):
        listed |= {part.split()[0] for part in line.split("|") if not part.strip().startswith("-")}
    assert listed == {command.name for command in app.registered_commands}
