"""What an erasure has to reach: records, what was derived from them, the messages that say the same, whole threads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from everthread.errors import AccessDenied
from everthread.stores.access import may_erase, may_read, narrows
from everthread.stores.contract import ThreadEraser
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity, owners_of
from everthread.stores.record import Evidence, Record, Selection
from everthread.stores.tables.reasons import repeats
from everthread.stores.tables.rows import BODY, Rows, Stored
from everthread.stores.tables.threads import family_of
from everthread.stores.tables.transcripts import Transcripts
from everthread.stores.tables.values import as_text
from everthread.stores.text import normalise

__all__ = ["Plan", "Planner", "Source", "is_admin", "owner_of", "threads_of"]

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
USERS = """
SELECT author FROM records WHERE tenant = ?1 UNION SELECT user FROM threads WHERE tenant = ?1
UNION SELECT user FROM receipts WHERE tenant = ?1 UNION SELECT user FROM artifacts WHERE tenant = ?1
UNION SELECT user FROM tasks WHERE tenant = ?1
"""
THREADS_OF = """
SELECT user, thread_id FROM threads WHERE tenant = ?1 AND user IN (SELECT value FROM json_each(?2))
ORDER BY user, thread_id
"""
OWNER_OF = "SELECT user FROM threads WHERE thread_id = ? AND tenant = ?"
SAID = """
SELECT user, text FROM messages JOIN threads USING (thread_id)
WHERE thread_id = ?1 AND message_id IN (SELECT value FROM json_each(?2)) AND threads.tenant = ?3
    AND messages.erased_at IS NULL
"""
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


class Planner:
    """Finds out what a selection means, and which messages of which threads say the same."""

    def __init__(self, database: Database, rows: Rows, transcripts: Transcripts) -> None:
        self._database = database
        self._rows = rows
        self._transcripts = transcripts

    def plan(self, connection: Connection, identity: Identity, selection: Selection, with_source: bool) -> Plan:
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
            [*threads_of(connection, identity.tenant, users), *(whole if with_source else [])],
        )

    def reachable(
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
                said = self._transcripts.read(owner_of(identity, source), source.thread_id)
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
            user = one(connection, OWNER_OF, selection.thread_id, identity.tenant) if is_admin(identity) else None
        return [Source(user or identity.user, selection.thread_id, selection.message_ids)]

    def _citing(self, identity: Identity, plan: Plan) -> Iterator[Source]:
        """Messages in any thread of the users whose memory it is that repeat the words or cite a record by its id:
        replies that were made from it."""
        cited = [*plan.words, *(stored.record.id for stored in plan.records)]
        for user in self.concerned(identity, plan):
            owner = Identity(tenant=identity.tenant, user=user)
            for thread_id, message_id in self._transcripts.mentions(owner, cited) if cited else ():
                yield Source(user, thread_id, (message_id,))

    def _held(self, identity: Identity, plan: Plan, threads: ThreadEraser | None) -> Iterator[Source]:
        """Threads whose checkpoints have the words, whatever their transcripts say."""
        if threads is None or not plan.words:
            return
        with self._database.read(identity.tenant) as connection:
            known = threads_of(connection, identity.tenant, self.concerned(identity, plan))
        held = set(threads.holds(plan.words, [thread_id for _, thread_id in known]))
        yield from (Source(user, thread_id, ()) for user, thread_id in known if thread_id in held)

    def concerned(self, identity: Identity, plan: Plan) -> list[str]:
        """The users whose threads this identity may look into: its own, and for an admin those of who said it; of whom
        everything goes nothing is left to look into."""
        others = [source.user for source in plan.sources] if is_admin(identity) else []
        return [user for user in dict.fromkeys([identity.user, *others]) if user not in plan.users]


def _whole_users(connection: Connection, identity: Identity, selection: Selection) -> list[str]:
    """The users of whom nothing is to stay."""
    if selection.tenant is not None:
        return [str(user) for (user,) in connection.execute(USERS, (identity.tenant,))]
    return [selection.scope.owner_id] if selection.scope and selection.is_whole_user else []


def threads_of(connection: Connection, tenant: str, users: Sequence[str]) -> list[tuple[str, str]]:
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
    if user is None or (user != identity.user and not is_admin(identity)):
        return []
    return [(user, each) for each in family_of(connection, Identity(tenant=identity.tenant, user=user), thread_id)]


def _said(connection: Connection, identity: Identity, selection: Selection) -> list[str]:
    """What the selected messages say, if this identity may erase them and it is telling."""
    rows = connection.execute(SAID, (selection.thread_id, json.dumps(selection.message_ids), identity.tenant))
    texts = [as_text(text) for user, text in rows if user == identity.user or is_admin(identity)]
    return [text for text in texts if len(text) >= TELLING]


def is_admin(identity: Identity) -> bool:
    return "admin" in identity.roles


def owner_of(identity: Identity, source: Source) -> Identity:
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
