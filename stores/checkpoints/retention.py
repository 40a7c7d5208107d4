"""Which checkpoints a thread still needs.

A DeltaChannel is not in every checkpoint: its value is rebuilt from the nearest ancestor that holds it and the writes
since. Keeping the latest checkpoint alone turns 40 messages into none, without an error; so a checkpoint is kept with
all its ancestors up to those that hold what it lacks. A value that checkpoints share goes with the last of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import NamedTuple
from uuid import UUID, uuid5

from langgraph._internal._constants import INPUT

from everthread.stores.checkpoints.rows import BLOBS, COUNTERS, LATEST, ONE, Key, Rows

_NAMESPACES = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_HEADS = "SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
_METADATA = """
SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
"""
_HEAD = f"SELECT checkpoint_id FROM checkpoints {LATEST}"
_PARENT = f"SELECT parent_checkpoint_id FROM checkpoints {ONE}"
_SET_PARENT = f"UPDATE checkpoints SET parent_checkpoint_id = ? {ONE}"
_DELETE_CHECKPOINT = f"DELETE FROM checkpoints {ONE}"
_DELETE_WRITES = f"DELETE FROM writes {ONE}"
_DELETE_TASK_WRITES = f"{_DELETE_WRITES} AND task_id = ?"
_DELETE_WRITERS = "DELETE FROM writers WHERE thread_id = ? AND checkpoint_ns = ?"


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


def keep_latest(rows: Rows, thread_id: str) -> None:
    """Keep each namespace's head, and what it is rebuilt from."""
    for place in _places(rows, thread_id):
        (head,) = rows.cursor.execute(_HEAD, place).fetchone()
        _keep(rows, place, lineage(head, _history(rows, place)))
    rows.sweep(thread_id)


def drop_runs(rows: Rows, thread_id: str, run_ids: Collection[str]) -> None:
    """Delete the checkpoints of these runs, except those that later ones are rebuilt from."""
    for place in _places(rows, thread_id):
        found = rows.cursor.execute(_METADATA, place).fetchall()
        kept = {row[0] for row in found if json.loads(row[2] or b"{}").get("run_id") not in run_ids}
        history = _history(rows, place)
        _keep(rows, place, {needed for start in kept for needed in lineage(start, history)})
    rows.sweep(thread_id)


def last_steps(rows: Rows) -> list[tuple[datetime, str]]:
    """When each thread made its last step, and its id, the longest idle first."""
    heads = rows.cursor.execute(_HEADS).fetchall()
    found = ((rows.kept(Key(thread_id, "", head)), thread_id) for thread_id, head in heads)
    return sorted(
        (datetime.fromisoformat(checkpoint["ts"]), thread_id) for checkpoint, thread_id in found if checkpoint
    )


def _places(rows: Rows, thread_id: str) -> list[tuple[str, str]]:
    found = rows.cursor.execute(_NAMESPACES, (thread_id,)).fetchall()
    return [(thread_id, namespace) for (namespace,) in found]


def _history(rows: Rows, place: tuple[str, str]) -> Callable[[str], Node | None]:
    """How to look at one checkpoint of a namespace for what it holds and what it lacks."""
    delta_channels = frozenset(
        channel
        for _, _, metadata in rows.cursor.execute(_METADATA, place).fetchall()
        for channel in json.loads(metadata or b"{}").get(COUNTERS, {})
    )

    @cache
    def load(checkpoint_id: str) -> Node | None:
        key = Key(*place, checkpoint_id)
        checkpoint = rows.kept(key)
        if checkpoint is None:
            return None
        (parent,) = rows.cursor.execute(_PARENT, key).fetchone()
        holds = frozenset([*checkpoint["channel_values"], *checkpoint.get(BLOBS, {})])
        return Node(checkpoint_id, parent, holds, (delta_channels & set(checkpoint["channel_versions"])) - holds)

    return load


def _keep(rows: Rows, place: tuple[str, str], kept: set[str]) -> None:
    """Delete every checkpoint of a namespace but `kept`, and link what is left."""
    cursor = rows.cursor
    parents = {row[0]: row[1] for row in cursor.execute(_METADATA, place).fetchall()}
    continued = {parent for each, parent in parents.items() if each in kept}
    for each, parent in parents.items():
        if each not in kept:
            cursor.execute(_DELETE_WRITES, (*place, each))
            cursor.execute(_DELETE_CHECKPOINT, (*place, each))
            if parent in kept and parent not in continued:
                # The input of the deleted run lies on the checkpoint that it began from.
                cursor.execute(_DELETE_TASK_WRITES, (*place, parent, str(uuid5(UUID(parent), INPUT))))
        elif (relinked := nearest_kept(parent, parents, kept)) != parent:
            cursor.execute(_SET_PARENT, (relinked, *place, each))
    if not kept:
        cursor.execute(_DELETE_WRITERS, place)
