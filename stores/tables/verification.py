"""Whether erased words are still anywhere: the tables are read, and then the files' bytes (R280).

A table tells whose words they are: that another user or tenant keeps the same ones is not the eraser's to know, and the
bytes are theirs then. Bytes that belong to no table are what SQLite has left over.
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

KEPT_WORDS = (
    ("records", "SELECT records.tenant, author, body, reason FROM revisions JOIN records USING (id)"),
    ("receipts", "SELECT tenant, user, body FROM receipts"),
    ("messages", "SELECT threads.tenant, user, text, payload FROM messages JOIN threads USING (thread_id)"),
    ("artifacts", "SELECT tenant, user, text FROM artifacts"),
    ("tasks", "SELECT tenant, user, text, result FROM tasks"),
    (
        "waiting inputs",
        "SELECT threads.tenant, user, text FROM inbox JOIN threads USING (thread_id) WHERE text IS NOT NULL",
    ),
    ("reasons", "SELECT tenant, user, erased_because FROM threads WHERE erased_because IS NOT NULL"),
    ("plain items", "SELECT NULL, NULL, value FROM items"),
)
"""Where words may legitimately live on, and whose they are there: another record, or what was not selected."""


class Verifier:
    """Reads one store again after an erasure."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def still_kept(self, identity: Identity, words: Sequence[str]) -> list[str]:
        """Where this identity's words still are, each with the remedy; an admin's are those of the whole tenant."""
        try:
            self._database.scrub()
        except StoreError as error:
            return [f"what the database has left over: {error}; run erase again"]
        traces = Traces(words)
        found = {(place, _is_own(identity, tenant, user)) for place, tenant, user in self._in_tables(traces)}
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

    def _in_tables(self, traces: Traces) -> Iterator[tuple[str, str | None, str | None]]:
        """(place, tenant, user) of each row that has one of the words."""
        if not traces.patterns:
            return
        with self._database.read() as connection:
            for place, sql in KEPT_WORDS:
                rows = ((tenant, user, _bytes(texts)) for tenant, user, *texts in connection.execute(sql))
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
