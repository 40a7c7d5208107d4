"""Erasure: rows, history, index, relations, caches; then the file is rewritten and read again (R280)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import apsw

from everthread.errors import AccessDenied, StoreError, UsageError
from everthread.stores.access import may_erase, may_read, narrows
from everthread.stores.contract import ThreadEraser
from everthread.stores.identity import Identity, owners_of
from everthread.stores.record import ErasureReceipt, Evidence, Receipt, Record, Selection
from everthread.stores.sqlite import audit, outbox
from everthread.stores.sqlite.artifacts import Artifacts
from everthread.stores.sqlite.database import Database
from everthread.stores.sqlite.rows import Rows, Stored, body_of, save, space_of
from everthread.stores.sqlite.search import SearchIndex
from everthread.stores.sqlite.tombstones import bury
from everthread.stores.sqlite.transcripts import Transcripts
from everthread.stores.text import normalise

__all__ = ["Eraser"]

SELECTED = """
records.tenant = :tenant
AND (:ids IS NULL OR records.id IN (SELECT value FROM json_each(:ids)))
AND (:thread IS NULL OR records.thread_id = :thread)
AND (:owner IS NULL OR (records.owner = :owner AND records.owner_id = :owner_id))
AND (:subject IS NULL OR records.subject = :subject)
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
KEPT_WORDS = (
    ("records", "SELECT tenant, author FROM records WHERE instr(body, :word)"),
    (
        "records",
        """
        SELECT records.tenant, records.author FROM revisions JOIN records USING (id)
        WHERE instr(revisions.body, :word) OR instr(revisions.reason, :word)
        """,
    ),
    ("receipts", "SELECT tenant, user FROM receipts WHERE instr(body, :word)"),
    (
        "messages",
        """
        SELECT threads.tenant, threads.user FROM messages JOIN threads USING (thread_id)
        WHERE instr(text, CAST(:word AS BLOB)) OR instr(payload, CAST(:word AS BLOB))
        """,
    ),
    ("artifacts", "SELECT tenant, user FROM artifacts WHERE instr(text, CAST(:word AS BLOB))"),
    (
        "tasks",
        """
        SELECT tenant, user FROM tasks
        WHERE instr(text, CAST(:word AS BLOB)) OR instr(result, CAST(:word AS BLOB))
        """,
    ),
    (
        "waiting inputs",
        """
        SELECT threads.tenant, threads.user FROM inbox JOIN threads USING (thread_id)
        WHERE instr(text, CAST(:word AS BLOB))
        """,
    ),
    ("plain items", "SELECT NULL, NULL FROM items WHERE instr(value, :word)"),
)
"""Where words may legitimately live on, and whose they are there: another record, or what was not selected."""


ERASED = "the record was erased"
"""Stands where a reason stood."""


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
    """Every statement that a revision of theirs has made."""
    sources: list[Source]
    """The messages that they came from, and those that repeat them."""


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

    def erase(
        self,
        identity: Identity,
        selection: Selection,
        *,
        reason: str,
        with_source: bool,
        threads: ThreadEraser | None,
    ) -> ErasureReceipt:
        """See `MemoryStore.erase`."""
        if not reason.strip():
            raise UsageError("erase needs a reason; it is kept in the receipt")
        with self._database.read() as connection:
            plan = self._plan(connection, identity, selection)
        at, remains = self._clock(), list[str]()
        erased: Counter[str] = Counter()
        sources = self._reachable(identity, plan, selection, remains) if with_source else []
        # Checkpoints first: should this fail, the records still say where their words are, and erase is run again.
        for source in sources:
            if threads is not None:
                erased["checkpoints"] += threads.redact(source.thread_id, source.message_ids, plan.words)
            else:
                remains.append(f"checkpoints of thread {source.thread_id}: pass threads=checkpointer to redact them")
        if not with_source and plan.sources:
            remains.append("the messages that it came from, and their checkpoints: with_source=True erases them too")
        receipt = ErasureReceipt(at=at, reason=reason, erased={}, verified=False)
        with self._database.write() as connection:
            plan = self._plan(connection, identity, selection)
            erased += self._erase_records(connection, identity.tenant, plan, receipt.id, at)
            for source in sources:
                erased += self._erase_source(identity, source, plan.words, selection, reason)
            ids = tuple(stored.record.id for stored in plan.records)
            detail = {"receipt": receipt.id, "records": ids, "erased": dict(erased)}
            audit.append(connection, identity, "erase", detail, at=at)
        self._index.forget()
        self._rows.forget()
        kept = self._still_kept(identity, plan.words)
        return receipt.model_copy(
            update={
                "erased": dict(erased),
                "record_ids": ids,
                "remains": tuple(dict.fromkeys([*remains, *kept])),
                "verified": not kept,
            }
        )

    # ---------------------------------------------------------------------------------------------------------- plan

    def _plan(self, connection: apsw.Connection, identity: Identity, selection: Selection) -> Plan:
        """What is selected and may be erased; AccessDenied when this identity may not erase all of it."""
        scope, admin = selection.scope, "admin" in identity.roles
        if (
            scope
            and not admin
            and scope.owner != "session"
            and (scope.owner, scope.owner_id) not in owners_of(identity)
        ):
            raise AccessDenied(f"scope {scope.owner}:{scope.owner_id} is not this user's; the role admin may erase it")
        values = {
            "tenant": identity.tenant,
            "ids": json.dumps(selection.record_ids) if selection.record_ids else None,
            "thread": selection.thread_id,
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
        return Plan(list(chosen.values()), tuple(dict.fromkeys(words)), _sources(chosen.values()))

    def _reachable(self, identity: Identity, plan: Plan, selection: Selection, remains: list[str]) -> list[Source]:
        """The sources whose threads this identity may erase from, with the messages that repeat what was said."""
        reachable: list[Source] = []
        wanted = _joined([*plan.sources, *self._citing(identity, plan)])
        if selection.thread_id is not None and selection.thread_id not in {source.thread_id for source in wanted}:
            wanted.append(Source(identity.user, selection.thread_id, ()))
        for source in wanted:
            if source.user != identity.user and "admin" not in identity.roles:
                remains.append(f"messages of thread {source.thread_id}, which are another user's: ask an admin")
                continue
            try:
                said = self._transcripts.read(_owner_of(identity, source), source.thread_id)
            except AccessDenied:
                remains.append(f"messages of thread {source.thread_id}, which are another user's: ask an admin")
                continue
            whole = selection.thread_id == source.thread_id
            answers = _answers(said, set(source.message_ids))
            found = {
                message.message_id
                for message in said
                if whole or message.message_id in answers or _repeats(message.text, plan.words)
            }
            reachable.append(source._replace(message_ids=tuple(dict.fromkeys([*source.message_ids, *sorted(found)]))))
        return reachable

    def _citing(self, identity: Identity, plan: Plan) -> Iterator[Source]:
        """Messages in any thread of this user (for an admin, of who said it too) that repeat the words or cite a record
        by its id: replies that were made from it."""
        words = sorted({spelling for word in plan.words for spelling in _spellings(word)})
        cited = [*words, *(stored.record.id for stored in plan.records)]
        others = [source.user for source in plan.sources] if "admin" in identity.roles else []
        for user in dict.fromkeys([identity.user, *others]):
            owner = Identity(tenant=identity.tenant, user=user)
            for thread_id, message_id in self._transcripts.mentions(owner, cited) if plan.records else ():
                yield Source(user, thread_id, (message_id,))

    # ----------------------------------------------------------------------------------------------------------- erase

    def _erase_records(
        self, connection: apsw.Connection, tenant: str, plan: Plan, erasure: str, at: datetime
    ) -> Counter[str]:
        """Everything that the store has of these records, its traces in others included."""
        ids = json.dumps([stored.record.id for stored in plan.records])
        for stored in plan.records:
            for revision in self._revisions(connection, stored.record.id):
                bury(connection, tenant, revision, author=stored.author, at=at)
            outbox.append(connection, tenant, "memory.erased", stored, at=at)
        related = list(self._rows.find(connection, RELATED, {"tenant": tenant, "ids": ids}))
        both = json.dumps([stored.record.id for stored in (*plan.records, *related)])
        _blank_receipts(connection, both, set(json.loads(ids)))
        erased = Counter(
            index=sum(
                self._index.delete(connection, space_of(tenant, stored.record), [stored.record.id])
                for stored in plan.records
            )
        )
        for name, sql in DELETES.items():
            before = connection.total_changes()
            connection.execute(sql, {"ids": ids})
            erased[name] += connection.total_changes() - before
        for stored in related:
            self._release(connection, tenant, stored, set(json.loads(ids)), erasure, at)
        return erased

    def _revisions(self, connection: apsw.Connection, id: str) -> list[Record]:
        rows = connection.execute("SELECT body FROM revisions WHERE id = ? ORDER BY revision", (id,)).fetchall()
        return [Record.model_validate_json(str(body)) for (body,) in rows]

    def _release(
        self, connection: apsw.Connection, tenant: str, stored: Stored, gone: set[str], erasure: str, at: datetime
    ) -> None:
        """Take the edges to what is gone (their reasons may quote it) out of another record and its history; what
        was contested by it alone stands again."""
        for revision in self._revisions(connection, stored.record.id):
            kept = tuple(relation for relation in revision.relations if relation.target not in gone)
            if kept != revision.relations:
                body = body_of(revision.model_copy(update={"relations": kept}))
                connection.execute(
                    "UPDATE revisions SET body = ?, reason = ? WHERE id = ? AND revision = ?",
                    (body, ERASED, revision.id, revision.revision),
                )
                connection.execute(
                    "UPDATE records SET body = ? WHERE id = ? AND revision = ?", (body, revision.id, revision.revision)
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
            outbox.append(connection, tenant, "memory.updated", again, at=at)

    def _erase_source(
        self, identity: Identity, source: Source, words: Sequence[str], selection: Selection, reason: str
    ) -> Counter[str]:
        """The messages, and what the thread keeps that repeats them; the whole thread when it was selected.

        Its summaries go whatever they say: in whose words a summary repeats a message cannot be known, and the next
        compaction makes one of the messages that are left.
        """
        owner = _owner_of(identity, source)
        if source.thread_id == selection.thread_id:
            return Counter(self._transcripts.erase_thread(owner, source.thread_id, reason=reason))
        ids = set(source.message_ids)
        said = {each.text for each in self._transcripts.read(owner, source.thread_id) if each.message_id in ids}
        repeating = [
            kept.id
            for kept in self._artifacts.of_thread(owner, source.thread_id)
            if kept.text in said or _repeats(kept.text, words) or (ids and kept.kind in ("summary", "task_state"))
        ]
        return Counter(
            evidence=self._transcripts.erase_messages(owner, source.thread_id, source.message_ids),
            artifacts=self._artifacts.erase(owner, repeating),
        )

    # ---------------------------------------------------------------------------------------------------------- verify

    def _still_kept(self, identity: Identity, words: Sequence[str]) -> list[str]:
        """Where this identity's words still are, each with the remedy: the tables are asked, and the files' bytes are
        read.

        That another user or tenant keeps the same words is not this identity's to know. The bytes are theirs then, and
        prove nothing.
        """
        try:
            self._database.scrub()
        except StoreError as error:
            return [f"the file's free pages: {error}; run erase again"]
        spellings = {spelling for word in words for spelling in _spellings(word)}
        with self._database.read() as connection:
            found = {
                (place, _is_own(identity, tenant, user))
                for place, sql in KEPT_WORDS
                for spelling in spellings
                for tenant, user in connection.execute(sql, {"word": spelling})
            }
        kept = [f"the same words in {place} that were not selected" for place, own in sorted(found) if own]
        if not found:
            kept = [
                f"the bytes in {path.name}: another process may still be reading the old state; run erase again"
                for path in _files_of(self._database.path)
                if _holds(path, spellings)
            ]
        return kept


def _is_own(identity: Identity, tenant: str | None, user: str | None) -> bool:
    """Whether a row is this identity's, or nobody's; an admin acts for the whole tenant."""
    return tenant is None or (tenant == identity.tenant and (user == identity.user or "admin" in identity.roles))


def _owner_of(identity: Identity, source: Source) -> Identity:
    """Whose thread it is, as an identity that can reach it."""
    return identity if source.user == identity.user else Identity(tenant=identity.tenant, user=source.user)


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


def _repeats(text: str, words: Sequence[str]) -> bool:
    told = normalise(text)
    return any(normalise(word) in told for word in words)


def _blank_receipts(connection: apsw.Connection, ids: str, gone: set[str]) -> None:
    """Leave ids and rules of the decisions about what is gone: a reason may quote it."""
    for id, body in connection.execute(RECEIPTS, {"ids": ids}).fetchall():
        receipt = Receipt.model_validate_json(str(body))
        decisions = tuple(
            decision.model_copy(update={"reason": ERASED}) if gone & {decision.record_id, decision.target} else decision
            for decision in receipt.decisions
        )
        blank = receipt.model_copy(update={"decisions": decisions}).model_dump_json(exclude_none=True)
        connection.execute("UPDATE receipts SET body = ? WHERE id = ?", (blank, id))


def _spellings(word: str) -> set[str]:
    """A text as it is, and as JSON writes it."""
    return {word, json.dumps(word, ensure_ascii=False)[1:-1], json.dumps(word)[1:-1]}


def _files_of(path: str) -> Iterator[Path]:
    if path != ":memory:":
        yield from (found for suffix in ("", "-wal", "-shm") if (found := Path(path + suffix)).exists())


def _holds(path: Path, spellings: Iterable[str]) -> bool:
    content = path.read_bytes()
    return any(spelling.encode() in content for spelling in spellings)
