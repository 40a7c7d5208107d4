"""A small graph over our state, and eyes for what a threads file really holds."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from everthread.graphs.gate import MemoryGraph
from everthread.nodes.state import MemoryState
from everthread.stores.checkpoints import Saver, SqliteSaver
from everthread.stores.checkpoints.postgres import PostgresSaver
from everthread.stores.identity import MemoryContext

__all__ = [
    "Checkpoints",
    "Talk",
    "echo",
    "echo_graph",
    "noise",
    "on",
    "said",
    "say",
    "stored_text",
    "talk_graph",
    "words_in_files",
]

_random = random.Random(4711)


def echo(state: MemoryState) -> dict[str, Any]:
    """Answers "re: ..." to the last message."""
    return {"messages": [AIMessage(f"re: {state['messages'][-1].content}")]}


def echo_graph(node: Any = echo) -> MemoryGraph[MemoryState, MemoryContext, MemoryState, MemoryState]:
    """A graph of one node over our state."""
    graph = MemoryGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("echo", node)
    graph.add_edge(START, "echo")
    return graph


class Talk(TypedDict, total=False):
    """A host's own state."""

    messages: Annotated[list[AnyMessage], add_messages]
    note: str
    count: int


def reply(state: Talk) -> Talk:
    return {"messages": [AIMessage(f"re: {len(state['messages'])}", id=f"r{len(state['messages'])}")]}


def talk_graph(*, steps: int = 3) -> Any:
    """A graph that answers and then takes steps which leave messages and note as they are."""
    graph = StateGraph(Talk)
    idle: Any = lambda state: {"count": state.get("count", 0) + 1}  # noqa: E731 - each name is a step
    graph.add_sequence([("reply", reply), *[(f"idle{number}", idle) for number in range(steps)]])
    graph.add_edge(START, "reply")
    return graph


def noise(characters: int = 400) -> str:
    """Text that no compression makes short."""
    return _random.randbytes(characters // 2).hex()


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
    """Everything that is stored of threads, decompressed and decoded: what a search of a file's bytes may miss."""
    if isinstance(saver, PostgresSaver):
        return "\n".join(_decoded_of_server(saver))
    assert isinstance(saver, SqliteSaver)
    return "\n".join(_decoded(saver))


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


def _decoded_of_server(saver: PostgresSaver) -> Iterator[str]:
    with saver.pool.connection() as connection:
        for checkpoint, metadata in connection.execute("SELECT checkpoint, metadata FROM checkpoints").fetchall():
            small = checkpoint.pop("small", None)
            yield json.dumps([checkpoint, metadata], ensure_ascii=False)
            if small:
                yield repr(saver.serde.loads_typed((small["type"], b64decode(small["value"]))))
        values = "SELECT type, blob FROM checkpoint_writes UNION ALL SELECT type, blob FROM checkpoint_blobs"
        for kind, stored in connection.execute(values).fetchall():
            yield repr(saver.serde.loads_typed((kind, stored)))


def _decoded(saver: SqliteSaver) -> Iterator[str]:
    connection = saver.conn
    for (metadata,) in connection.execute("SELECT metadata FROM checkpoints"):
        yield json.dumps(json.loads(metadata), ensure_ascii=False)
    values = "SELECT type, checkpoint FROM checkpoints UNION ALL SELECT type, value FROM writes"
    for kind, stored in connection.execute(f"{values} UNION ALL SELECT type, value FROM blobs"):
        if kind != "@":  # what is large is among the blobs
            yield repr(saver.serde.loads_typed((kind, stored)))
