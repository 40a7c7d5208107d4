"""A long list in parts, so that a DeltaChannel's snapshot costs what is new in it.

LangGraph stores a snapshot of a DeltaChannel every so many updates, and each holds everything. Here it is the parts
that the snapshot before it consists of, and one or more with what came since. A part is a value like any other: it is
redacted in its place for all snapshots that it belongs to, and goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

__all__ = ["SMALLEST", "divided", "items_of", "joined", "places"]

SMALLEST = 25
"""Items of a part that stays as it is; a smaller last one is written again, with what follows it."""
LARGEST = 250
"""Items of a part at most: what has to be written anew when one of them changes."""


def items_of(value: Any) -> list[Any] | None:
    """What a channel's value is to be divided into; None for what is stored whole."""
    held = value.value if isinstance(value, _DeltaSnapshot) else None
    return held if type(held) is list and len(held) >= SMALLEST else None


def divided(items: list[Any], before: Sequence[Any]) -> Iterator[tuple[int | None, list[Any]]]:
    """`items` as consecutive parts, each with the position in `before` of the part that it equals, None when it is new.

    `before`: the values of the snapshot before it, its parts in order or the whole.
    """
    parts: list[tuple[int | None, list[Any]]] = []
    at = 0
    for position, value in enumerate(before):
        part = _items(value)
        piece = items[at : at + len(part)]
        if len(piece) < len(part):
            break
        at += len(part)
        parts.append((position if _same(piece, part) else None, piece))
    if at < len(items) and parts and len(parts[-1][1]) < SMALLEST:
        at -= len(parts.pop()[1])
    yield from parts
    for start in range(at, len(items), LARGEST):
        yield None, items[start : min(start + LARGEST, len(items))]


def joined(values: Sequence[Any]) -> _DeltaSnapshot:
    """The snapshot that consists of these parts."""
    return _DeltaSnapshot([item for value in values for item in _items(value)])


def places(named: Any) -> list[Any]:
    """Where a value is, as a checkpoint names it: one place, or those of its parts in order."""
    return named if isinstance(named, list) else [named]


def _items(value: Any) -> list[Any]:
    items: list[Any] = value.value if isinstance(value, _DeltaSnapshot) else value
    return items


def _same(some: list[Any], others: list[Any]) -> bool:
    """Whether they would be stored as the same bytes: 1 equals True, and is not the same."""
    if any(type(one) is not type(other) for one, other in zip(some, others, strict=True)):
        return False
    return _PLAIN.dumps_typed(_fields(some)) == _PLAIN.dumps_typed(_fields(others))


def _fields(items: list[Any]) -> list[Any]:
    return [item.__dict__ if isinstance(item, BaseMessage) else item for item in items]


_PLAIN = JsonPlusSerializer(pickle_fallback=True)
