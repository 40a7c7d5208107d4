"""Everything said, as it was said: the raw evidence of a store's threads, and its rows in the search index."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from everthread.errors import AccessDenied, UsageError
from everthread.stores.database import EVERY, Connection, Database, Rows, one
from everthread.stores.door import guarded
from everthread.stores.identity import Identity
from everthread.stores.record import Evidence, now_utc
from everthread.stores.scoring import Document
from everthread.stores.tables.artifacts import erase_artifacts_of
from everthread.stores.tables.inbox import erase_inputs
from everthread.stores.tables.indexing import Indexer, order_vectors
from everthread.stores.tables.search import SearchIndex, SearchRow, evidence_space
from everthread.stores.tables.tasks import erase_tasks_of
from everthread.stores.tables.threads import Memory, bind_thread, family_of, owns_thread
from everthread.stores.tables.times import micros, moment
from everthread.stores.tables.values import as_blob, as_text, offset_of, zoned
from everthread.stores.traces import Traces
from everthread.stores.transcripts import ThreadInfo

__all__ = ["INDEXED_CHARACTERS", "Transcripts", "searchable", "searched_of"]

log = logging.getLogger(__name__)

ERASED_KINDS = ("evidence", "index", "artifacts", "tasks", "inbox")

INDEXED_CHARACTERS = 65_536
"""What of one message can be searched: its first 64 K characters. All of it is kept."""
BATCH = 1_000
"""Messages that are embedded in one call."""

COLUMNS = "thread_id, message_id, role, source, speaker, text, payload, at, at_offset"

INSERT = f"""
INSERT INTO messages ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, message_id) DO NOTHING RETURNING seq
"""
KNOWN = "SELECT message_id FROM messages WHERE thread_id = ? AND message_id IN (SELECT value FROM json_each(?))"
READ = f"SELECT {COLUMNS} FROM messages WHERE thread_id = ? AND erased_at IS NULL AND seq > ? ORDER BY seq LIMIT ?"
READ_THESE = f"""
SELECT {COLUMNS} FROM messages
WHERE thread_id = ? AND message_id IN (SELECT value FROM json_each(?)) AND erased_at IS NULL AND +seq > ?
ORDER BY +seq LIMIT ?
"""
"""+ keeps SQLite from walking the whole thread in its order."""
LOOKUP = f"""
SELECT seq, {COLUMNS} FROM messages
WHERE erased_at IS NULL AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))
"""
ALL = f"""
SELECT seq, threads.tenant, user, {COLUMNS} FROM messages JOIN threads USING (thread_id)
WHERE messages.erased_at IS NULL AND seq > ? ORDER BY seq LIMIT ?
"""
THREADS = """
SELECT threads.thread_id, name, memory, memory_because, count(seq), min(at), max(at)
FROM threads LEFT JOIN messages ON messages.thread_id = threads.thread_id AND messages.erased_at IS NULL
WHERE threads.tenant = ? AND user = ?
GROUP BY threads.thread_id
HAVING count(seq) > 0 OR threads.erased_at IS NULL
ORDER BY coalesce(max(at), bound_at) DESC, threads.thread_id
"""
ERASE = """
UPDATE messages
SET role = '', source = '', speaker = NULL, text = x'', payload = NULL, at = 0, at_offset = 0, erased_at = ?1
WHERE thread_id = ?2 AND erased_at IS NULL AND (?3 IS NULL OR message_id IN (SELECT value FROM json_each(?3)))
RETURNING seq
"""

SAID_BY = """
SELECT messages.thread_id, messages.message_id, messages.text, coalesce(messages.payload, x'')
FROM threads JOIN messages USING (thread_id)
WHERE threads.tenant = ? AND threads.user = ? AND messages.erased_at IS NULL ORDER BY messages.seq
"""


@guarded
class Transcripts:
    """The transcripts of a store. Each message is in the search index from the moment it is kept; its id there is its
    number in the whole store, so that one user's messages can be found together and read back (`lookup`). Each method
    does what `stores/transcripts.py` promises."""

    def __init__(
        self,
        database: Database,
        index: SearchIndex,
        indexer: Indexer,
        consent: Callable[[Identity], Memory] = lambda identity: "on",
    ) -> None:
        self._database = database
        self._consent = consent
        self._index = index
        self._indexer = indexer

    # -------------------------------------------------------------------------------------------------------- threads

    def bind(self, identity: Identity, thread_id: str, *, name: str | None = None) -> None:
        with self._database.read(identity.tenant) as connection:
            if owns_thread(connection, identity, thread_id) and name is None:
                return
        with self._database.write(identity.tenant) as connection:
            bind_thread(connection, identity, thread_id, name)

    def threads(self, identity: Identity) -> list[ThreadInfo]:
        with self._database.read(identity.tenant) as connection:
            rows: Rows = connection.execute(THREADS, (identity.tenant, identity.user)).fetchall()
        return [
            ThreadInfo(
                thread_id=thread_id,
                name=name,
                messages=count,
                first_at=None if first is None else moment(first),
                last_at=None if last is None else moment(last),
                memory=memory,
                memory_because=because,
            )
            for thread_id, name, memory, because, count, first, last in rows
        ]

    def set_memory(self, identity: Identity, thread_id: str, memory: Memory, *, because: str | None = None) -> None:
        with self._database.write(identity.tenant) as connection:
            bind_thread(connection, identity, thread_id)
            connection.execute(
                "UPDATE threads SET memory = ?, memory_because = ? WHERE thread_id = ?", (memory, because, thread_id)
            )

    def memory_of(self, identity: Identity, thread_id: str) -> Memory:
        with self._database.read(identity.tenant) as connection:
            owns_thread(connection, identity, thread_id)
            chosen: Memory | None = one(connection, "SELECT memory FROM threads WHERE thread_id = ?", thread_id)
        return chosen or "on"

    # ------------------------------------------------------------------------------------------------------- messages

    def append(self, identity: Identity, evidence: Sequence[Evidence]) -> int:
        fresh = self._unknown(identity, evidence)
        if not fresh:
            return 0
        self._check_kept(identity, {said.thread_id for said in fresh})  # before an embedder sees a word
        rows = [_to_row(said) for said in fresh]
        # Embedding takes as long as it takes: never inside the transaction.
        prepared = [self._indexer.prepare([_document("", said) for said in part]) for part in _batches(fresh)]
        space = evidence_space(identity)
        with self._database.write(identity.tenant) as connection:
            for thread_id in {said.thread_id for said in fresh}:
                bind_thread(connection, identity, thread_id)
            # None for a message that another writer has added meanwhile
            numbers = [connection.execute(INSERT, row).fetchone() for row in rows]
            found = (row for part in prepared for row in self._indexer.settle(connection, part))
            self._index.put(connection, space, list(_numbered(found, numbers, fresh)))
            failure = next((part.failure for part in prepared if part.failure), None)
            if failure:
                # the kind alone: a provider's error may quote what was said
                kind = failure.split(":", 1)[0]
                log.warning("the embedder failed (%s); what was said now is found by keywords until it answers", kind)
                order_vectors(connection, identity, space)
        return sum(number is not None for number in numbers)

    def _check_kept(self, identity: Identity, thread_ids: Iterable[str]) -> None:
        consent = self._consent(identity)
        if consent != "on":
            raise AccessDenied(
                f"user {identity.user} has set consent to '{consent}', so no transcript is kept; `everthread consent "
                'on`, or store.set_consent(identity, "on") when they agree'
            )
        for thread_id in thread_ids:
            memory = self.memory_of(identity, thread_id)
            if memory != "on":
                raise AccessDenied(
                    f"thread {thread_id!r} keeps no transcript: its memory is '{memory}'; turn it 'on' to keep one"
                )

    def read(
        self,
        identity: Identity,
        thread_id: str,
        *,
        ids: Sequence[str] | set[str] | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Evidence]:
        with self._database.read(identity.tenant) as connection:
            if not owns_thread(connection, identity, thread_id):
                return []
            start = 0 if after is None else _number_of(connection, thread_id, after)
            most = EVERY if limit is None else limit
            if ids is None:
                rows = connection.execute(READ, (thread_id, start, most)).fetchall()
            else:
                rows = connection.execute(READ_THESE, (thread_id, json.dumps(list(ids)), start, most)).fetchall()
        return [_from_row(row) for row in rows]

    # -------------------------------------------------------------------------------------------------------- erasure

    def erase(self, identity: Identity, thread_id: str, *, reason: str) -> int:
        return self.erase_thread(identity, thread_id, reason=reason)["evidence"]

    def erase_thread(self, identity: Identity, thread_id: str, *, reason: str) -> dict[str, int]:
        if not reason.strip():
            raise UsageError("erase needs a reason; it is kept with the thread")
        gone: Counter[str] = Counter(dict.fromkeys(ERASED_KINDS, 0))
        with self._database.write(identity.tenant) as connection:
            owns_thread(connection, identity, thread_id)
            for each in family_of(connection, identity, thread_id):
                evidence, index = self._erase(connection, identity, each, None)
                gone["evidence"] += evidence
                gone["index"] += index
                gone["artifacts"] += erase_artifacts_of(connection, identity, each)
                gone["tasks"] += erase_tasks_of(connection, identity, each)
                gone["inbox"] += erase_inputs(connection, each)
                connection.execute(
                    "UPDATE threads SET name = NULL, erased_at = ?, erased_because = ? WHERE thread_id = ?",
                    (micros(now_utc()), as_blob(reason).decode("utf-8", "replace"), each),
                )
        self._index.forget()
        return dict(gone)

    def mentions(self, identity: Identity, words: Sequence[str]) -> list[tuple[str, str]]:
        """(thread id, message id) of this user's messages that hold one of these texts, in their text or their payload,
        in the order they were said."""
        traces = Traces(words)
        with self._database.read(identity.tenant) as connection:
            return [
                (str(thread_id), str(message_id))
                for thread_id, message_id, text, payload in connection.execute(
                    SAID_BY, (identity.tenant, identity.user)
                )
                if traces.among(b"\n".join((text, payload)))
            ]

    def erase_messages(self, identity: Identity, thread_id: str, message_ids: Sequence[str]) -> int:
        with self._database.write(identity.tenant) as connection:
            if not owns_thread(connection, identity, thread_id):
                return 0
            evidence, _ = self._erase(connection, identity, thread_id, json.dumps(list(message_ids)))
        self._index.forget()
        return evidence

    def _erase(
        self, connection: Connection, identity: Identity, thread_id: str, message_ids: str | None
    ) -> tuple[int, int]:
        """(messages, index rows) that are gone; `message_ids` is a JSON array, None for all."""
        numbers = connection.execute(ERASE, (micros(now_utc()), thread_id, message_ids)).fetchall()
        removed = self._index.delete(connection, evidence_space(identity), [str(number) for (number,) in numbers])
        return len(numbers), removed

    # ---------------------------------------------------------------------------------------------------------- index

    def lookup(self, connection: Connection, keys: Sequence[str]) -> list[Evidence | None]:
        """The messages behind ids of the search index, in that order; None for one that is gone.

        It asks for no identity: the ids come from that identity's own space of the index.
        """
        found = {seq: _from_row(row) for seq, *row in connection.execute(LOOKUP, (_numbers(keys),))}
        return [found.get(int(key)) for key in keys]

    def documents(self, connection: Connection, keys: Sequence[str]) -> list[Document]:
        """What to index for these ids, in that order; those that are gone are left out."""
        found = {seq: _from_row(row) for seq, *row in connection.execute(LOOKUP, (_numbers(keys),))}
        return [_document(key, found[int(key)]) for key in keys if int(key) in found]

    def all_documents(self) -> Iterator[tuple[str, list[Document]]]:
        """Everything that belongs in the index, to build it anew: (space, documents in order), in batches."""
        after = 0
        while True:
            with self._database.read() as connection:
                rows: Rows = connection.execute(ALL, (after, BATCH)).fetchall()
            if not rows:
                return
            spaces: dict[str, list[Document]] = {}
            for seq, tenant, user, *row in rows:
                said = _from_row(row)
                if _has_words(said):
                    space = evidence_space(Identity(tenant=tenant, user=user))
                    spaces.setdefault(space, []).append(_document(str(seq), said))
            yield from spaces.items()
            after = rows[-1][0]

    def _unknown(self, identity: Identity, evidence: Sequence[Evidence]) -> list[Evidence]:
        """What is not here yet, each message once. AccessDenied before anything is embedded."""
        first = {(said.thread_id, said.message_id): said for said in reversed(evidence)}
        threads: dict[str, list[str]] = {}
        for thread_id, message_id in first:
            threads.setdefault(thread_id, []).append(message_id)
        known: set[tuple[str, str]] = set()
        with self._database.read(identity.tenant) as connection:
            for thread_id, message_ids in threads.items():
                owns_thread(connection, identity, thread_id)
                rows = connection.execute(KNOWN, (thread_id, json.dumps(message_ids)))
                known.update((thread_id, message_id) for (message_id,) in rows)
        return [said for key, said in reversed(first.items()) if key not in known]


def searchable(text: str) -> str:
    """What of a text goes into the index: its first 64 K characters, without what an index cannot hold."""
    return text[:INDEXED_CHARACTERS].replace("\x00", " ").encode("utf-8", "replace").decode()


def searched_of(name: str, values: Mapping[str, Any]) -> Document | None:
    """What of a row of `messages` is searched, under this name; None when it has no words."""
    said = _from_row([values[column] for column in COLUMNS.split(", ")])
    return _document(name, said) if _has_words(said) else None


def _has_words(said: Evidence) -> bool:
    """A message of tool calls alone has no text, and would only stand between its neighbours."""
    return bool(searchable(said.text).strip())


def _document(id: str, said: Evidence) -> Document:
    speaker = searchable(said.speaker) if said.speaker else None
    return Document(id, searchable(said.text), speaker=speaker, date=said.at, group=said.thread_id)


def _numbered(
    rows: Iterable[SearchRow], numbers: Iterable[tuple[int] | None], said: Iterable[Evidence]
) -> Iterator[SearchRow]:
    """The search rows of the messages that were added and have words, under the messages' numbers."""
    for row, number, message in zip(rows, numbers, said, strict=True):
        if number is not None and _has_words(message):
            yield row._replace(id=str(number[0]))


def _batches(evidence: Sequence[Evidence]) -> Iterator[Sequence[Evidence]]:
    return (evidence[start : start + BATCH] for start in range(0, len(evidence), BATCH))


def _numbers(keys: Sequence[str]) -> str:
    return json.dumps([int(key) for key in keys])


def _number_of(connection: Connection, thread_id: str, message_id: str) -> int:
    sql = "SELECT seq FROM messages WHERE thread_id = ? AND message_id = ?"
    number: int | None = one(connection, sql, thread_id, message_id)
    if number is None:
        raise UsageError(
            f"thread {thread_id!r} has no message {message_id!r} in its transcript; leave out `after` to read all"
        )
    return number


def _to_row(said: Evidence) -> tuple[Any, ...]:
    return (
        said.thread_id,
        said.message_id,
        said.role,
        said.source,
        None if said.speaker is None else as_blob(said.speaker),
        as_blob(said.text),
        None if said.payload is None else _json_blob(said),
        micros(said.at),
        offset_of(said.at),
    )


def _json_blob(said: Evidence) -> bytes:
    try:
        return as_blob(json.dumps(said.payload, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the payload of message {said.message_id!r} is not plain JSON: {error}") from error


def _from_row(row: Sequence[Any]) -> Evidence:
    thread_id, message_id, role, source, speaker, text, payload, at, offset = row
    return Evidence(
        thread_id=thread_id,
        message_id=message_id,
        role=role,
        source=source,
        speaker=None if speaker is None else as_text(speaker),
        text=as_text(text),
        payload=None if payload is None else json.loads(as_text(payload)),
        at=zoned(at, offset),
    )
