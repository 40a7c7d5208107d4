"""Reading a shortened result back: by lines, and by characters."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langgraph.runtime import ExecutionInfo

from everthread import Identity
from everthread.nodes.reason import artifact_read
from everthread.stores import MemoryStore, open_store

TEXT = "".join(f"line {n}\n" for n in range(1, 5_001))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened


def read(identity: Identity, store: MemoryStore, path: str, **place: int) -> str:
    runtime: ToolRuntime[Any, Any] = ToolRuntime(
        state={},
        context=identity,
        config={},
        stream_writer=lambda _: None,
        tool_call_id="c",
        store=store,
        execution_info=ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id="t"),
    )
    function = getattr(artifact_read, "func", None)
    assert function is not None
    return str(function(path, runtime, **place))


@pytest.fixture
def path(ana: Identity, store: MemoryStore) -> str:
    return store.artifacts.put(ana, "tool_result", TEXT, thread_id="t")


def test_lines_are_counted_from_one(ana: Identity, store: MemoryStore, path: str) -> None:
    rest = len(TEXT) - TEXT.index("line 13\n")
    follows = f"\n\n[{rest} characters follow; read on with offset={len(TEXT) - rest}]"
    assert read(ana, store, path, line=10, lines=3) == f"line 10\nline 11\nline 12\n{follows}"


def test_the_last_lines_and_what_lies_behind_them(ana: Identity, store: MemoryStore, path: str) -> None:
    assert read(ana, store, path, line=4_999, lines=50) == "line 4999\nline 5000\n"
    assert read(ana, store, path, line=9_000) == "The result has 5001 lines."


def test_pages_by_offset_are_the_whole(ana: Identity, store: MemoryStore, path: str) -> None:
    pages = [read(ana, store, path, offset=at).split("\n\n[")[0] for at in range(0, len(TEXT), 20_000)]
    assert "".join(pages) == TEXT


def test_only_what_was_kept_of_a_tool_is_read(ana: Identity, store: MemoryStore, path: str) -> None:
    summary = store.artifacts.put(ana, "summary", "a summary", thread_id="t")
    bob = Identity(tenant="acme", user="bob")
    found = [read(ana, store, "../../etc/passwd"), read(ana, store, summary), read(bob, store, path)]
    assert found == [f"There is no kept tool result {each}." for each in ("../../etc/passwd", summary, path)]
