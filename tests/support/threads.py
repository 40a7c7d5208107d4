"""A small graph over our state, and eyes for what a threads file really holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START

from everthread.graphs.gate import MemoryGraph
from everthread.nodes.state import MemoryState
from everthread.stores.checkpoints import Saver
from everthread.stores.identity import MemoryContext

__all__ = ["Checkpoints", "echo", "echo_graph", "on", "said", "say", "stored_text", "words_in_files"]


def echo(state: MemoryState) -> dict[str, Any]:
    """Answers "re: ..." to the last message."""
    return {"messages": [AIMessage(f"re: {state['messages'][-1].content}")]}


def echo_graph(node: Any = echo) -> MemoryGraph[MemoryState, MemoryContext, MemoryState, MemoryState]:
    """A graph of one node over our state."""
    graph = MemoryGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("echo", node)
    graph.add_edge(START, "echo")
    return graph


def on(thread_id: str, **more: Any) -> RunnableConfig:
    """The config of a run on a thread."""
    return {"configurable": {"thread_id": thread_id, **more}}


def say(text: str, identifier: str | None = None) -> dict[str, list[AnyMessage]]:
    """The input of a turn."""
    return {"messages": [HumanMessage(text, id=identifier)]}


def said(graph: Any, thread_id: str) -> list[str]:
    """The text of every message of a thread, in order."""
    return [message.text for message in graph.get_state(on(thread_id)).values.get("messages", [])]


def words_in_files(directory: Path) -> bytes:
    """Every byte of every file in a directory: database, log, shared memory."""
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


def stored_text(saver: Saver) -> str:
    """Everything in a threads file, decompressed and decoded: what a search of its bytes may miss."""
    return "\n".join(_decoded(saver.conn, saver))


class Checkpoints:
    """A checkpointer that notes what it was asked to do."""

    def __init__(self, *holding: str) -> None:
        self.asked: list[tuple[str, Sequence[str], Sequence[str]]] = []
        self.deleted: list[str] = []
        self.holding = holding

    def redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        self.asked.append((thread_id, tuple(message_ids), tuple(words)))
        return self.affected(thread_id, message_ids, words)

    def affected(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
        return 2

    def delete_thread(self, thread_id: str) -> None:
        self.deleted.append(thread_id)

    def holds(self, words: Sequence[str], thread_ids: Sequence[str]) -> list[str]:
        return [thread_id for thread_id in thread_ids if thread_id in self.holding]


def _decoded(connection: sqlite3.Connection, saver: Saver) -> Iterator[str]:
    for (metadata,) in connection.execute("SELECT metadata FROM checkpoints"):
        yield json.dumps(json.loads(metadata), ensure_ascii=False)
    values = "SELECT type, checkpoint FROM checkpoints UNION ALL SELECT type, value FROM writes"
    for kind, stored in connection.execute(f"{values} UNION ALL SELECT type, value FROM blobs"):
        if kind != "@":  # what is large is among the blobs
            yield repr(saver.serde.loads_typed((kind, stored)))
