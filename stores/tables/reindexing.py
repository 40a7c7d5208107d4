"""The search index is derived: what records and transcripts say is indexed anew, or embedded later, without a stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from everthread.errors import StoreError
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import NAMESPACE_ROOT, Identity
from everthread.stores.jobs import Job
from everthread.stores.scoring import Document
from everthread.stores.tables.indexing import Indexer, Prepared, order_vectors, words_of
from everthread.stores.tables.rows import OF_THESE, histories, texts_of
from everthread.stores.tables.search import SearchIndex, is_evidence_space, is_past_space, tenant_of, whose_past
from everthread.stores.tables.transcripts import Transcripts

__all__ = ["Key", "Reindexer", "lacks_past"]

BATCH = 500
"""Documents that are embedded in one call."""
ROUNDS = 3
"""How often a space that is written to meanwhile is built again before its writers have to wait. They wait for its
words alone: its vectors follow."""
ITSELF = Identity(tenant=NAMESPACE_ROOT, user=NAMESPACE_ROOT)
"""On whose behalf the store orders its own jobs."""

TO_BE_MADE = "past"
"""What is kept of a file of before its index had a past, until a job has made that."""
ALL_RECORDS = "SELECT id FROM records WHERE id > ? ORDER BY id LIMIT ?"
NONE_YET = "embedder = 0"
NOT_OURS = "embedder NOT IN (SELECT number FROM embedders WHERE embedders.id = :embedder)"
"""Which rows of the index lack vectors: those without any, or all that have none of this embedder's."""

Key = tuple[str, str]
"""A row of the search index: its space and its id."""
Prepare = Callable[[Sequence[Document]], Prepared]


def lacks_past(connection: Connection) -> bool:
    """Whether the index does not have yet what records of an older file have said before."""
    return bool(connection.kept(TO_BE_MADE) == "to be made")


class Reindexer:
    """Brings the search index to what it is derived from, and its vectors to those of the store's embedder."""

    def __init__(self, database: Database, index: SearchIndex, indexer: Indexer, transcripts: Transcripts) -> None:
        self._database = database
        self._index = index
        self._indexer = indexer
        self._transcripts = transcripts

    # -------------------------------------------------------------------------------------------------------- vectors

    def order(self) -> None:
        """When the store is opened with an embedder that the index is not of, or that has work left: leave a job."""
        with self._database.read() as connection:
            if not self._has_work(connection):
                return
        with self._database.write() as connection:
            order_vectors(connection, ITSELF, None)

    def _has_work(self, connection: Connection) -> bool:
        if lacks_past(connection):
            return True
        if self._indexer.embedder_id is None:
            return False
        if not self._indexer.owns(connection):
            return one(connection, "SELECT 1 FROM search LIMIT 1") is not None
        return one(connection, "SELECT 1 FROM search WHERE embedder = 0 LIMIT 1") is not None

    def embed(self, job: Job) -> None:
        """The job `embed`: give the rows of a space (or of all) the vectors that they lack. What is done is kept, so
        that the next worker goes on where this one was stopped. Raises StoreError when the embedder fails again, so
        that the queue tries later."""
        made = self._make_past()
        if made and self._indexer.embedder_id is None:
            return
        if self._indexer.embedder_id is None:
            raise StoreError("the store is open without an embedder; a worker with one does this job")
        with self._database.read() as connection:
            owns = self._indexer.owns(connection)
        self.embed_rest(job.payload.get("space"), among=NONE_YET if owns else NOT_OURS)

    def _make_past(self) -> bool:
        """Give a file of before the texts that its records had, by their words (their vectors follow); returns whether
        it lacked them."""
        last = ""
        with self._database.read() as connection:
            lacks = lacks_past(connection)
        while lacks:
            with self._database.write() as connection:
                ids = [str(id) for (id,) in connection.execute(ALL_RECORDS, (last, BATCH))]
                for tenant, author, history in histories(connection, OF_THESE, {"ids": json.dumps(ids)}):
                    for space, document in texts_of(tenant, author, history):
                        row = self._index.row(connection, space, document.id) or words_of([document]).rows[0]
                        self._index.put(connection, space, [row._replace(bounds=document.bounds)])
                if len(ids) < BATCH:
                    connection.keep(TO_BE_MADE, "made")
                    return True
            last = ids[-1]
        return False

    def embed_rest(self, space: str | None = None, *, among: str = NOT_OURS) -> int:
        """Embed what has no vectors of this store's embedder, in a space or everywhere, in batches; returns how many
        texts that were. StoreError when the embedder fails."""
        embedded = 0
        for each in self._spaces(among) if space is None else [space]:
            last = ""
            while lacking := self._next(among, each, last):
                embedded += self._fill(each, lacking)
                last = lacking[-1]
        if space is None and among is NOT_OURS:
            with self._database.write() as connection:
                self._indexer.take_over(connection)
        return embedded

    def _spaces(self, among: str) -> list[str]:
        """The spaces of the rows that lack vectors."""
        sql = f"SELECT DISTINCT space FROM search WHERE {among} ORDER BY space"
        with self._database.read() as connection:
            return [str(space) for (space,) in connection.execute(sql, {"embedder": self._indexer.embedder_id})]

    def _next(self, among: str, space: str, after: str) -> list[str]:
        """The next rows of a space that lack vectors, by id."""
        sql = f"SELECT id FROM search WHERE space = :space AND id > :after AND {among} ORDER BY id LIMIT {BATCH}"
        values = {"space": space, "after": after, "embedder": self._indexer.embedder_id}
        with self._database.read(tenant_of(space)) as connection:
            return [str(id) for (id,) in connection.execute(sql, values)]

    def _fill(self, space: str, ids: Sequence[str]) -> int:
        with self._database.read(tenant_of(space)) as connection:
            documents = self._documents(connection, space, ids)
        prepared = self._indexer.prepare(documents, patient=True)
        if prepared.failure:
            raise StoreError(f"the embedder failed: {prepared.failure}")
        with self._database.write(tenant_of(space)) as connection:
            # what was written or erased while the embedder was at work is not put back
            still = set(self._documents(connection, space, ids))
            rows = self._indexer.settle(connection, prepared)
            fresh = [row for row, document in zip(rows, documents, strict=True) if document in still]
            self._index.put(connection, space, fresh)
        return len(fresh)

    def _documents(self, connection: Connection, space: str, ids: Sequence[str]) -> list[Document]:
        if is_evidence_space(space):
            return self._transcripts.documents(connection, ids)
        records = {whose_past(id) for id in ids} if is_past_space(space) else set(ids)
        wanted = set(ids)
        return [
            document
            for tenant, author, history in histories(connection, OF_THESE, {"ids": json.dumps(sorted(records))})
            for where, document in texts_of(tenant, author, history)
            if where == space and document.id in wanted
        ]

    # ------------------------------------------------------------------------------------------------------- the rows

    def drift(self) -> tuple[set[Key], set[Key]]:
        """What is not in the index and should be, and what is there and should not be."""
        expected = {(space, document.id) for space, documents in self._all() for document in documents}
        with self._database.read() as connection:
            found = {(str(space), str(id)) for space, id in connection.execute("SELECT space, id FROM search")}
        return expected - found, found - expected

    def rebuild(self, only: set[str] | None = None) -> int:
        """See `MemoryStore.rebuild`; `only` these spaces. Searches go on meanwhile; writes wait only for a space that
        is written to again and again."""
        left = self._build(only)
        for _ in range(ROUNDS):
            if left:
                left = self._build(left)
        with self._database.write() as connection:
            if left:
                self._build(left, prepare=words_of)
            if self._indexer.embedder_id is not None and only is None:
                self._indexer.take_over(connection)
            count: int = one(connection, "SELECT count(*) FROM search")
        self._index.forget()
        self.order()
        return count

    def _build(self, only: set[str] | None, prepare: Prepare | None = None) -> set[str]:
        """Build these spaces (or all) from what they are derived from; returns those that were written to meanwhile."""
        prepare = prepare or partial(self._indexer.prepare, patient=True)
        with self._database.read() as connection:
            versions = {
                str(space): version
                for space, version in connection.execute("SELECT space, version FROM search_versions")
            }
        documents: dict[str, list[Document]] = {space: [] for space in {*versions, *(only or ())}}
        for space, batch in self._all():
            documents.setdefault(space, []).extend(batch)
        return {
            space
            for space, found in documents.items()
            if (only is None or space in only) and not self._replace(space, found, versions.get(space, 0), prepare)
        }

    def _replace(self, space: str, documents: Sequence[Document], version: int, prepare: Prepare) -> bool:
        """Replace a space's rows; False when it was written to since `version`."""
        parts = [prepare(documents[start : start + BATCH]) for start in range(0, len(documents), BATCH)]
        with self._database.write(of=tenant_of(space)) as connection:
            if self._index.version(connection, space) != version:
                return False
            self._index.clear(connection, space)
            rows = [row for part in parts for row in self._indexer.settle(connection, part)]
            self._index.put(connection, space, rows)
        return True

    def _all(self) -> Iterator[tuple[str, list[Document]]]:
        """Everything that belongs in the index: (space, documents in order), in batches."""
        yield from self._all_records().items()
        yield from self._transcripts.all_documents()

    def _all_records(self) -> dict[str, list[Document]]:
        spaces: dict[str, list[Document]] = {}
        with self._database.read() as connection:
            for tenant, author, history in histories(connection, "true"):
                for space, document in texts_of(tenant, author, history):
                    spaces.setdefault(space, []).append(document)
        for documents in spaces.values():
            documents.sort(key=lambda document: (document.bounds.known, document.id))
        return spaces
