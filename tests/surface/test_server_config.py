"""`langgraph.json` names a graph without saver or store, and our store and checkpointer beside it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.runtime import ServerRuntime, _ReadRuntime

from everthread import Identity
from everthread.stores.checkpoints import Saver
from everthread.stores.contract import MemoryStore

ROOT = Path(__file__).parents[2]
CONFIG = json.loads((ROOT / "langgraph.json").read_text())
NOBODY: ServerRuntime[Any] = _ReadRuntime(access_context="assistants.read", store=InMemoryStore())
"""What the server gives to the function that makes the graph, when it authenticates nobody."""


def named(reference: str) -> Any:
    """What a `./path.py:name` of the configuration is, loaded by its path as the server does."""
    path, name = reference.split(":")
    spec = importlib.util.spec_from_file_location("server_of_the_test", ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_the_graph_has_neither_saver_nor_store() -> None:
    graph = named(CONFIG["graphs"]["agent"])(NOBODY)
    assert isinstance(graph, CompiledStateGraph)
    assert (graph.checkpointer, graph.store) == (None, None)


async def test_the_graph_runs_on_the_configured_store_and_checkpointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ana: Identity
) -> None:
    monkeypatch.setenv("EVERTHREAD_HOME", str(tmp_path))
    graph = named(CONFIG["graphs"]["agent"])(NOBODY)
    async with named(CONFIG["store"]["path"])() as store, named(CONFIG["checkpointer"]["path"])() as saver:
        assert isinstance(store, MemoryStore) and isinstance(saver, Saver)
        graph.store, graph.checkpointer = store, saver
        config = {"configurable": {"thread_id": "a"}}
        await graph.ainvoke({"messages": [("user", "I prefer short reports.")]}, config, context=ana)
        assert [record.content_type for record in store.records(ana)] == ["preference"]
    assert {path.name for path in tmp_path.iterdir()} >= {"memory.db", "threads.db"}
