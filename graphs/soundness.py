"""What is wrong with the memory of a graph and can be told before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langgraph.channels import LastValue
from langgraph.graph.state import CompiledStateGraph

from everthread.errors import UsageError
from everthread.nodes.node import Node

__all__ = ["check"]

KEPT = {"recalled": "list[Reference]", "flushed_to": "str"}
"""The channels that carry something from one node of a host, or from one turn, to the next."""


def check(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Raises UsageError when the graph's memory nodes cannot work: its state keeps no messages, or not what a memory
    graph among its nodes gives back, a kind of node is there twice, or a `MemoryMiddleware` does the same work in an
    agent beside them."""
    nodes = {name: spec.runnable for name, spec in graph.builder.nodes.items() if isinstance(spec.runnable, Node)}
    reading = [name for name, node in nodes.items() if node.reads_messages]
    if reading and isinstance(graph.builder.channels.get("messages"), LastValue):
        raise UsageError(
            f"node {reading[0]!r} reads messages, and the graph's state keeps none (or overwrites them); derive the "
            "state from MemoryState, or give it messages: Annotated[list[AnyMessage], add_messages]"
        )
    kinds: dict[type[Node], str] = {}
    for name, node in nodes.items():
        if type(node) in kinds:
            raise UsageError(
                f"nodes {kinds[type(node)]!r} and {name!r} are both {type(node).__name__}; add one, and lead both paths"
                " to it"
            )
        kinds[type(node)] = name
    for name, spec in graph.builder.nodes.items():
        lost = [key for key in _given_back(spec.runnable) if key not in graph.builder.channels]
        if lost:
            raise UsageError(
                f"graph {name!r} gives back {' and '.join(lost)}, and its host's state has no such key; derive the "
                f"state from MemoryState, or add {', '.join(f'{key}: {KEPT[key]}' for key in lost)}"
            )
    agents = [name for name, spec in graph.builder.nodes.items() if nodes and _has_middleware(spec.runnable)]
    if agents:
        raise UsageError(
            f"agent {agents[0]!r} has MemoryMiddleware, and node {next(iter(nodes))!r} of its host does the same work; "
            "leave one of them out"
        )


def _given_back(node: Any) -> list[str]:
    """What a graph of memory nodes alone returns and its host must keep: it has nobody else to keep it for."""
    if not isinstance(node, CompiledStateGraph):
        return []
    if not all(isinstance(spec.runnable, Node) for spec in node.builder.nodes.values()):
        return []
    given = node.output_channels
    return [key for key in KEPT if key in ([given] if isinstance(given, str) else given)]


def _has_middleware(node: Any) -> bool:
    """Whether a node is an agent with MemoryMiddleware. (By its class's name: importing it would need langchain.)"""
    if not isinstance(node, CompiledStateGraph):
        return False
    return any(
        (base.__module__, base.__name__) == ("everthread.graphs.middleware", "MemoryMiddleware")
        for owner in _owners(node)
        for base in type(owner).__mro__
    )


def _owners(graph: CompiledStateGraph[Any, Any, Any, Any]) -> Iterator[Any]:
    """The objects whose bound methods are the graph's nodes."""
    for spec in graph.builder.nodes.values():
        yield getattr(getattr(spec.runnable, "func", None), "__self__", None)
