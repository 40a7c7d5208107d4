"""What was erased stays away: keyed hashes block re-learning and hold no word of it.

What was said is blocked, whoever says it where; and so is the message that it came from, whatever is made of it.

A mark is an HMAC-SHA256 under a random key of this store, so marks of two stores cannot be compared. Whoever has the
file has the key too, and can test a guess against a mark: they hide what was said, not that a guess is right.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

from everthread.stores.database import Connection, one
from everthread.stores.identity import Identity, encode_label
from everthread.stores.record import Record
from everthread.stores.tables.times import micros
from everthread.stores.text import normalise

__all__ = ["bury", "bury_messages", "is_buried", "key_of", "rests_on_buried", "was_message_buried"]


def bury(connection: Connection, tenant: str, record: Record, *, author: str, at: datetime) -> None:
    """Leave the marks of a record that is being erased: in its scope, and for its author in every scope; and those of
    the messages that it rests on."""
    key = _key_made(connection)
    _leave(connection, _marks(key, tenant, record, author) | _source_marks(key, tenant, record, author), at)


def bury_messages(
    connection: Connection, owner: Identity, thread_id: str, message_ids: Iterable[str], *, at: datetime
) -> None:
    """Leave the marks of messages that are being erased: nothing is learnt from them again."""
    key = _key_made(connection)
    _leave(connection, {_message_mark(key, owner.tenant, owner.user, thread_id, id) for id in message_ids}, at)


def is_buried(connection: Connection, key: bytes | None, tenant: str, record: Record, *, author: str) -> bool:
    """Whether what the record says was erased before, from its scope or by this author."""
    return key is not None and _any(connection, _marks(key, tenant, record, author))


def rests_on_buried(connection: Connection, key: bytes | None, tenant: str, record: Record, *, author: str) -> bool:
    """Whether the record rests on a message from which something was erased, or that was erased itself."""
    return key is not None and _any(connection, _source_marks(key, tenant, record, author))


def was_message_buried(
    connection: Connection, key: bytes | None, owner: Identity, thread_id: str, message_id: str
) -> bool:
    """Whether a message of this user was erased, or something that had been learnt from it."""
    return key is not None and _any(connection, [_message_mark(key, owner.tenant, owner.user, thread_id, message_id)])


def _any(connection: Connection, marks: Iterable[bytes]) -> bool:
    return any(one(connection, "SELECT 1 FROM tombstones WHERE mark = ?", mark) for mark in marks)


def _leave(connection: Connection, marks: Iterable[bytes], at: datetime) -> None:
    connection.executemany(
        "INSERT INTO tombstones (mark, at) VALUES (?, ?) ON CONFLICT DO NOTHING", [(mark, micros(at)) for mark in marks]
    )


def _key_made(connection: Connection) -> bytes:
    key = key_of(connection)
    return connection.keep_first("tombstone_key", secrets.token_bytes(32)) if key is None else key


def key_of(connection: Connection) -> bytes | None:
    """The key of this store's marks; None while nothing was erased."""
    key: bytes | None = connection.kept("tombstone_key")
    return key


def _marks(key: bytes, tenant: str, record: Record, author: str) -> set[bytes]:
    owners = {("user", author), (record.scope.owner, record.scope.owner_id)}
    return {
        hmac.digest(key, "/".join(map(encode_label, (tenant, *owner, *said))).encode(), "sha256")
        for owner in owners
        for said in _said(record)
    }


def _source_marks(key: bytes, tenant: str, record: Record, author: str) -> set[bytes]:
    return {
        _message_mark(key, tenant, author, origin.thread_id, id)
        for origin in (record.provenance, *record.confirmed_by)
        if origin.thread_id is not None
        for id in origin.message_ids
    }


def _message_mark(key: bytes, tenant: str, user: str, thread_id: str, message_id: str) -> bytes:
    parts = map(encode_label, (tenant, "user", user, "message", thread_id, message_id))
    return hmac.digest(key, "/".join(parts).encode(), "sha256")


def _said(record: Record) -> Iterable[tuple[str, ...]]:
    """What is hashed: the words, and the fact when it is given as subject, predicate and value."""
    yield ("statement", normalise(record.statement).rstrip(".!?。！？ "))
    if record.subject is not None and record.predicate is not None and record.value is not None:
        yield ("fact", *map(normalise, (record.subject, record.predicate, record.value)))
