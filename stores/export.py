"""Everything that is kept for a user, as lines: one JSON object each, or a document for a person (R225, R279).

The first line of the JSON says what it is an export of, the last seals it with a secret of this store: what is brought
back with an unbroken seal is known to be as it was given out.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from everthread.errors import AccessDenied, UsageError
from everthread.stores.access import may_export, narrows
from everthread.stores.identity import Identity, Scope, owners_of
from everthread.stores.portable import FOLLOWING, Entry, Found, plain, record_of, told
from everthread.stores.record import Record, new_id, now_utc
from everthread.stores.transfer import Part, Row, Snapshot

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore

__all__ = ["FORMAT", "VERSION", "Seal", "as_line", "exported"]

FORMAT = "everthread-export"
"""The name of the format, in the first line."""
VERSION = 1
"""Rises when a line changes its meaning."""
PAGE = 1_000
"""Entries of the log that are read at once."""


class Seal:
    """What the last line says of those before it."""

    def __init__(self, key: bytes) -> None:
        self._hash = sha256()
        self._hmac = hmac.new(key, b"everthread export\n", "sha256")
        self._lines = 0

    def add(self, line: bytes) -> None:
        """One more line, with its end."""
        self._lines += 1
        self._hash.update(line)
        self._hmac.update(line)

    def end(self) -> Entry:
        """The last line: how many lines there are before it, their hash, and their hash under the store's key."""
        return {
            "type": "end",
            "lines": self._lines,
            "sha256": self._hash.hexdigest(),
            "seal": self._hmac.hexdigest(),
        }


def as_line(entry: Entry) -> str:
    """An entry as one line of JSON, with its end; any text comes back from it as it was."""
    line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(entry, separators=(",", ":"))  # a lone surrogate is nothing in UTF-8
    return f"{line}\n"


def exported(
    store: MemoryStore,
    identity: Identity,
    *,
    user: str | None = None,
    scope: Scope | None = None,
    format: Literal["jsonl", "markdown"] = "jsonl",
) -> Iterator[str]:
    """See `MemoryStore.export`."""
    if format not in ("jsonl", "markdown"):
        raise UsageError(f'format must be "jsonl" or "markdown", not {format!r}')
    admin = "admin" in identity.roles
    if user not in (None, identity.user) and not admin:
        raise AccessDenied(f"user {identity.user} may not export what is kept for {user}; the role admin may")
    if scope and not admin and scope.owner != "session" and (scope.owner, scope.owner_id) not in owners_of(identity):
        raise AccessDenied(f"scope {scope} is not open to user {identity.user}; the role admin may export it")
    return _Export(store, identity, user or identity.user, scope).lines(format)


class _Export:
    """One export on its way."""

    def __init__(self, store: MemoryStore, identity: Identity, user: str, scope: Scope | None) -> None:
        self._store = store
        self._identity = identity
        self._scope = scope
        self._id = new_id("exp")
        self._owner = Identity(tenant=identity.tenant, user=user)
        self._part = Part(identity.tenant, user, (scope.owner, scope.owner_id) if scope else None)

    def lines(self, format: Literal["jsonl", "markdown"]) -> Iterator[str]:
        detail = {"export": self._id, "format": format, "of": self._owner.user}
        self._store.transfer.note(
            self._identity, "export", detail | ({"scope": str(self._scope)} if self._scope else {})
        )
        with self._store.transfer.snapshot() as snapshot:
            header = self._header(snapshot)
            if format == "markdown":
                from everthread.stores.readable import document

                yield from document(header, partial(self._entries, snapshot), self._log(header["log_until"]))
                return
            seal = Seal(self._store.transfer.key())
            for entry in self._all(snapshot, header):
                line = as_line(entry)
                seal.add(line.encode())
                yield line
            yield as_line(seal.end())

    def _all(self, snapshot: Snapshot, header: Entry) -> Iterator[Entry]:
        yield header
        yield from self._entries(snapshot)
        yield from self._log(header["log_until"])

    def _header(self, snapshot: Snapshot) -> Entry:
        """What the file is: everything is read once before, to say how much there is."""
        left_out: Counter[str] = Counter()
        counts: Counter[str] = Counter(found.type for found in self._found(snapshot, left_out))
        log_until = 0
        for entry in self._log(None):
            counts["audit"] += 1
            log_until = entry["seq"]
        return {
            "type": "export",
            "format": FORMAT,
            "version": VERSION,
            "id": self._id,
            "at": told(now_utc()),
            "by": self._identity.user,
            "tenant": self._owner.tenant,
            "user": self._owner.user,
            "scope": plain(self._scope),
            "store": self._store.transfer.id(),
            "counts": {name: count for name, count in counts.items() if name != "erased"},
            "erased": {"messages": counts["erased"], "records": self._erased_records()},
            "left_out": dict(sorted(left_out.items())),
            "log_until": log_until,
        }

    def _erased_records(self) -> int:
        """How many records of this user were erased. What they said is not known any more."""
        found, after = set[str](), 0
        while page := self._store.audit(self._owner, action="erase", after=after, limit=PAGE):
            found.update(id for entry in page for id in entry.detail.get("records", ()))
            after = page[-1].seq
        return len(found)

    def _entries(self, snapshot: Snapshot, *types: str) -> Iterator[Entry]:
        """What is exported, in the order of the file; of these types alone, if any are named."""
        for found in self._found(snapshot):
            if not types or found.type in types:
                yield found.entry()

    def _found(self, snapshot: Snapshot, left_out: Counter[str] | None = None) -> Iterator[Found]:
        """The rows of each entry. What is not exported is counted in `left_out`, by its scope."""
        together: list[Row] = []
        for row in snapshot.dump(self._part):
            if together and row.table not in FOLLOWING:
                yield from self._chosen(together, left_out)
                together = []
            together.append(row)
        if together:
            yield from self._chosen(together, left_out)

    def _chosen(self, rows: Sequence[Row], left_out: Counter[str] | None) -> Iterator[Found]:
        """An entry, if it is exported; of a record the revisions that may be read."""
        if rows[0].table != "records":
            yield Found(rows)
            return
        author = str(rows[0].values["author"])
        history = [record_of(row) for row in rows[1:]]
        if not history or (self._scope is not None and not narrows([self._scope], history[-1].scope)):
            return  # `doctor` names a record without a history
        if self._is_open(history[-1], author):
            kept = [each for each in zip(rows[1:], history, strict=True) if self._is_open(each[1], author)]
            yield Found([rows[0], *(row for row, _ in kept)], [record for _, record in kept])
        elif left_out is not None and self._scope is None:
            left_out[str(history[-1].scope)] += 1

    def _is_open(self, record: Record, author: str) -> bool:
        return may_export(self._identity, record, author=author)

    def _log(self, until: int | None) -> Iterator[Entry]:
        """What was done to this user's memory and by this user; nothing for the export of a scope."""
        after = 0
        while self._scope is None and (page := self._store.audit(self._owner, after=after, limit=PAGE)):
            for entry in page:
                if until is not None and entry.seq > until:
                    return
                yield {"type": "audit", **plain(entry)}
            after = page[-1].seq
