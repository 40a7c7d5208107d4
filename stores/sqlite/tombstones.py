"""What was erased stays away: keyed hashes block re-learning and hold no word of it.

A mark is an HMAC-SHA256 under a random key of this store, so marks of two stores cannot be compared. Whoever has the
file has the key too, and can test a guess against a mark: they hide what was said, not that a guess is right.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

import apsw

from everthread.stores.identity import encode_label
from everthread.stores.record import Record
from everthread.stores.sqlite.database import one
from everthread.stores.sqlite.times import micros
from everthread.stores.text import normalise

__all__ = ["bury", "is_buried"]


def bury(connection: apsw.Connection, tenant: str, record: Record, *, author: str, at: datetime) -> None:
    """Leave the marks of a record that is being erased: in its scope, and for its author in every scope."""
    key = _key(connection)
    if key is None:
        key = secrets.token_bytes(32)
        connection.execute("INSERT INTO meta (name, value) VALUES ('tombstone_key', ?)", (key,))
    connection.executemany(
        "INSERT INTO tombstones (mark, at) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(mark, micros(at)) for mark in _marks(key, tenant, record, author)],
    )


def is_buried(connection: apsw.Connection, tenant: str, record: Record, *, author: str) -> bool:
    """Whether what the record says was erased before, from its scope or by this author."""
    key = _key(connection)
    return key is not None and any(
        one(connection, "SELECT 1 FROM tombstones WHERE mark = ?", mark) for mark in _marks(key, tenant, record, author)
    )


def _key(connection: apsw.Connection) -> bytes | None:
    key: bytes | None = one(connection, "SELECT value FROM meta WHERE name = 'tombstone_key'")
    return key


def _marks(key: bytes, tenant: str, record: Record, author: str) -> set[bytes]:
    owners = {("user", author), (record.scope.owner, record.scope.owner_id)}
    return {
        hmac.digest(key, "/".join(map(encode_label, (tenant, *owner, *said))).encode(), "sha256")
        for owner in owners
        for said in _said(record)
    }


def _said(record: Record) -> Iterable[tuple[str, ...]]:
    """What is hashed: the words, and the fact when it is given as subject, predicate and value."""
    yield ("statement", normalise(record.statement).rstrip(".!?。！？ "))
    if record.subject is not None and record.predicate is not None and record.value is not None:
        yield ("fact", *map(normalise, (record.subject, record.predicate, record.value)))
