"""Which checkpoints a thread still needs.

A DeltaChannel is not in every checkpoint: its value is rebuilt from the nearest ancestor that holds it and the writes
since. Keeping the latest checkpoint alone turns 40 messages into none, without an error; so a checkpoint is kept with
all its ancestors up to those that hold what it lacks. A value that checkpoints share goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import NamedTuple
from uuid import UUID, uuid5

from langgraph._internal._constants import INPUT

from everthread.stores.checkpoints.layout import BLOBS, COUNTERS, Key, Place, ThreadRows


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


def keep_latest(rows: ThreadRows, thread_id: str) -> None:
    """Keep each namespace's head, and what it is rebuilt from."""
    for place in _places(rows, thread_id):
        head = rows.head(place)
        _keep(rows, place, lineage(head, _history(rows, place)) if head else set())
    rows.sweep(thread_id)


def drop_runs(rows: ThreadRows, thread_id: str, run_ids: Collection[str]) -> None:
    """Delete the checkpoints of these runs, except those that later ones are rebuilt from."""
    for place in _places(rows, thread_id):
        kept = {each.id for each in rows.links(place) if each.metadata.get("run_id") not in run_ids}
        history = _history(rows, place)
        _keep(rows, place, {needed for start in kept for needed in lineage(start, history)})
    rows.sweep(thread_id)


def last_steps(rows: ThreadRows) -> list[tuple[datetime, str]]:
    """When each thread made its last step, and its id, the longest idle first."""
    found = ((rows.kept(Key(thread_id, "", head)), thread_id) for thread_id, head in rows.heads())
    return sorted(
        (datetime.fromisoformat(checkpoint["ts"]), thread_id) for checkpoint, thread_id in found if checkpoint
    )


def _places(rows: ThreadRows, thread_id: str) -> list[Place]:
    return [(thread_id, namespace) for namespace in rows.namespaces(thread_id)]


def _history(rows: ThreadRows, place: Place) -> Callable[[str], Node | None]:
    """How to look at one checkpoint of a namespace for what it holds and what it lacks."""
    links = {each.id: each for each in rows.links(place)}
    delta_channels = frozenset(channel for each in links.values() for channel in each.metadata.get(COUNTERS, {}))

    @cache
    def load(checkpoint_id: str) -> Node | None:
        checkpoint = rows.kept(Key(*place, checkpoint_id)) if checkpoint_id in links else None
        if checkpoint is None:
            return None
        holds = frozenset([*checkpoint["channel_values"], *checkpoint.get(BLOBS, {})])
        lacks = (delta_channels & set(checkpoint["channel_versions"])) - holds
        return Node(checkpoint_id, links[checkpoint_id].parent, holds, lacks)

    return load


def _keep(rows: ThreadRows, place: Place, kept: set[str]) -> None:
    """Delete every checkpoint of a namespace but `kept`, and link what is left."""
    parents = {each.id: each.parent for each in rows.links(place)}
    continued = {parent for each, parent in parents.items() if each in kept}
    rows.drop(place, [each for each in parents if each not in kept])
    for each, parent in parents.items():
        if each not in kept:
            if parent in kept and parent not in continued:
                # The input of the deleted run lies on the checkpoint that it began from.
                rows.drop_task(Key(*place, parent), str(uuid5(UUID(parent), INPUT)))
        elif (relinked := nearest_kept(parent, parents, kept)) != parent:
            rows.relink(Key(*place, each), relinked)
    if not kept:
        rows.forget_writers(place)
