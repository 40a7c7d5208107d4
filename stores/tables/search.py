"""The search table: one row a searchable text, clustered by space.

A space is one scope's records, or one user's messages; what records of a scope have said before is in a space of its
own, the past. Everything that is searched is read from the spaces an identity
may read, so another tenant's rows can neither be found nor change a statistic (R164).
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from everthread.stores.database import Connection, Cursor, one
from everthread.stores.encoding import Bounds, without_vectors
from everthread.stores.identity import Identity, Scope, encode_label
from everthread.stores.query import Query
from everthread.stores.scoring import Corpus
from everthread.stores.segments import Indexed

__all__ = [
    "Nearest",
    "SearchIndex",
    "SearchRow",
    "evidence_space",
    "is_evidence_space",
    "is_past_space",
    "past_id",
    "past_space",
    "record_space",
    "tenant_of",
    "versions_of",
    "whose_past",
]


PUT = """
INSERT INTO search (space, seq, grp, id, speaker, since, until, reach, known, gone, embedder, blob)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, id) DO UPDATE SET
    seq = excluded.seq, place = coalesce(search.place, search.seq), grp = excluded.grp, speaker = excluded.speaker,
    since = excluded.since, until = excluded.until, reach = excluded.reach, known = excluded.known,
    gone = excluded.gone, embedder = excluded.embedder, blob = excluded.blob
"""
ROW = "SELECT id, grp, speaker, blob, embedder, since, until, reach, known, gone FROM search WHERE space = ? AND id = ?"
REPLACES = """
SELECT EXISTS (
    SELECT 1 FROM json_each(?2) AS fresh CROSS JOIN search
    ON search.space = ?1 AND search.id = CAST(fresh.value AS TEXT)
)
"""
ROWS = """
SELECT id, grp, speaker, blob, seq, coalesce(place, seq), since, until, reach, known, gone, embedder
FROM search WHERE space = ? AND seq > ? ORDER BY seq
"""
STANDING = "SELECT json_group_array(seq) FROM search WHERE space = ?"
OTHERS = "SELECT number FROM embedders WHERE id <> ?"
VERSIONS = """
SELECT space, version, removed FROM search_versions WHERE space IN (SELECT value FROM json_each(?))
"""

RAISE_VERSION = """
INSERT INTO search_versions (space, version) VALUES (?1, ?2)
ON CONFLICT (space) DO UPDATE SET version = search_versions.version + ?2,
    removed = iif(?3, search_versions.version + ?2, search_versions.removed)
RETURNING version
"""

CACHE_BYTES = 128 * 2**20
"""What a store keeps of its spaces in memory: some 300,000 records of 200 characters with a vector of 256 numbers."""
ENTRY_BYTES = 16_384
"""What a kept space takes besides its rows."""


class SearchRow(NamedTuple):
    """One searchable text."""

    id: str
    """Unique in its space."""
    group: str
    """Texts that were said together: a thread for messages, "" for records. Order within it is kept."""
    speaker: str | None
    """Who said it."""
    blob: bytes
    """What `encoding.encode` returned."""
    embedder: int = 0
    """Number of the embedder whose vectors it has; 0 while it has none: a job adds them."""
    bounds: Bounds = Bounds()
    """When and for whom it holds."""


@lru_cache(maxsize=10_000)
def record_space(tenant: str, owner: str, owner_id: str) -> str:
    """The space of one scope's records."""
    return "/".join((encode_label(tenant), "records", owner, encode_label(owner_id)))


def past_space(space: str) -> str:
    """The space of what the records of a space said once and do not say now."""
    tenant, _, owner, owner_id = space.split("/")
    return "/".join((tenant, "past", owner, owner_id))


def past_id(id: str, known: int) -> str:
    """What a text of a record is called in the past; `known`: since when the store had it."""
    return f"{id}@{known}"


def whose_past(id: str) -> str:
    """The record of a `past_id`."""
    return id.rpartition("@")[0]


def is_past_space(space: str) -> bool:
    """Whether a space holds what records said once."""
    return space.split("/")[1] == "past"


def evidence_space(identity: Identity) -> str:
    """The space of everything that was said in this user's threads."""
    return "/".join((encode_label(identity.tenant), "evidence", encode_label(identity.user)))


def tenant_of(space: str) -> str:
    """Whose it is."""
    return unquote(space.split("/", 1)[0])


def is_evidence_space(space: str) -> bool:
    """Whether a space holds messages; else it holds records."""
    return space.split("/")[1] == "evidence"


class Space(NamedTuple):
    """One space as it is kept in memory."""

    version: int
    """Its version when it was read."""
    corpus: Corpus
    """Everything in it."""


class Joined(NamedTuple):
    """What was searched last of some spaces."""

    versions: tuple[int, ...]
    sizes: tuple[int, ...]
    """How many documents each of the spaces has."""
    whole: Corpus
    mask: NDArray[np.bool_] | None = None
    """What it was narrowed to last; None for nothing."""
    narrowed: Corpus | None = None
    """That part of it."""


class Kept(NamedTuple):
    """What is in memory of some spaces, and of which versions it is."""

    versions: tuple[int, ...]
    corpus: Corpus

    def is_still(self, spaces: Sequence[str], known: Mapping[str, tuple[int, int]]) -> bool:
        """Whether these are the versions of its spaces."""
        return self.versions == tuple(known[space][0] if space in known else 0 for space in spaces)


Allows = Callable[[Scope, str | None], bool]
"""Whether records of an owner and a reach may be seen; see `reach.is_reached`."""


class Nearest(Protocol):
    """Answers for spaces that are too large to be read whole."""

    limit: int
    """Up to how many rows a space is read whole. No space has more rows than its version says."""

    def remove(self, connection: Connection, space: str, ids: Sequence[str] | None) -> None:
        """Take rows out (all for None) before they are changed or gone in the search table."""

    def follow(self, connection: Connection, space: str, before: int, version: int, ids: Sequence[str]) -> None:
        """Add rows that were just written, between these versions of the space."""

    def candidates(
        self,
        connection: Connection,
        versions: Mapping[str, int],
        query: Query,
        *,
        allows: Callable[[str], bool],
        now: int,
    ) -> tuple[set[str], Corpus] | None:
        """Those of the spaces that need not be read, and what of them may answer a question, scored as among all of
        them. None when there is none."""


class SearchIndex:
    """Reads and writes search rows inside the caller's transaction, and keeps the corpora searched last in memory.

    What is kept takes at most `cache_bytes` (or is one space that is larger) and is checked against the spaces'
    versions at each use, so that it never answers with what another process has changed. Of a space that is kept, only
    the rows that are new are read.

    `embedder_id`: whose vectors to compare; rows with those of another are searched by their words alone. `nearest`:
    what answers for large spaces; without it they are read whole.
    """

    def __init__(
        self, embedder_id: str | None = None, *, cache_bytes: int = CACHE_BYTES, nearest: Nearest | None = None
    ) -> None:
        self._nearest = nearest
        self._embedder_id = embedder_id
        self._limit = cache_bytes
        self._cache: OrderedDict[str | tuple[str, ...], Space | Joined] = OrderedDict()
        self._sizes: dict[str | tuple[str, ...], int] = {}
        self._bytes = 0
        self._changed: set[str | tuple[str, ...]] = set()
        """Spaces that are kept as they were before this process has changed them."""
        self._lock = threading.Lock()

    # ---------------------------------------------------------------------------------------------------------- write

    def put(self, connection: Connection, space: str, rows: Sequence[SearchRow]) -> None:
        """Add rows at the end of their groups; a row whose id is there already is replaced where it stands."""
        if not rows:
            return
        with connection.of(tenant_of(space)):
            replaces = one(connection, REPLACES, space, json.dumps([row.id for row in rows]))
            version = self._raise_version(connection, space, len(rows), removes=replaces)
            first, ids = version - len(rows) + 1, [row.id for row in rows]
            large = self._large(version)
            if large is not None and replaces:
                large.remove(connection, space, ids)
            connection.executemany(
                PUT,
                [
                    (space, seq, row.group, row.id, row.speaker, *row.bounds, row.embedder, row.blob)
                    for seq, row in enumerate(rows, start=first)
                ],
            )
            if large is not None:
                large.follow(connection, space, first - 1, version, ids)

    def _large(self, version: int) -> Nearest | None:
        """What follows the changes of a space of this version; None for nothing."""
        return self._nearest if self._nearest is not None and version > self._nearest.limit else None

    def row(self, connection: Connection, space: str, id: str) -> SearchRow | None:
        """A row as it stands; None when there is none."""
        with connection.of(tenant_of(space)):
            rows: Iterable[tuple[Any, ...]] = connection.execute(ROW, (space, id))
        for name, group, speaker, blob, embedder, *bounds in rows:
            return SearchRow(name, group, speaker, blob, embedder, Bounds(*bounds))
        return None

    def delete(self, connection: Connection, space: str, ids: Iterable[str]) -> int:
        """Remove rows by id; returns how many there were."""
        with connection.of(tenant_of(space)):
            version, listed = self._raise_version(connection, space, 1, removes=True), list(ids)
            large = self._large(version)
            if large is not None:
                large.remove(connection, space, listed)
            before = connection.total_changes()
            connection.executemany("DELETE FROM search WHERE space = ? AND id = ?", [(space, id) for id in listed])
            gone = connection.total_changes() - before
            if large is not None:
                large.follow(connection, space, version - 1, version, [])
            return gone

    def clear(self, connection: Connection, space: str) -> None:
        """Remove every row of a space."""
        with connection.of(tenant_of(space)):
            large = self._large(self._raise_version(connection, space, 1, removes=True))
            if large is not None:
                large.remove(connection, space, None)
            connection.execute("DELETE FROM search WHERE space = ?", (space,))

    def version(self, connection: Connection, space: str) -> int:
        """The space's version: another one means that a row was put or deleted; 0 before the first."""
        with connection.of(tenant_of(space)):
            return one(connection, "SELECT version FROM search_versions WHERE space = ?", space) or 0

    def _raise_version(self, connection: Connection, space: str, by: int, *, removes: bool) -> int:
        """The space's version after raising it; versions are never used twice, so they number the rows too."""
        version: int = one(connection, RAISE_VERSION, space, by, removes)
        with self._lock:
            if space in self._cache:
                self._changed.add(space)
        return version

    # ----------------------------------------------------------------------------------------------------------- read

    def corpus(
        self, connection: Connection, spaces: Sequence[str], *, allows: Allows | None = None, now: int = 0
    ) -> Corpus:
        """The texts of these spaces, each space in the order it was written; with `allows`, those alone that hold now
        (microseconds since 1970) and whose reach it allows.

        Statistics are those of the texts that are in it, and of no others. Not to be called inside a transaction that
        has written: what is rolled back would stay in the cache.
        """
        joined = self._joined(connection, spaces)
        return joined.whole if allows is None else self._narrowed(spaces, joined, allows, now, None)[0]

    def versions(self, connection: Connection, spaces: Sequence[str]) -> Cursor:
        """Ask for the versions of these spaces, to be read by `versions_of`."""
        return connection.execute(VERSIONS, (json.dumps(list(spaces)),))

    def kept(self, spaces: Sequence[str], *, allows: Allows, now: int) -> Kept | None:
        """What `corpus` said of these spaces last, narrowed anew; whether it is so still, its versions say. None for
        nothing, and for what this process has changed since."""
        with self._lock:
            joined = self._cache.get(tuple(spaces))
            changed = not self._changed.isdisjoint(spaces)
        if changed or not isinstance(joined, Joined) or any(map(self._large, joined.versions)):
            return None
        return Kept(joined.versions, self._narrowed(spaces, joined, allows, now, None)[0])

    def answering(
        self,
        connection: Connection,
        spaces: Sequence[str],
        query: Query,
        known: Mapping[str, tuple[int, int]],
        *,
        allows: Allows,
        now: int,
    ) -> Corpus:
        """What of these spaces, of which these are the versions, may answer a question: all of it, as `corpus` has it;
        of large spaces the candidates alone, scored as they are among all."""
        versions = {space: version for space, (version, _) in known.items()}
        found, nearest = None, self._nearest
        if nearest is not None and any(version > nearest.limit for version in versions.values()):
            found = nearest.candidates(
                connection, versions, query, allows=lambda reach: _allows(allows, reach), now=now
            )
        if found is None:
            return self._narrowed(spaces, self._joined(connection, spaces, known), allows, now, None)[0]
        wide, candidates = found
        others = [space for space in spaces if space in versions and space not in wide]
        rest = self.corpus(connection, others, allows=allows, now=now) if others else None
        return candidates.beside(rest, query) if rest is not None and len(rest) else candidates

    def corpus_then(
        self, connection: Connection, spaces: Sequence[str], *, allows: Allows, now: int, as_of: int
    ) -> tuple[Corpus, int]:
        """The texts of records that the store had at `as_of`, in these spaces and in their past, as `corpus` narrows
        them; and from which document on they are of the past, called by `past_id`."""
        both = [*spaces, *map(past_space, spaces)]
        joined = self._joined(connection, both)
        corpus, mask = self._narrowed(both, joined, allows, now, as_of)
        return corpus, int(mask[: sum(joined.sizes[: len(spaces)])].sum())

    def _narrowed(
        self, spaces: Sequence[str], joined: Joined, allows: Allows, now: int, as_of: int | None
    ) -> tuple[Corpus, NDArray[np.bool_]]:
        """The texts that hold, and which of all those are."""
        mask = joined.whole.holding(lambda reach: _allows(allows, reach), now, as_of)
        if mask.all():
            return joined.whole, mask
        narrowed = joined.narrowed
        if narrowed is None or joined.mask is None or not np.array_equal(joined.mask, mask):
            narrowed = joined.whole.subset(mask)
        kept = joined._replace(mask=mask, narrowed=narrowed)
        self._keep(tuple(spaces), kept, 2 * joined.whole.derived_nbytes)
        return narrowed, mask

    def _joined(
        self, connection: Connection, spaces: Sequence[str], known: Mapping[str, tuple[int, int]] | None = None
    ) -> Joined:
        """The spaces as one corpus, each brought up to date; `known` is what `versions_of` has found."""
        found = versions_of(self.versions(connection, spaces)) if known is None else known
        there = [space for space in spaces if space in found]
        corpora = {space: self._space(connection, space, *found[space]).corpus for space in there}
        key, versions = tuple(spaces), tuple(found[space][0] if space in found else 0 for space in spaces)
        with self._lock:
            kept = self._cache.get(key)
        if isinstance(kept, Joined) and kept.versions == versions:
            return kept
        sizes = tuple(len(corpora[space]) if space in corpora else 0 for space in spaces)
        joined = Joined(versions, sizes, Corpus.joined([corpus for corpus in corpora.values() if len(corpus)]))
        self._keep(key, joined, joined.whole.derived_nbytes)
        return joined

    def _space(self, connection: Connection, space: str, version: int, removed: int) -> Space:
        """One space: as it is kept, with what is new, or read whole."""
        with self._lock:
            kept = self._cache.get(space)
        if not isinstance(kept, Space) or kept.version > version:
            kept = Space(0, Corpus.from_rows(()))
        if kept.version < version:
            standing = None
            if removed > kept.version and len(kept.corpus):
                standing = np.isin(kept.corpus.seqs(), np.array(json.loads(one(connection, STANDING, space)), np.int64))
            rows = list(self._rows(connection, space, kept.version))
            kept = Space(version, kept.corpus.plus(rows, kept=standing))
        self._keep(space, kept, kept.corpus.nbytes + kept.corpus.derived_nbytes)
        with self._lock:
            self._changed.discard(space)
        return kept

    def _rows(self, connection: Connection, space: str, after: int) -> Iterator[Indexed]:
        """A space's rows that were written after a version, without the vectors that cannot be compared."""
        others = {number for (number,) in connection.execute(OTHERS, (self._embedder_id,))}
        plain = f"{space} "
        rows: Iterable[Any] = connection.execute(ROWS, (space, after))
        for id, group, speaker, blob, seq, place, since, until, reach, known, gone, embedder in rows:
            compared, reached = without_vectors(blob) if embedder in others else blob, plain + (reach or "")
            yield Indexed(id, group, speaker, compared, seq, place, since, until, reached, known, gone)

    def _keep(self, key: str | tuple[str, ...], kept: Space | Joined, size: int) -> None:
        with self._lock:
            self._cache[key] = kept
            self._cache.move_to_end(key)
            self._bytes += size + ENTRY_BYTES - self._sizes.get(key, 0)
            self._sizes[key] = size + ENTRY_BYTES
            while len(self._cache) > 1 and self._bytes > self._limit:
                oldest, _ = self._cache.popitem(last=False)
                self._bytes -= self._sizes.pop(oldest)
                self._changed -= {oldest}

    @property
    def nbytes(self) -> int:
        """What is kept, in bytes."""
        return self._bytes

    def forget(self) -> None:
        """Empty the cache: after an erasure nothing of it stays in this process's memory."""
        with self._lock:
            self._cache.clear()
            self._sizes.clear()
            self._changed.clear()
            self._bytes = 0


def versions_of(rows: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """The version of each space that has rows, and the last one that took some away."""
    return {str(space): (int(version), int(removed)) for space, version, removed in rows}


def _allows(allows: Allows, reach: str) -> bool:
    """Ask about a reach as `_rows` has written it: behind its space, which says whose it is."""
    space, said = reach.split(" ", 1)
    _, _, owner, owner_id = space.split("/")
    return allows(Scope(owner=owner, owner_id=unquote(owner_id)), said or None)  # type: ignore[arg-type]
