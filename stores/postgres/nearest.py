"""Large spaces: what may answer a question is found by pgvector's HNSW index and by an index of terms, each in the
tenant's partition, and scored by the shared code with the statistics of the whole space.

A space is wide when it has more than so many rows and a job has filled its tables (`nearest.sql`). Until then, and
where pgvector is missing, it is read and scored whole, as every small space is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from everthread.errors import StoreError
from everthread.stores.database import Connection, one
from everthread.stores.encoding import HEAD, without_vectors
from everthread.stores.identity import NAMESPACE_ROOT, Identity
from everthread.stores.jobs import Job
from everthread.stores.keywords import Whole
from everthread.stores.postgres.connection import WIDE
from everthread.stores.postgres.database import Database
from everthread.stores.query import Query
from everthread.stores.scoring import Corpus
from everthread.stores.segments import Indexed
from everthread.stores.tables.jobs import enqueue_job
from everthread.stores.tables.search import OTHERS, is_evidence_space, is_past_space, tenant_of

__all__ = ["EXACT_UP_TO", "Nearest"]

EXACT_UP_TO = 20_000
"""Rows of a space that are read and scored whole; a larger one is searched by its indexes."""
BY_VECTOR = 200
"""Candidates for each direction in which the question's meaning looks."""
BY_TERMS = 1_000
"""Candidates for the question's terms, the rarest terms first."""
BATCH = 1_000
"""Rows that a job adds in one transaction."""

HOLDS = """
tenant = :tenant AND space = :space AND reach IN (SELECT value FROM json_each(:reaches))
AND (since IS NULL OR since <= :now) AND (until IS NULL OR :now < until)
"""
BY_DISTANCE = f"""
SELECT id FROM search_near WHERE {HOLDS}
ORDER BY vector OPERATOR({{at}}.<#>) CAST(:vector AS {{at}}.{{kind}}({{dims}})) LIMIT :most
"""
HAVING = f"SELECT id FROM search_near WHERE {HOLDS} AND terms && CAST(:terms AS bigint[]) LIMIT :most"
SETTINGS = """
SELECT set_config('hnsw.iterative_scan', ?, true), set_config('hnsw.ef_search', ?, true),
    set_config('hnsw.max_scan_tuples', ?, true)
"""
SCANNED = 200_000
"""Rows of a partition that the index looks through for one question before it gives up."""
STANDING_BESIDE = """
SELECT target FROM relations
WHERE kind IN ('contradicts', 'narrows') AND id IN (SELECT value FROM json_each(:ids))
UNION SELECT id FROM relations
WHERE kind IN ('contradicts', 'narrows') AND target IN (SELECT value FROM json_each(:ids))
"""
ROWS = """
SELECT id, grp, speaker, blob, seq, coalesce(place, seq), since, until, reach, known, gone, embedder
FROM search WHERE space = :space
"""
OF_IDS = f"{ROWS} AND id IN (SELECT value FROM json_each(:ids)) ORDER BY seq"
NEXT = f"{ROWS} AND seq > :after ORDER BY seq LIMIT {BATCH}"
ADD_NEAR = """
INSERT INTO search_near (tenant, space, id, part, reach, since, until, terms, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS bigint[]), CAST(? AS {at}.{kind}))
"""
ADD_TERM = """
INSERT INTO search_terms (tenant, space, reach, term, documents) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, space, reach, term) DO UPDATE SET documents = search_terms.documents + excluded.documents
"""
FORGET_TERMS = """
DELETE FROM search_terms WHERE tenant = :tenant AND space = :space AND reach = :reach
    AND term = ANY (CAST(:terms AS bigint[])) AND documents <= 0
"""
COUNTED = """
SELECT term, CAST(sum(documents) AS bigint) FROM search_terms
WHERE tenant = :tenant AND space = :space AND reach IN (SELECT value FROM json_each(:reaches))
    AND term = ANY (CAST(:terms AS bigint[])) GROUP BY term
"""
PUT_REGION = """
INSERT INTO search_regions (tenant, space, reach, numbers) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, space, reach) DO UPDATE SET numbers = excluded.numbers
"""
MARK = """
INSERT INTO search_wide (tenant, space, version) VALUES (?, ?, ?)
ON CONFLICT (tenant, space) DO UPDATE SET version = excluded.version
"""
THESE = "tenant = :tenant AND space = :space AND id IN (SELECT value FROM json_each(:ids))"
ORDERED = """
SELECT 1 FROM jobs
WHERE kind = 'index' AND status IN ('ready', 'leased') AND json_extract(payload, '$.space') = ?
"""


class Nearest:
    """Keeps and asks the indexes of large spaces, inside the caller's transaction; see `search.Nearest`."""

    def __init__(
        self,
        database: Database,
        *,
        exact_up_to: int,
        half_precision: bool,
        iterative_scan: str,
        embedder_id: str | None,
    ) -> None:
        self.limit = exact_up_to
        self._database = database
        self._kind = "halfvec" if half_precision else "vector"
        self._scan = iterative_scan
        self._embedder_id = embedder_id

    # ---------------------------------------------------------------------------------------------------------- write

    def remove(self, connection: Connection, space: str, ids: Sequence[str] | None) -> None:
        """Take rows out (all for None) before they are changed or gone in the search table."""
        if not self._may_be_wide(space) or self._covered(connection, space) is None:
            return
        values = {"tenant": tenant_of(space), "space": space}
        if ids is None:
            connection.execute("DELETE FROM search_wide WHERE tenant = :tenant AND space = :space", values)
            return
        values["ids"] = json.dumps(list(ids))
        there = [str(id) for (id,) in connection.execute(f"SELECT DISTINCT id FROM search_near WHERE {THESE}", values)]
        if there:
            self._count(
                connection, space, self._rows(connection, OF_IDS, {"space": space, "ids": json.dumps(there)}), -1
            )
            connection.execute(f"DELETE FROM search_near WHERE {THESE}", values)

    def follow(self, connection: Connection, space: str, before: int, version: int, ids: Sequence[str]) -> None:
        """Add rows that were just written, and note that what is here is the space as it is now; a space that has just
        become large is left to a job."""
        if not self._may_be_wide(space):
            return
        covered = self._covered(connection, space)
        if covered is None:
            self._order(connection, space)
        elif covered == before:
            if ids:
                values = {"space": space, "ids": json.dumps(list(ids))}
                self._add(connection, space, self._rows(connection, OF_IDS, values))
            connection.execute(MARK, (tenant_of(space), space, version))

    def build(self, job: Job) -> None:
        """The job `index`: fill the tables of a space, a batch in each transaction, until they are what it is."""
        space = str(job.payload["space"])
        tenant = tenant_of(space)
        if self._database.pgvector is None:
            raise StoreError("pgvector is missing: an administrator can run CREATE EXTENSION vector in the database")
        while True:
            with self._database.write(tenant) as connection:
                version = one(connection, "SELECT version FROM search_versions WHERE space = ?", space) or 0
                if not self._made(connection):
                    return
                covered = self._covered(connection, space) or 0
                connection.execute(MARK, (tenant, space, covered))
                rows = self._rows(connection, NEXT, {"space": space, "after": covered})
                self._add(connection, space, rows)
                done = len(rows) < BATCH
                connection.execute(MARK, (tenant, space, version if done else rows[-1].seq))
                if done:
                    return

    def _may_be_wide(self, space: str) -> bool:
        """Evidence is scored with what stands beside it, and the past as it was: both are read whole."""
        return self._database.pgvector is not None and not is_evidence_space(space) and not is_past_space(space)

    def _covered(self, connection: Connection, space: str) -> int | None:
        """Up to which version of a space the tables are filled; None when they are not."""
        if not self._database.has_wide(connection):
            return None
        sql = "SELECT version FROM search_wide WHERE tenant = ? AND space = ?"
        found: int | None = one(connection, sql, tenant_of(space), space)
        return found

    def _order(self, connection: Connection, space: str) -> None:
        """Leave a job that fills the tables of a space, unless one waits or is about to begin."""
        if one(connection, ORDERED, space) is None:
            owner = Identity(tenant=tenant_of(space), user=NAMESPACE_ROOT)
            enqueue_job(connection, owner, "index", {"space": space})

    def _made(self, connection: Connection) -> bool:
        """Make the tables for vectors of the embedder's length, unless they are there; False while nobody knows it."""
        number = "SELECT max(dims) FROM embedders WHERE id = ?"
        dims = one(connection, number, self._embedder_id)
        if dims is None:
            return False
        if self._database.has_wide(connection) and self._dims(connection) == dims:
            return True
        script = files("everthread.stores.postgres").joinpath("nearest.sql").read_text(encoding="utf-8")
        for name in WIDE:
            self._database.run(connection, f"DROP TABLE IF EXISTS {name} CASCADE")
        self._database.run(
            connection,
            script.format(
                vector=f"{self._database.pgvector}.{self._kind}",
                ops=f"{self._database.pgvector}.{self._kind}_ip_ops",
                dims=dims,
                partitions=self._database.partitions(connection),
            ),
        )
        return True

    def _dims(self, connection: Connection) -> int:
        sql = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass('search_near') AND attname = 'vector'"
        return int(one(connection, sql) or 0)

    def _type(self, connection: Connection) -> str:
        sql = """SELECT typname FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
            WHERE attrelid = to_regclass('search_near') AND attname = 'vector'"""
        return str(one(connection, sql))

    def _add(self, connection: Connection, space: str, rows: Sequence[Indexed]) -> None:
        if not rows:
            return
        self._count(connection, space, rows, 1)
        tenant, dims = tenant_of(space), self._dims(connection)
        listed: list[tuple[Any, ...]] = []
        for row in rows:
            terms, vectors = _parts(row.blob, dims)
            place = (tenant, space, row.id)
            bounds = (row.reach, row.since, row.until)
            keys = _keys(space, terms)
            listed += [
                (*place, part, *bounds, keys if part == 0 else None, vector) for part, vector in enumerate(vectors)
            ] or [(*place, 0, *bounds, keys, None)]
        connection.executemany(ADD_NEAR.format(at=self._database.pgvector, kind=self._type(connection)), listed)

    def _count(self, connection: Connection, space: str, rows: Sequence[Indexed], sign: int) -> None:
        """Count rows in (or out, for -1) of the statistics."""
        tenant, dims = tenant_of(space), self._dims(connection)
        for reach, of_reach in groupby(sorted(rows, key=lambda row: row.reach), key=lambda row: row.reach):
            listed = list(of_reach)
            terms = Counter(term for row in listed for term in _parts(row.blob, 0)[0])
            connection.executemany(
                ADD_TERM, [(tenant, space, reach, term, sign * count) for term, count in sorted(terms.items())]
            )
            if sign < 0:
                place = {"tenant": tenant, "space": space, "reach": reach}
                connection.execute(FORGET_TERMS, {**place, "terms": sorted(terms)})
            numbers = Corpus.from_rows(listed).summed(dims).numbers * sign
            sql = "SELECT numbers FROM search_regions WHERE tenant = ? AND space = ? AND reach = ?"
            before = one(connection, sql, tenant, space, reach)
            if before is not None:
                numbers = numbers + np.frombuffer(before, np.float64)
            connection.execute(PUT_REGION, (tenant, space, reach, numbers.tobytes()))

    # ----------------------------------------------------------------------------------------------------------- read

    def candidates(
        self,
        connection: Connection,
        versions: Mapping[str, int],
        query: Query,
        *,
        allows: Callable[[str], bool],
        now: int,
    ) -> tuple[set[str], Corpus] | None:
        """The wide ones among these spaces, and what of them may answer a question, scored as among all of them. None
        when there is no wide one, or its indexes cannot answer."""
        large = [space for space, version in versions.items() if version > self.limit and self._may_be_wide(space)]
        wide = [space for space in large if self._covered(connection, space) == versions[space]]
        if not wide or query.vector is None or self._dims(connection) != len(query.vector):
            return None
        regions = [self._region(connection, space, query, allows) for space in wide]
        whole = _together([whole for _, whole in regions])
        if whole is None:
            return None
        scope = Corpus.from_rows(()).part_of(whole)
        ef_search = str(min(1_000, BY_VECTOR))
        connection.execute(SETTINGS, (self._scan, ef_search, str(SCANNED))).fetchall()
        rows: list[Indexed] = []
        for space, (reaches, _) in zip(wide, regions, strict=True):
            values = {"tenant": tenant_of(space), "space": space, "reaches": json.dumps(reaches), "now": now}
            ids = self._by_vector(connection, values, scope.directions(query)) | self._by_terms(
                connection, values, space, query, whole
            )
            beside = connection.execute(STANDING_BESIDE, {"ids": json.dumps(sorted(ids))})
            ids |= {str(id) for (id,) in beside}
            rows += [
                row
                for row in self._rows(connection, OF_IDS, {"space": space, "ids": json.dumps(sorted(ids))})
                if row.reach in reaches and (row.since or 0) <= now < (row.until or now + 1)
            ]
        return set(wide), Corpus.from_rows(rows).part_of(whole)

    def _region(
        self, connection: Connection, space: str, query: Query, allows: Callable[[str], bool]
    ) -> tuple[list[str], Whole | None]:
        """For which reaches rows may be seen, and what all of those are together."""
        sql = "SELECT reach, numbers FROM search_regions WHERE tenant = ? AND space = ?"
        found = [
            (str(reach), np.frombuffer(numbers, np.float64))
            for reach, numbers in connection.execute(sql, (tenant_of(space), space))
            if allows(f"{space} {reach}")
        ]
        if not found:
            return [], None
        reaches = [reach for reach, _ in found]
        terms = [*query.terms, *(query.words or ())]
        values = {"tenant": tenant_of(space), "space": space, "reaches": json.dumps(reaches), "terms": terms}
        containing = {int(term): int(count) for term, count in connection.execute(COUNTED, values)}
        return reaches, Whole(np.sum([numbers for _, numbers in found], axis=0), containing)

    def _by_vector(
        self, connection: Connection, values: Mapping[str, Any], directions: Sequence[NDArray[np.float32]]
    ) -> set[str]:
        sql = BY_DISTANCE.format(
            at=self._database.pgvector, kind=self._type(connection), dims=len(directions[0]) if directions else 0
        )
        return {
            str(id)
            for direction in directions
            for (id,) in connection.execute(sql, {**values, "vector": _written(direction), "most": BY_VECTOR})
        }

    def _by_terms(
        self, connection: Connection, values: Mapping[str, Any], space: str, query: Query, whole: Whole
    ) -> set[str]:
        """Rows that contain the rarest of the terms: of so many terms as bring no more rows than `BY_TERMS`, one at
        least."""
        known = sorted((whole.containing[term], term) for term in query.terms if whole.containing.get(term))
        chosen: list[int] = []
        total = 0
        for count, term in known:
            if chosen and total + count > BY_TERMS:
                break
            chosen.append(term)
            total += count
        if not chosen:
            return set()
        asked = {**values, "terms": _keys(space, chosen), "most": BY_TERMS}
        return {str(id) for (id,) in connection.execute(HAVING, asked)}

    def _rows(self, connection: Connection, sql: str, values: Mapping[str, Any]) -> list[Indexed]:
        others = {number for (number,) in connection.execute(OTHERS, (self._embedder_id,))}
        with connection.of(tenant_of(str(values["space"]))):
            found = connection.execute(sql, values).fetchall()
        return [
            Indexed(
                id,
                group,
                speaker,
                without_vectors(blob) if embedder in others else blob,
                seq,
                place,
                since,
                until,
                reach or "",
            )
            for id, group, speaker, blob, seq, place, since, until, reach, _, _, embedder in found
        ]


def _together(parts: Iterable[Whole | None]) -> Whole | None:
    there = [part for part in parts if part is not None]
    if not there:
        return None
    containing: Counter[int] = Counter()
    for part in there:
        containing.update(part.containing)
    return Whole(np.sum([part.numbers for part in there], axis=0), dict(containing))


def _keys(space: str, terms: Iterable[int]) -> list[int]:
    """Terms as they are indexed: another space's are others, so that none is looked through for its sake."""
    above = (crc32(space.encode("utf-8", "surrogatepass")) - 2**31) << 32
    return [above | term for term in sorted(set(terms))]


def _parts(blob: bytes, dims: int) -> tuple[set[int], list[str]]:
    """The terms of a blob, and its vectors of so many numbers as pgvector reads them."""
    _, _, dates, count, length, body, _ = HEAD.unpack_from(blob)
    words = np.frombuffer(blob, "<u4", body + dates, HEAD.size)
    terms = {int(term) for term in words}
    if not count or length != dims:
        return terms, []
    chunks = np.frombuffer(blob, np.int8, count * length, len(blob) - count * length).reshape(count, length)
    lengths = np.maximum(1e-9, np.linalg.norm(chunks.astype(np.float32), axis=1))
    return terms, [_written(chunk / size) for chunk, size in zip(chunks.astype(np.float32), lengths, strict=True)]


def _written(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.5g}" for value in vector.tolist()) + "]"
