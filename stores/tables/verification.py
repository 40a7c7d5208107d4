"""Whether erased words are still anywhere: the tables are read, and then the files' bytes (R280).

A table tells whose words they are: that another user or tenant keeps the same ones is not the eraser's to know, and the
bytes are theirs then. Bytes that belong to no table are what SQLite has left over. Where a tenant's rows lie apart, on
a server, they alone are read, and those that belong to nobody; there are no files then, so that places are looked at
too in which no words should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from everthread.errors import StoreError
from everthread.stores.database import Database
from everthread.stores.identity import Identity
from everthread.stores.traces import Traces

__all__ = ["Verifier"]

BATCH = 200
"""Rows that are looked through together."""

OF_TENANT = "(:tenant IS NULL OR tenant = :tenant)"
OF_THREADS = "threads ON threads.thread_id = {}.thread_id AND (:tenant IS NULL OR threads.tenant = :tenant)"
KEPT_WORDS = (
    ("records", "SELECT records.tenant, author, body, reason FROM revisions LEFT JOIN records USING (id)"),
    ("receipts", "SELECT tenant, user, key, body FROM receipts"),
    (
        "messages",
        f"SELECT threads.tenant, user, speaker, text, payload FROM messages LEFT JOIN {OF_THREADS.format('messages')}",
    ),
    ("artifacts", "SELECT tenant, user, text FROM artifacts"),
    ("tasks", "SELECT tenant, user, key, text, result FROM tasks"),
    (
        "waiting inputs",
        f"SELECT threads.tenant, user, text FROM inbox LEFT JOIN {OF_THREADS.format('inbox')} WHERE text IS NOT NULL",
    ),
    (
        "names of threads, or reasons given for them,",
        f"SELECT tenant, user, name, erased_because, memory_because FROM threads WHERE {OF_TENANT}",
    ),
    ("jobs", f"SELECT tenant, user, key, payload, error FROM jobs WHERE {OF_TENANT}"),
    ("plain items", "SELECT NULL, NULL, namespace, key, value FROM items"),
)
"""Where words may legitimately live on, and whose they are there: another record, or what was not selected."""
LEFT_OVER = (
    ("what records are about", "SELECT tenant, author, subject, predicate FROM records"),
    ("the search index", "SELECT NULL, NULL, speaker FROM search WHERE speaker IS NOT NULL"),
    ("the audit log", "SELECT tenant, user, detail FROM audit"),
)
"""Where no sentences are, if all is well. Tables that are in neither list hold ids, times, hashes and numbers alone."""


class Verifier:
    """Reads one store again after an erasure."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def still_kept(self, identity: Identity, words: Sequence[str]) -> list[str]:
        """Where this identity's words still are, each with the remedy; an admin's are those of the whole tenant."""
        try:
            self._database.scrub(identity.tenant)
        except StoreError as error:
            return [f"what the database has left over: {error}; run erase again"]
        traces = Traces(words)
        found = {(place, _is_own(identity, tenant, user)) for place, tenant, user in self._in_tables(identity, traces)}
        kept = [f"the same words in {place} that were not selected" for place, own in sorted(found) if own]
        if not found:
            kept = [
                f"the bytes in {path.name}: another process may still be reading the old state; run erase again"
                for path in self._database.files()
                if traces.in_file(path)
            ]
        return kept

    def in_backups(self, words: Sequence[str]) -> list[Path]:
        """The copies from before a migration that have the words."""
        traces = Traces(words)
        return [path for path in self._database.backups() if traces.in_file(path)]

    def _in_tables(self, identity: Identity, traces: Traces) -> Iterator[tuple[str, str | None, str | None]]:
        """(place, tenant, user) of each row that has one of the words."""
        if not traces.patterns:
            return
        tenant = identity.tenant if self._database.apart else None
        with self._database.read(tenant) as connection:
            for place, sql in (*KEPT_WORDS, *LEFT_OVER) if self._database.apart else KEPT_WORDS:
                found = connection.streamed(sql, {"tenant": tenant})
                rows = ((whose, user, _bytes(texts)) for whose, user, *texts in found)
                for batch in _batches(rows):
                    # most often there is nothing, and one look at all of them tells
                    if traces.among(b"\n".join(text for *_, text in batch)):
                        yield from ((place, tenant, user) for tenant, user, text in batch if traces.among(text))


def _bytes(texts: Iterable[Any]) -> bytes:
    return b"\n".join(text if isinstance(text, bytes) else str(text).encode() for text in texts if text is not None)


def _batches(rows: Iterator[tuple[Any, Any, bytes]]) -> Iterator[list[tuple[Any, Any, bytes]]]:
    batch: list[tuple[Any, Any, bytes]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _is_own(identity: Identity, tenant: str | None, user: str | None) -> bool:
    """Whether a row is this identity's, or nobody's; an admin acts for the whole tenant."""
    return tenant is None or (tenant == identity.tenant and (user == identity.user or "admin" in identity.roles))
