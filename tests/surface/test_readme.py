"""The examples of the README run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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


def test_the_second_example_remembers_in_a_graph_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[1], "README.md", "exec"), {})
    first, second = capsys.readouterr().out.split("\n", 1)
    assert first == "I do not know yet."
    assert "The user prefers tea over coffee." in second


def test_the_third_example_gives_an_agent_memory(tmp_path: Path) -> None:
    from everthread import Identity
    from everthread.nodes.reason import OfflineModel
    from everthread.stores import open_checkpointer, open_store

    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        names: dict[str, Any] = {"model": OfflineModel(), "store": store, "saver": saver}
        exec(compile(EXAMPLES[2], "README.md", "exec"), names)
        ana = Identity(tenant="acme", user="ana")
        said = {"messages": [("user", "I prefer tea over coffee.")]}
        names["agent"].invoke(said, {"configurable": {"thread_id": "t"}}, context=ana)
        assert [record.statement for record in store.records(ana)] == ["The user prefers tea over coffee."]


def test_the_node_that_the_readme_calls_alone_does_what_it_says(tmp_path: Path) -> None:
    from langchain_core.messages import HumanMessage

    from everthread import Identity
    from everthread.nodes import Retrieve, runtime_for
    from everthread.stores import open_store

    (alone,) = re.findall(r"`(Retrieve\(\)\(.*?\))`", README)
    with open_store(f"sqlite:{tmp_path}") as store:
        ana, messages = Identity(tenant="acme", user="ana"), [HumanMessage("Which database?")]
        names = {"Retrieve": Retrieve, "runtime_for": runtime_for, "ana": ana, "store": store, "messages": messages}
        assert eval(alone, names) == {"recalled": []}


def test_every_file_that_the_readme_links_to_is_there() -> None:
    root = Path(__file__).parents[2]
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    notebooks = re.findall(r"`(notebooks/[^`]+)`", README)
    assert [link for link in (*links, *notebooks) if not (root / link).exists()] == []


def test_every_command_in_the_readme_is_registered() -> None:
    from everthread.cli import app

    listed = set()
    for line in re.findall(r"^    everthread (.+?)(?:\s+#.*)?$", README, re.M):
        listed |= {part.split()[0] for part in line.split("|") if not part.strip().startswith("-")}
    assert listed == {command.name for command in app.registered_commands}
