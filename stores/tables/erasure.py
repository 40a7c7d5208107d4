"""Erasure: rows, history, index, relations, caches, and with its source the threads; then all is read again (R280)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from everthread.errors import AccessDenied, UsageError
from everthread.stores.access import may_erase, may_read, narrows
from everthread.stores.contract import ThreadEraser
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity, owners_of
from everthread.stores.record import ErasureReceipt, Evidence, Receipt, Record, Selection
from everthread.stores.tables import audit, outbox
from everthread.stores.tables.artifacts import Artifacts
from everthread.stores.tables.dry_run import writing
from everthread.stores.tables.reasons import ERASED, blank_reasons, repeats
from everthread.stores.tables.rows import BODY, OF_THESE, Rows, Stored, body_of, histories, save, texts_of
from everthread.stores.tables.search import SearchIndex
from everthread.stores.tables.tasks import erase_tasks_said
from everthread.stores.tables.threads import family_of
from everthread.stores.tables.tombstones import bury, bury_messages
from everthread.stores.tables.transcripts import Transcripts
from everthread.stores.tables.values import as_text
from everthread.stores.tables.verification import Verifier
from everthread.stores.text import normalise

__all__ = ["Eraser"]

SELECTED = f"""
records.tenant = :tenant
AND (:ids IS NULL OR records.id IN (SELECT value FROM json_each(:ids)))
AND (:thread IS NULL OR records.thread_id IN (SELECT value FROM json_each(:thread)))
AND (:messages IS NULL OR EXISTS (
    SELECT 1 FROM json_each({BODY}, '$.provenance.message_ids') AS message
    WHERE message.value IN (SELECT value FROM json_each(:messages))
))
AND (:owner IS NULL OR (records.owner = :owner AND records.owner_id = :owner_id))
AND (:subject IS NULL OR records.subject = :subject)
"""
SESSIONS = """
records.tenant = :tenant AND records.owner = 'session' AND records.author IN (SELECT value FROM json_each(:users))
"""
DERIVED = """
records.tenant = :tenant AND records.id IN (
    SELECT relations.id FROM relations
    WHERE kind = 'derived_from' AND target IN (SELECT value FROM json_each(:ids))
)
"""
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
USERS = """
SELECT author FROM records WHERE tenant = ?1 UNION SELECT user FROM threads WHERE tenant = ?1
UNION SELECT user FROM receipts WHERE tenant = ?1 UNION SELECT user FROM artifacts WHERE tenant = ?1
UNION SELECT user FROM tasks WHERE tenant = ?1
"""
THREADS_OF = """
SELECT user, thread_id FROM threads WHERE tenant = ?1 AND user IN (SELECT value FROM json_each(?2))
ORDER BY user, thread_id
"""
GIVEN_ELSEWHERE = """
SELECT owner, owner_id, count(*) FROM records
WHERE tenant = ?1 AND author IN (SELECT value FROM json_each(?2)) AND id NOT IN (SELECT value FROM json_each(?3))
GROUP BY owner, owner_id ORDER BY owner, owner_id
"""
OWNER_OF = "SELECT user FROM threads WHERE thread_id = ? AND tenant = ?"
SAID = """
SELECT user, text FROM messages JOIN threads USING (thread_id)
WHERE thread_id = ?1 AND message_id IN (SELECT value FROM json_each(?2)) AND threads.tenant = ?3
    AND messages.erased_at IS NULL
"""
OF_USER = "tenant = ? AND user = ?"

KINDS = (
    "records", "revisions", "relations", "index", "evidence", "artifacts", "tasks", "inbox", "checkpoints", "threads",
    "backups",
)  # fmt: skip
"""What a receipt counts, in its order."""
TELLING = 12
"""Characters of a message by which it is looked for elsewhere; a shorter one ("yes") is anybody's."""


class Source(NamedTuple):
    """Messages of one thread that erased records came from."""

    user: str
    thread_id: str
    message_ids: tuple[str, ...]


class Plan(NamedTuple):
    """What a selection means, and what has to be nowhere afterwards."""

    records: list[Stored]
    """The records, and those derived from them."""
    words: tuple[str, ...]
    """Every statement that a revision of theirs has made, and what the selected messages say."""
    normalised: tuple[str, ...]
    """The same, as texts are compared."""
    sources: list[Source]
    """The messages that they came from, and those that repeat them."""
    users: list[str]
    """The users of whom nothing stays, neither what was learnt nor what was said."""
    threads: list[tuple[str, str]]
    """(user, thread id) of the threads that go whole: all of theirs, and one that was selected with its sub-agents'."""


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
            plan = self._plan(connection, identity, selection, with_source)
        if repeats(reason, plan.normalised):
            raise UsageError("the reason repeats what is to be erased, and would keep it; give one that does not")
        receipt = ErasureReceipt(at=self._clock(), reason=reason, erased={}, verified=False)
        remains = list[str]()
        sources = self._reachable(identity, plan, selection, threads, remains) if with_source else []
        # Checkpoints first: should this fail, the records still say where their words are, and erase is run again.
        erased = _in_checkpoints(plan, sources, threads, dry_run, remains)
        if not with_source:
            remains += _left_without_source(plan, selection)
        with writing(self._database, identity.tenant, dry_run=dry_run) as connection:
            plan = self._plan(connection, identity, selection, with_source)
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
            everybody = _is_admin(identity)
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

    # ---------------------------------------------------------------------------------------------------------- plan

    def _plan(self, connection: Connection, identity: Identity, selection: Selection, with_source: bool) -> Plan:
        """What is selected and may be erased; AccessDenied when this identity may not erase all of it."""
        scope, admin = selection.scope, "admin" in identity.roles
        if selection.tenant is not None and not (admin and selection.tenant == identity.tenant):
            raise AccessDenied(f"only the role admin may erase a tenant, and only its own: not {selection.tenant}")
        if (
            scope
            and not admin
            and scope.owner != "session"
            and (scope.owner, scope.owner_id) not in owners_of(identity)
        ):
            raise AccessDenied(f"scope {scope.owner}:{scope.owner_id} is not this user's; the role admin may erase it")
        whole = _whole_threads(connection, identity, selection)
        values = {
            "tenant": identity.tenant,
            "ids": json.dumps(selection.record_ids) if selection.record_ids else None,
            "thread": selection.thread_id and json.dumps([selection.thread_id, *(id for _, id in whole)]),
            "messages": json.dumps(selection.message_ids) if selection.message_ids else None,
            "owner": scope and scope.owner,
            "owner_id": scope and scope.owner_id,
            "subject": normalise(selection.subject) if selection.subject else None,
        }
        # What the identity cannot see does not exist for it, unless it acts for the tenant.
        chosen = {
            stored.record.id: stored
            for stored in self._rows.find(connection, SELECTED, values)
            if (admin or _is_visible(identity, stored)) and (scope is None or narrows([scope], stored.record.scope))
        }
        users = _whole_users(connection, identity, selection) if with_source else []
        of_users = {"tenant": identity.tenant, "users": json.dumps(users)}
        chosen |= {stored.record.id: stored for stored in self._rows.find(connection, SESSIONS, of_users)}
        newest = chosen
        while newest:
            values = {"tenant": identity.tenant, "ids": json.dumps(list(newest))}
            derived = {stored.record.id: stored for stored in self._rows.find(connection, DERIVED, values)}
            newest = {id: stored for id, stored in derived.items() if id not in chosen}
            chosen |= newest
        denied = [id for id, stored in chosen.items() if not may_erase(identity, stored.record, author=stored.author)]
        if denied:
            raise AccessDenied(f"user {identity.user} may not erase {', '.join(denied)}; ask a curator or an admin")
        words = [
            Record.model_validate_json(str(body)).statement
            for (body,) in connection.execute(
                "SELECT body FROM revisions WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(chosen)),)
            )
        ]
        if with_source and selection.message_ids:
            words += _said(connection, identity, selection)
        return Plan(
            list(chosen.values()),
            tuple(dict.fromkeys(words)),
            tuple(dict.fromkeys(map(normalise, words))),
            _sources(chosen.values()),
            users,
            [*_threads_of(connection, identity.tenant, users), *(whole if with_source else [])],
        )

    def _reachable(
        self,
        identity: Identity,
        plan: Plan,
        selection: Selection,
        threads: ThreadEraser | None,
        remains: list[str],
    ) -> list[Source]:
        """The sources whose threads this identity may erase from, with the messages that repeat what was said. Threads
        that go whole with their user are not among them."""
        reachable: list[Source] = []
        named = self._named(identity, selection)
        for source in _joined(
            [*plan.sources, *named, *self._citing(identity, plan), *self._held(identity, plan, threads)]
        ):
            if (source.user, source.thread_id) in plan.threads:
                continue
            if source.user != identity.user and "admin" not in identity.roles:
                remains.append(f"messages of thread {source.thread_id}, which are another user's: ask an admin")
                continue
            try:
                said = self._transcripts.read(_owner_of(identity, source), source.thread_id)
            except AccessDenied:
                remains.append(f"messages of thread {source.thread_id}, which are another user's: ask an admin")
                continue
            answers = _answers(said, set(source.message_ids))
            found = {
                message.message_id
                for message in said
                if message.message_id in answers or repeats(message.text, plan.normalised)
            }
            reachable.append(source._replace(message_ids=tuple(dict.fromkeys([*source.message_ids, *sorted(found)]))))
        return reachable

    def _named(self, identity: Identity, selection: Selection) -> list[Source]:
        """The thread, or the messages of it, that the selection itself names."""
        if selection.thread_id is None:
            return []
        with self._database.read(identity.tenant) as connection:
            user = one(connection, OWNER_OF, selection.thread_id, identity.tenant) if _is_admin(identity) else None
        return [Source(user or identity.user, selection.thread_id, selection.message_ids)]

    def _citing(self, identity: Identity, plan: Plan) -> Iterator[Source]:
        """Messages in any thread of the users whose memory it is that repeat the words or cite a record by its id:
        replies that were made from it."""
        cited = [*plan.words, *(stored.record.id for stored in plan.records)]
        for user in self._concerned(identity, plan):
            owner = Identity(tenant=identity.tenant, user=user)
            for thread_id, message_id in self._transcripts.mentions(owner, cited) if cited else ():
                yield Source(user, thread_id, (message_id,))

    def _held(self, identity: Identity, plan: Plan, threads: ThreadEraser | None) -> Iterator[Source]:
        """Threads whose checkpoints have the words, whatever their transcripts say."""
        if threads is None or not plan.words:
            return
        with self._database.read(identity.tenant) as connection:
            known = _threads_of(connection, identity.tenant, self._concerned(identity, plan))
        held = set(threads.holds(plan.words, [thread_id for _, thread_id in known]))
        yield from (Source(user, thread_id, ()) for user, thread_id in known if thread_id in held)

    def _concerned(self, identity: Identity, plan: Plan) -> list[str]:
        """The users whose threads this identity may look into: its own, and for an admin those of who said it; of whom
        everything goes nothing is left to look into."""
        others = [source.user for source in plan.sources] if _is_admin(identity) else []
        return [user for user in dict.fromkeys([identity.user, *others]) if user not in plan.users]

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
        owner = _owner_of(identity, source)
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
            users = [*self._concerned(identity, plan), *plan.users]
            known = [thread_id for _, thread_id in _threads_of(connection, identity.tenant, users)]
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


def _whole_users(connection: Connection, identity: Identity, selection: Selection) -> list[str]:
    """The users of whom nothing is to stay."""
    if selection.tenant is not None:
        return [str(user) for (user,) in connection.execute(USERS, (identity.tenant,))]
    return [selection.scope.owner_id] if selection.scope and selection.is_whole_user else []


def _threads_of(connection: Connection, tenant: str, users: Sequence[str]) -> list[tuple[str, str]]:
    """(user, thread id) of these users' threads: the index from identity to thread."""
    rows = connection.execute(THREADS_OF, (tenant, json.dumps(list(users))))
    return [(str(user), str(thread_id)) for user, thread_id in rows]


def _whole_threads(connection: Connection, identity: Identity, selection: Selection) -> list[tuple[str, str]]:
    """(user, thread id) of the thread that was selected whole and of its sub-agents' threads; empty when none was, or
    it is not this identity's to erase."""
    thread_id = selection.thread_id
    if thread_id is None or not selection.is_whole_thread(thread_id):
        return []
    user = one(connection, OWNER_OF, thread_id, identity.tenant)
    if user is None or (user != identity.user and not _is_admin(identity)):
        return []
    return [(user, each) for each in family_of(connection, Identity(tenant=identity.tenant, user=user), thread_id)]


def _nobodys(connection: Connection, selection: Selection) -> list[str]:
    """A thread that was selected and that the store does not know: its runs had no store, so whose it is cannot be
    told."""
    thread_id = selection.thread_id
    if thread_id is None or one(connection, "SELECT 1 FROM threads WHERE thread_id = ?", thread_id) is not None:
        return []
    return [f"checkpoints of thread {thread_id}, if there are any: no run has bound it; checkpointer.delete_thread"]


def _said(connection: Connection, identity: Identity, selection: Selection) -> list[str]:
    """What the selected messages say, if this identity may erase them and it is telling."""
    rows = connection.execute(SAID, (selection.thread_id, json.dumps(selection.message_ids), identity.tenant))
    texts = [as_text(text) for user, text in rows if user == identity.user or _is_admin(identity)]
    return [text for text in texts if len(text) >= TELLING]


def _is_admin(identity: Identity) -> bool:
    return "admin" in identity.roles


def _owner_of(identity: Identity, source: Source) -> Identity:
    """Whose thread it is, as an identity that can reach it."""
    return identity if source.user == identity.user else Identity(tenant=identity.tenant, user=source.user)


def _holder(stored: Stored) -> str | None:
    """The user whose record it is; None for one that several share."""
    scope = stored.record.scope
    return {"user": scope.owner_id, "session": stored.author}.get(scope.owner)


def _is_visible(identity: Identity, stored: Stored) -> bool:
    """May be read, or is the identity's own although it holds elsewhere (in another application, for another agent)."""
    record = stored.record
    own = record.scope.owner == "user" and record.scope.owner_id == identity.user
    return own or may_read(identity, record, author=stored.author)


def _sources(records: Iterable[Stored]) -> list[Source]:
    """The messages that records came from, one entry a thread."""
    return _joined(
        Source(stored.author, origin.thread_id, origin.message_ids)
        for stored in records
        for origin in (stored.record.provenance, *stored.record.confirmed_by)
        if origin.thread_id is not None and origin.message_ids
    )


def _joined(sources: Iterable[Source]) -> list[Source]:
    """The same messages, one entry a thread, each once."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for source in sources:
        found.setdefault((source.user, source.thread_id), {}).update(dict.fromkeys(source.message_ids))
    return [Source(user, thread_id, tuple(ids)) for (user, thread_id), ids in found.items()]


def _answers(said: Sequence[Evidence], ids: set[str]) -> set[str]:
    """What followed these messages of the user's in their turns: an answer repeats them, in words of its own."""
    found: set[str] = set()
    answering = False
    for message in said:
        if message.role == "user":
            answering = message.message_id in ids
        elif answering:
            found.add(message.message_id)
    return found


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
