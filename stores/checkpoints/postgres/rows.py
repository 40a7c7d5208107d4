"""How threads lie on a server: in the three tables of LangGraph's saver, and one that says who wrote last.

A checkpoint is JSON with names, versions and ids. Its channels' values are not in it as text, but as the serializer
gives them, so that what is to be encrypted is: small ones together under "small", and each of the others in a row of
`checkpoint_blobs`, by channel and version, which the checkpoints that have it in common name under "blobs"; a snapshot
names the versions of its parts. What a stock saver wrote has neither; its values are found by the channels' versions,
and in the JSON.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.errors import StoreError
from everthread.stores.checkpoints import parts
from everthread.stores.checkpoints.fence import Last
from everthread.stores.checkpoints.layout import BLOBS, SMALL, Kept, Key, Link, Place, ThreadRows, Value, is_small
from everthread.stores.checkpoints.recent import Recent
from everthread.stores.postgres.sending import send_all

__all__ = ["Rows", "threads_and_torn"]

ONE = "WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
_LATEST = "WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY checkpoint_id DESC LIMIT 1"
_AT = "WHERE thread_id = %s AND checkpoint_ns = %s"
_THREAD = "WHERE thread_id = %s"

# LATERAL ... LIMIT 1, here and below: a look-up by the primary key for each. Of a thread that is much larger than the
# others the planner knows little, and a join could read all of it each time.
_PLACES = """
jsonb_each(coalesce(c.checkpoint -> 'blobs', c.checkpoint -> 'channel_versions')) v
CROSS JOIN LATERAL jsonb_path_query(v.value, 'lax $[*]') WITH ORDINALITY p (version, part)
"""
_NAMED = f"""
FROM {_PLACES} CROSS JOIN LATERAL (
    SELECT * FROM checkpoint_blobs
    WHERE thread_id = c.thread_id AND checkpoint_ns = c.checkpoint_ns AND channel = v.key
    AND version = p.version #>> ARRAY[]::text[] AND type <> 'empty' LIMIT 1
) b
"""
_KEPT = f"""
SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint, c.metadata,
       CASE WHEN c.checkpoint ? 'blobs' THEN NULL ELSE ARRAY(SELECT v.key {_NAMED}) END
       {{more}}
FROM (SELECT * FROM checkpoints {{which}}) c
ORDER BY c.checkpoint_id DESC
"""
_TUPLES = _KEPT.replace(
    "{more}",
    f""",
       ARRAY(SELECT ARRAY[convert_to(b.channel, 'UTF8'), convert_to(b.type, 'UTF8'), b.blob] {_NAMED} ORDER BY p.part),
       ARRAY(SELECT ARRAY[convert_to(w.task_id, 'UTF8'), convert_to(w.channel, 'UTF8'), convert_to(w.type, 'UTF8'),
                          w.blob]
             FROM checkpoint_writes w
             WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
             AND w.checkpoint_id = c.checkpoint_id
             ORDER BY w.task_path COLLATE "C", w.task_id COLLATE "C", w.idx)
""",
)
_ADDRESSED, _HEAD = _TUPLES.format(which=ONE), _TUPLES.format(which=_LATEST)
_KEPT_ONE, _KEPT_ALL = _KEPT.format(which=ONE, more=""), _KEPT.format(which=_THREAD, more="")

# Each ancestor, as far as the last of the channels is found. UNION drops a row that was there, so that a checkpoint
# which was saved again below its own descendant ends the walk.
_ANCESTORS = """
WITH RECURSIVE walk (checkpoint_id, parent_checkpoint_id, missing) AS (
    SELECT checkpoint_id, parent_checkpoint_id, %(channels)s::text[] FROM checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id = %(from)s
    UNION
    SELECT c.checkpoint_id, c.parent_checkpoint_id, ARRAY(
        SELECT m FROM unnest(walk.missing) m
        WHERE NOT CASE WHEN c.checkpoint ? 'blobs'
            THEN c.checkpoint -> 'blobs' ? m OR coalesce(c.checkpoint -> 'small' -> 'held' ? m, false)
            ELSE coalesce(c.checkpoint -> 'channel_values' -> m, 'null') <> 'null' OR coalesce((
                SELECT true FROM checkpoint_blobs b
                WHERE b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = m
                AND b.version = c.checkpoint -> 'channel_versions' ->> m AND b.type <> 'empty' LIMIT 1
            ), false)
        END
    )
    FROM walk CROSS JOIN LATERAL (
        SELECT * FROM checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id = walk.parent_checkpoint_id
        LIMIT 1
    ) c
    WHERE cardinality(walk.missing) > 0
)
SELECT checkpoint_id, parent_checkpoint_id, missing FROM walk
"""
_SINCE = f"""
SELECT checkpoint_id, channel, task_id, type, blob FROM checkpoint_writes {_AT}
AND checkpoint_id = ANY(%s) AND channel = ANY(%s)
ORDER BY task_path COLLATE "C", task_id COLLATE "C", idx
"""
_SEED = f"""
SELECT c.checkpoint -> 'small', c.checkpoint -> 'channel_values' -> %s, c.checkpoint -> 'blobs', ARRAY(
    SELECT ARRAY[convert_to(b.type, 'UTF8'), b.blob] {_NAMED} WHERE v.key = %s ORDER BY p.part
) FROM (SELECT * FROM checkpoints {ONE}) c
"""

# The parts of the nearest checkpoint that has some, from this one upwards.
_NEAREST = f"""
WITH RECURSIVE walk (checkpoint_id, parent_checkpoint_id, found) AS (
    SELECT checkpoint_id, parent_checkpoint_id, coalesce(checkpoint -> 'blobs' ? %(channel)s, false) FROM checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id = %(from)s
    UNION
    SELECT c.checkpoint_id, c.parent_checkpoint_id, coalesce(c.checkpoint -> 'blobs' ? %(channel)s, false)
    FROM walk CROSS JOIN LATERAL (
        SELECT * FROM checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id = walk.parent_checkpoint_id
        LIMIT 1
    ) c
    WHERE NOT walk.found
)
SELECT b.version, b.type, b.blob
FROM (
    SELECT c.* FROM checkpoints c JOIN walk USING (checkpoint_id)
    WHERE c.thread_id = %(thread)s AND c.checkpoint_ns = %(namespace)s AND walk.found
) c CROSS JOIN {_PLACES} CROSS JOIN LATERAL (
    SELECT * FROM checkpoint_blobs
    WHERE thread_id = c.thread_id AND checkpoint_ns = c.checkpoint_ns AND channel = v.key
    AND version = p.version #>> ARRAY[]::text[] LIMIT 1
) b
WHERE v.key = %(channel)s ORDER BY p.part
"""

_NAMES = f"SELECT checkpoint -> 'blobs' FROM checkpoints {ONE}"
_SAVE = """
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE
SET parent_checkpoint_id = EXCLUDED.parent_checkpoint_id, checkpoint = EXCLUDED.checkpoint,
    metadata = EXCLUDED.metadata
"""
_SAVE_BLOB = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE SET type = EXCLUDED.type, blob = EXCLUDED.blob
"""
_NOTE = """
INSERT INTO checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
"""
_NOTE_FIRST = f"{_NOTE} DO NOTHING"
_NOTE_LAST = f"""{_NOTE} DO UPDATE
SET task_path = EXCLUDED.task_path, channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob
"""
_SET_CHECKPOINT = f"UPDATE checkpoints SET checkpoint = %s::jsonb, metadata = %s::jsonb {ONE}"

_LATEST_ID = f"SELECT max(checkpoint_id) FROM checkpoints {_AT}"
_LAST_WRITE = f"SELECT run, writes FROM checkpoint_writers {_AT}"
_NOTE_WRITE = """
INSERT INTO checkpoint_writers AS w (thread_id, checkpoint_ns, run, writes) VALUES (%s, %s, %s, 1)
ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET run = EXCLUDED.run, writes = w.writes + 1
"""
_RETIRE = f"UPDATE checkpoint_writers SET run = %s, writes = writes + 1 {_THREAD}"

_ALL_WRITES = f"SELECT channel, type, blob, checkpoint_ns, checkpoint_id, task_id, idx FROM checkpoint_writes {_THREAD}"
_SET_WRITE = f"UPDATE checkpoint_writes SET type = %s, blob = %s {ONE} AND task_id = %s AND idx = %s"
_ALL_BLOBS = f"""
SELECT channel, type, blob, checkpoint_ns, version FROM checkpoint_blobs {_THREAD} AND type <> 'empty'
"""
_SET_BLOB = f"UPDATE checkpoint_blobs SET type = %s, blob = %s {_AT} AND channel = %s AND version = %s"
# A subquery that is hashed: joined, a thread of many rows could take their square.
_SWEEP = f"""
DELETE FROM checkpoint_blobs {_THREAD} AND (checkpoint_ns, channel, version) NOT IN (
    SELECT c.checkpoint_ns, v.key, p.version #>> ARRAY[]::text[]
    FROM checkpoints c CROSS JOIN LATERAL {_PLACES}
    WHERE c.thread_id = %s AND v.value <> 'null'
)
"""
_THREADS_OF_RUNS = """
SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ? 'run_id' AND metadata ->> 'run_id' = ANY(%s)
"""
_BEGINNING_WITH = "SELECT DISTINCT thread_id FROM checkpoints WHERE starts_with(thread_id, %s)"
_HEADS = "SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
_LINKS = f"SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints {_AT}"
_TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs", "checkpoint_writers")
_COPIED = {
    "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
    "checkpoint_blobs": "checkpoint_ns, channel, version, type, blob",
    "checkpoint_writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob",
}
_TORN = """
SELECT DISTINCT c.thread_id
FROM checkpoints c CROSS JOIN LATERAL jsonb_each(c.checkpoint -> 'blobs') v
CROSS JOIN LATERAL jsonb_path_query(v.value, 'lax $[*]') p (version)
LEFT JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
    AND b.channel = v.key AND b.version = p.version #>> ARRAY[]::text[]
WHERE b.thread_id IS NULL ORDER BY c.thread_id
"""


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""The character 0 as JSON writes it, and not where the backslash is one that was said."""


class Rows(ThreadRows):
    """A thread's rows, in the transaction and the pipeline that `connection` is in, through `serde`."""

    def __init__(
        self, connection: psycopg.Connection[Any], serde: SerializerProtocol, recent: Recent | None = None
    ) -> None:
        self.connection = connection
        self.serde = serde
        self.recent = recent or Recent()
        self._parents: dict[Key, psycopg.Cursor[Any]] = {}

    def ask(self, statement: str, values: Any = ()) -> list[Any]:
        """The rows of a statement."""
        return self.send(statement, values).fetchall()

    def send(self, statement: str, values: Any = ()) -> psycopg.Cursor[Any]:
        """A cursor that will have the rows of a statement: what is sent before the first is fetched goes together."""
        cursor = self.connection.cursor(binary=True).execute(statement, values)
        send_all(self.connection)
        return cursor

    def tell(self, statement: str, values: Any = ()) -> None:
        """Queue a statement whose result is not asked for."""
        self.connection.cursor().execute(statement, values)
        send_all(self.connection)

    def lock(self, number: int) -> None:
        """Let no other transaction have this lock before the end of this one."""
        self.tell("SELECT pg_advisory_xact_lock(%s)", (number,))

    # ---------------------------------------------------------------- checkpoints

    def find(self, thread_id: str, namespace: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        """The checkpoint of this id, or the latest; None when there is none."""
        place = (thread_id, namespace)
        rows = self.ask(_ADDRESSED, (*place, checkpoint_id)) if checkpoint_id else self.ask(_HEAD, place)
        return self._tuple(rows[0]) if rows else None

    def latest(self, place: Place) -> tuple[CheckpointTuple | None, Last]:
        """The latest checkpoint, and who wrote last, asked at once."""
        last, rows = self.send(_LAST_WRITE, place), self.send(_HEAD, place)
        return next((self._tuple(row) for row in rows.fetchall()), None), _last(last.fetchall())

    def search(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> list[CheckpointTuple]:
        """The checkpoints that match, the newest first. A nested filter matches what has at least its parts."""
        conditions: list[tuple[str, Any]] = []
        if config:
            configurable = config["configurable"]
            conditions.append(("thread_id = %s", str(configurable["thread_id"])))
            if configurable.get("checkpoint_ns") is not None:
                conditions.append(("checkpoint_ns = %s", configurable["checkpoint_ns"]))
            if checkpoint_id := get_checkpoint_id(config):
                conditions.append(("checkpoint_id = %s", checkpoint_id))
        if filter:
            conditions.append(("metadata @> %s::jsonb", _json(filter)))
        if before is not None:
            conditions.append(("checkpoint_id < %s", get_checkpoint_id(before)))
        where = f"WHERE {' AND '.join(each for each, _ in conditions)}" if conditions else ""
        which = f"{where} ORDER BY checkpoint_id DESC LIMIT %s"
        rows = self.ask(_TUPLES.format(which=which), (*[value for _, value in conditions], limit))
        return [self._tuple(row) for row in rows]

    def save(self, key: Key, parent_id: str | None, checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> None:
        """Store a checkpoint; what it has in common with its parent is there already."""
        inherited = self._named(key._replace(checkpoint_id=parent_id)) if parent_id else {}
        versions = checkpoint["channel_versions"]
        small: dict[str, Any] = {}
        blobs: dict[str, Any] = {}
        for channel, value in checkpoint["channel_values"].items():
            # A value without a version is this checkpoint's alone.
            version = str(versions.get(channel, key.checkpoint_id))
            if inherited.get(channel) == version:
                blobs[channel] = version
                continue
            if (items := parts.items_of(value)) is not None:
                blobs[channel] = self._keep_parts(key._replace(checkpoint_id=parent_id or ""), channel, version, items)
                continue
            if not is_small(value):
                kind, stored = self.serde.dumps_typed(value)
                if len(stored) > SMALL:
                    blobs[channel] = version
                    self.tell(_SAVE_BLOB, (key.thread_id, key.namespace, channel, version, kind, stored))
                    continue
            small[channel] = value
        row = self._pack({**checkpoint, "channel_values": small, BLOBS: blobs})
        self.tell(_SAVE, (*key, parent_id, row, _json(metadata)))

    def kept(self, key: Key) -> dict[str, Any] | None:
        """The checkpoint as its row has it; None when there is none."""
        rows = self.ask(_KEPT_ONE, key)
        return self._unpack(rows[0]) if rows else None

    def _keep_parts(self, parent: Key, channel: str, version: str, items: list[Any]) -> list[str]:
        """Store what is new of `items`, beside the parts of the snapshot at `parent` or above; returns the versions of
        all."""
        before = self._parts_above(parent, channel)
        found = []
        for number, (position, part) in enumerate(parts.divided(items, [value for _, value in before])):
            if position is None:
                name = f"{version}/{number}"
                self.tell(_SAVE_BLOB, (*parent[:2], channel, name, *self.serde.dumps_typed(part)))
            found.append(before[position][0] if position is not None else name)
        return found

    def _parts_above(self, key: Key, channel: str) -> list[tuple[str, Any]]:
        """The rows of a channel's value in the nearest checkpoint that has some, this one or one above."""
        rows = self.ask(
            _NEAREST,
            {"thread": key.thread_id, "namespace": key.namespace, "from": key.checkpoint_id, "channel": channel},
        )
        at = (*key[:2], channel)
        return [(name, self.recent.look((*at, name), kind, stored, self._loads)) for name, kind, stored in rows]

    def _named(self, key: Key) -> dict[str, Any]:
        """The versions of a checkpoint's values that are rows of their own; {} for what a stock saver wrote."""
        rows = (self._parents.pop(key, None) or self.send(_NAMES, key)).fetchall()
        return (rows[0][0] or {}) if rows else {}

    def _pack(self, checkpoint: Mapping[str, Any]) -> str:
        small = checkpoint["channel_values"]
        row = {**checkpoint, "channel_values": {}}
        if small:
            kind, stored = self.serde.dumps_typed(small)
            row["small"] = {"held": list(small), "type": kind, "value": b64encode(stored).decode()}
        return _json(row)

    def _unpack(self, row: Sequence[Any]) -> dict[str, Any]:
        checkpoint, names = dict(row[4]), row[6]
        small = checkpoint.pop("small", None)
        if small:
            checkpoint["channel_values"] = self.serde.loads_typed((small["type"], b64decode(small["value"])))
        elif names is not None:  # a stock saver's
            versions = checkpoint["channel_versions"]
            checkpoint[BLOBS] = {name: str(versions[name]) for name in names}
            inline = checkpoint.get("channel_values") or {}
            checkpoint["channel_values"] = {name: value for name, value in inline.items() if name not in names}
        return checkpoint

    def _tuple(self, row: Sequence[Any]) -> CheckpointTuple:
        thread_id, namespace, checkpoint_id, parent_id, _, metadata, _, blobs, writes = row
        checkpoint = self._unpack(row)
        held: dict[str, list[tuple[str, bytes]]] = {}
        for channel, kind, each in blobs:
            held.setdefault(channel.decode(), []).append((kind.decode(), each))
        values = {
            name: self._whole((thread_id, namespace, name), place, held.get(name, []))
            for name, place in checkpoint.pop(BLOBS).items()
        }
        checkpoint["channel_values"] = {**checkpoint["channel_values"], **values}
        place = {"thread_id": thread_id, "checkpoint_ns": namespace}
        return CheckpointTuple(
            {"configurable": {**place, "checkpoint_id": checkpoint_id}},
            cast(Checkpoint, checkpoint),
            metadata,
            {"configurable": {**place, "checkpoint_id": parent_id}} if parent_id else None,
            [
                (task_id.decode(), channel.decode(), self.serde.loads_typed((kind.decode(), each)))
                for task_id, channel, kind, each in writes
            ],
        )

    # ---------------------------------------------------------------- writes

    def note(self, key: Key, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> None:
        """Store what a task wrote. What it wrote before stays, unless all of it is about how the task went."""
        statement = _NOTE_LAST if all(channel in WRITES_IDX_MAP for channel, _ in writes) else _NOTE_FIRST
        for position, (channel, value) in enumerate(writes):
            place = (*key, task_id, task_path, WRITES_IDX_MAP.get(channel, position), channel)
            self.tell(statement, (*place, *self.serde.dumps_typed(value)))

    def history(self, key: Key, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """For each DeltaChannel, the nearest ancestor's value, if there is one, and the writes since, oldest first."""
        holders: dict[str, str] = {}
        chains: dict[str, list[str]] = {channel: [] for channel in channels}
        for each, missing in self._ancestors(key, channels):
            for channel in [channel for channel in channels if channel not in holders]:
                chains[channel].append(each)
                if channel not in missing:
                    holders[channel] = each
        longest = max(chains.values(), key=len, default=[])
        noted = self.send(_SINCE, (key.thread_id, key.namespace, list(longest), list(chains)))
        sought = {
            channel: self.send(_SEED, (channel, channel, *key._replace(checkpoint_id=each)))
            for channel, each in holders.items()
        }
        writes: dict[tuple[str, str], list[PendingWrite]] = {}
        for each, channel, task_id, kind, stored in noted.fetchall():
            writes.setdefault((channel, each), []).append((task_id, channel, self.serde.loads_typed((kind, stored))))
        seeds = {channel: self._seed((*key[:2], channel), *seed.fetchall()[0]) for channel, seed in sought.items()}
        return {
            channel: cast(
                DeltaChannelHistory,
                {"writes": [write for each in reversed(chain) for write in writes.get((channel, each), [])]}
                | ({"seed": seeds[channel]} if channel in seeds else {}),
            )
            for channel, chain in chains.items()
        }

    def _ancestors(self, key: Key, channels: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Each ancestor once, the nearest first, with the channels that neither it nor one before it holds."""
        place = {"thread": key.thread_id, "namespace": key.namespace, "from": key.checkpoint_id}
        rows = self.ask(_ANCESTORS, {**place, "channels": list(channels)})
        steps = {each: (parent, missing) for each, parent, missing in reversed(rows)}
        parent, _ = steps.pop(key.checkpoint_id, (None, []))
        while parent in steps:
            each = parent
            parent, missing = steps.pop(each)
            yield each, missing

    def _seed(self, at: tuple[str, str, str], small: Any, inline: Any, named: Any, blobs: Sequence[Any]) -> Any:
        """The value of a channel that a checkpoint holds, from a row of `_SEED`."""
        thread_id, _, channel = at
        stored = [(kind.decode(), each) for kind, each in blobs]
        if named is None:
            return self.serde.loads_typed(stored[0]) if stored else inline
        if channel in named:
            return self._whole(at, named[channel], stored)
        if small is None or channel not in small["held"]:
            raise _lacking(thread_id)
        return self.serde.loads_typed((small["type"], b64decode(small["value"])))[channel]

    def _whole(self, at: tuple[str, str, str], named: Any, stored: Sequence[tuple[str, bytes]]) -> Any:
        """The value of a channel that a checkpoint names, of what was found of it."""
        if len(parts.places(named)) != len(stored):
            raise _lacking(at[0])
        if not isinstance(named, list):
            return self.serde.loads_typed(stored[0])
        read = [
            self.recent.read((*at, version), kind, each, self._loads)
            for version, (kind, each) in zip(named, stored, strict=True)
        ]
        return parts.joined(read)

    def _loads(self, kind: str, stored: bytes) -> Any:
        return self.serde.loads_typed((kind, stored))

    # ---------------------------------------------------------------- the fence

    def head(self, place: Place) -> str | None:
        """The id of the latest checkpoint; None when there is none."""
        head: str | None = self.ask(_LATEST_ID, place)[0][0]
        return head

    def last_write(self, place: Place) -> Last:
        """Who wrote last, and how often anyone has."""
        return _last(self.ask(_LAST_WRITE, place))

    def stand(self, place: Place, parent_id: str | None) -> tuple[str | None, Last]:
        """`head`, `last_write` and what `save` will want to know, asked at once."""
        head, last = self.send(_LATEST_ID, place), self.send(_LAST_WRITE, place)
        if parent_id:
            key = Key(*place, parent_id)
            self._parents[key] = self.send(_NAMES, key)
        return head.fetchall()[0][0], _last(last.fetchall())

    def note_write(self, place: Place, run: str) -> None:
        """Count a write of this run."""
        self.tell(_NOTE_WRITE, (*place, run))

    def retire(self, thread_id: str, run: str) -> None:
        """Let whoever has loaded the thread no longer write."""
        self.tell(_RETIRE, (run, thread_id))

    def forget_writers(self, place: Place) -> None:
        """Forget who wrote: nothing is left there."""
        self.tell(f"DELETE FROM checkpoint_writers {_AT}", place)

    # ---------------------------------------------------------------- what is stored

    def all_kept(self, thread_id: str) -> list[Kept]:
        """Every checkpoint of a thread as its row has it."""
        return [Kept(Key(*row[:3]), self._unpack(row), row[5]) for row in self.ask(_KEPT_ALL, (thread_id,))]

    def put_back(self, kept: Kept) -> None:
        """Store a checkpoint as it is now, in its row."""
        self.tell(_SET_CHECKPOINT, (self._pack(kept.checkpoint), _json(kept.metadata), *kept.key))

    def writes_of(self, thread_id: str) -> list[Value]:
        """Every write of a thread."""
        return [
            Value(channel, self.serde.loads_typed((kind, stored)), [thread_id, *key])
            for channel, kind, stored, *key in self.ask(_ALL_WRITES, (thread_id,))
        ]

    def set_write(self, written: Value, value: Any) -> None:
        """Store another value in a write's row."""
        self.tell(_SET_WRITE, (*self.serde.dumps_typed(value), *written.key))

    def all_blobs(self, thread_id: str) -> Iterator[Any]:
        """Every value that has a row of its own."""
        return (each.value for each in self.shared(thread_id, []))

    def shared(self, thread_id: str, checkpoints: Sequence[Kept]) -> Iterator[Value]:
        """Every value that has a row of its own: each knows its channel."""
        for channel, kind, stored, namespace, version in self.ask(_ALL_BLOBS, (thread_id,)):
            yield Value(channel, self.serde.loads_typed((kind, stored)), [namespace, channel, version])

    def set_shared(self, thread_id: str, shared: Value, value: Any) -> None:
        """Store another value in its row, for all that lead to it."""
        self.tell(_SET_BLOB, (*self.serde.dumps_typed(value), thread_id, *shared.key))

    def sweep(self, thread_id: str) -> None:
        """Delete the values that nothing in the thread leads to any more."""
        self.tell(_SWEEP, (thread_id, thread_id))

    # ---------------------------------------------------------------- whole threads

    def length(self, thread_id: str) -> int:
        """How many checkpoints the thread has."""
        return int(self.ask(f"SELECT count(*) FROM checkpoints {_THREAD}", (thread_id,))[0][0])

    def heads(self) -> list[tuple[str, str]]:
        """Of each thread its id and that of its latest checkpoint."""
        return [(thread_id, head) for thread_id, head in self.ask(_HEADS)]

    def bytes_of(self, thread_id: str | None) -> int:
        """What the rows of a thread take, or those of all, without indexes and what is dead."""
        where, values = (_THREAD, (thread_id,)) if thread_id is not None else ("", ())
        sums = [f"SELECT coalesce(sum(pg_column_size(r.*)), 0) FROM {table} r {where}" for table in _COPIED]
        return sum(int(cursor.fetchall()[0][0]) for cursor in [self.send(each, values) for each in sums])

    def threads_of_runs(self, run_ids: Collection[str]) -> list[str]:
        """The threads in which these runs left a checkpoint, sorted."""
        return sorted(row[0] for row in self.ask(_THREADS_OF_RUNS, (list(run_ids),)))

    def beginning_with(self, prefix: str) -> list[str]:
        """The threads whose ids begin so, sorted."""
        return sorted(row[0] for row in self.ask(_BEGINNING_WITH, (prefix,)))

    def namespaces(self, thread_id: str) -> list[str]:
        """The namespaces of a thread that have a checkpoint."""
        return [row[0] for row in self.ask(f"SELECT DISTINCT checkpoint_ns FROM checkpoints {_THREAD}", (thread_id,))]

    def links(self, place: Place) -> list[Link]:
        """How the checkpoints of a namespace are linked."""
        return [Link(*row) for row in self.ask(_LINKS, place)]

    def drop(self, place: Place, checkpoint_ids: Sequence[str]) -> None:
        """Delete these checkpoints and the writes on them."""
        for table in ("checkpoint_writes", "checkpoints"):
            self.tell(f"DELETE FROM {table} {_AT} AND checkpoint_id = ANY(%s)", (*place, list(checkpoint_ids)))

    def drop_task(self, key: Key, task_id: str) -> None:
        """Delete what a task wrote on a checkpoint."""
        self.tell(f"DELETE FROM checkpoint_writes {ONE} AND task_id = %s", (*key, task_id))

    def relink(self, key: Key, parent_id: str | None) -> None:
        """Give a checkpoint another parent."""
        self.tell(f"UPDATE checkpoints SET parent_checkpoint_id = %s {ONE}", (parent_id, *key))

    def delete(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        for table in _TABLES:
            self.tell(f"DELETE FROM {table} {_THREAD}", (thread_id,))

    def copy(self, source: str, target: str) -> None:
        """Copy a thread, to one that has nothing."""
        for table, columns in _COPIED.items():
            insert = f"INSERT INTO {table} (thread_id, {columns}) SELECT %s, {columns} FROM {table} {_THREAD}"
            self.tell(insert, (target, source))


def threads_and_torn(rows: Rows) -> tuple[int, list[str]]:
    """How many threads there are, and the ids of those that lack a value which their checkpoints name."""
    return rows.ask("SELECT count(DISTINCT thread_id) FROM checkpoints")[0][0], [row[0] for row in rows.ask(_TORN)]


def _json(value: Mapping[str, Any]) -> str:
    """JSON that PostgreSQL takes: without the characters that it has no place for."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "ignore").decode()
    return _NUL.sub(r"\1", text)


def _last(rows: Sequence[Any]) -> Last:
    return Last(*rows[0]) if rows else Last()


def _lacking(thread_id: str) -> StoreError:
    return StoreError(f"thread {thread_id!r} lacks a value that its checkpoints name; restore a backup")
