"""The search table: one row a searchable text, clustered by space.

A space is one scope's records, or one user's messages. Everything that is searched is read from the spaces an identity
may read, so another tenant's rows can neither be found nor change a statistic (R164).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from everthread.stores.identity import Identity, encode_label
from everthread.stores.scoring import Corpus, without_vectors
from everthread.stores.sqlite.database import one

__all__ = ["SearchIndex", "SearchRow", "evidence_space", "is_evidence_space", "record_space"]


PUT = """
INSERT INTO search (space, grp, seq, id, speaker, blob, embedder) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, id) DO UPDATE SET
    grp = excluded.grp, speaker = excluded.speaker, blob = excluded.blob, embedder = excluded.embedder
"""

ROWS = "SELECT id, grp, speaker, blob, embedder FROM search WHERE space = ? ORDER BY grp, seq"
OTHERS = "SELECT number FROM embedders WHERE id <> ?"

RAISE_VERSION = """
INSERT INTO search_versions (space, version) VALUES (?1, ?2)
ON CONFLICT (space) DO UPDATE SET version = version + ?2 RETURNING version
"""


class SearchRow(NamedTuple):
    """One searchable text."""

    id: str
    """Unique in its space."""
    group: str
    """Texts that were said together: a thread for messages, "" for records. Order within it is kept."""
    speaker: str | None
    """Who said it."""
    blob: bytes
    """What `scoring.encode` returned."""
    embedder: int = 0
    """Number of the embedder whose vectors it has; 0 while it has none: a job adds them."""


def record_space(tenant: str, owner: str, owner_id: str) -> str:
    """The space of one scope's records."""
    return "/".join((encode_label(tenant), "records", owner, encode_label(owner_id)))


def evidence_space(identity: Identity) -> str:
    """The space of everything that was said in this user's threads."""
    return "/".join((encode_label(identity.tenant), "evidence", encode_label(identity.user)))


def is_evidence_space(space: str) -> bool:
    """Whether a space holds messages; else it holds records."""
    return space.split("/")[1] == "evidence"


class Kept(NamedTuple):
    """What is kept in memory of some spaces."""

    versions: tuple[int, ...]
    """The spaces' versions when they were read."""
    whole: Corpus
    """Everything in them."""
    only: frozenset[str] | None = None
    """What it was narrowed to last."""
    narrowed: Corpus | None = None
    """That part of it."""


class SearchIndex:
    """Reads and writes search rows inside the caller's transaction, and keeps the corpora searched last in memory.

    The cache holds at most `cache_rows` rows (some 4 KB each with vectors) and is checked against the spaces' versions
    at each use, so that it never answers with what another process has changed.

    `embedder_id`: whose vectors to compare; rows with those of another are searched by their words alone.
    """

    def __init__(self, embedder_id: str | None = None, *, cache_rows: int = 50_000) -> None:
        self._embedder_id = embedder_id
        self._limit = cache_rows
        self._cache: OrderedDict[tuple[str, ...], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, connection: apsw.Connection, space: str, rows: Sequence[SearchRow]) -> None:
        """Add rows at the end of their groups; a row whose id is there already is replaced where it stands."""
        last = self._raise_version(connection, space, len(rows))
        connection.executemany(
            PUT,
            [
                (space, row.group, last - len(rows) + number, row.id, row.speaker, row.blob, row.embedder)
                for number, row in enumerate(rows, start=1)
            ],
        )

    def delete(self, connection: apsw.Connection, space: str, ids: Iterable[str]) -> int:
        """Remove rows by id; returns how many there were."""
        self._raise_version(connection, space, 1)
        before = connection.total_changes()
        connection.executemany("DELETE FROM search WHERE space = ? AND id = ?", [(space, id) for id in ids])
        return connection.total_changes() - before

    def clear(self, connection: apsw.Connection, space: str) -> None:
        """Remove every row of a space."""
        self._raise_version(connection, space, 1)
        connection.execute("DELETE FROM search WHERE space = ?", (space,))

    def version(self, connection: apsw.Connection, space: str) -> int:
        """The space's version: another one means that a row was put or deleted; 0 before the first."""
        return one(connection, "SELECT version FROM search_versions WHERE space = ?", space) or 0

    def _raise_version(self, connection: apsw.Connection, space: str, by: int) -> int:
        """The space's version after raising it; versions are never used twice, so they number the rows too."""
        version: int = one(
            connection,
            RAISE_VERSION,
            space,
            by,
        )
        return version

    def corpus(
        self, connection: apsw.Connection, spaces: Sequence[str], *, only: frozenset[str] | None = None
    ) -> Corpus:
        """The texts of these spaces, grouped, each group in the order it was written; with `only`, those ids alone.

        Statistics are those of the texts that are in it, and of no others. Not to be called inside a transaction that
        has written: what is rolled back would stay in the cache.
        """
        key, versions = tuple(spaces), tuple(self.version(connection, space) for space in spaces)
        with self._lock:
            kept = self._cache.get(key)
        if kept is None or kept.versions != versions:
            rows = (row for space in spaces for row in self._rows(connection, space))
            kept = Kept(versions, Corpus.from_rows(rows, known=kept.whole if kept else None))
        if only is not None and kept.only != only:
            mask = [id in only for id in kept.whole.ids]
            kept = kept._replace(only=only, narrowed=kept.whole if all(mask) else kept.whole.subset(mask))
        self._keep(key, kept)
        return kept.whole if only is None or kept.narrowed is None else kept.narrowed

    def _rows(self, connection: apsw.Connection, space: str) -> Iterator[tuple[str, str, str | None, bytes]]:
        """A space's rows, without the vectors that cannot be compared."""
        others = {number for (number,) in connection.execute(OTHERS, (self._embedder_id,))}
        for id, group, speaker, blob, embedder in connection.execute(ROWS, (space,)):
            yield id, group, speaker, without_vectors(blob) if embedder in others else blob

    def _keep(self, key: tuple[str, ...], kept: Kept) -> None:
        with self._lock:
            self._cache[key] = kept
            self._cache.move_to_end(key)
            while len(self._cache) > 1 and sum(len(held.whole) for held in self._cache.values()) > self._limit:
                self._cache.popitem(last=False)

    def forget(self) -> None:
        """Empty the cache: after an erasure nothing of it stays in this process's memory."""
        with self._lock:
            self._cache.clear()
