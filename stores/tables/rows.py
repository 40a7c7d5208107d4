"""How a record lies in its tables, and who may see which row."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from everthread.errors import StoreError, UsageError
from everthread.stores.access import grants, may_read
from everthread.stores.contract import READABLE
from everthread.stores.database import Connection, Cursor
from everthread.stores.encoding import Bounds, Document
from everthread.stores.identity import Identity, Owner
from everthread.stores.reach import reach_of
from everthread.stores.record import Record
from everthread.stores.tables.search import past_id, past_space, record_space
from everthread.stores.tables.times import micros, moment
from everthread.stores.text import normalise

__all__ = [
    "BODY",
    "BY_IDS",
    "HISTORIES",
    "NO_THREAD",
    "OF_OWNER",
    "OF_THESE",
    "PERMITTED",
    "Asked",
    "Rows",
    "Stored",
    "body_of",
    "bounds_of",
    "columns_of",
    "document_of",
    "histories",
    "in_its_time",
    "is_same_text",
    "is_searched",
    "permission",
    "save",
    "space_of",
    "stored_records",
    "texts_of",
]


class Stored(NamedTuple):
    """A record and what the store knows about it besides."""

    record: Record
    author: str
    """The user whose turn created it."""


class Asked(NamedTuple):
    """A question for records by id, and what is known of them already."""

    rows: Cursor
    known: Mapping[str, Record]


BODY = "(SELECT body FROM revisions WHERE revisions.id = records.id AND revisions.revision = records.revision)"
"""What a row of `records` says, as JSON: it is kept once, in the history."""

FOUND = f"records.id, records.revision, {BODY}, records.author, records.usage_count, records.last_used_at"
"""What `Rows` reads of a row, in this order."""

UNKNOWN = FOUND.replace(
    BODY, f"CASE WHEN id || ' ' || revision IN (SELECT value FROM json_each(:known)) THEN NULL ELSE {BODY} END"
)
"""The same, without what it says where that is known."""

PERMITTED = """
records.tenant = :tenant AND records.owner = :owner AND records.owner_id = :owner_id
AND (records.owner <> 'session' OR records.author = :user)
AND (records.status <> 'pending' OR records.owner IN ('user', 'session') OR records.author = :user OR :decides)
AND (records.in_application IS NULL OR records.in_application = :application)
AND (records.in_project IS NULL OR records.in_project = :project)
AND (records.in_agent IS NULL OR records.in_agent = :agent)
AND (records.in_thread IS NULL OR records.in_thread = :thread OR (:any_thread AND records.author = :user))
AND (records.readers IS NULL
     OR EXISTS (SELECT 1 FROM json_each(records.readers) WHERE value IN (SELECT value FROM json_each(:grants))))
"""
"""`access.may_read` as a condition inside the query; values by `permission`."""

OF_OWNER = "records.tenant = :tenant AND records.owner = :owner AND records.owner_id = :owner_id"
"""The records of one owner; whoever uses it asks `access.may_read` about each."""

BY_IDS = "+records.tenant = :tenant AND records.id IN (SELECT value FROM json_each(:ids))"
"""Records of one tenant by id; + keeps SQLite from walking the whole tenant by an index."""

SEVERAL = f"SELECT {UNKNOWN} FROM records WHERE {BY_IDS}"

OF_THESE = "records.id IN (SELECT value FROM json_each(:ids))"
"""Records by id, of whichever tenant."""

NO_THREAD = ""
"""Given to `access.may_read` by a search without a thread: nothing that is bound to one is meant."""

SAVE = """
INSERT INTO records (
    id, tenant, owner, owner_id, author, revision, status, subject, predicate, thread_id, in_application, in_project,
    in_agent, in_thread, agent_family, agent_versions, environment, readers, valid_from, valid_to, expires_at,
    recorded_at, usage_count, last_used_at
) VALUES (
    :id, :tenant, :owner, :owner_id, :author, :revision, :status, :subject, :predicate, :thread_id, :in_application,
    :in_project, :in_agent, :in_thread, :agent_family, :agent_versions, :environment, :readers, :valid_from, :valid_to,
    :expires_at, :recorded_at, :usage_count, :last_used_at
) ON CONFLICT (id) DO UPDATE SET
    owner = excluded.owner, owner_id = excluded.owner_id, revision = excluded.revision, status = excluded.status,
    subject = excluded.subject, predicate = excluded.predicate, thread_id = excluded.thread_id,
    in_application = excluded.in_application, in_project = excluded.in_project, in_agent = excluded.in_agent,
    in_thread = excluded.in_thread, agent_family = excluded.agent_family, agent_versions = excluded.agent_versions,
    environment = excluded.environment, readers = excluded.readers, valid_from = excluded.valid_from,
    valid_to = excluded.valid_to, expires_at = excluded.expires_at, recorded_at = excluded.recorded_at
"""

SAVE_REVISION = """
INSERT INTO revisions (id, revision, recorded_at, actor, receipt, reason, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""


HISTORIES = """
SELECT records.tenant, records.author, records.id, revisions.recorded_at, revisions.body
FROM records JOIN revisions ON revisions.id = records.id
WHERE {condition} AND NOT EXISTS (
    SELECT 1 FROM revisions AS later
    WHERE later.id = revisions.id AND later.revision > revisions.revision AND later.receipt = revisions.receipt
)
ORDER BY records.id, revisions.revision
"""
"""Revisions as commits have left them: what one commit wrote and wrote again, nobody has seen."""


def space_of(tenant: str, record: Record) -> str:
    """The search space that the record belongs to."""
    return record_space(tenant, record.scope.owner, record.scope.owner_id)


def document_of(record: Record, author: str) -> Document:
    """What of a record is searched: its statement with its tags, and the day it was observed."""
    text = f"{record.statement}\n{' '.join(record.tags)}" if record.tags else record.statement
    date = record.valid_from or record.provenance.observed_at
    return Document(record.id, text, date=date, bounds=bounds_of(record, author))


def bounds_of(record: Record, author: str) -> Bounds:
    """When and for whom a record may be used, as its row in the search index says it."""
    ends = [micros(end) for end in (record.valid_to, record.expires_at) if end is not None]
    return Bounds(
        micros(record.valid_from), min(ends, default=None), reach_of(record, author), known=micros(record.recorded_at)
    )


def in_its_time(record: Record, known: Sequence[Record]) -> Record:
    """A record whose successor began when its own time ended was not wrong: it stands for that time, as if active. One
    that was corrected does not."""
    if record.status != "superseded" or record.valid_to is None:
        return record
    successors = [
        new for new in known if ("supersedes", record.id) in [(edge.kind, edge.target) for edge in new.relations]
    ]
    followed = all(new.valid_from is not None and new.valid_from >= record.valid_to for new in successors)
    return record.model_copy(update={"status": "active"}) if successors and followed else record


def is_searched(record: Record) -> bool:
    """Whether the record has a row in its space of the index: it is in use, or it was until something else began."""
    return record.status in READABLE or (record.status == "superseded" and record.valid_to is not None)


def is_same_text(one: Document, other: Document) -> bool:
    """Whether two documents of a record are found alike, whenever the store had them."""
    ever = [document.bounds._replace(known=0, gone=None) for document in (one, other)]
    return one._replace(bounds=ever[0]) == other._replace(bounds=ever[1])


def texts_of(tenant: str, author: str, history: Iterable[tuple[int, Record | None]]) -> list[tuple[str, Document]]:
    """What is searched of a record: (space, document) for each text that it has had, the oldest first, those that it
    has no more in the space of the past. `history`: when each revision was written, and the revision; None for one that
    is damaged, and for which no older one stands in."""
    texts: list[tuple[str, Document]] = []
    standing = False
    for at, record in history:
        document = document_of(record, author) if record is not None and is_searched(record) else None
        space = None if record is None else space_of(tenant, record)
        if standing:
            old_space, old = texts[-1]
            if document is not None and space == old_space and is_same_text(old, document):
                continue
            past = old.bounds._replace(gone=at)
            texts[-1] = past_space(old_space), old._replace(id=past_id(old.id, past.known), bounds=past)
        standing = document is not None
        if document is not None and space is not None:
            texts.append((space, document))
    return texts


def histories(
    connection: Connection, condition: str, values: dict[str, Any] | None = None
) -> Iterator[tuple[str, str, list[tuple[int, Record | None]]]]:
    """(tenant, author, history as `texts_of` takes it) of every record that meets a condition (SQL of ours)."""
    rows: Iterable[Any] = connection.execute(HISTORIES.format(condition=condition), values or {})
    for _, revisions in groupby(rows, key=lambda row: row[2]):
        listed = list(revisions)
        yield str(listed[0][0]), str(listed[0][1]), [(int(row[3]), _read(str(row[4]))) for row in listed]


def _read(body: str) -> Record | None:
    try:
        return Record.model_validate_json(body)
    except ValidationError:
        return None


def permission(
    identity: Identity, owner: Owner, owner_id: str, thread_id: str | None, *, any_thread: bool = False
) -> dict[str, Any]:
    """The values of `PERMITTED`, for one owner that the identity reads. `any_thread` also shows what is bound to other
    threads of this user: to list it, never to recall it."""
    return {
        "tenant": identity.tenant,
        "user": identity.user,
        "application": identity.application,
        "project": identity.project,
        "agent": identity.agent,
        "thread": thread_id,
        "any_thread": any_thread,
        "decides": "curator" in identity.roles,
        "grants": json.dumps(grants(identity)),
        "owner": owner,
        "owner_id": owner_id,
    }


def save(connection: Connection, tenant: str, stored: Stored, *, actor: str, receipt: str, reason: str) -> None:
    """Write the record's newest revision, its place in the history and its relations. The caller keeps the index."""
    record, row = stored.record, columns_of(tenant, stored)
    connection.execute(SAVE, row)
    connection.execute(
        SAVE_REVISION, (record.id, record.revision, row["recorded_at"], actor, receipt, reason, body_of(record))
    )
    if record.revision > 1:
        connection.execute("DELETE FROM relations WHERE id = ?", (record.id,))
    if record.relations:
        connection.executemany(
            "INSERT INTO relations (id, kind, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(record.id, relation.kind, relation.target) for relation in record.relations],
        )


def body_of(record: Record) -> str:
    """The record as JSON, without what is counted in columns of its own and without defaults, a third of it. UsageError
    for text that no UTF-8 can hold."""
    try:
        return record.model_dump_json(exclude_defaults=True, exclude={"usage_count", "last_used_at"})
    except PydanticSerializationError as error:
        raise UsageError(f"record {record.id} holds text that is not valid Unicode (a lone surrogate)") from error


def stored_records(connection: Connection, condition: str) -> Iterator[tuple[str, Stored]]:
    """(tenant, record) of every row that meets a condition (SQL of ours, never input), past what is kept in memory.
    A body that is damaged or lost is passed over: `doctor` names it."""
    for tenant, author, body in connection.execute(f"SELECT tenant, author, {BODY} FROM records WHERE {condition}"):
        try:
            record = Record.model_validate_json(str(body))
        except ValidationError:
            continue
        yield str(tenant), Stored(record, str(author))


def columns_of(tenant: str, stored: Stored) -> dict[str, Any]:
    """A record as a row of `records`."""
    record = stored.record
    within, readers = record.scope.within, record.governance.readable_by
    return {
        "id": record.id,
        "tenant": tenant,
        "owner": record.scope.owner,
        "owner_id": record.scope.owner_id,
        "author": stored.author,
        "revision": record.revision,
        "status": record.status,
        "subject": None if record.subject is None else normalise(record.subject),
        "predicate": None if record.predicate is None else normalise(record.predicate),
        "thread_id": record.provenance.thread_id,
        "in_application": within.application,
        "in_project": within.project,
        "in_agent": within.agent,
        "in_thread": within.thread,
        "agent_family": record.agent_family,
        "agent_versions": record.agent_versions,
        "environment": record.environment,
        "readers": json.dumps(readers) if readers else None,
        "valid_from": micros(record.valid_from),
        "valid_to": micros(record.valid_to),
        "expires_at": micros(record.expires_at),
        "recorded_at": micros(record.recorded_at),
        "usage_count": record.usage_count,
        "last_used_at": micros(record.last_used_at),
    }


def _used(record: Record, author: str, used: int, last_used: int | None) -> Stored:
    """A record with what is counted beside it."""
    if used:
        at = None if last_used is None else moment(last_used)
        record = record.model_copy(update={"usage_count": used, "last_used_at": at})
    return Stored(record, author)


class Rows:
    """Reads rows as records; StoreError for one that is damaged. What was parsed last is kept, by id and revision, and
    never without looking at the row."""

    def __init__(self, *, cached: int = 4_096) -> None:
        self._limit = cached
        self._parsed: OrderedDict[tuple[str, int], Record] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()

    def find(self, connection: Connection, condition: str, values: dict[str, Any]) -> Iterator[Stored]:
        """The rows of `records` that meet a condition (SQL of ours, never input)."""
        for row in connection.execute(f"SELECT {FOUND} FROM records WHERE {condition}", values):
            yield self._stored(*row)

    def get(self, connection: Connection, tenant: str, id: str) -> Stored | None:
        """One record of this tenant, its newest revision."""
        return next(self.find(connection, "tenant = :tenant AND id = :id", {"tenant": tenant, "id": id}), None)

    def several(self, connection: Connection, tenant: str, ids: Iterable[str]) -> dict[str, Stored]:
        """Records of this tenant by id; those that do not exist are left out."""
        return self.read(self.ask(connection, tenant, ids))

    def ask(self, connection: Connection, tenant: str, ids: Iterable[str]) -> Asked:
        """Ask for what `several` reads."""
        asked = list(ids)
        with self._lock:
            known = {id: self._parsed[id, self._newest[id]] for id in asked if id in self._newest}
            for record in known.values():
                self._parsed.move_to_end((record.id, record.revision))
        values = {
            "tenant": tenant,
            "ids": json.dumps(asked),
            "known": json.dumps([f"{id} {record.revision}" for id, record in known.items()]),
        }
        return Asked(connection.execute(SEVERAL, values), known)

    def read(self, asked: Asked) -> dict[str, Stored]:
        """What was asked for, by id."""
        return {
            id: self._stored(id, revision, body, *rest) if body else _used(asked.known[id], *rest)
            for id, revision, body, *rest in asked.rows
        }

    def count_use(self, connection: Connection, identity: Identity, ids: Iterable[str], at: datetime) -> None:
        """Note that these records were used, those that the identity may read."""
        found = self.several(connection, identity.tenant, ids)
        connection.executemany(
            "UPDATE records SET usage_count = usage_count + 1, last_used_at = ? WHERE id = ?",
            [
                (micros(at), id)
                for id, stored in found.items()
                if may_read(identity, stored.record, author=stored.author)
            ],
        )

    def standing(
        self, connection: Connection, as_of: datetime, condition: str, values: dict[str, Any]
    ) -> Iterator[Stored]:
        """The rows of `records` that meet a condition, each as the revision that stood at `as_of`."""
        sql = f"""
            SELECT id, revision, body, author FROM (
                SELECT revisions.id, revisions.revision, revisions.body, records.author,
                       row_number() OVER (PARTITION BY revisions.id ORDER BY revisions.revision DESC) AS age
                FROM records JOIN revisions ON revisions.id = records.id AND revisions.recorded_at <= :as_of
                WHERE {condition}
            ) WHERE age = 1
        """
        rows: Iterable[Any] = connection.execute(sql, values | {"as_of": micros(as_of)})
        for id, revision, body, author in rows:
            yield self._stored(id, revision, body, author, 0, None)

    def _stored(
        self,
        id: str,
        revision: int,
        body: str,
        author: str,
        used: int,
        last_used: int | None,
    ) -> Stored:
        with self._lock:
            record = self._parsed.get((id, revision))
            if record is not None:
                self._keep(record)
        if record is None:
            try:
                record = Record.model_validate_json(str(body))
            except ValidationError as error:
                raise StoreError(
                    f"record {id} is damaged; restore a backup (`everthread doctor` names all that are)"
                ) from error
            with self._lock:
                self._keep(record)
        return _used(record, author, used, last_used)

    def _keep(self, record: Record) -> None:
        key = (record.id, record.revision)
        self._parsed[key] = record
        self._parsed.move_to_end(key)
        self._newest[record.id] = max(record.revision, self._newest.get(record.id, 0))
        if len(self._parsed) > self._limit:
            (id, revision), _ = self._parsed.popitem(last=False)
            if self._newest.get(id) == revision:
                del self._newest[id]

    def forget(self) -> None:
        """Empty the cache: after an erasure nothing of it stays in this process's memory."""
        with self._lock:
            self._parsed.clear()
            self._newest.clear()
