"""What is wrong with the memory of a graph and can be told before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langgraph.channels import LastValue
from langgraph.graph.state import CompiledStateGraph

from everthread.errors import UsageError
from everthread.nodes import Extract, Retrieve
from everthread.nodes.extract.steps import Propose
from everthread.nodes.node import Node, wrong_store
from everthread.stores.contract import MemoryStore

__all__ = ["asks_to_cite", "check", "keeps_threads", "with_messages"]

KEPT = {"recalled": "list[Reference]", "flushed_to": "str"}
"""The channels that carry something from one node of a host, or from one turn, to the next."""
_REMEDY = "derive the state from MemoryState, or give it messages: Annotated[list[AnyMessage], add_messages]"


def check(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Raises UsageError when the graph's memory cannot work: its store is none of ours, its state keeps no messages, or
    not what a memory graph among its nodes gives back, a step is there twice (as a node or in a memory graph), or a
    `MemoryMiddleware` does the same work in an agent beside them."""
    nodes = {name: spec.runnable for name, spec in graph.builder.nodes.items()}
    memory = {name: steps for name, node in nodes.items() if (steps := _steps(node))}
    has_middleware = _has_middleware(graph)
    needs_store = has_middleware or any(getattr(nodes[name], "store", None) is None for name in memory)
    if needs_store and graph.store is not None and not isinstance(graph.store, MemoryStore):
        raise wrong_store(graph.store)
    for name, steps in memory.items():
        reads = any(kind.reads_messages for kind in _kinds(steps))
        if reads and isinstance(graph.builder.channels.get("messages"), LastValue | None):
            raise UsageError(
                f"node {name!r} reads messages, and the graph's state keeps none (or overwrites them); {_REMEDY}"
            )
    done: dict[type[Node], str] = {}
    for name, steps in memory.items():
        for kind in _kinds(steps):
            if kind in done:
                raise UsageError(
                    f"nodes {done[kind]!r} and {name!r} are both {kind.__name__}; add one, and lead both paths to it"
                )
            done[kind] = name
    for name, node in nodes.items():
        lost = [key for key in _given_back(node) if key not in graph.builder.channels]
        if lost:
            raise UsageError(
                f"graph {name!r} gives back {' and '.join(lost)}, and its host's state has no such key; derive the "
                f"state from MemoryState, or add {', '.join(f'{key}: {KEPT[key]}' for key in lost)}"
            )
    agents = [name for name, node in nodes.items() if memory and _has_middleware(node)]
    if agents:
        raise UsageError(
            f"agent {agents[0]!r} has MemoryMiddleware, and node {next(iter(memory))!r} of its host does the same work;"
            " leave one of them out"
        )


def keeps_threads(graph: CompiledStateGraph[Any, Any, Any, Any]) -> bool:
    """Whether something in the graph works on a whole thread, so that it needs a checkpointer."""
    steps = [step for spec in graph.builder.nodes.values() for step in _steps(spec.runnable)]
    return _has_middleware(graph) or any(kind.reads_messages and kind is not Retrieve for kind in _kinds(steps))


def asks_to_cite(graph: CompiledStateGraph[Any, Any, Any, Any]) -> bool:
    """Whether a node of the graph, or of a graph in it, asks its model for markers."""
    nodes = [spec.runnable for spec in graph.builder.nodes.values()]
    return any(
        asks_to_cite(node) if isinstance(node, CompiledStateGraph) else bool(getattr(node, "markers", False))
        for node in nodes
    ) or any(_is_middleware(owner) and owner.markers for owner in _owners(graph))


def with_messages(given: Any) -> Any:
    """The input of a memory graph; UsageError when its host's state, or its caller, has no messages for it. What is no
    state (a resume) comes back as it is."""
    if isinstance(given, Mapping) and "messages" not in given:
        raise UsageError(f"a memory graph found no messages in its host's state; {_REMEDY}")
    return given


def _steps(node: Any) -> list[Node]:
    """The steps that a node of a graph stands for: itself, or those of a graph of memory nodes alone."""
    if isinstance(node, Node):
        return [node]
    if not isinstance(node, CompiledStateGraph):
        return []
    inside = [spec.runnable for spec in node.builder.nodes.values()]
    steps = [step for step in inside if isinstance(step, Node)]
    return steps if len(steps) == len(inside) else []


def _kinds(steps: Iterable[Node]) -> list[type[Node]]:
    """What they do, in their order; where `create_remember_graph` begins, all of `Extract` begins."""
    return list(dict.fromkeys(Extract if isinstance(step, Propose) else type(step) for step in steps))


def _given_back(node: Any) -> list[str]:
    """What a graph of memory nodes alone returns and its host must keep: it has nobody else to keep it for."""
    if isinstance(node, Node) or not _steps(node):
        return []
    given = node.output_channels
    return [key for key in KEPT if key in ([given] if isinstance(given, str) else given)]


def _has_middleware(node: Any) -> bool:
    """Whether a node is an agent with MemoryMiddleware. (By its class's name: importing it would need langchain.)"""
    if not isinstance(node, CompiledStateGraph):
        return False
    return any(map(_is_middleware, _owners(node)))


def _is_middleware(owner: Any) -> bool:
    names = ((base.__module__, base.__name__) for base in type(owner).__mro__)
    return ("everthread.graphs.middleware", "MemoryMiddleware") in names


def _owners(graph: CompiledStateGraph[Any, Any, Any, Any]) -> Iterator[Any]:
    """The objects whose bound methods are the graph's nodes."""
    for spec in graph.builder.nodes.values():
        yield getattr(getattr(spec.runnable, "func", None), "__self__", None)
