"""One commit: every change of it checked and written on one connection, inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from everthread.errors import Conflict, UsageError
from everthread.stores.access import check_change, check_write, may_read
from everthread.stores.contract import READABLE
from everthread.stores.database import Connection, one
from everthread.stores.encoding import Document
from everthread.stores.identity import Identity
from everthread.stores.record import Change, Decision, Record, Relation, RelationKind
from everthread.stores.tables import audit, outbox
from everthread.stores.tables.rows import Rows, Stored, document_of, is_same_text, is_searched, save, space_of
from everthread.stores.tables.search import SearchIndex, SearchRow, past_id, past_space
from everthread.stores.tables.times import micros, moment
from everthread.stores.tables.tombstones import is_buried, key_of, rests_on_buried

__all__ = ["Commit"]

RELATION_OF: dict[str, RelationKind] = {"supersede": "supersedes", "narrow": "narrows", "contest": "contradicts"}
"""The relation that a change leaves on its new record."""
OPEN = ("pending", *READABLE)
"""Statuses of a record that is still in use, or may come into use."""


class Commit:
    """The writing of one receipt: `apply` each change in order, then `finish`."""

    def __init__(
        self,
        connection: Connection,
        rows: Rows,
        index: SearchIndex,
        identity: Identity,
        *,
        receipt_id: str,
        thread_id: str | None,
        now: datetime,
    ) -> None:
        self._connection = connection
        self._rows = rows
        self._index = index
        self._identity = identity
        self._receipt_id = receipt_id
        self._thread_id = thread_id
        self._now = now
        self._key = key_of(connection)
        self._before: dict[str, Record] = {}
        self._after: dict[str, Stored] = {}
        self._created: set[str] = set()

    def apply(self, change: Change) -> Decision:
        """Write one change and say what became of it. Raises as `MemoryStore.commit` says."""
        if change.action == "refuse":
            return self._decided(change, "refused")
        target = self._target(change) if change.target is not None else None
        if change.record is None:
            assert target is not None  # `Change` validates it
            return self._confirm(change, target) if change.action == "confirm" else self._end(change, target)
        erased = self._erased_before(change, change.record)
        if erased is not None:
            return Decision(
                outcome="refused", rule="tombstone", reason=erased, target=change.target, evidence=change.evidence
            )
        if change.action == "revise":
            assert target is not None
            return self._revise(change, change.record, target)
        return self._add(change, change.record, target)

    def _erased_before(self, change: Change, record: Record) -> str | None:
        """Why a record is not learnt again, if so. A revision stands already, and may rest on what it rested on."""
        tenant, author = self._identity.tenant, self._identity.user
        if is_buried(self._connection, self._key, tenant, record, author=author):
            return "the same was erased before, and is not learnt again"
        if change.action != "revise" and rests_on_buried(self._connection, self._key, tenant, record, author=author):
            return "something was erased from a message that it rests on; nothing is learnt from that message again"
        return None

    def _target(self, change: Change) -> Stored:
        """The record that a change is about, if this identity can see it and it is as the caller saw it."""
        id = str(change.target)
        stored = self._rows.get(self._connection, self._identity.tenant, id)
        if stored is None or not may_read(
            self._identity, stored.record, author=stored.author, thread_id=self._thread_id
        ):
            raise UsageError(f"{change.action}: there is no record {id} for user {self._identity.user}")
        # What an earlier change of this commit did to the record was not there to be seen.
        seen = self._before.get(id, stored.record).revision
        if change.expected not in (seen, stored.record.revision):
            raise Conflict(
                f"record {id} is at revision {stored.record.revision}, not {change.expected}; read it and decide again",
                winner=stored.record.revision,
            )
        if change.action not in ("revise", "end") and stored.record.status not in OPEN:
            raise UsageError(f"{change.action}: record {id} is {stored.record.status}, not in use any more")
        return stored

    def _add(self, change: Change, record: Record, target: Stored | None) -> Decision:
        """`create`, `supersede`, `narrow`, `contest`: a new record. One that waits for review leaves its target be."""
        if record.status not in ("pending", "active"):
            raise UsageError(f"record {record.id}: a new record is active or pending, not {record.status}")
        if one(self._connection, "SELECT 1 FROM records WHERE id = ?", record.id):
            raise UsageError(f"record {record.id} exists already; revise it, or leave the id out to get a fresh one")
        check_write(self._identity, record, thread_id=self._thread_id)
        waits = record.status == "pending"
        update: dict[str, Any] = {"revision": 1, "recorded_at": self._now}
        if target is not None:
            update["relations"] = _with_relation(record, change, target.record.id)
        if change.action == "contest" and not waits and target is not None and target.record.status in READABLE:
            update["status"] = "contested"
        new = _kept_for(record.model_copy(update=update), self._now)
        self._save(Stored(new, self._identity.user), change)
        if target is not None and not waits:
            self._touch(change, new, target)
        if waits:
            return self._decided(change, "pending", new)
        match change.action:
            case "supersede":
                return self._decided(change, "superseded", new)
            case "narrow":
                return self._decided(change, "narrowed", new)
            case "contest":
                return self._decided(change, "contested", new)
        return self._decided(change, "created", new)

    def _touch(self, change: Change, new: Record, target: Stored) -> None:
        """What a new record does to the one that it stands against."""
        if change.action == "narrow":
            return  # both hold, each in its reach
        self._may_change(change, target)
        old = target.record
        update: dict[str, Any]
        if change.action == "contest":
            # One that waits for review goes on waiting: what stands against it is seen when it is approved.
            status = "contested" if old.status in READABLE else old.status
            update = {"status": status, "relations": _with_relation(old, change, new.id)}
        else:
            update = {"status": "superseded", "ended_at": self._now, "valid_to": _closing(old, new)}
        self._save(self._next(target, update), change)

    def _confirm(self, change: Change, target: Stored) -> Decision:
        """Another source said the same: evidence is added, authority stays (R297)."""
        self._may_change(change, target)
        record, source = target.record, change.source
        known = [_words_of(known) for known in (record.provenance, *record.confirmed_by)]
        if _words_of(source) in known:
            return self._decided(change, "confirmed", record)
        confirmed = self._next(target, {"confirmed_by": (*record.confirmed_by, source)})
        self._save(confirmed, change)
        return self._decided(change, "confirmed", confirmed.record)

    def _end(self, change: Change, target: Stored) -> Decision:
        self._may_change(change, target)
        ended = self._next(target, {"status": change.status, "ended_at": target.record.ended_at or self._now})
        self._save(ended, change)
        return self._decided(change, "ended", ended.record)

    def _revise(self, change: Change, record: Record, target: Stored) -> Decision:
        self._may_change(change, target)
        check_write(self._identity, record, thread_id=self._thread_id)
        first = one(self._connection, "SELECT recorded_at FROM revisions WHERE id = ? AND revision = 1", record.id)
        approved = target.record.status == "pending" and record.status in READABLE
        stands_against = self._standing_targets(record) if approved else []
        update: dict[str, Any] = {}
        if any(kind == "contradicts" for kind, _ in stands_against):
            update["status"] = "contested"
        elif record.status not in OPEN and record.ended_at is None:
            update["ended_at"] = self._now
        revised = self._next(Stored(record, target.author), update, after=target.record)
        revised = revised._replace(record=_kept_for(revised.record, _checked(revised.record, moment(first), self._now)))
        self._save(revised, change)
        for kind, other in stands_against:
            # What waited for review does now what it said it would.
            action = "contest" if kind == "contradicts" else "supersede"
            self._touch(change.model_copy(update={"action": action}), revised.record, other)
        return self._decided(change, "pending" if record.status == "pending" else "revised", revised.record)

    def _standing_targets(self, record: Record) -> list[tuple[RelationKind, Stored]]:
        """The records in use that this one supersedes or contradicts."""
        related = [
            (relation.kind, self._rows.get(self._connection, self._identity.tenant, relation.target))
            for relation in record.relations
            if relation.kind in ("supersedes", "contradicts")
        ]
        return [(kind, other) for kind, other in related if other is not None and other.record.status in READABLE]

    def _may_change(self, change: Change, target: Stored) -> None:
        check_change(
            self._identity, target.record, change, author=target.author, thread_id=self._thread_id, now=self._now
        )

    def _next(self, stored: Stored, update: dict[str, Any], *, after: Record | None = None) -> Stored:
        """The next revision. System time never runs backwards within a record, whatever the clock does."""
        before = after or stored.record
        stamp = {
            "revision": before.revision + 1,
            "recorded_at": max(self._now, before.recorded_at + timedelta(microseconds=1)),
        }
        # validated again: a field that an update contradicts is a bug to be seen, not a row to be kept
        fields = stored.record.model_dump() | update | stamp
        return Stored(Record.model_validate(fields), stored.author)

    def _save(self, stored: Stored, change: Change) -> None:
        record = stored.record
        if record.revision == 1:
            self._created.add(record.id)
        elif record.id not in self._before:
            before = self._rows.get(self._connection, self._identity.tenant, record.id)
            assert before is not None
            self._before[record.id] = before.record
        self._after[record.id] = stored
        save(
            self._connection,
            self._identity.tenant,
            stored,
            actor=self._identity.user,
            receipt=self._receipt_id,
            reason=change.reason,
        )

    def finish(self, decisions: Sequence[Decision], rows: Sequence[SearchRow]) -> None:
        """Bring the search index, the outbox and the audit log to what the changes have left."""
        self._index_changes({row.id: row for row in rows})
        events: list[tuple[outbox.Kind, Stored]] = [
            ("memory.updated" if stored.record.status in READABLE else "memory.ended", stored)
            for stored in self._after.values()
            if stored.record.status != "pending"
        ]
        outbox.append(self._connection, self._identity.tenant, events, at=self._now)
        written = [[item.outcome, item.rule, item.record_id, item.revision, item.target] for item in decisions]
        detail: dict[str, Any] = {"receipt": self._receipt_id, "decisions": written}
        if self._thread_id is not None:
            detail["thread_id"] = self._thread_id
        if self._identity.roles:
            detail["roles"] = sorted(self._identity.roles)
        audit.append(self._connection, self._identity, "write", detail, at=self._now)

    def _index_changes(self, rows: Mapping[str, SearchRow]) -> None:
        """The index rows of what was written: there while a record is in use, in the space of its scope. What it said
        before goes into the past of that space."""
        gone: dict[str, list[str]] = {}
        put: dict[str, list[SearchRow]] = {}
        for id, stored in self._after.items():
            before = None if id in self._created else self._before[id]
            old = self._indexed(before, stored.author)
            new = self._indexed(stored.record, stored.author)
            if old and new and old[0] == new[0] and is_same_text(old[1], new[1]):
                continue
            was = self._index.row(self._connection, old[0], id) if old else None
            if old and was:
                ended = was.bounds._replace(gone=micros(stored.record.recorded_at))
                past = was._replace(id=past_id(id, ended.known), bounds=ended)
                put.setdefault(past_space(old[0]), []).append(past)
                if new is None or new[0] != old[0]:
                    gone.setdefault(old[0], []).append(id)
            row = rows.get(id, was)
            if new and row:
                # what was prepared has no retention yet, and not the author of what is revised
                put.setdefault(new[0], []).append(row._replace(bounds=new[1].bounds))
        for space, ids in gone.items():
            self._index.delete(self._connection, space, ids)
        for space, fresh in put.items():
            self._index.put(self._connection, space, fresh)

    def _indexed(self, record: Record | None, author: str) -> tuple[str, Document] | None:
        """Space and document of a record; None while it is not searched."""
        if record is None or not is_searched(record):
            return None
        return space_of(self._identity.tenant, record), document_of(record, author)

    def _decided(self, change: Change, outcome: Any, record: Record | None = None) -> Decision:
        target = change.target if record is None or change.target != record.id else None
        evidence = change.evidence or (change.record.provenance.message_ids if change.record else ())
        return Decision(
            outcome=outcome,
            rule=change.rule,
            reason=change.reason,
            record_id=record.id if record else None,
            revision=record.revision if record else None,
            target=target,
            evidence=evidence,
        )


def _with_relation(record: Record, change: Change, target: str) -> tuple[Relation, ...]:
    """The record's relations, with the one that the change makes."""
    kind = RELATION_OF[change.action]
    if any((relation.kind, relation.target) == (kind, target) for relation in record.relations):
        return record.relations
    return (*record.relations, Relation(kind=kind, target=target, reason=change.reason, evidence=change.evidence))


def _closing(old: Record, new: Record) -> datetime | None:
    """When the old record stopped being true: when the new one begins, unless that was known already."""
    if old.valid_to is not None or new.valid_from is None:
        return old.valid_to
    if old.valid_from is not None and new.valid_from <= old.valid_from:
        return None
    return new.valid_from


def _kept_for(record: Record, since: datetime) -> Record:
    """The record with the expiry that its retention asks for (R143)."""
    if record.governance.retention_days is None:
        return record
    end = since + timedelta(days=record.governance.retention_days)
    return record.model_copy(update={"expires_at": min(end, record.expires_at or end)})


def _checked(record: Record, first: datetime, now: datetime) -> datetime:
    """Since when the record is kept: since a person verified it, or else since it was first written."""
    return max(first, min(record.verified_at or first, now))


def _words_of(source: Any) -> tuple[Any, ...]:
    """What makes two sources the same one: where it was said, and by whom."""
    return (source.source, source.thread_id, source.message_ids, source.actor, source.artifact, source.observed_at)
