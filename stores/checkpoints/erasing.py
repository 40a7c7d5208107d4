"""Finding words in a thread's rows, and taking them out: of checkpoints, their metadata, shared values and writes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.stores.checkpoints.redaction import Redaction, said_by
from everthread.stores.checkpoints.rows import BLOBS, ELSEWHERE, Kept, Rows
from everthread.stores.traces import spellings

_WRITES = """
SELECT channel, type, value, thread_id, checkpoint_ns, checkpoint_id, task_id, idx FROM writes WHERE thread_id = ?
"""
_SET_WRITE = """
UPDATE writes SET type = ?, value = ?
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND task_id = ? AND idx = ?
"""


class Value(NamedTuple):
    """A channel's value in a row of its own."""

    channel: str
    value: Any
    key: Sequence[Any]
    """Of its row in `writes`, or its number in `blobs`."""


def holds(rows: Rows, thread_id: str, words: Collection[str]) -> bool:
    """Whether a thread still has one of these words, folded, in anything that is stored of it.

    Each value is decoded and written out plainly to be searched, so that neither compression, encryption nor what a
    redaction overlooks can hide a word.
    """
    spelled = {spelling.casefold() for word in words if word.strip() for spelling in spellings(word)}
    return any(any(word in text for word in spelled) for text in _plain_texts(rows, thread_id))


def _plain_texts(rows: Rows, thread_id: str) -> Iterator[str]:
    plain = JsonPlusSerializer()
    for kept in rows.all_kept(thread_id):
        yield _readable(plain.dumps_typed(kept.checkpoint)[1])
        yield json.dumps(kept.metadata, ensure_ascii=False).casefold()
    # The blobs that nothing leads to as well.
    for _, value in rows.all_blobs(thread_id):
        yield _readable(plain.dumps_typed(value)[1])
    for each in _small_writes(rows, thread_id):
        yield _readable(plain.dumps_typed(each.value)[1])


def rewrite(
    rows: Rows, thread_id: str, message_ids: Sequence[str], words: Sequence[str], kept_names: Collection[str]
) -> int:
    """Take messages and words out of everything that is stored of a thread; returns the number of rows rewritten.

    A value that many checkpoints share is one row. `kept_names`: what metadata says under these is no one's words.
    """
    rows.sweep(thread_id)
    checkpoints, writes = rows.all_kept(thread_id), list(_small_writes(rows, thread_id))
    shared = list(_shared(rows, thread_id, checkpoints))
    stored = [*[kept.checkpoint for kept in checkpoints], *[each.value for each in [*writes, *shared]]]
    said = {text for value in stored for text in said_by(set(message_ids), value)}
    redaction = Redaction(message_ids, words, said=said)
    return (
        sum(_clean_checkpoint(rows, kept, redaction, kept_names) for kept in checkpoints)
        + sum(_clean_write(rows, each, redaction) for each in writes)
        + sum(_clean_blob(rows, thread_id, each, redaction) for each in shared)
    )


def _small_writes(rows: Rows, thread_id: str) -> Iterator[Value]:
    for channel, kind, stored, *key in rows.cursor.execute(_WRITES, (thread_id,)).fetchall():
        if kind != ELSEWHERE:
            yield Value(channel, rows.loads(thread_id, kind, stored), key)


def _shared(rows: Rows, thread_id: str, checkpoints: Sequence[Kept]) -> Iterator[Value]:
    channels = {number: name for kept in checkpoints for name, number in kept.checkpoint.get(BLOBS, {}).items()}
    for channel, kind, stored, *_ in rows.cursor.execute(_WRITES, (thread_id,)).fetchall():
        if kind == ELSEWHERE:
            channels[stored] = channel
    for number, value in rows.all_blobs(thread_id):
        if number in channels:  # else it is a checkpoint that was too large for its row
            yield Value(channels[number], value, [number])


def _clean_checkpoint(rows: Rows, kept: Kept, redaction: Redaction, kept_names: Collection[str]) -> bool:
    before = kept.checkpoint["channel_values"]
    values = {name: redaction.of(name, value) for name, value in before.items()}
    metadata = {name: part if name in kept_names else redaction(part) for name, part in kept.metadata.items()}
    if metadata == kept.metadata and all(value is before[name] for name, value in values.items()):
        return False
    rows.put_back(kept._replace(checkpoint={**kept.checkpoint, "channel_values": values}, metadata=metadata))
    return True


def _clean_write(rows: Rows, each: Value, redaction: Redaction) -> bool:
    clean = redaction.of(each.channel, each.value)
    if clean is each.value:
        return False
    rows.cursor.execute(_SET_WRITE, (*rows.serde.dumps_typed(clean), *each.key))
    return True


def _clean_blob(rows: Rows, thread_id: str, each: Value, redaction: Redaction) -> bool:
    clean = redaction.of(each.channel, each.value)
    if clean is each.value:
        return False
    rows.replace_blob(thread_id, each.key[0], clean)
    return True


def _readable(stored: bytes) -> str:
    return stored.decode("utf-8", "ignore").casefold()
