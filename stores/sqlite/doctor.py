"""Looks at a store, and builds its search index anew: the index is derived, and can always be lost (R118)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import apsw

from everthread.errors import StoreError
from everthread.stores.contract import Finding, Job
from everthread.stores.identity import NAMESPACE_ROOT, Identity
from everthread.stores.record import Record
from everthread.stores.scoring import Document
from everthread.stores.sqlite import audit
from everthread.stores.sqlite.database import Database, one
from everthread.stores.sqlite.indexing import Indexer, order_vectors
from everthread.stores.sqlite.jobs import Jobs
from everthread.stores.sqlite.rows import Rows, document_of, space_of
from everthread.stores.sqlite.search import SearchIndex, is_evidence_space
from everthread.stores.sqlite.transcripts import Transcripts

__all__ = ["Doctor"]

BATCH = 500
"""Documents that are embedded in one call."""
ROUNDS = 3
"""How often a space that is written to meanwhile is built again before its writers have to wait."""
ITSELF = Identity(tenant=NAMESPACE_ROOT, user=NAMESPACE_ROOT)
"""On whose behalf the store orders its own jobs."""

ALL_IN_USE = "records.status IN ('active', 'contested')"
FOREIGN_KEYS = "PRAGMA foreign_key_check"
TORN = """
SELECT count(*) FROM records WHERE (revision, revision) <> (
    SELECT count(*), max(revisions.revision) FROM revisions WHERE revisions.id = records.id
)
"""
ORPHANS = "SELECT count(*) FROM revisions WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.id = revisions.id)"

Key = tuple[str, str]
"""A row of the search index: its space and its id."""


class Doctor:
    """`findings` only looks; `rebuild` and `embed` bring the search index to what records and transcripts say."""

    def __init__(
        self,
        database: Database,
        rows: Rows,
        index: SearchIndex,
        indexer: Indexer,
        transcripts: Transcripts,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._indexer = indexer
        self._transcripts = transcripts
        self._jobs = jobs

    # ----------------------------------------------------------------------------------------------------------- look

    def findings(self) -> list[Finding]:
        """See `MemoryStore.doctor`."""
        with self._database.read() as connection:
            found = [
                self._integrity(connection),
                self._history(connection),
                self._audit(connection),
                self._vectors(connection),
            ]
        return [*found, self._drift(), self._failed_jobs()]

    def _integrity(self, connection: apsw.Connection) -> Finding:
        problems = [str(text) for (text,) in connection.execute("PRAGMA integrity_check(5)") if text != "ok"]
        problems += [f"{table} row {row} has no {parent}" for table, row, parent, _ in connection.execute(FOREIGN_KEYS)]
        return Finding(
            check="file",
            ok=not problems,
            detail="; ".join(problems) or f"{self._database.path} is sound",
            remedy="restore a backup, or export what can still be read into a new home" if problems else None,
        )

    def _history(self, connection: apsw.Connection) -> Finding:
        records = one(connection, "SELECT count(*) FROM records")
        torn = one(connection, TORN) + one(connection, ORPHANS)
        return Finding(
            check="history",
            ok=not torn,
            detail=f"{records} records"
            + (f", {torn} without their whole history" if torn else ", each with its history"),
            remedy="restore a backup" if torn else None,
        )

    def _audit(self, connection: apsw.Connection) -> Finding:
        broken = audit.first_broken(connection)
        rows = one(connection, "SELECT count(*) FROM audit")
        return Finding(
            check="audit",
            ok=broken is None,
            detail=f"{rows} entries, chained"
            if broken is None
            else f"entry {broken} was changed, or one before it is gone",
            remedy=None if broken is None else "somebody changed the file by hand; compare it with a backup",
        )

    def _vectors(self, connection: apsw.Connection) -> Finding:
        ours, holder = self._indexer.embedder_id, self._indexer.holder(connection)
        gaps = one(connection, "SELECT count(*) FROM search WHERE NOT whole")
        if ours is None:
            return Finding(check="vectors", ok=True, detail="opened without an embedder: keywords only")
        if holder not in (None, ours):
            detail = f"the index holds vectors of {holder}, not of {ours}: keywords only"
        elif gaps:
            detail = f"{gaps} texts have no vectors yet: they are found by keywords"
        else:
            return Finding(check="vectors", ok=True, detail=f"every text is embedded by {ours}")
        return Finding(check="vectors", ok=False, detail=detail, remedy="run `everthread worker`, or doctor --rebuild")

    def _drift(self) -> Finding:
        expected = {(space, document.id) for space, documents in self._all() for document in documents}
        with self._database.read() as connection:
            found = set(connection.execute("SELECT space, id FROM search").fetchall())
        missing, stray = len(expected - found), len(found - expected)
        return Finding(
            check="index",
            ok=not (missing or stray),
            detail=f"{len(found)} texts are searchable"
            + (f"; {missing} are missing, {stray} should not be there" if missing or stray else ""),
            remedy="everthread doctor --rebuild" if missing or stray else None,
        )

    def _failed_jobs(self) -> Finding:
        failed = self._jobs.failed()
        return Finding(
            check="jobs",
            ok=not failed,
            detail="; ".join(f"{job.kind} {job.id}: {job.error}" for job in failed[:5]) or "none was given up",
            remedy="repair the cause, then enqueue the job again; `doctor --rebuild` replaces embed jobs"
            if failed
            else None,
        )

    # --------------------------------------------------------------------------------------------------------- repair

    def order_embedding(self) -> None:
        """When the store is opened with an embedder that the index is not of, or that has work left: leave a job."""
        if self._indexer.embedder_id is None:
            return
        with self._database.read() as connection:
            if not self._has_work(connection):
                return
        with self._database.write() as connection:
            order_vectors(connection, ITSELF, None)

    def _has_work(self, connection: apsw.Connection) -> bool:
        if not self._indexer.owns(connection):
            return one(connection, "SELECT 1 FROM search LIMIT 1") is not None
        return one(connection, "SELECT 1 FROM search WHERE NOT whole LIMIT 1") is not None

    def embed(self, job: Job) -> None:
        """The job `embed`: give the rows of a space (or of all) the vectors that they lack. Raises StoreError when the
        embedder fails again, so that the queue tries later."""
        if self._indexer.embedder_id is None:
            raise StoreError("the store is open without an embedder; a worker with one does this job")
        with self._database.read() as connection:
            owns = self._indexer.owns(connection)
        if not owns:
            self.rebuild()
            return
        done: set[Key] = set()
        while gaps := self._gaps(job.payload.get("space"), done):
            self._fill(gaps)
            done.update(gaps)

    def _gaps(self, space: str | None, done: set[Key]) -> list[Key]:
        """The next rows without vectors, all of one space."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT space, id FROM search WHERE NOT whole AND (?1 IS NULL OR space = ?1) ORDER BY space, id",
                (space,),
            )
            left: list[Key] = [(str(space), str(id)) for space, id in rows if (space, id) not in done]
        return [gap for gap in left[:BATCH] if gap[0] == left[0][0]]

    def _fill(self, gaps: Sequence[Key]) -> None:
        space, ids = gaps[0][0], [id for _, id in gaps]
        with self._database.read() as connection:
            version = self._index.version(connection, space)
            documents = self._documents(connection, space, ids)
        prepared = self._indexer.prepare(documents)
        if prepared.failure:
            raise StoreError(f"the embedder failed: {prepared.failure}")
        with self._database.write() as connection:
            # whatever was written meanwhile may have changed or erased these texts: the next run takes what is left
            if self._index.version(connection, space) == version:
                self._index.put(connection, space, self._indexer.settle(connection, prepared))

    def _documents(self, connection: apsw.Connection, space: str, ids: Sequence[str]) -> list[Document]:
        if is_evidence_space(space):
            return self._transcripts.documents(connection, ids)
        condition = f"{ALL_IN_USE} AND records.id IN (SELECT value FROM json_each(:ids))"
        found = self._rows.find(connection, condition, {"ids": json.dumps(list(ids))})
        return [document_of(stored.record) for stored in found]

    def rebuild(self) -> int:
        """See `MemoryStore.rebuild`. Searches go on meanwhile, by keywords where vectors change hands; writes wait only
        for a space that is written to again and again."""
        with self._database.write() as connection:
            if not self._indexer.owns(connection) and self._indexer.embedder_id is not None:
                self._indexer.release(connection)
        left = self._build(None)
        for _ in range(ROUNDS):
            if left:
                left = self._build(left)
        with self._database.write() as connection:
            if left:
                self._build(left)
            if self._indexer.embedder_id is not None:
                self._indexer.take_over(connection)
            count: int = one(connection, "SELECT count(*) FROM search")
        self._index.forget()
        return count

    def _build(self, only: set[str] | None) -> set[str]:
        """Build these spaces (or all) from what they are derived from; returns those that were written to meanwhile."""
        with self._database.read() as connection:
            versions = {str(space): version for space, version in connection.execute("SELECT * FROM search_versions")}
        documents: dict[str, list[Document]] = {space: [] for space in versions}
        for space, batch in self._all():
            documents.setdefault(space, []).extend(batch)
        return {
            space
            for space, found in documents.items()
            if (only is None or space in only) and not self._replace(space, found, versions.get(space, 0))
        }

    def _replace(self, space: str, documents: Sequence[Document], version: int) -> bool:
        """Replace a space's rows; False when it was written to since `version`."""
        parts = [
            self._indexer.prepare(documents[start : start + BATCH], anew=True)
            for start in range(0, len(documents), BATCH)
        ]
        with self._database.write() as connection:
            if self._index.version(connection, space) != version:
                return False
            self._index.clear(connection, space)
            self._index.put(connection, space, [row for part in parts for row in part.rows])
        return True

    def _all(self) -> Iterator[tuple[str, list[Document]]]:
        """Everything that belongs in the index: (space, documents in order), in batches."""
        yield from self._all_records()
        yield from self._transcripts.all_documents()

    def _all_records(self) -> Iterable[tuple[str, list[Document]]]:
        spaces: dict[str, list[Document]] = {}
        with self._database.read() as connection:
            for tenant, body in connection.execute(
                f"SELECT tenant, body FROM records WHERE {ALL_IN_USE} ORDER BY recorded_at, id"
            ):
                record = Record.model_validate_json(str(body))
                spaces.setdefault(space_of(str(tenant), record), []).append(document_of(record))
        return spaces.items()
