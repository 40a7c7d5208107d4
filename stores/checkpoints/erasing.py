"""Finding words in a thread's rows, and taking them out: of checkpoints, their metadata, shared values and writes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.stores.checkpoints.layout import Kept, ThreadRows, Value
from everthread.stores.checkpoints.redaction import Redaction, said_by
from everthread.stores.traces import spellings


def holds(rows: ThreadRows, thread_id: str, words: Collection[str]) -> bool:
    """Whether a thread still has one of these words, folded, in anything that is stored of it.

    Each value is decoded and written out plainly to be searched, so that neither compression, encryption nor what a
    redaction overlooks can hide a word.
    """
    spelled = {spelling.casefold() for word in words if word.strip() for spelling in spellings(word)}
    return any(any(word in text for word in spelled) for text in _plain_texts(rows, thread_id))


def _plain_texts(rows: ThreadRows, thread_id: str) -> Iterator[str]:
    plain = JsonPlusSerializer()
    for kept in rows.all_kept(thread_id):
        yield _readable(plain.dumps_typed(kept.checkpoint)[1])
        yield json.dumps(kept.metadata, ensure_ascii=False).casefold()
    # The blobs that nothing leads to as well.
    for value in rows.all_blobs(thread_id):
        yield _readable(plain.dumps_typed(value)[1])
    for each in rows.writes_of(thread_id):
        yield _readable(plain.dumps_typed(each.value)[1])


def rewrite(
    rows: ThreadRows, thread_id: str, message_ids: Sequence[str], words: Sequence[str], kept_names: Collection[str]
) -> int:
    """Take messages and words out of everything that is stored of a thread; returns the number of rows rewritten.

    A value that many checkpoints share is one row. `kept_names`: what metadata says under these is no one's words.
    """
    rows.sweep(thread_id)
    checkpoints, writes = rows.all_kept(thread_id), rows.writes_of(thread_id)
    shared = list(rows.shared(thread_id, checkpoints))
    stored = [*[kept.checkpoint for kept in checkpoints], *[each.value for each in [*writes, *shared]]]
    said = {text for value in stored for text in said_by(set(message_ids), value)}
    redaction = Redaction(message_ids, words, said=said)
    return (
        sum(_clean_checkpoint(rows, kept, redaction, kept_names) for kept in checkpoints)
        + sum(_clean_write(rows, each, redaction) for each in writes)
        + sum(_clean_blob(rows, thread_id, each, redaction) for each in shared)
    )


def _clean_checkpoint(rows: ThreadRows, kept: Kept, redaction: Redaction, kept_names: Collection[str]) -> bool:
    before = kept.checkpoint["channel_values"]
    values = {name: redaction.of(name, value) for name, value in before.items()}
    metadata = {name: part if name in kept_names else redaction(part) for name, part in kept.metadata.items()}
    if metadata == kept.metadata and all(value is before[name] for name, value in values.items()):
        return False
    rows.put_back(kept._replace(checkpoint={**kept.checkpoint, "channel_values": values}, metadata=metadata))
    return True


def _clean_write(rows: ThreadRows, each: Value, redaction: Redaction) -> bool:
    clean = redaction.of(each.channel, each.value)
    if clean is each.value:
        return False
    rows.set_write(each, clean)
    return True


def _clean_blob(rows: ThreadRows, thread_id: str, each: Value, redaction: Redaction) -> bool:
    clean = redaction.of(each.channel, each.value)
    if clean is each.value:
        return False
    rows.set_shared(thread_id, each, clean)
    return True


def _readable(stored: bytes) -> str:
    return stored.decode("utf-8", "ignore").casefold()
