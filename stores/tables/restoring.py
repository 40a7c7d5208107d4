"""Entries of a user that are brought back: written when they are not there, and never when they were erased here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from langgraph.store.base import PutOp

from everthread.stores.contract import READABLE
from everthread.stores.database import Connection, Database
from everthread.stores.encoding import Document
from everthread.stores.identity import Identity
from everthread.stores.item_ops import checked
from everthread.stores.record import Receipt, Record
from everthread.stores.tables import outbox
from everthread.stores.tables.dry_run import writing
from everthread.stores.tables.indexing import Indexer, Prepared, order_vectors
from everthread.stores.tables.item_vectors import Embedded, ItemVectors
from everthread.stores.tables.reasons import ERASED
from everthread.stores.tables.rows import SAVE, SAVE_REVISION, Stored, body_of, columns_of, texts_of
from everthread.stores.tables.search import SearchIndex, SearchRow, evidence_space
from everthread.stores.tables.threads import bind_thread
from everthread.stores.tables.times import micros
from everthread.stores.tables.tombstones import is_buried, key_of, was_message_buried
from everthread.stores.tables.transcripts import searched_of
from everthread.stores.transfer import Outcome, Row

__all__ = ["Restoring"]

IDS: dict[str, tuple[str, ...]] = {
    "threads": ("thread_id",),
    "messages": ("thread_id", "message_id"),
    "receipts": ("id",),
    "tasks": ("id",),
    "artifacts": ("tenant", "user", "id"),
    "artifact_uses": ("tenant", "user", "artifact_id", "thread_id"),
    "inbox": ("thread_id", "message_id"),
    "jobs": ("id",),
    "items": ("namespace", "key"),
    "consents": ("tenant", "user"),
}
"""By what a row of each table is known: the number that the store gives it is its own."""
SAME: dict[str, tuple[str, ...]] = {
    "threads": ("tenant", "user"),
    "messages": ("role", "source", "speaker", "text", "payload", "at", "at_offset"),
    "receipts": ("tenant", "user", "key"),
    "tasks": ("tenant", "user", "text"),
    "jobs": ("tenant", "user", "kind"),
    "items": ("value",),
    "consents": ("memory",),
}
"""What must be equal for a row to be the same; what is not named may have moved on."""
KEYS = {
    "receipts": "tenant = :tenant AND user = :user AND key = :key",
    "tasks": "tenant = :tenant AND user = :user AND key = :key",
    "jobs": "tenant = :tenant AND user = :user AND key = :key",
}
"""Where a second id is given out once."""
NUMBERED = {"messages": "seq", "items": "id"}
"""By which number what is derived of a row refers to it."""
GONE = """
SELECT audit_records.record_id FROM audit_records
CROSS JOIN audit ON audit.tenant = audit_records.tenant AND audit.seq = audit_records.seq
WHERE audit_records.record_id IN (SELECT value FROM json_each(?)) AND audit_records.tenant = ?
    AND audit.action = 'erase'
"""
"""Which of these records were erased, by the log."""


class Pack(NamedTuple):
    """An entry, read once."""

    row: Row
    """The row itself."""
    history: list[tuple[Row, Record]]
    """The revisions of a record, the oldest first; empty for anything else."""
    others: list[Row]
    """What belongs to it besides."""

    @property
    def stored(self) -> Stored:
        """The record as it stands last."""
        return Stored(self.history[-1][1], str(self.row.values["author"]))


class Ready(NamedTuple):
    """What was embedded before the transaction."""

    records: Prepared
    messages: Prepared
    items: Embedded | None


class Restoring:
    """Answers `Transfer.restore`."""

    def __init__(
        self,
        database: Database,
        index: SearchIndex,
        indexer: Indexer,
        vectors: ItemVectors | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._index = index
        self._indexer = indexer
        self._vectors = vectors
        self._clock = clock

    def restore(self, identity: Identity, entries: Sequence[Sequence[Row]], *, dry_run: bool) -> list[Outcome]:
        """See `Transfer.restore`."""
        packs = [_pack(entry) for entry in entries]
        named = {id for pack in packs for id in _named(pack)}
        if dry_run:
            with writing(self._database, identity.tenant, dry_run=dry_run) as connection:
                run = _Run(connection, identity, self._clock(), named)
                return [run.restore(pack) for pack in packs]
        with self._database.read(identity.tenant) as connection:
            look = _Run(connection, identity, self._clock(), named)
            fresh = [pack for pack in packs if look.outcome(pack) == "new"]
        ready = self._prepare(identity.tenant, fresh)
        with writing(self._database, identity.tenant, dry_run=dry_run) as connection:
            run = _Run(connection, identity, self._clock(), named)
            outcomes = [run.restore(pack) for pack in packs]
            self._make_searchable(connection, identity, run, ready)
            outbox.append(
                connection,
                identity.tenant,
                [("memory.updated", each) for each in run.records if each.record.status in READABLE],
                at=self._clock(),
            )
        return outcomes

    def _prepare(self, tenant: str, packs: Sequence[Pack]) -> Ready:
        """Embed what will be searched: never inside a transaction."""
        first = [pack.row for pack in packs]
        texts = [
            document
            for pack in packs
            if pack.history
            for _, document in texts_of(tenant, pack.stored.author, _left_by_commits(pack))
        ]
        said = [document for row in first if (document := _said(row)) is not None]
        puts = [_put(row) for row in first if row.table == "items"]
        return Ready(
            self._indexer.prepare(texts),
            self._indexer.prepare(said),
            self._vectors.embed(checked(puts)) if self._vectors and puts else None,
        )

    def _make_searchable(self, connection: Connection, identity: Identity, run: _Run, ready: Ready) -> None:
        """Index what was written, in its transaction."""
        spaces: dict[str, list[SearchRow]] = {}
        rows = {row.id: row for row in self._indexer.settle(connection, ready.records)}
        for space, document in run.searched:
            spaces.setdefault(space, []).append(rows[document.id])
        texts = {row.id: row for row in self._indexer.settle(connection, ready.messages)}
        for number, name in run.messages:
            if name in texts:
                found = texts[name]._replace(id=str(number))
                spaces.setdefault(evidence_space(identity), []).append(found)
        for space, found_rows in spaces.items():
            self._index.put(connection, space, found_rows)
            if ready.records.failure or ready.messages.failure:
                order_vectors(connection, identity, space)
        if ready.items is not None:
            for number, place in run.items:
                connection.executemany(PUT_VECTOR, ready.items.rows(place, number))


PUT_VECTOR = "INSERT INTO item_vectors (item, field, part, vector) VALUES (?, ?, ?, ?)"


class _Run:
    """The writing of some entries on one connection."""

    def __init__(self, connection: Connection, identity: Identity, now: datetime, named: set[str]) -> None:
        self._connection = connection
        self._identity = identity
        self._now = now
        self._key = key_of(connection)
        asked = (json.dumps(sorted(named)), identity.tenant)
        self._gone = {str(id) for (id,) in connection.execute(GONE, asked)}
        self.records: list[Stored] = []
        """What was written, for the index and the outbox."""
        self.searched: list[tuple[str, Document]] = []
        """Space and text of all that these records say and have said."""
        self.messages: list[tuple[int, str]] = []
        """(number, name) of the messages that were written."""
        self.items: list[tuple[int, tuple[tuple[str, ...], str]]] = []
        """(number, place) of the items that were written."""

    def restore(self, pack: Pack) -> Outcome:
        """Write an entry when nothing speaks against it."""
        outcome = self.outcome(pack)
        if outcome == "new" and pack.history:
            self._write_record(pack)
        elif outcome == "new":
            for row in (pack.row, *pack.others):
                self._write(row)
        elif outcome == "there" and pack.row.table == "artifacts":
            for row in pack.others:
                if self._found(row) is None:
                    self._write(row)
        return outcome

    def outcome(self, pack: Pack) -> Outcome:
        """What becomes of an entry, as things stand."""
        if pack.history:
            return self._of_record(pack)
        return self._of_row(pack.row)

    def _of_row(self, row: Row) -> Outcome:
        if row.table in ("messages", "inbox") and not self._may_own(str(row.values["thread_id"])):
            return "other"
        found = self._found(row)
        if found is not None:
            return self._of_known(row, found)
        if self._was_erased(row):
            return "erased"
        key = row.values.get("key")
        if row.table in KEYS and key is not None:
            taken = self._connection.execute(f"SELECT 1 FROM {row.table} WHERE {KEYS[row.table]}", row.values)
            if taken.fetchone() is not None:
                return "other"
        return "new"

    def _of_known(self, row: Row, found: dict[str, Any]) -> Outcome:
        """What becomes of a row whose id is there."""
        erased = row.table in ("threads", "messages") and found["erased_at"] is not None
        if erased and row.values["erased_at"] is None and found.get("tenant") in (None, self._identity.tenant):
            return "erased"
        return "there" if all(found[name] == row.values[name] for name in SAME.get(row.table, ())) else "other"

    def _of_record(self, pack: Pack) -> Outcome:
        """A record is there when every revision of the entry is; it may have gone on from there."""
        stored = pack.stored
        id, tenant = stored.record.id, self._identity.tenant
        with self._connection.of(None):  # another tenant may have it
            owner = self._connection.execute("SELECT tenant, author FROM records WHERE id = ?", (id,)).fetchone()
        if owner is not None:
            sql = "SELECT revision, actor, receipt, body FROM revisions WHERE id = ?"
            known = {
                revision: (actor, receipt, Record.model_validate_json(str(body)))
                for revision, actor, receipt, body in self._connection.execute(sql, (id,))
            }
            same = all(
                known.get(record.revision) == (row.values["actor"], row.values["receipt"], self._kept(record))
                for row, record in pack.history
            )
            return "there" if same and owner == (tenant, stored.author) else "other"
        buried = (
            is_buried(self._connection, self._key, tenant, record, author=stored.author) for _, record in pack.history
        )
        return "erased" if id in self._gone or any(buried) else "new"

    def _was_erased(self, row: Row) -> bool:
        """Whether a row that is not there was erased."""
        if row.table == "messages" and row.values["erased_at"] is None:
            thread_id, message_id = str(row.values["thread_id"]), str(row.values["message_id"])
            return was_message_buried(self._connection, self._key, self._identity, thread_id, message_id)
        if row.table == "tasks" and row.values["said_in"] is not None:
            said_in = str(row.values["said_in"])
            return any(
                was_message_buried(self._connection, self._key, self._identity, said_in, id)
                for id in json.loads(str(row.values["message_ids"]))
            )
        return False

    def _may_own(self, thread_id: str) -> bool:
        """Whether a thread is this user's, or nobody's yet."""
        found = self._connection.execute("SELECT tenant, user FROM threads WHERE thread_id = ?", (thread_id,))
        return found.fetchone() in (None, (self._identity.tenant, self._identity.user))

    def _found(self, row: Row) -> dict[str, Any] | None:
        names = IDS[row.table]
        condition = " AND ".join(f"{name} = ?" for name in names)
        cursor = self._connection.execute(
            f"SELECT * FROM {row.table} WHERE {condition}", tuple(row.values[name] for name in names)
        )
        found = cursor.fetchone()
        if found is None:
            return None
        return dict(zip((column[0] for column in cursor.getdescription()), found, strict=True))

    def _write(self, row: Row) -> None:
        values = dict(row.values)
        if row.table == "receipts":
            values["body"] = self._without_gone(str(values["body"]))
        if row.table in ("messages", "inbox"):
            bind_thread(self._connection, self._identity, str(values["thread_id"]))
        names = list(values)
        marks = ", ".join("?" * len(names))
        sql = f"INSERT INTO {row.table} ({', '.join(names)}) VALUES ({marks})"
        number = NUMBERED.get(row.table)
        if number is None:
            self._connection.execute(sql, tuple(values.values()))
            return
        ((given,),) = self._connection.execute(f"{sql} RETURNING {number}", tuple(values.values())).fetchall()
        if row.table == "items":
            self.items.append((given, _place(row)))
        elif row.values["erased_at"] is None:
            self.messages.append((given, _name(row)))

    def _write_record(self, pack: Pack) -> None:
        stored = pack.stored._replace(record=self._kept(pack.stored.record))
        record, tenant = stored.record, self._identity.tenant
        usage = {name: pack.row.values[name] for name in ("usage_count", "last_used_at")}
        self._connection.execute(SAVE, columns_of(tenant, stored) | usage)
        for row, revision in pack.history:
            kept, values = self._kept(revision), row.values
            reason = values["reason"] if kept == revision else ERASED
            written = (values["recorded_at"], values["actor"], values["receipt"], reason, body_of(kept))
            self._connection.execute(SAVE_REVISION, (record.id, revision.revision, *written))
        self._connection.executemany(
            "INSERT INTO relations (id, kind, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(record.id, relation.kind, relation.target) for relation in record.relations],
        )
        for row in pack.others:
            if self._of_row(row) == "new":
                self._write(row)
        self.records.append(stored)
        self.searched += texts_of(tenant, stored.author, _left_by_commits(pack))

    def _kept(self, record: Record) -> Record:
        """The record without its edges to what was erased here: their reasons may quote it."""
        kept = tuple(relation for relation in record.relations if relation.target not in self._gone)
        return record if kept == record.relations else record.model_copy(update={"relations": kept})

    def _without_gone(self, body: str) -> str:
        """A receipt that gives no reasons for what was erased here."""
        receipt = Receipt.model_validate_json(body)
        decisions = tuple(
            decision.model_copy(update={"reason": ERASED})
            if {decision.record_id, decision.target} & self._gone
            else decision
            for decision in receipt.decisions
        )
        return receipt.model_copy(update={"decisions": decisions}).model_dump_json(exclude_none=True)


def _pack(entry: Sequence[Row]) -> Pack:
    first, *others = entry
    history = [(row, Record.model_validate_json(str(row.values["body"]))) for row in others if row.table == "revisions"]
    return Pack(first, history, [row for row in others if row.table != "revisions"])


def _left_by_commits(pack: Pack) -> list[tuple[int, Record | None]]:
    """The history as `texts_of` takes it: what one commit wrote and wrote again, nobody has seen."""
    receipts = [row.values["receipt"] for row, _ in pack.history]
    return [
        (micros(record.recorded_at), record)
        for n, (row, record) in enumerate(pack.history)
        if receipts[n] not in receipts[n + 1 :]
    ]


def _named(pack: Pack) -> Iterator[str]:
    """The records that an entry is, refers to or tells of."""
    for _, record in pack.history:
        yield record.id
        yield from (relation.target for relation in record.relations)
    for row in (pack.row, *pack.others):
        if row.table == "receipts":
            for decision in Receipt.model_validate_json(str(row.values["body"])).decisions:
                yield from filter(None, (decision.record_id, decision.target))


def _name(row: Row) -> str:
    """What a message is called while it has no number."""
    return json.dumps([row.values["thread_id"], row.values["message_id"]])


def _said(row: Row) -> Document | None:
    """What of a message is searched; None when it is none, was erased, or has no words."""
    if row.table != "messages" or row.values["erased_at"] is not None:
        return None
    return searched_of(_name(row), row.values)


def _place(row: Row) -> tuple[tuple[str, ...], str]:
    return tuple(str(row.values["namespace"]).split(".")[:-1]), str(row.values["key"])


def _put(row: Row) -> PutOp:
    namespace, key = _place(row)
    return PutOp(namespace, key, json.loads(str(row.values["value"])))
