"""Which checkpoints a thread still needs.

A DeltaChannel is not in every checkpoint: its value is rebuilt from the nearest ancestor that holds it and the writes
since. Keeping the latest checkpoint alone turns 40 messages into none, without an error; so a checkpoint is kept with
all its ancestors up to those that hold what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Node(NamedTuple):
    """A checkpoint in its thread's history."""

    id: str
    parent: str | None
    holds: frozenset[str]
    """Channels whose value is stored in it."""
    lacks: frozenset[str]
    """DeltaChannels that must be rebuilt from its ancestors."""


def lineage(start: str, load: Callable[[str], Node | None]) -> set[str]:
    """Ids of the checkpoint `start` and of every ancestor that it is rebuilt from."""
    node = load(start)
    if node is None:
        return set()
    kept, missing = {start}, set(node.lacks)
    while missing and node.parent and node.parent not in kept:
        ancestor = load(node.parent)
        if ancestor is None:
            break
        kept.add(ancestor.id)
        missing -= ancestor.holds
        node = ancestor
    return kept


def nearest_kept(parent: str | None, parents: Mapping[str, str | None], kept: set[str]) -> str | None:
    """The nearest ancestor that is kept, from `parent` upwards; None when there is none."""
    seen: set[str] = set()
    while parent is not None and parent not in kept:
        if parent in seen:
            return None
        seen.add(parent)
        parent = parents.get(parent)
    return parent
