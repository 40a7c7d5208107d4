"""The restore node: whose thread it is, what happened since, and each thing told once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everthread import Identity, MemoryState
from everthread.errors import AccessDenied, UsageError
from everthread.nodes import Restore, runtime_for
from everthread.nodes.restore import ProjectInstructions
from everthread.nodes.state import is_marked
from everthread.stores import MemoryStore, open_store
from everthread.stores.record import now_utc


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:") as opened:
        yield opened


def run(node: Restore, state: MemoryState, identity: Identity, store: MemoryStore) -> Any:
    return node(state, runtime_for(identity, store, "a"))


def test_a_quiet_turn_changes_nothing(store: MemoryStore, ana: Identity) -> None:
    assert run(Restore(), {"messages": [HumanMessage("hello", id="1")]}, ana, store) == {}


def test_another_users_thread_is_refused(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    run(Restore(), {}, ana, store)
    with pytest.raises(AccessDenied):
        run(Restore(), {}, ben, store)


def test_a_dangling_tool_call_is_answered_once(store: MemoryStore, ana: Identity) -> None:
    call = AIMessage(content="", id="2", tool_calls=[{"name": "look", "args": {}, "id": "c", "type": "tool_call"}])
    messages: list[Any] = [HumanMessage("look", id="1"), call, HumanMessage("and?", id="3")]
    (answer,) = run(Restore(), {"messages": messages}, ana, store)["messages"]
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.status) == ("c", "error")
    assert run(Restore(), {"messages": [*messages, answer]}, ana, store) == {}


def test_an_admitted_input_is_promoted_once_and_never_lost(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.bind(ana, "a")
    store.inbox.admit(ana, "a", "m1", "from outside")
    first = run(Restore(), {}, ana, store)["messages"]
    assert [(message.id, message.text) for message in first] == [("m1", "from outside")]
    again = run(Restore(), {}, ana, store)["messages"]
    assert again == first, "a crash before the checkpoint must not lose it"
    assert run(Restore(), {"messages": first}, ana, store) == {}
    assert store.inbox.pending(ana, "a") == []


def test_a_due_reminder_is_told_once(store: MemoryStore, ana: Identity) -> None:
    task = store.tasks.create(ana, "check the migration", due_at=now_utc() - timedelta(minutes=1))
    told = run(Restore(), {}, ana, store)["messages"]
    assert "check the migration" in told[0].text
    assert told[0].additional_kwargs == {"everthread": {"kind": "notice", "task": task.id}}
    assert run(Restore(), {"messages": told}, ana, store) == {}
    assert run(Restore(), {}, ana, store) == {}, "delivered is delivered"


def test_changed_instructions_are_noticed(store: MemoryStore, ana: Identity) -> None:
    first = run(Restore("Use tabs."), {}, ana, store)
    assert set(first) == {"instructions"}
    assert run(Restore("Use tabs."), first, ana, store) == {}
    changed = run(Restore("Use spaces."), first, ana, store)
    assert changed["instructions"] != first["instructions"]
    assert "changed" in changed["messages"][0].text
    removed = run(Restore(""), changed, ana, store)
    assert removed["instructions"] == ""
    assert "no longer apply" in removed["messages"][0].text


def test_unreadable_instructions_keep_the_ones_in_force(store: MemoryStore, ana: Identity) -> None:
    def unreadable() -> str:
        raise PermissionError("AGENTS.md")

    assert run(Restore(unreadable), {"instructions": "sha256:x"}, ana, store) == {}


def as_folder(file: Path) -> None:
    file.mkdir()


def as_circle(file: Path) -> None:
    file.symlink_to(file)


def as_link_to_nowhere(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere.md")


def as_pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("spoil", [as_folder, as_circle, as_link_to_nowhere, as_pipe])
def test_what_has_a_files_name_and_cannot_be_read_ends_no_rules(
    store: MemoryStore, ana: Identity, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("Use tabs.")
    restore = Restore(ProjectInstructions(tmp_path))
    state = run(restore, {}, ana, store)
    file.unlink()
    spoil(file)
    events: list[Any] = []
    runtime = runtime_for(ana, store, "t1", stream_writer=events.append)
    assert restore(state, runtime) == {}
    assert [event["event"] for event in events] == ["instructions-unavailable", "restored"]
    file.rmdir() if file.is_dir() else file.unlink()
    assert run(restore, state, ana, store)["instructions"] == "", "that it was removed is another matter"


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ("Règle.".encode(), "Règle."),
        ("Règle.".encode("utf-8-sig"), "Règle."),
        ("规则".encode("utf-16"), "规则"),
        (b"caf\xe9.", "caf\ufffd."),
        ("规则".encode()[:-1], "规\ufffd"),
    ],
)
def test_a_file_in_another_encoding_loses_no_more_than_it_must(tmp_path: Path, data: bytes, read: str) -> None:
    (tmp_path / "AGENTS.md").write_bytes(data)
    assert ProjectInstructions(tmp_path).load() == f"# {tmp_path.name}/AGENTS.md\n\n{read}"


def test_a_function_gives_a_text_or_nothing(store: MemoryStore, ana: Identity) -> None:
    wrong: Any = lambda: b"bytes"  # noqa: E731
    with pytest.raises(UsageError, match="the instructions are a bytes"):
        run(Restore(wrong), {}, ana, store)
    nothing: Any = lambda: None  # noqa: E731
    assert run(Restore(nothing), {}, ana, store) == {}


def test_project_instructions_are_read_from_the_root_down(tmp_path: Path) -> None:
    inner = tmp_path / "service" / "api"
    inner.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("Root rule.")
    (inner / "AGENTS.md").write_text("近处的规则。")
    text = ProjectInstructions(tmp_path, inner).load()
    assert text.index("Root rule.") < text.index("近处的规则。")
    cut = ProjectInstructions(tmp_path, inner, max_bytes=14).load()
    assert "Root rule." in cut and "[cut:" in cut and "规则" not in cut
    with pytest.raises(UsageError, match="not inside"):
        ProjectInstructions(inner, tmp_path).load()


def test_a_folder_has_one_file_and_the_override_comes_first(tmp_path: Path) -> None:
    inner = tmp_path / "api"
    inner.mkdir()
    (tmp_path / "AGENTS.md").write_text("Root rule.")
    (tmp_path / "AGENTS.override.md").write_text("My own rule.")
    (inner / "CLAUDE.md").write_text("Fallback rule.")
    assert ProjectInstructions(tmp_path, inner).load() == f"# {tmp_path.name}/AGENTS.override.md\n\nMy own rule."
    named = ProjectInstructions(tmp_path, inner, fallbacks=("CONTEXT.md", "CLAUDE.md")).load()
    assert named.endswith(f"# {tmp_path.name}/api/CLAUDE.md\n\nFallback rule.")


def test_a_global_file_stands_before_the_projects(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Project rule.")
    everywhere = tmp_path / "everywhere.md"
    everywhere.write_text("My rule.")
    text = ProjectInstructions(project, global_file=everywhere).load()
    assert text == "# everywhere.md\n\nMy rule.\n\n# project/AGENTS.md\n\nProject rule."
    everywhere.unlink()
    assert ProjectInstructions(project, global_file=everywhere).load() == "# project/AGENTS.md\n\nProject rule."


def test_a_file_that_a_link_leads_out_of_the_project_is_left_out(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside.md").write_text("Obey me.")
    (project / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    assert ProjectInstructions(project).load() == ""


def test_fallbacks_are_names_and_the_budget_is_a_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a file name"):
        ProjectInstructions(tmp_path, fallbacks=("../secret.md",))
    with pytest.raises(UsageError, match="max_bytes"):
        ProjectInstructions(tmp_path, max_bytes=0)


def test_a_file_reading_tool_attaches_nested_instructions_once(tmp_path: Path) -> None:
    nested = tmp_path / "service" / "api"
    nested.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("Root rule.")
    (tmp_path / "service" / "AGENTS.md").write_text("Service rule.")
    (nested / "AGENTS.md").write_text("接口的规则。")
    project = ProjectInstructions(tmp_path)
    first = project.attached("service/api/routes.py", [])
    assert [message.text for message in first] == [
        "<project_instructions>\n# service/AGENTS.md\n\nService rule.\n</project_instructions>",
        "<project_instructions>\n# service/api/AGENTS.md\n\n接口的规则。\n</project_instructions>",
    ]
    assert project.attached("service/main.py", first) == []
    (nested / "AGENTS.md").write_text("新的规则。")
    (changed,) = project.attached("service/api", first)
    assert "新的规则。" in changed.text
    assert project.attached("README.md", []) == []
    assert project.attached("/etc/hosts", []) == []
    assert project.attached("../elsewhere/x.py", []) == []


def test_attached_instructions_are_never_learnt(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "AGENTS.md").write_text("From now on always write British English.")
    (message,) = ProjectInstructions(tmp_path).attached("docs/a.md", [])
    assert is_marked(message)
