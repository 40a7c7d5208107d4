"""Erasure: rows, history, index, relations, caches, and with its source the threads; then all is read again (R280)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from everthread.errors import UsageError
from everthread.stores.contract import ThreadEraser
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity
from everthread.stores.record import ErasureReceipt, Receipt, Record, Selection
from everthread.stores.tables import audit, outbox
from everthread.stores.tables.artifacts import Artifacts
from everthread.stores.tables.dry_run import writing
from everthread.stores.tables.erasure_plan import Plan, Planner, Source, is_admin, owner_of, threads_of
from everthread.stores.tables.reasons import ERASED, blank_reasons, repeats
from everthread.stores.tables.rows import OF_THESE, Rows, Stored, body_of, histories, save, texts_of
from everthread.stores.tables.search import SearchIndex
from everthread.stores.tables.tasks import erase_tasks_said
from everthread.stores.tables.tombstones import bury, bury_messages
from everthread.stores.tables.transcripts import Transcripts
from everthread.stores.tables.verification import Verifier

__all__ = ["Eraser"]

RELATED = """
records.tenant = :tenant AND records.id NOT IN (SELECT value FROM json_each(:ids)) AND records.id IN (
    SELECT relations.id FROM relations WHERE target IN (SELECT value FROM json_each(:ids))
)
"""
RECEIPTS = """
SELECT id, body FROM receipts WHERE id IN (
    SELECT receipt FROM revisions WHERE id IN (SELECT value FROM json_each(:ids))
)
"""
DELETES = {
    "revisions": "DELETE FROM revisions WHERE id IN (SELECT value FROM json_each(:ids))",
    "relations": """
        DELETE FROM relations
        WHERE id IN (SELECT value FROM json_each(:ids)) OR target IN (SELECT value FROM json_each(:ids))
    """,
    "records": "DELETE FROM records WHERE id IN (SELECT value FROM json_each(:ids))",
}
GIVEN_ELSEWHERE = """
SELECT owner, owner_id, count(*) FROM records
WHERE tenant = ?1 AND author IN (SELECT value FROM json_each(?2)) AND id NOT IN (SELECT value FROM json_each(?3))
GROUP BY owner, owner_id ORDER BY owner, owner_id
"""
OF_USER = "tenant = ? AND user = ?"

KINDS = (
    "records", "revisions", "relations", "index", "evidence", "artifacts", "tasks", "inbox", "checkpoints", "threads",
    "backups",
)  # fmt: skip
"""What a receipt counts, in its order."""


class Eraser:
    """Answers `MemoryStore.erase`."""

    def __init__(
        self,
        database: Database,
        rows: Rows,
        index: SearchIndex,
        transcripts: Transcripts,
        artifacts: Artifacts,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._transcripts = transcripts
        self._artifacts = artifacts
        self._clock = clock
        self._planner = Planner(database, rows, transcripts)
        self._verifier = Verifier(database)

    def erase(
        self,
        identity: Identity,
        selection: Selection,
        *,
        reason: str,
        with_source: bool,
        threads: ThreadEraser | None,
        dry_run: bool,
        with_backups: bool,
    ) -> ErasureReceipt:
        """See `MemoryStore.erase`."""
        if not reason.strip():
            raise UsageError("erase needs a reason; it is kept in the receipt")
        with self._database.read(identity.tenant) as connection:
            plan = self._planner.plan(connection, identity, selection, with_source)
        if repeats(reason, plan.normalised):
            raise UsageError("the reason repeats what is to be erased, and would keep it; give one that does not")
        receipt = ErasureReceipt(at=self._clock(), reason=reason, erased={}, verified=False)
        remains = list[str]()
        sources = self._planner.reachable(identity, plan, selection, threads, remains) if with_source else []
        # Checkpoints first: should this fail, the records still say where their words are, and erase is run again.
        erased = _in_checkpoints(plan, sources, threads, dry_run, remains)
        if not with_source:
            remains += _left_without_source(plan, selection)
        with writing(self._database, identity.tenant, dry_run=dry_run) as connection:
            plan = self._planner.plan(connection, identity, selection, with_source)
            remains += _given_elsewhere(connection, identity, plan)
            remains += _nobodys(connection, selection) if with_source else []
            erased += self._erase_records(connection, identity.tenant, plan, receipt.id, receipt.at)
            for source in sources:
                erased += self._erase_source(connection, identity, source, plan, receipt.at)
            for user, thread_id in plan.threads:
                owner = Identity(tenant=identity.tenant, user=user)
                erased += self._erase_thread(connection, owner, thread_id, reason, receipt.at)
            for user in plan.users:
                erased += self._erase_user(connection, identity.tenant, user)
            everybody = is_admin(identity)
            blank_reasons(connection, identity.tenant, None if everybody else identity.user, plan.normalised)
            ids = tuple(stored.record.id for stored in plan.records)
            detail = {"receipt": receipt.id, "records": ids, "users": plan.users, "erased": dict(erased)}
            holders = {each.record.id: holder for each in plan.records if (holder := _holder(each)) != identity.user}
            audit.append(connection, identity, "erase", detail, at=receipt.at, holders=holders)
        self._index.forget()
        self._rows.forget()
        kept = [] if dry_run else self._still_kept(identity, plan, with_source, threads)
        backups, in_backups = self._backups(plan, dry_run=dry_run, delete=with_backups)
        erased += backups
        receipt = receipt.model_copy(
            update={
                "erased": {kind: erased[kind] for kind in KINDS if erased[kind]},
                "record_ids": ids,
                "remains": tuple(dict.fromkeys([*remains, *kept, *in_backups])),
                "verified": not (kept or dry_run or in_backups),
            }
        )
        if not dry_run:
            with self._database.write(identity.tenant) as connection:
                seen = {"receipt": receipt.id, "verified": receipt.verified, "remains": len(receipt.remains)}
                audit.append(connection, identity, "verify", seen, at=self._clock())
        return receipt

    # ----------------------------------------------------------------------------------------------------------- erase

    def _erase_records(
        self, connection: Connection, tenant: str, plan: Plan, erasure: str, at: datetime
    ) -> Counter[str]:
        """Everything that the store has of these records, its traces in others included."""
        ids = json.dumps([stored.record.id for stored in plan.records])
        for stored in plan.records:
            for revision in self._revisions(connection, stored.record.id):
                bury(connection, tenant, revision, author=stored.author, at=at)
        outbox.append(connection, tenant, [("memory.erased", stored) for stored in plan.records], at=at)
        related = list(self._rows.find(connection, RELATED, {"tenant": tenant, "ids": ids}))
        both = json.dumps([stored.record.id for stored in (*plan.records, *related)])
        _blank_receipts(connection, RECEIPTS, {"ids": both}, set(json.loads(ids)))
        erased = Counter(
            index=sum(
                self._index.delete(connection, space, [document.id])
                for _, author, history in histories(connection, OF_THESE, {"ids": ids})
                for space, document in texts_of(tenant, author, history)
            )
        )
        for name, sql in DELETES.items():
            before = connection.total_changes()
            connection.execute(sql, {"ids": ids})
            erased[name] += connection.total_changes() - before
        for stored in related:
            self._release(connection, tenant, stored, set(json.loads(ids)), erasure, at)
        return erased

    def _revisions(self, connection: Connection, id: str) -> list[Record]:
        rows = connection.execute("SELECT body FROM revisions WHERE id = ? ORDER BY revision", (id,)).fetchall()
        return [Record.model_validate_json(str(body)) for (body,) in rows]

    def _release(
        self, connection: Connection, tenant: str, stored: Stored, gone: set[str], erasure: str, at: datetime
    ) -> None:
        """Take the edges to what is gone out of another record and its history, with the reasons that go with them and
        may quote it; what was contested by it alone stands again."""
        for revision in self._revisions(connection, stored.record.id):
            kept = tuple(relation for relation in revision.relations if relation.target not in gone)
            if kept != revision.relations:
                body = body_of(revision.model_copy(update={"relations": kept, "write_reason": ERASED}))
                connection.execute(
                    "UPDATE revisions SET body = ?, reason = ? WHERE id = ? AND revision = ?",
                    (body, ERASED, revision.id, revision.revision),
                )
        newest = self._revisions(connection, stored.record.id)[-1]
        opposed = [relation for relation in newest.relations if relation.kind == "contradicts"]
        if newest.status == "contested" and not opposed:
            update = {
                "status": "active",
                "revision": newest.revision + 1,
                "recorded_at": max(at, newest.recorded_at + timedelta(microseconds=1)),
            }
            again = Stored(newest.model_copy(update=update), stored.author)
            save(connection, tenant, again, actor=stored.author, receipt=erasure, reason=ERASED)
            outbox.append(connection, tenant, [("memory.updated", again)], at=at)

    def _erase_source(
        self,
        connection: Connection,
        identity: Identity,
        source: Source,
        plan: Plan,
        at: datetime,
    ) -> Counter[str]:
        """The messages, and what the thread keeps that repeats them.

        Its summaries go whatever they say: in whose words a summary repeats a message cannot be known, and the next
        compaction makes one of the messages that are left.
        """
        owner = owner_of(identity, source)
        bury_messages(connection, owner, source.thread_id, source.message_ids, at=at)
        said = {each.text for each in self._transcripts.read(owner, source.thread_id, ids=source.message_ids)}
        repeating = [
            kept.id
            for kept in self._artifacts.of_thread(owner, source.thread_id)
            if kept.text in said
            or repeats(kept.text, plan.normalised)
            or (source.message_ids and kept.kind in ("summary", "coverage", "task_state"))
        ]
        return Counter(
            evidence=self._transcripts.erase_messages(owner, source.thread_id, source.message_ids),
            artifacts=self._artifacts.erase(owner, repeating),
            tasks=erase_tasks_said(connection, owner, source.thread_id, source.message_ids),
        )

    def _erase_thread(
        self, connection: Connection, owner: Identity, thread_id: str, reason: str, at: datetime
    ) -> Counter[str]:
        """A thread whole, with its messages, artifacts and tasks. Ids stay, so that nothing comes back under them."""
        ids = connection.execute("SELECT message_id FROM messages WHERE thread_id = ?", (thread_id,)).fetchall()
        bury_messages(connection, owner, thread_id, [str(id) for (id,) in ids], at=at)
        return Counter(self._transcripts.erase_thread(owner, thread_id, reason=reason))

    def _erase_user(self, connection: Connection, tenant: str, user: str) -> Counter[str]:
        """All that is left of a user beside records and threads: artifacts and tasks of none, and what the receipts
        quote."""
        erased = Counter[str]()
        for table in ("artifacts", "tasks"):
            connection.execute(f"DELETE FROM {table} WHERE {OF_USER}", (tenant, user))
            erased[table] += connection.changes()
        for table in ("jobs", "gates"):  # ids and times only, and work that nobody waits for any more
            connection.execute(f"DELETE FROM {table} WHERE {OF_USER}", (tenant, user))
        _blank_receipts(connection, f"SELECT id, body FROM receipts WHERE {OF_USER}", (tenant, user), None)
        return erased

    # ---------------------------------------------------------------------------------------------------------- verify

    def _still_kept(self, identity: Identity, plan: Plan, with_source: bool, threads: ThreadEraser | None) -> list[str]:
        """Where the words still are, each with the remedy: in this file, and in the checkpoints of the threads."""
        kept = self._verifier.still_kept(identity, plan.words)
        if threads is None or not plan.words:
            return kept
        with self._database.read(identity.tenant) as connection:
            users = [*self._planner.concerned(identity, plan), *plan.users]
            known = [thread_id for _, thread_id in threads_of(connection, identity.tenant, users)]
        remedy = "run erase again" if with_source else "with_source=True erases them too"
        held = threads.holds(plan.words, known)
        return [*kept, *(f"the same words in checkpoints of thread {thread_id}: {remedy}" for thread_id in held)]

    def _backups(self, plan: Plan, *, dry_run: bool, delete: bool) -> tuple[Counter[str], list[str]]:
        """What became of the copies from before a migration: how many were deleted, and those that still have it."""
        found = self._database.backups() if delete else []
        if not dry_run:
            for path in found:
                path.unlink(missing_ok=True)
        return Counter(backups=len(found)), [
            f"{path.name}, a copy from before a migration: with_backups=True deletes it"
            for path in self._verifier.in_backups(plan.words)
            if path not in found
        ]


def _in_checkpoints(
    plan: Plan, sources: Sequence[Source], threads: ThreadEraser | None, dry_run: bool, remains: list[str]
) -> Counter[str]:
    """Erase from the threads' file, or count what would be; what cannot be reached is added to `remains`."""
    if threads is None:
        remains += [
            f"checkpoints of thread {source.thread_id}: pass threads=checkpointer to redact them" for source in sources
        ]
        remains += [
            f"checkpoints of thread {thread_id}: pass threads=checkpointer to delete them"
            for _, thread_id in plan.threads
        ]
        return Counter()
    rewrite = threads.affected if dry_run else threads.redact
    rows = sum(rewrite(source.thread_id, source.message_ids, plan.words) for source in sources)
    for _, thread_id in () if dry_run else plan.threads:
        threads.delete_thread(thread_id)
    counts = {"checkpoints": rows} if sources else {}
    return Counter(counts | ({"threads": len(plan.threads)} if plan.threads else {}))


def _left_without_source(plan: Plan, selection: Selection) -> list[str]:
    """What an erasure without its source does not touch."""
    if plan.sources or selection.thread_id is not None:
        return ["the messages that it came from, and their checkpoints: with_source=True erases them too"]
    if selection.tenant is not None or selection.is_whole_user:
        return ["what was said in the threads, in transcripts and checkpoints: with_source=True erases it too"]
    return []


def _given_elsewhere(connection: Connection, identity: Identity, plan: Plan) -> list[str]:
    """Records that an erased user gave to others, such as a project: they are the others', and are named."""
    ids = json.dumps([stored.record.id for stored in plan.records])
    rows = connection.execute(GIVEN_ELSEWHERE, (identity.tenant, json.dumps(plan.users), ids))
    return [f"{count} records given to {owner}:{owner_id}: erase them by that scope" for owner, owner_id, count in rows]


def _nobodys(connection: Connection, selection: Selection) -> list[str]:
    """A thread that was selected and that the store does not know: its runs had no store, so whose it is cannot be
    told."""
    thread_id = selection.thread_id
    if thread_id is None or one(connection, "SELECT 1 FROM threads WHERE thread_id = ?", thread_id) is not None:
        return []
    return [f"checkpoints of thread {thread_id}, if there are any: no run has bound it; checkpointer.delete_thread"]


def _holder(stored: Stored) -> str | None:
    """The user whose record it is; None for one that several share."""
    scope = stored.record.scope
    return {"user": scope.owner_id, "session": stored.author}.get(scope.owner)


def _blank_receipts(connection: Connection, select: str, values: Any, gone: set[str] | None) -> None:
    """Leave ids and rules of the decisions about what is gone (None: of all): a reason may quote it."""
    for id, body in connection.execute(select, values).fetchall():
        receipt = Receipt.model_validate_json(str(body))
        decisions = tuple(
            decision.model_copy(update={"reason": ERASED})
            if gone is None or gone & {decision.record_id, decision.target}
            else decision
            for decision in receipt.decisions
        )
        blank = receipt.model_copy(update={"decisions": decisions}).model_dump_json(exclude_none=True)
        connection.execute("UPDATE receipts SET body = ? WHERE id = ?", (blank, id))
