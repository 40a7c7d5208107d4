"""How threads lie in their file: LangGraph's two tables, and one for the values that checkpoints share.

A checkpoint names the value of every channel, and most are those of the checkpoint before it. So a value has a row of
its own in `blobs`, written once, and checkpoints name it by its number; they find out that it is the same by the
channel's version, which LangGraph moves with every change. Small values stay in the checkpoint. A file that a stock
saver or an earlier version wrote has all of them there, and goes on.

The two tables of a new file are clustered by their key, which halves a small row, and large rows are not for that: what
a row would hold beyond `_INLINE` bytes is in `blobs`, too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.utils import search_where

from everthread.errors import StoreError
from everthread.stores.checkpoints import parts
from everthread.stores.checkpoints.fence import Last
from everthread.stores.checkpoints.layout import (
    BLOBS,
    COUNTERS,
    SMALL,
    Kept,
    Key,
    Link,
    Place,
    ThreadRows,
    Value,
    is_small,
)
from everthread.stores.checkpoints.recent import Recent

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS checkpoints (
    thread_id            TEXT NOT NULL,
    checkpoint_ns        TEXT NOT NULL DEFAULT '',
    checkpoint_id        TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type                 TEXT,
    checkpoint           BLOB,
    metadata             BLOB,
    absent               INTEGER,   -- 1 when it holds none of the channels that its metadata counts
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS writes (
    thread_id     TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id       TEXT NOT NULL,
    task_path     TEXT NOT NULL DEFAULT '',
    idx           INTEGER NOT NULL,
    channel       TEXT NOT NULL,
    type          TEXT,
    value         BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS threads (
    number    INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL UNIQUE
)
""",
    """
CREATE TABLE IF NOT EXISTS blobs (
    id    INTEGER PRIMARY KEY,   -- the thread's number in the upper half, the blob's own in the lower
    type  TEXT NOT NULL,
    value BLOB NOT NULL
)
""",
)

_HAS_ABSENT = "SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'absent'"
_ADD_ABSENT = "ALTER TABLE checkpoints ADD COLUMN absent INTEGER"

ELSEWHERE = "@"
"""The type of a row whose value is in `blobs`; the row has the blob's number."""
_INLINE = 600
"""Bytes in a row. A clustered row of more than some 1,000, its key included, would get a page of its own."""
_BITS = 32

_CHECKPOINTS = """
SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id,
       coalesce(b.type, c.type), coalesce(b.value, c.checkpoint), c.metadata
FROM (SELECT * FROM checkpoints {which}) c
LEFT JOIN threads t ON t.thread_id = c.thread_id AND c.type = '@'
LEFT JOIN blobs b ON b.id = (t.number << 32) + c.checkpoint
ORDER BY c.checkpoint_id DESC
"""
ONE = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_LATEST = "WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id DESC LIMIT 1"
_ADDRESSED, _HEAD = _CHECKPOINTS.format(which=ONE), _CHECKPOINTS.format(which=_LATEST)

_WRITES = """
SELECT w.checkpoint_id, w.channel, w.task_id, coalesce(b.type, w.type), coalesce(b.value, w.value)
FROM writes w
LEFT JOIN threads t ON t.thread_id = w.thread_id AND w.type = '@'
LEFT JOIN blobs b ON b.id = (t.number << 32) + w.value
WHERE w.thread_id = ? AND w.checkpoint_ns = ? AND w.checkpoint_id {which}
ORDER BY w.task_path, w.task_id, w.idx
"""
_PENDING = _WRITES.format(which="= ?")
_SINCE = _WRITES.format(which="IN (SELECT value FROM json_each(?)) AND w.channel IN (SELECT value FROM json_each(?))")

# By parents and not by the order of ids, which are times; CROSS JOIN keeps one look-up a step. It is read row by row,
# so whoever stops reading stops the walk.
_ANCESTORS = """
WITH RECURSIVE walk (checkpoint_id, parent_checkpoint_id, absent, metadata) AS (
    SELECT checkpoint_id, parent_checkpoint_id, absent, metadata FROM checkpoints
    WHERE thread_id = :thread AND checkpoint_ns = :namespace AND checkpoint_id = :from
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.absent, c.metadata
    FROM walk CROSS JOIN checkpoints c ON c.checkpoint_id = walk.parent_checkpoint_id
    WHERE c.thread_id = :thread AND c.checkpoint_ns = :namespace
)
SELECT checkpoint_id, iif(absent, metadata, NULL) FROM walk
"""

_SAVE = """
INSERT OR REPLACE INTO checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, absent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_PLACED = f"SELECT type, checkpoint FROM checkpoints {ONE}"
_SET_CHECKPOINT = f"UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ? {ONE}"
_WRITTEN = """
SELECT type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND task_id = ? AND idx = ?
"""
_NOTE = """
INSERT OR REPLACE INTO writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OF_THREAD = "id BETWEEN ? AND ?"
_LED_TO = """
SELECT checkpoint, NULL FROM checkpoints WHERE thread_id = ? AND type = '@'
UNION ALL SELECT value, channel FROM writes WHERE thread_id = ? AND type = '@'
"""
_THREAD_ROWS = (
    "DELETE FROM writes WHERE thread_id = ?",
    "DELETE FROM checkpoints WHERE thread_id = ?",
    "DELETE FROM writers WHERE thread_id = ?",
    "DELETE FROM threads WHERE thread_id = ?",
)
_COPY_CHECKPOINTS = """
INSERT INTO checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, absent)
SELECT ?, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, absent
FROM checkpoints WHERE thread_id = ?
"""
_COPY_WRITES = """
INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
SELECT ?, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
FROM writes WHERE thread_id = ?
"""
_BLOBS = """
SELECT id - :base, type, value FROM blobs WHERE id IN (SELECT :base + value FROM json_each(:numbers))
"""
_COPY_BLOBS = f"INSERT INTO blobs (id, type, value) SELECT id + ?, type, value FROM blobs WHERE {_OF_THREAD}"


_THREAD = "WHERE thread_id = ?"
_LATEST_ID = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_LAST_WRITE = "SELECT run, writes FROM writers WHERE thread_id = ? AND checkpoint_ns = ?"
_NOTE_WRITE = """
INSERT INTO writers (thread_id, checkpoint_ns, run, writes) VALUES (?, ?, ?, 1)
ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET run = excluded.run, writes = writes + 1
"""
_RETIRE_WRITERS = "UPDATE writers SET run = ?, writes = writes + 1 WHERE thread_id = ?"
_FORGET_WRITERS = "DELETE FROM writers WHERE thread_id = ? AND checkpoint_ns = ?"

_THREADS_OF_RUN = """
SELECT DISTINCT thread_id FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') = ?
"""
_BEGINNING_WITH = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id BETWEEN ? AND ? ORDER BY thread_id"
_HEADS = "SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
_NAMESPACES = f"SELECT DISTINCT checkpoint_ns FROM checkpoints {_THREAD}"
_LINKS = f"SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints {_THREAD} AND checkpoint_ns = ?"
_SET_PARENT = f"UPDATE checkpoints SET parent_checkpoint_id = ? {ONE}"
_DELETE_CHECKPOINT = f"DELETE FROM checkpoints {ONE}"
_DELETE_WRITES = f"DELETE FROM writes {ONE}"
_ALL_WRITES = f"""
SELECT channel, type, value, thread_id, checkpoint_ns, checkpoint_id, task_id, idx FROM writes {_THREAD}
"""
_SET_WRITE = f"UPDATE writes SET type = ?, value = ? {ONE} AND task_id = ? AND idx = ?"


def set_up(connection: sqlite3.Connection) -> None:
    """Make the tables, or give those of an older file what they lack."""
    for statement in _SCHEMA:
        connection.execute(statement)
    if connection.execute(_HAS_ABSENT).fetchone() is None:
        try:
            connection.execute(_ADD_ABSENT)
        except sqlite3.OperationalError:
            if connection.execute(_HAS_ABSENT).fetchone() is None:  # no other process was faster
                raise


class Rows(ThreadRows):
    """A thread's rows, in the transaction of `cursor`, through `serde`."""

    def __init__(self, cursor: sqlite3.Cursor, serde: SerializerProtocol, recent: Recent | None = None) -> None:
        self.cursor = cursor
        self.serde = serde
        self.recent = recent or Recent()

    # ---------------------------------------------------------------- checkpoints

    def find(self, thread_id: str, namespace: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        """The checkpoint of this id, or the latest; None when there is none."""
        place = (thread_id, namespace)
        self.cursor.execute(*(_ADDRESSED, (*place, checkpoint_id)) if checkpoint_id else (_HEAD, place))
        row = self.cursor.fetchone()
        return None if row is None else self._tuple(row)

    def search(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> list[CheckpointTuple]:
        """The checkpoints that match, the newest first."""
        where, values = search_where(config, filter, before)
        which = f"{where} ORDER BY checkpoint_id DESC LIMIT ?"
        rows = self.cursor.execute(_CHECKPOINTS.format(which=which), (*values, -1 if limit is None else limit))
        return [self._tuple(row) for row in rows.fetchall()]

    def save(self, key: Key, parent_id: str | None, checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> None:
        """Store a checkpoint; what it has in common with its parent is there already."""
        parent = Key(key.thread_id, key.namespace, parent_id) if parent_id else None
        inherited = self._values_of(parent) if parent else {}
        versions = checkpoint["channel_versions"]
        small, blobs = {}, {}
        for channel, value in checkpoint["channel_values"].items():
            number = inherited.get((channel, versions.get(channel)))
            if number is None and (items := parts.items_of(value)) is not None:
                number = self._keep_parts(key.thread_id, items, self._named_above(parent, channel) if parent else [])
            elif number is None and not is_small(value):
                kind, stored = self.serde.dumps_typed(value)
                if len(stored) > SMALL:
                    number = self._keep(key.thread_id, kind, stored)
            if number is None:
                small[channel] = value
            else:
                blobs[channel] = number
        row = {**checkpoint, "channel_values": small, **({BLOBS: blobs} if blobs else {})}
        absent = not checkpoint["channel_values"].keys() & metadata.get(COUNTERS, {}).keys()
        self.cursor.execute(_SAVE, (*key, parent_id, *self._pack(key, row), _json(metadata), absent))

    def kept(self, key: Key) -> dict[str, Any] | None:
        """The checkpoint as its row has it; None when there is none."""
        row = self.cursor.execute(_ADDRESSED, key).fetchone()
        return None if row is None else self._unpack(key, row[4], row[5])

    def _pack(self, key: Key, checkpoint: Mapping[str, Any]) -> tuple[str, bytes | int]:
        """(type, value) of a checkpoint's row, which has its id already."""
        return self._fit(
            key.thread_id, *self.serde.dumps_typed({name: part for name, part in checkpoint.items() if name != "id"})
        )

    def _unpack(self, key: Key, kind: str, stored: Any) -> dict[str, Any]:
        return {"id": key.checkpoint_id, **self.loads(key.thread_id, kind, stored)}

    def _keep_parts(self, thread_id: str, items: list[Any], before: Sequence[int]) -> list[int]:
        """Store what is new of `items`, beside the blobs of the snapshot before it; returns the numbers of all."""
        decode = partial(self.loads, thread_id)
        blobs = self._stored(thread_id, before)
        stored = [self.recent.look((thread_id, each), *blobs[each], decode) for each in before]
        return [
            before[position] if position is not None else self._keep(thread_id, *self.serde.dumps_typed(part))
            for position, part in parts.divided(items, stored)
        ]

    def _named_above(self, key: Key, channel: str) -> list[int]:
        """The blobs of a channel's value in the nearest checkpoint that holds one, this one or an ancestor."""
        for each, absent in self._ancestors(key, itself=True):
            checkpoint = None if channel in absent else self.kept(key._replace(checkpoint_id=each))
            if checkpoint and channel in checkpoint.get(BLOBS, {}):
                return parts.places(checkpoint[BLOBS][channel])
            if checkpoint and channel in checkpoint["channel_values"]:  # a stock saver's
                break
        return []

    def _values_of(self, key: Key) -> dict[tuple[str, Any], Any]:
        """The blobs of a checkpoint, by channel and version."""
        checkpoint = self.kept(key) or {}
        versions = checkpoint.get("channel_versions", {})
        return {(name, versions[name]): blob for name, blob in checkpoint.get(BLOBS, {}).items() if name in versions}

    def _tuple(self, row: Sequence[Any]) -> CheckpointTuple:
        thread_id, namespace, checkpoint_id, parent_id, kind, stored, metadata = row
        checkpoint = self._unpack(Key(thread_id, namespace, checkpoint_id), kind, stored)
        values = self.blobs(thread_id, checkpoint.pop(BLOBS, {}))
        checkpoint["channel_values"] = {**checkpoint["channel_values"], **values}
        place = {"thread_id": thread_id, "checkpoint_ns": namespace}
        return CheckpointTuple(
            {"configurable": {**place, "checkpoint_id": checkpoint_id}},
            cast(Checkpoint, checkpoint),
            json.loads(metadata) if metadata is not None else {},
            {"configurable": {**place, "checkpoint_id": parent_id}} if parent_id else None,
            [(write[2], write[1], self.loads(thread_id, write[3], write[4])) for write in self._pending(row[:3])],
        )

    # ---------------------------------------------------------------- writes

    def note(self, key: Key, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> None:
        """Store what a task wrote. What it wrote before stays, unless all of it is about how the task went."""
        again = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        for position, (channel, value) in enumerate(writes):
            place = (*key, task_id, WRITES_IDX_MAP.get(channel, position))
            before = self.cursor.execute(_WRITTEN, place).fetchone()
            if before is not None:
                if not again:
                    continue
                self._drop(key.thread_id, *before)
            fitted = self._fit(key.thread_id, *self.serde.dumps_typed(value))
            self.cursor.execute(_NOTE, (*key, task_id, task_path, place[4], channel, *fitted))

    def _pending(self, key: Sequence[Any]) -> list[Any]:
        return self.cursor.execute(_PENDING, key).fetchall()

    def history(self, key: Key, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """For each DeltaChannel, the nearest ancestor's value, if there is one, and the writes since, oldest first."""
        seeds: dict[str, Any] = {}
        chains: dict[str, list[str]] = {channel: [] for channel in channels}
        for each, absent in self._ancestors(key):
            missing = [channel for channel in channels if channel not in seeds]
            if not missing:
                break
            for channel in missing:
                chains[channel].append(each)
            # A channel that is known to be absent need not be looked for: to decode every checkpoint takes most of the
            # time that a thread takes to load.
            sought = [channel for channel in missing if channel not in absent]
            seeds.update(self._values(key._replace(checkpoint_id=each), sought) if sought else {})
        writes = self._writes_on(key, chains)
        return {
            channel: cast(
                DeltaChannelHistory,
                {"writes": [write for each in reversed(chain) for write in writes.get((channel, each), [])]}
                | ({"seed": seeds[channel]} if channel in seeds else {}),
            )
            for channel, chain in chains.items()
        }

    def _ancestors(self, key: Key, *, itself: bool = False) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each ancestor once, the nearest first, with the channels that it is known not to hold."""
        place = {"thread": key.thread_id, "namespace": key.namespace, "from": key.checkpoint_id}
        seen = set() if itself else {key.checkpoint_id}
        walk = self.cursor.connection.cursor().execute(_ANCESTORS, place)
        if not itself:
            next(walk, None)
        for each, metadata in walk:
            if each in seen:  # saved again below its own descendant
                return
            seen.add(each)
            yield each, json.loads(metadata or b"{}").get(COUNTERS) or {}

    def _values(self, key: Key, channels: Sequence[str]) -> dict[str, Any]:
        """Those of these channels that a checkpoint holds."""
        checkpoint = self.kept(key) or {}
        small = {name: each for name, each in checkpoint.get("channel_values", {}).items() if name in channels}
        blobs = {name: each for name, each in checkpoint.get(BLOBS, {}).items() if name in channels}
        return small | self.blobs(key.thread_id, blobs)

    def _writes_on(self, key: Key, chains: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[PendingWrite]]:
        longest = max(chains.values(), key=len, default=[])
        found: dict[tuple[str, str], list[PendingWrite]] = {}
        values = (key.thread_id, key.namespace, json.dumps(longest), json.dumps(list(chains)))
        for each, channel, task_id, kind, stored in self.cursor.execute(_SINCE, values).fetchall():
            found.setdefault((channel, each), []).append((task_id, channel, self.loads(key.thread_id, kind, stored)))
        return found

    # ---------------------------------------------------------------- the fence

    def head(self, place: Place) -> str | None:
        """The id of the latest checkpoint; None when there is none."""
        head: str | None = self.cursor.execute(_LATEST_ID, place).fetchone()[0]
        return head

    def last_write(self, place: Place) -> Last:
        """Who wrote last, and how often anyone has."""
        row = self.cursor.execute(_LAST_WRITE, place).fetchone()
        return Last(*row) if row is not None else Last()

    def note_write(self, place: Place, run: str) -> None:
        """Count a write of this run."""
        self.cursor.execute(_NOTE_WRITE, (*place, run))

    def retire(self, thread_id: str, run: str) -> None:
        """Let whoever has loaded the thread no longer write."""
        self.cursor.execute(_RETIRE_WRITERS, (run, thread_id))

    def forget_writers(self, place: Place) -> None:
        """Forget who wrote: nothing is left there."""
        self.cursor.execute(_FORGET_WRITERS, place)

    # ---------------------------------------------------------------- blobs

    def blobs(self, thread_id: str, named: Mapping[str, Any]) -> dict[str, Any]:
        """The values of these channels, each decoded anew."""
        blobs = self._stored(thread_id, [number for place in named.values() for number in parts.places(place)])
        decode = partial(self.loads, thread_id)
        found = {}
        for channel, place in named.items():
            if isinstance(place, list):
                found[channel] = parts.joined([self.recent.read((thread_id, n), *blobs[n], decode) for n in place])
            else:
                found[channel] = decode(*blobs[place])
        return found

    def _stored(self, thread_id: str, numbers: Sequence[int]) -> dict[int, tuple[str, Any]]:
        """(type, value) of each of these blobs; of one that is gone, what leads nowhere."""
        found: dict[int, tuple[str, Any]] = {number: (ELSEWHERE, number) for number in numbers}
        if numbers:
            place = {"base": self._base(thread_id), "numbers": json.dumps(list(numbers))}
            found |= {number: (kind, stored) for number, kind, stored in self.cursor.execute(_BLOBS, place).fetchall()}
        return found

    def loads(self, thread_id: str, kind: str, stored: Any) -> Any:
        """The object that a row holds; StoreError when what it leads to is gone."""
        if kind == ELSEWHERE:
            raise StoreError(f"thread {thread_id!r} lacks a value that its checkpoints name; restore a backup")
        return self.serde.loads_typed((kind, stored))

    def _fit(self, thread_id: str, kind: str, stored: bytes) -> tuple[str, bytes | int]:
        """(type, value) for a row: as they are, or the number of a blob."""
        return (kind, stored) if len(stored) <= _INLINE else (ELSEWHERE, self._keep(thread_id, kind, stored))

    def _keep(self, thread_id: str, kind: str, stored: bytes) -> int:
        """Store a value; returns its number in the thread."""
        base = self._base(thread_id, begin=True)
        last = self.cursor.execute(f"SELECT max(id) FROM blobs WHERE {_OF_THREAD}", _span(base)).fetchone()[0]
        place = (base if last is None else last) + 1
        self.cursor.execute("INSERT INTO blobs (id, type, value) VALUES (?, ?, ?)", (place, kind, stored))
        return int(place - base)

    def _drop(self, thread_id: str, kind: str, stored: Any) -> None:
        if kind == ELSEWHERE:
            self.cursor.execute("DELETE FROM blobs WHERE id = ?", (self._base(thread_id) + stored,))

    def _base(self, thread_id: str, *, begin: bool = False) -> int:
        """What a thread's numbers are counted from."""
        row = self.cursor.execute("SELECT number FROM threads WHERE thread_id = ?", (thread_id,)).fetchone()
        if row is None and begin:
            self.cursor.execute("INSERT INTO threads (thread_id) VALUES (?)", (thread_id,))
            return self._base(thread_id)
        return row[0] << _BITS if row else 0

    # ---------------------------------------------------------------- whole threads

    def all_kept(self, thread_id: str) -> list[Kept]:
        """Every checkpoint of a thread as its row has it."""
        rows = self.cursor.execute(_CHECKPOINTS.format(which="WHERE thread_id = ?"), (thread_id,)).fetchall()
        return [
            Kept(key := Key(*row[:3]), self._unpack(key, row[4], row[5]), json.loads(row[6]) if row[6] else {})
            for row in rows
        ]

    def put_back(self, kept: Kept) -> None:
        """Store a checkpoint as it is now, in its row."""
        thread_id = kept.key.thread_id
        self._drop(thread_id, *self.cursor.execute(_PLACED, kept.key).fetchone())
        packed = self._pack(kept.key, kept.checkpoint)
        self.cursor.execute(_SET_CHECKPOINT, (*packed, _json(kept.metadata), *kept.key))

    def all_blobs(self, thread_id: str) -> Iterator[Any]:
        """What every blob of a thread holds, also those that nothing leads to."""
        return (value for _, value in self._numbered(thread_id))

    def _numbered(self, thread_id: str) -> Iterator[tuple[int, Any]]:
        base = self._base(thread_id)
        statement = f"SELECT id, type, value FROM blobs WHERE {_OF_THREAD}"
        for place, kind, stored in self.cursor.execute(statement, _span(base)).fetchall():
            yield place - base, self.loads(thread_id, kind, stored)

    def writes_of(self, thread_id: str) -> list[Value]:
        """Every write of a thread whose value is in its own row."""
        rows = self.cursor.execute(_ALL_WRITES, (thread_id,)).fetchall()
        return [
            Value(channel, self.loads(thread_id, kind, stored), key)
            for channel, kind, stored, *key in rows
            if kind != ELSEWHERE
        ]

    def set_write(self, written: Value, value: Any) -> None:
        """Store another value in a write's row."""
        self.cursor.execute(_SET_WRITE, (*self.serde.dumps_typed(value), *written.key))

    def shared(self, thread_id: str, checkpoints: Sequence[Kept]) -> Iterator[Value]:
        """The blobs that these checkpoints or the thread's writes lead to, each with its number as its key."""
        channels = {
            number: name
            for kept in checkpoints
            for name, place in kept.checkpoint.get(BLOBS, {}).items()
            for number in parts.places(place)
        }
        for channel, kind, stored, *_ in self.cursor.execute(_ALL_WRITES, (thread_id,)).fetchall():
            if kind == ELSEWHERE:
                channels[stored] = channel
        for number, value in self._numbered(thread_id):
            if number in channels:  # else it is a checkpoint that was too large for its row
                yield Value(channels[number], value, [number])

    def set_shared(self, thread_id: str, shared: Value, value: Any) -> None:
        """Store another value under a number, for all that name it."""
        place = self._base(thread_id) + shared.key[0]
        self.cursor.execute(
            "UPDATE blobs SET type = ?, value = ? WHERE id = ?", (*self.serde.dumps_typed(value), place)
        )

    def sweep(self, thread_id: str) -> None:
        """Delete the blobs that nothing in the thread leads to any more."""
        named = self._named(thread_id)
        base = self._base(thread_id)
        self.cursor.execute(
            f"DELETE FROM blobs WHERE {_OF_THREAD} AND id - ? NOT IN (SELECT value FROM json_each(?))",
            (*_span(base), base, json.dumps(sorted(named))),
        )

    def is_whole(self, thread_id: str) -> bool:
        """Whether every value that the thread names is there."""
        base, ids = self._base(thread_id), f"SELECT id FROM blobs WHERE {_OF_THREAD}"
        stored = {place - base for (place,) in self.cursor.execute(ids, _span(base)).fetchall()}
        try:
            return self._named(thread_id) <= stored
        except StoreError:
            return False

    def _named(self, thread_id: str) -> set[int]:
        """The numbers of the blobs that something in the thread leads to."""
        named = {
            number
            for kept in self.all_kept(thread_id)
            for place in kept.checkpoint.get(BLOBS, {}).values()
            for number in parts.places(place)
        }
        return named | {number for number, _ in self.cursor.execute(_LED_TO, (thread_id, thread_id)).fetchall()}

    def length(self, thread_id: str) -> int:
        """How many checkpoints the thread has."""
        return int(self.cursor.execute(f"SELECT count(*) FROM checkpoints {_THREAD}", (thread_id,)).fetchone()[0])

    def heads(self) -> list[tuple[str, str]]:
        """Of each thread its id and that of its latest checkpoint."""
        return self.cursor.execute(_HEADS).fetchall()

    def threads_of_runs(self, run_ids: Collection[str]) -> list[str]:
        """The threads in which these runs left a checkpoint, sorted."""
        found = [self.cursor.execute(_THREADS_OF_RUN, (run,)).fetchall() for run in run_ids]
        return sorted({thread_id for rows in found for (thread_id,) in rows})

    def beginning_with(self, prefix: str) -> list[str]:
        """The threads whose ids begin so, sorted."""
        return [row[0] for row in self.cursor.execute(_BEGINNING_WITH, (prefix, f"{prefix}\U0010ffff")).fetchall()]

    def namespaces(self, thread_id: str) -> list[str]:
        """The namespaces of a thread that have a checkpoint."""
        return [row[0] for row in self.cursor.execute(_NAMESPACES, (thread_id,)).fetchall()]

    def links(self, place: Place) -> list[Link]:
        """How the checkpoints of a namespace are linked."""
        rows = self.cursor.execute(_LINKS, place).fetchall()
        return [Link(each, parent, json.loads(metadata or b"{}")) for each, parent, metadata in rows]

    def drop(self, place: Place, checkpoint_ids: Sequence[str]) -> None:
        """Delete these checkpoints and the writes on them."""
        for each in checkpoint_ids:
            self.cursor.execute(_DELETE_WRITES, (*place, each))
            self.cursor.execute(_DELETE_CHECKPOINT, (*place, each))

    def drop_task(self, key: Key, task_id: str) -> None:
        """Delete what a task wrote on a checkpoint."""
        self.cursor.execute(f"{_DELETE_WRITES} AND task_id = ?", (*key, task_id))

    def relink(self, key: Key, parent_id: str | None) -> None:
        """Give a checkpoint another parent."""
        self.cursor.execute(_SET_PARENT, (parent_id, *key))

    def delete(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self.cursor.execute(f"DELETE FROM blobs WHERE {_OF_THREAD}", _span(self._base(thread_id)))
        for statement in _THREAD_ROWS:
            self.cursor.execute(statement, (thread_id,))

    def copy(self, source: str, target: str) -> None:
        """Copy a thread. Its numbers are its own, so that they mean the same in the copy."""
        begin = self._base(source)
        self.cursor.execute(_COPY_BLOBS, (self._base(target, begin=True) - begin, *_span(begin)))
        self.cursor.execute(_COPY_CHECKPOINTS, (target, source))
        self.cursor.execute(_COPY_WRITES, (target, source))


def _span(base: int) -> tuple[int, int]:
    """The ids that a thread's blobs may have; none for a thread that has no number."""
    return (base + 1, base + (1 << _BITS) - 1) if base else (0, 0)


def _json(metadata: Mapping[str, Any]) -> bytes:
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "ignore")
