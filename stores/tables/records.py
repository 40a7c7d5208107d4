"""Records in SQLite: written by `commit` in one transaction, read by id, by key and by scope."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from everthread.errors import UsageError
from everthread.stores.access import may_mark, may_read, narrows, searched_owners, unfit
from everthread.stores.contract import READABLE
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity, Scope, aware, owners_of
from everthread.stores.record import Change, Receipt, Record, Status, new_id
from everthread.stores.tables.commit import Commit
from everthread.stores.tables.consent import Consents
from everthread.stores.tables.indexing import Indexer, order_vectors
from everthread.stores.tables.rows import (
    BODY,
    BY_IDS,
    NO_THREAD,
    OF_OWNER,
    PERMITTED,
    Rows,
    Stored,
    document_of,
    in_its_time,
    is_searched,
    permission,
)
from everthread.stores.tables.search import SearchIndex, record_space
from everthread.stores.tables.times import micros
from everthread.stores.text import normalise

__all__ = ["Records"]

BREADTH = ("session", "user", "agent", "project", "team", "organization")
"""Owners, narrowest first: the order of `owners_of`."""

RECEIPTS_OF = """
SELECT receipts.body, receipts.user FROM revisions JOIN receipts ON receipts.id = revisions.receipt
WHERE revisions.id = ? ORDER BY revisions.revision
"""
OF_STATUS = "records.status IN (SELECT value FROM json_each(:statuses))"
OF_KEY = "records.subject = :subject AND records.predicate = :predicate"
FROM_MESSAGES = f"""
records.tenant = :tenant AND records.thread_id = :thread AND records.recorded_at >= :since AND EXISTS (
    SELECT 1 FROM json_each({BODY}, '$.provenance.message_ids') AS message
    WHERE message.value IN (SELECT value FROM json_each(:messages))
)
"""
IS_OVER = "(records.valid_to <= :now OR records.expires_at <= :now)"


class Records:
    """The records of one database, for every tenant. What an identity may not read does not exist for it."""

    def __init__(
        self,
        database: Database,
        rows: Rows,
        index: SearchIndex,
        indexer: Indexer,
        consents: Consents,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._indexer = indexer
        self._consents = consents
        self._clock = clock

    # ---------------------------------------------------------------------------------------------------------- write

    def commit(self, identity: Identity, changes: Sequence[Change], *, key: str, thread_id: str | None) -> Receipt:
        """See `MemoryStore.commit`."""
        if not key.strip():
            raise UsageError("commit: the key is empty; give one that is the same when the same turn is tried again")
        with self._database.read(identity.tenant) as connection:
            known = _receipt(connection, identity, "key", key)
        if known is not None:
            return known
        fresh = [change.record for change in changes if change.record and is_searched(change.record)]
        prepared = self._indexer.prepare([document_of(record, identity.user) for record in fresh])
        with self._database.write(identity.tenant) as connection:
            known = _receipt(connection, identity, "key", key)
            if known is not None:
                return known
            self._consents.check(connection, identity, changes)
            now = self._clock()
            receipt_id = new_id("rcp")
            writing = Commit(
                connection, self._rows, self._index, identity, receipt_id=receipt_id, thread_id=thread_id, now=now
            )
            decisions = tuple(writing.apply(change) for change in changes)
            receipt = Receipt(id=receipt_id, key=key, at=now, thread_id=thread_id, decisions=decisions)
            writing.finish(decisions, self._indexer.settle(connection, prepared))
            connection.execute(
                "INSERT INTO receipts (id, tenant, user, key, body) VALUES (?, ?, ?, ?, ?)",
                (receipt_id, identity.tenant, identity.user, key, receipt.model_dump_json(exclude_none=True)),
            )
            if prepared.failure:
                for space in {record_space(identity.tenant, r.scope.owner, r.scope.owner_id) for r in fresh}:
                    order_vectors(connection, identity, space)
        return receipt

    def cite(self, identity: Identity, record_ids: Sequence[str]) -> None:
        """See `MemoryStore.cite`."""
        with self._database.write(identity.tenant) as connection:
            self._rows.count_use(connection, identity, set(record_ids), self._clock())

    # ----------------------------------------------------------------------------------------------------------- read

    def record(
        self, identity: Identity, record_id: str, *, revision: int | None, as_of: datetime | None
    ) -> Record | None:
        """See `MemoryStore.record`."""
        if revision is not None and as_of is not None:
            raise UsageError("record: give a revision or as_of, not both")
        with self._database.read(identity.tenant) as connection:
            stored = self._visible(connection, identity, record_id)
            if stored is None or (as_of is None and revision in (None, stored.record.revision)):
                return stored and stored.record
            revisions = self._revisions(connection, identity, stored)
        if revision is not None:
            return next((found for found in revisions if found.revision == revision), None)
        assert as_of is not None
        return next((found for found in reversed(revisions) if found.recorded_at <= as_of), None)

    def history(self, identity: Identity, record_id: str) -> list[Record]:
        """See `MemoryStore.history`."""
        with self._database.read(identity.tenant) as connection:
            stored = self._visible(connection, identity, record_id)
            return [] if stored is None else self._revisions(connection, identity, stored)

    def receipts(self, identity: Identity, record_id: str) -> list[Receipt]:
        """See `MemoryStore.receipts`."""
        with self._database.read(identity.tenant) as connection:
            if self._visible(connection, identity, record_id) is None:
                return []
            rows = connection.execute(RECEIPTS_OF, (record_id,)).fetchall()
        receipts = [(Receipt.model_validate_json(str(body)), user) for body, user in dict.fromkeys(rows)]
        return [receipt if user == identity.user else _about(receipt, record_id) for receipt, user in receipts]

    def _visible(self, connection: Connection, identity: Identity, record_id: str) -> Stored | None:
        stored = self._rows.get(connection, identity.tenant, record_id)
        if stored is None or not may_read(identity, stored.record, author=stored.author):
            return None
        return stored

    def _revisions(self, connection: Connection, identity: Identity, stored: Stored) -> list[Record]:
        """The revisions that the identity may read (an older one may have had another scope), the oldest first."""
        bodies = connection.execute(
            "SELECT body FROM revisions WHERE id = ? ORDER BY revision", (stored.record.id,)
        ).fetchall()
        revisions = [Record.model_validate_json(str(body)) for (body,) in bodies]
        usage = {"usage_count": stored.record.usage_count, "last_used_at": stored.record.last_used_at}
        return [
            revision if revision.revision < stored.record.revision else revision.model_copy(update=usage)
            for revision in revisions
            if may_read(identity, revision, author=stored.author)
        ]

    def records(
        self,
        identity: Identity,
        *,
        ids: Sequence[str] | None,
        scopes: Sequence[Scope] | None,
        statuses: Sequence[Status],
        thread_id: str | None,
        as_of: datetime | None,
        now: datetime | None,
        limit: int | None,
    ) -> list[Record]:
        """See `MemoryStore.records`."""
        if ids is not None:
            known = self._by_ids(identity, ids, thread_id, as_of)
            return [record for record in known if now is None or record.is_valid_at(now)][:limit]
        owners = searched_owners(identity, scopes, thread_id)
        with self._database.read(identity.tenant) as connection:
            found: list[Record] = []
            for owner, owner_id in owners:
                values = permission(identity, owner, owner_id, thread_id, any_thread=thread_id is None)
                stored = self._of_owner(connection, values, statuses, as_of, newest_first=limit is not None)
                wanted = (
                    each.record
                    for each in stored
                    if may_read(identity, each.record, author=each.author, thread_id=thread_id)
                    and each.record.status in statuses
                    and narrows(scopes, each.record.scope)
                    and (now is None or each.record.is_valid_at(now))
                )
                # with a limit they come in order, and no owner has more than that among the newest of all
                found.extend(islice(wanted, limit if as_of is None else None))
        return sorted(found, key=lambda record: (record.recorded_at, record.id), reverse=True)[:limit]

    def _of_owner(
        self,
        connection: Connection,
        values: dict[str, Any],
        statuses: Sequence[Status],
        as_of: datetime | None,
        *,
        newest_first: bool,
    ) -> Iterable[Stored]:
        if as_of is not None:
            # a record may have had another status then, and another reach: what is found is checked once more
            return self._rows.standing(connection, as_of, OF_OWNER, values)
        wanted = values | {"statuses": json.dumps(list(statuses))}
        order = "ORDER BY records.recorded_at DESC, records.id DESC" if newest_first else ""
        return self._rows.find(connection, f"{PERMITTED} AND {OF_STATUS} {order}", wanted)

    def _by_ids(
        self, identity: Identity, ids: Sequence[str], thread_id: str | None, as_of: datetime | None
    ) -> list[Record]:
        with self._database.read(identity.tenant) as connection:
            if as_of is None:
                found = self._rows.several(connection, identity.tenant, ids)
            else:
                values = {"tenant": identity.tenant, "ids": json.dumps(list(ids))}
                standing = self._rows.standing(connection, as_of, BY_IDS, values)
                found = {stored.record.id: stored for stored in standing}
        return [
            found[id].record
            for id in ids
            if id in found and may_read(identity, found[id].record, author=found[id].author, thread_id=thread_id)
        ]

    def current(
        self,
        identity: Identity,
        subject: str,
        predicate: str,
        *,
        thread_id: str | None,
        as_of: datetime | None,
        now: datetime | None,
    ) -> list[Record]:
        """See `MemoryStore.current`."""
        moment = aware(now or as_of or self._clock(), "now")
        key = {"subject": normalise(subject), "predicate": normalise(predicate)}
        with self._database.read(identity.tenant) as connection:
            known = [
                stored.record
                for owner, owner_id in owners_of(identity, thread_id)
                for stored in self._of_key(connection, permission(identity, owner, owner_id, thread_id) | key, as_of)
                if may_read(identity, stored.record, author=stored.author, thread_id=thread_id or NO_THREAD)
                and (normalise(stored.record.subject or ""), normalise(stored.record.predicate or ""))
                == (key["subject"], key["predicate"])
            ]
        found = [record for record in known if unfit(in_its_time(record, known), identity, moment) is None]
        return sorted(found, key=_narrowest_first)

    def _of_key(self, connection: Connection, values: dict[str, Any], as_of: datetime | None) -> Iterable[Stored]:
        if as_of is not None:
            return self._rows.standing(connection, as_of, OF_OWNER, values)
        return self._rows.find(connection, f"{PERMITTED} AND {OF_KEY}", values)

    def run_out(self, identity: Identity, now: datetime) -> list[Record]:
        """See `MemoryStore.run_out`."""
        over = {"now": micros(now), "statuses": json.dumps(["pending", *READABLE])}
        with self._database.read(identity.tenant) as connection:
            return [
                stored.record
                for owner, owner_id in owners_of(identity)
                for stored in self._rows.find(
                    connection,
                    f"{PERMITTED} AND {OF_STATUS} AND {IS_OVER}",
                    permission(identity, owner, owner_id, None, any_thread=True) | over,
                )
                if may_read(identity, stored.record, author=stored.author) and may_mark(identity, stored.record)
            ]

    def receipt(self, identity: Identity, receipt_id: str) -> Receipt | None:
        """See `MemoryStore.receipt`."""
        with self._database.read(identity.tenant) as connection:
            return _receipt(connection, identity, "id", receipt_id)

    def receipt_of(self, identity: Identity, key: str) -> Receipt | None:
        """See `MemoryStore.receipt_of`."""
        with self._database.read(identity.tenant) as connection:
            return _receipt(connection, identity, "key", key)

    def learnt_from(
        self, identity: Identity, thread_id: str, message_ids: Sequence[str], since: datetime | None
    ) -> list[Record]:
        """See `MemoryStore.learnt_from`."""
        values = {
            "tenant": identity.tenant,
            "thread": thread_id,
            "messages": json.dumps(list(message_ids)),
            "since": micros(since) or 0,
        }
        with self._database.read(identity.tenant) as connection:
            found = [
                stored.record
                for stored in self._rows.find(connection, FROM_MESSAGES, values)
                if may_read(identity, stored.record, author=stored.author)
            ]
        return sorted(found, key=lambda record: (record.recorded_at, record.id))


def _about(receipt: Receipt, record_id: str) -> Receipt:
    """Another user's receipt of a shared record: what else that turn decided is that user's own."""
    decisions = tuple(decision for decision in receipt.decisions if record_id in (decision.record_id, decision.target))
    return receipt.model_copy(update={"decisions": decisions})


def _receipt(connection: Connection, identity: Identity, column: Literal["id", "key"], value: str) -> Receipt | None:
    """The receipt of this user with this id or key."""
    body = one(
        connection,
        f"SELECT body FROM receipts WHERE tenant = ? AND user = ? AND {column} = ?",
        identity.tenant,
        identity.user,
        value,
    )
    return None if body is None else Receipt.model_validate_json(body)


def _narrowest_first(record: Record) -> tuple[int, int, float]:
    """Session before user before ... organization; narrowed before not; the newest first."""
    narrowed = len(record.scope.within.model_dump(exclude_none=True))
    return BREADTH.index(record.scope.owner), -narrowed, -record.recorded_at.timestamp()
