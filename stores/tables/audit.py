"""The log of what was done to memory: ids only, for each tenant a chain of hashes (R285, R296)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from everthread.errors import UsageError
from everthread.stores.audit import AuditEntry, Noted, ToolCall, Touch
from everthread.stores.contract import Finding
from everthread.stores.database import Connection, Database, Rows
from everthread.stores.identity import Identity
from everthread.stores.tables.rows import Rows as RecordRows
from everthread.stores.tables.threads import owns_thread
from everthread.stores.tables.times import micros, moment

__all__ = ["Action", "AuditLog", "append", "first_broken", "index_drift", "link", "reindex", "verified"]

Place = tuple[str, int]
"""A tenant, and the number of an entry in its chain."""
Action = Literal[
    "write",
    "read",
    "erase",
    "verify",
    "recall",
    "inject",
    "act",
    "cite",
    "consent",
    "expire",
    "export",
    "import",
    "copy",
]
"""What an entry says was done."""

APPEND = "INSERT INTO audit (seq, at, tenant, user, action, detail, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
ABOUT = "INSERT INTO audit_records (tenant, record_id, seq, holder) VALUES (?, ?, ?, ?)"
NEWEST = "SELECT seq, hash FROM audit WHERE tenant = ? ORDER BY seq DESC LIMIT 1"

FIELDS = "audit.seq, audit.at, audit.user, audit.action, audit.thread_id, audit.detail"
WANTED = """
audit.seq > :after AND (:action IS NULL OR audit.action = :action)
AND (:thread IS NULL OR audit.thread_id = :thread)
"""
BY_RECORD = f"""
SELECT {FIELDS} FROM audit_records
CROSS JOIN audit ON audit.tenant = audit_records.tenant AND audit.seq = audit_records.seq
WHERE audit_records.tenant = :tenant AND audit_records.record_id = :record AND (:admin OR audit.user = :user)
    AND {WANTED}
ORDER BY audit_records.seq LIMIT :limit
"""
BY_THREAD = f"""
SELECT {FIELDS} FROM audit
WHERE audit.tenant = :tenant AND audit.thread_id = :thread AND (:admin OR +audit.user = :user) AND {WANTED}
ORDER BY audit.seq LIMIT :limit
"""
BY_USER = f"""
SELECT {FIELDS} FROM audit WHERE audit.tenant = :tenant AND audit.user = :user AND {WANTED}
ORDER BY audit.seq LIMIT :limit
"""
BY_TENANT = f"SELECT {FIELDS} FROM audit WHERE audit.tenant = :tenant AND {WANTED} ORDER BY audit.seq LIMIT :limit"
BY_OTHERS = f"""
SELECT {FIELDS}, json_group_array(audit_records.record_id)
FROM audit_records CROSS JOIN audit ON audit.tenant = audit_records.tenant AND audit.seq = audit_records.seq
WHERE audit_records.tenant = :tenant AND audit_records.holder = :user AND audit_records.seq > :after
    AND (:record IS NULL OR audit_records.record_id = :record) AND {WANTED}
GROUP BY {FIELDS} ORDER BY audit.seq LIMIT :limit
"""
"""What others did to this user's own records, with the ids of those."""

NOTED = """
SELECT 1 FROM audit
WHERE tenant = :tenant AND thread_id IS NOT DISTINCT FROM :thread AND reply_id IS NOT DISTINCT FROM :reply
    AND action IN ('recall', 'inject', 'act', 'cite')
    AND (:reply IS NOT NULL OR detail ->> '$.answers' = :answers)
LIMIT 1
"""
CITED = """
SELECT used.value ->> '$[0]' FROM audit, json_each(audit.detail, '$.records') AS used
WHERE audit.tenant = :tenant AND audit.thread_id = :thread AND audit.action = 'cite'
    AND audit.detail ->> '$.answers' = :answers
"""
"""What was cited already in the answer to this message."""
FAMILY = """
WITH RECURSIVE family (id) AS (
    VALUES (:record)
    UNION
    SELECT relations.id FROM family JOIN relations ON relations.target = family.id
    WHERE relations.kind IN ('derived_from', 'supersedes')
)
"""
"""A record and all that was made from it or in its place."""
TOUCHES = f"""
{FAMILY}
SELECT DISTINCT injected.at, injected.user, injected.thread_id, injected.reply_id, injected.detail, acted.detail,
    injected.seq
FROM family CROSS JOIN audit_records ON audit_records.tenant = :tenant AND audit_records.record_id = family.id
CROSS JOIN audit AS injected ON injected.tenant = audit_records.tenant AND injected.seq = audit_records.seq
LEFT JOIN audit AS acted
    ON acted.tenant = injected.tenant AND acted.thread_id IS NOT DISTINCT FROM injected.thread_id
    AND acted.reply_id = injected.reply_id AND acted.action = 'act'
WHERE injected.action = 'inject' AND (:admin OR injected.user = :user)
ORDER BY injected.seq
"""


def append(
    connection: Connection,
    identity: Identity,
    action: Action,
    detail: Mapping[str, Any],
    *,
    at: datetime,
    holders: Mapping[str, str | None] | None = None,
) -> None:
    """Add a row to the end of the tenant's chain; the transaction is in the tenant's lane, or alone. `detail` holds
    ids, counts and rules, never a statement; its `thread_id`, and the records it names, find it again. `holders` says
    whose records they are, of those that are another user's."""
    newest = connection.execute(NEWEST, (identity.tenant,)).fetchone()
    seq, last = (newest[0] + 1, newest[1]) if newest else (1, b"")
    row = (micros(at), identity.tenant, identity.user, action, json.dumps(detail, sort_keys=True))
    connection.execute(APPEND, (seq, *row, link(last, row)))
    holders = holders or {}
    named = sorted(_records_of(action, detail))
    connection.executemany(ABOUT, [(identity.tenant, id, seq, holders.get(id)) for id in named])


def verified(connection: Connection, tenant: str | None = None) -> Finding:
    """Whether every entry of this tenant's chain (None: of each) is as it was written, follows the one before it, and
    is found by the records it names."""
    chains, entries = connection.execute(
        f"SELECT count(DISTINCT tenant), count(*) FROM audit {_of(tenant)}", {"tenant": tenant}
    ).fetchall()[0]
    broken = first_broken(connection, tenant)
    if broken is not None:
        whose = "" if tenant is not None or chains < 2 else f" of tenant {broken[0]}"
        return Finding(
            check="audit",
            ok=False,
            detail=f"entry {broken[1]}{whose} was changed, or one before it is gone",
            remedy="somebody changed the file by hand; compare it with a backup",
        )
    drifted = index_drift(connection, tenant)
    counted = f"chain of {entries} entries" if chains < 2 else f"chains of {chains} tenants with {entries} entries"
    return Finding(
        check="audit",
        ok=not drifted,
        detail=f"{counted} verified" + (f", but {drifted} are not found by the records they name" if drifted else ""),
        remedy="run `everthread doctor --fix`" if drifted else None,
    )


def index_drift(connection: Connection, tenant: str | None = None) -> int:
    """How many entries of this tenant (None: of all) are not indexed by the records that they name."""
    if _sum(_indexed(connection, tenant)) == _sum(
        (place, id) for place, ids in _named(connection, tenant) for id in ids
    ):
        return 0  # found without keeping any of it
    known: dict[Place, set[str]] = {}
    for place, id in _indexed(connection, tenant):
        known.setdefault(place, set()).add(id)
    named = dict(_named(connection, tenant))
    return sum(known.get(place, set()) != named.get(place, set()) for place in known.keys() | named.keys())


def _indexed(connection: Connection, tenant: str | None) -> Iterator[tuple[Place, str]]:
    """The records by which each entry is found."""
    told = f"SELECT tenant, seq, record_id FROM audit_records {_of(tenant)}"
    for whose, seq, record_id in connection.streamed(told, {"tenant": tenant}):
        yield (str(whose), int(seq)), str(record_id)


def _sum(pairs: Iterable[tuple[Place, str]]) -> int:
    """One number for any amount of pairs, each there once, in whatever order."""
    return sum(int.from_bytes(sha256(repr(pair).encode("utf-8", "surrogatepass")).digest()) for pair in pairs)


def reindex(connection: Connection) -> None:
    """Derive again which entry is about which records; whose record it was is kept where it is still known."""
    named = [(tenant, id, seq) for (tenant, seq), ids in _named(connection, None) for id in ids]
    connection.execute(
        "DELETE FROM audit_records WHERE (tenant, record_id, seq) NOT IN "
        "(SELECT value ->> '$[0]', value ->> '$[1]', CAST(value ->> '$[2]' AS BIGINT) FROM json_each(?))",
        (json.dumps(named),),
    )
    connection.executemany(
        "INSERT INTO audit_records (tenant, record_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", named
    )


class AuditLog:
    """Answers `MemoryStore.audit`, `note`, `trace` and `verify_audit`."""

    def __init__(self, database: Database, rows: RecordRows, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._rows = rows
        self._clock = clock

    def entries(
        self,
        identity: Identity,
        *,
        record_id: str | None,
        thread_id: str | None,
        action: str | None,
        after: int,
        limit: int,
    ) -> list[AuditEntry]:
        """See `MemoryStore.audit`."""
        if limit < 1:
            raise UsageError(f"audit: limit must be at least 1, not {limit}")
        admin = _is_admin(identity)
        values = {
            "tenant": identity.tenant,
            "user": identity.user,
            "admin": admin,
            "record": record_id,
            "thread": thread_id,
            "action": action,
            "after": after,
            "limit": limit,
        }
        query = BY_RECORD if record_id else BY_THREAD if thread_id else BY_TENANT if admin else BY_USER
        with self._database.read(identity.tenant) as connection:
            own = [_entry(*row) for row in connection.execute(query, values)]
            others = [] if admin else [_of_another(*row) for row in connection.execute(BY_OTHERS, values)]
        return list(merge(own, others, key=lambda entry: entry.seq))[:limit]

    def note(
        self,
        identity: Identity,
        thread_id: str | None,
        events: Sequence[Noted],
        *,
        reply_id: str | None,
        answers: str | None,
    ) -> bool:
        """See `MemoryStore.note`."""
        if not (answers if reply_id is None else reply_id.strip()):
            raise UsageError("note: neither the reply has an id nor what it answers; it is noted once by one of them")
        told = [event for event in events if event.records or event.messages or event.calls or event.not_applicable]
        if not any(event.records or event.messages or event.not_applicable for event in told):
            return False
        known = {"thread": thread_id, "reply": reply_id, "tenant": identity.tenant, "answers": answers}
        where = {"thread_id": thread_id, "reply_id": reply_id, "answers": answers}
        with self._database.write(identity.tenant) as connection:
            if thread_id is not None:
                owns_thread(connection, identity, thread_id)
            if connection.execute(NOTED, known).fetchone():
                return False
            cited = {used.record_id for event in told if event.action == "cite" for used in event.records}
            if cited:
                before = {str(id) for (id,) in connection.execute(CITED, known)}
                self._rows.count_use(connection, identity, cited - before, self._clock())
            for event in told:
                append(connection, identity, event.action, where | _detail(event), at=self._clock())
        return True

    def trace(self, identity: Identity, record_id: str) -> list[Touch]:
        """See `MemoryStore.trace`."""
        values = {
            "record": record_id,
            "tenant": identity.tenant,
            "user": identity.user,
            "admin": _is_admin(identity),
        }
        with self._database.read(identity.tenant) as connection:
            rows: Rows = connection.execute(TOUCHES, values).fetchall()
            family = {str(id) for (id,) in connection.execute(f"{FAMILY} SELECT id FROM family", {"record": record_id})}
        touches = [
            Touch(
                thread_id=thread_id,
                reply_id=reply_id,
                answers=detail.get("answers"),
                user=user,
                at=moment(at),
                record_id=id,
                revision=revision,
                derived=id != record_id,
                calls=tuple(ToolCall(id=id, name=name) for id, name in json.loads(acted)["calls"]) if acted else (),
            )
            for at, user, thread_id, reply_id, detail, acted in ((*row[:4], json.loads(row[4]), row[5]) for row in rows)
            for id, revision in detail["records"]
            if id in family
        ]
        # a node that noted the block of memory, and then its reply
        replied = {(touch.thread_id, touch.answers) for touch in touches if touch.reply_id is not None}
        return [touch for touch in touches if touch.reply_id or (touch.thread_id, touch.answers) not in replied]

    def verify(self, tenant: str | None) -> Finding:
        """See `MemoryStore.verify_audit`."""
        with self._database.read() as connection:
            return verified(connection, tenant)


def _detail(event: Noted) -> dict[str, Any]:
    """What the log says of an event: ids, revisions, scores and names of tools."""
    detail: dict[str, Any] = {}
    match event.action:
        case "recall":
            detail["records"] = [[used.record_id, used.revision, used.score] for used in event.records]
        case "inject":
            detail["records"] = [[used.record_id, used.revision] for used in event.records]
        case "act":
            detail["calls"] = [[call.id, call.name] for call in event.calls]
        case "cite":
            detail["records"] = [[used.record_id, used.revision] for used in event.records]
            detail["not_applicable"] = [[used.record_id, used.revision] for used in event.not_applicable]
    return detail | ({"messages": [list(said) for said in event.messages]} if event.messages else {})


def _records_of(action: str, detail: Mapping[str, Any]) -> set[str]:
    """The records that an entry is about."""
    if action == "write":
        return {id for decision in detail["decisions"] for id in (decision[2], decision[4]) if id}
    lists = (detail.get("records", []), detail.get("not_applicable", []))
    named = [each for listed in lists if isinstance(listed, list | tuple) for each in listed]
    return {each if isinstance(each, str) else each[0] for each in named}


def _named(connection: Connection, tenant: str | None) -> Iterable[tuple[Place, set[str]]]:
    """The records that each entry names; those that name none are left out."""
    told = f"SELECT tenant, seq, action, detail FROM audit {_of(tenant)}"
    entries = connection.streamed(told, {"tenant": tenant})
    for whose, seq, action, detail in entries:
        ids = _records_of(str(action), json.loads(str(detail)))
        if ids:
            yield (str(whose), int(seq)), ids


def first_broken(connection: Connection, tenant: str | None = None) -> Place | None:
    """The first row of this tenant (None: of any) that was changed, or that follows a gap; None when each chain is
    whole."""
    rows = connection.streamed(
        f"SELECT tenant, seq, at, user, action, detail, hash FROM audit {_of(tenant)} ORDER BY tenant, seq",
        {"tenant": tenant},
    )
    for whose, chain in groupby(rows, key=itemgetter(0)):
        last = b""
        for expected, (_, seq, at, user, action, detail, found) in enumerate(chain, start=1):
            last = link(last, (at, whose, user, action, detail))
            if seq != expected or found != last:
                return str(whose), int(seq)
    return None


def _of(tenant: str | None) -> str:
    return "" if tenant is None else "WHERE tenant = :tenant"


def link(last: bytes, row: tuple[Any, ...]) -> bytes:
    """The hash of a row (at, tenant, user, action, detail) that follows the one with the hash `last`."""
    return sha256(last + json.dumps(row).encode()).digest()


def _entry(seq: int, at: int, user: str, action: str, thread_id: str | None, detail: str) -> AuditEntry:
    known = _read(detail)
    known.pop("thread_id", None)
    return AuditEntry(seq=seq, at=moment(at), user=user, action=action, thread_id=thread_id, detail=known)


def _of_another(seq: int, at: int, user: str, action: str, thread_id: str | None, detail: str, own: str) -> AuditEntry:
    """What another did to this user's records: of what else the act was about, nothing."""
    known = {"receipt": _read(detail).get("receipt"), "records": sorted(json.loads(own))}
    return AuditEntry(seq=seq, at=moment(at), user=user, action=action, thread_id=None, detail=known)


def _read(detail: str) -> dict[str, Any]:
    """The detail of an entry; of one that somebody has made unreadable, only that it is. `verified` names it."""
    try:
        known = json.loads(detail)
    except ValueError:
        known = None
    return known if isinstance(known, dict) else {"unreadable": True}


def _is_admin(identity: Identity) -> bool:
    return "admin" in identity.roles
