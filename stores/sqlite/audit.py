"""The log of what was done to memory: ids only, each row's hash covering the one before it (R285, R296)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

import apsw

from everthread.stores.identity import Identity
from everthread.stores.sqlite.database import one
from everthread.stores.sqlite.times import micros

__all__ = ["append", "first_broken"]


def append(
    connection: apsw.Connection,
    identity: Identity,
    action: Literal["write", "read", "erase", "verify"],
    detail: Mapping[str, Any],
    *,
    at: datetime,
) -> None:
    """Add a row to the end of the chain. `detail` holds ids, counts and rules, never a statement."""
    last = one(connection, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1") or b""
    row = (micros(at), identity.tenant, identity.user, action, json.dumps(detail, sort_keys=True))
    connection.execute(
        "INSERT INTO audit (at, tenant, user, action, detail, hash) VALUES (?, ?, ?, ?, ?, ?)", (*row, _link(last, row))
    )


def first_broken(connection: apsw.Connection) -> int | None:
    """The number of the first row that was changed, or that follows a gap; None when the chain is whole."""
    last = b""
    for expected, (seq, *row, found) in enumerate(
        connection.execute("SELECT seq, at, tenant, user, action, detail, hash FROM audit ORDER BY seq"), start=1
    ):
        last = _link(last, tuple(row))
        if seq != expected or found != last:
            return int(seq)
    return None


def _link(last: bytes, row: tuple[Any, ...]) -> bytes:
    return sha256(last + json.dumps(row).encode()).digest()
