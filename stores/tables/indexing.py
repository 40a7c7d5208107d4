"""Documents become search rows here: terms always, vectors when the embedder answers and is the index's own.

Each row says whose vectors it has. With another embedder the index works on keywords at once, and the `embed` job gives
each row the new vectors, in batches: what it has done stays done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.stores.database import Connection, Database, one
from everthread.stores.embedding import Embedder, StaticEmbedder, Tokens, checked_vector, checked_vectors, hurried, unit
from everthread.stores.encoding import Document, encode, encode_all, pieces
from everthread.stores.identity import Identity
from everthread.stores.tables.jobs import enqueue_job
from everthread.stores.tables.search import SearchRow

__all__ = ["Indexer", "Prepared", "QueryVector", "order_vectors", "words_of"]

PATIENCE = 5.0
"""Seconds that a turn waits for an embedder. What it has not embedded by then is found by keywords until a job has."""

ORDERED = """
SELECT 1 FROM jobs
WHERE kind = 'embed' AND status = 'ready' AND json_extract(payload, '$.space') IS NOT DISTINCT FROM ?
"""
HOLDER = "SELECT value FROM meta WHERE name = 'embedder'"


class Prepared(NamedTuple):
    """Documents on their way into the index, embedded before the transaction that writes them."""

    rows: list[SearchRow]
    """One a document, in order; `Indexer.settle` numbers them by their embedder."""
    dims: int | None
    """Length of their vectors; None when they have none."""
    failure: str | None
    """Why there are no vectors, when the embedder was asked and failed."""


class QueryVector(NamedTuple):
    """A query's vector, or why there is none."""

    vector: NDArray[np.float32] | None
    degraded: str | None
    """Set when vectors were to be had and failed."""
    tokens: Tokens | None = None
    """What it is the sum of, when the embedder can say."""


class Indexer:
    """Encodes documents for the search index of one database."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._embedder = embedder
        self._hurried = hurried(embedder, PATIENCE) if embedder else None
        self._lengths: set[int] = set()

    @property
    def embedder_id(self) -> str | None:
        """The embedder's id; None when the store was opened without vectors."""
        return self._embedder.id if self._embedder else None

    def owns(self, connection: Connection) -> bool:
        """Whether the vectors in the index are (or will be) this embedder's."""
        return self._embedder is not None and self.holder(connection) in (None, self._embedder.id)

    def holder(self, connection: Connection) -> str | None:
        """The id of the embedder whose vectors the index holds; None when it has none yet."""
        holder: str | None = one(connection, HOLDER)
        return holder

    def take_over(self, connection: Connection) -> None:
        """Note that the index now holds this embedder's vectors and no others."""
        connection.keep("embedder", str(self.embedder_id))

    def prepare(self, documents: Sequence[Document], *, patient: bool = False) -> Prepared:
        """Embed and encode. Call it outside of every transaction: an embedder may be slow, or a network away.

        `patient` waits for the embedder as long as it takes, as a job may; a turn waits for `PATIENCE` and writes
        without vectors then.
        """
        embedder = self._embedder if patient else self._hurried
        if not documents or embedder is None:
            return words_of(documents)
        texts = [pieces(document) for document in documents]
        try:
            vectors = embedder.embed_documents([text for parts in texts for text in parts])
            if not isinstance(embedder, StaticEmbedder):
                vectors = checked_vectors(vectors, sum(map(len, texts)), embedder.id)
        # Any provider's client may raise anything. The write goes on; the failure is a job and is seen in `doctor`.
        except Exception as error:
            return words_of(documents, failure=_named(error))
        blobs = encode_all(documents, texts, vectors)
        return Prepared([_row(*each) for each in zip(documents, blobs, strict=True)], vectors.shape[-1], None)

    def settle(self, connection: Connection, prepared: Prepared) -> list[SearchRow]:
        """The rows to write in this transaction. Claims the index for this embedder when it holds no vectors yet."""
        if prepared.dims is None:
            return prepared.rows
        if self.holder(connection) is None:
            self.take_over(connection)
        number = self._number(connection, prepared.dims)
        return [row._replace(embedder=number) for row in prepared.rows]

    def _number(self, connection: Connection, dims: int) -> int:
        """This embedder's number in the index, given at first use."""
        who = (self.embedder_id, dims)
        connection.execute("INSERT INTO embedders (id, dims) VALUES (?, ?) ON CONFLICT DO NOTHING", who)
        return int(one(connection, "SELECT number FROM embedders WHERE id = ? AND dims = ?", *who))

    def query(self, text: str) -> QueryVector:
        """The query's vector. Call it outside of every transaction."""
        if self._hurried is None:
            return QueryVector(None, None)
        try:
            if isinstance(self._hurried, StaticEmbedder):
                tokens = self._hurried.embed_tokens(text)
                return QueryVector(unit(tokens.rows.sum(axis=0)), None, tokens)
            vector = checked_vector(self._hurried.embed_query(text), self._hurried.id)
        # As above: recall fails open, keywords answer, and the caller is told.
        except Exception as error:
            return QueryVector(None, f"semantic: {_named(error)}")
        return QueryVector(vector, self._unlike(len(vector)))

    def _unlike(self, dims: int) -> str | None:
        """What is said when the index has vectors of this embedder, and none of so many numbers: nothing is compared
        then, which must not pass for a search by meaning."""
        if dims in self._lengths:
            return None
        with self._database.read() as connection:
            found = connection.execute("SELECT dims FROM embedders WHERE id = ?", (self.embedder_id,))
            self._lengths |= {int(known) for (known,) in found}
        if not self._lengths or dims in self._lengths:
            return None
        there = ", ".join(map(str, sorted(self._lengths)))
        return f"semantic: {self.embedder_id} answered with {dims} numbers, and the index holds vectors of {there}"

    def doubt(self, connection: Connection) -> Callable[[], str | None]:
        """Ask whether a query's vector says less than it should. Calling what is returned reads the answer, inside the
        same transaction: why, when the index is still another embedder's; None when it is not."""
        asked = connection.execute(HOLDER)

        def answer() -> str | None:
            ((holder,),) = asked.fetchall() or [(None,)]
            if self._embedder is None or holder in (None, self.embedder_id):
                return None
            return f"semantic: the index holds vectors of {holder}; a job embeds them anew"

        return answer


def words_of(documents: Sequence[Document], *, failure: str | None = None) -> Prepared:
    """Documents as they are searched without vectors."""
    return Prepared([_row(document, encode(document, None)) for document in documents], None, failure)


def order_vectors(connection: Connection, identity: Identity, space: str | None) -> None:
    """Leave a job that embeds what has no vectors in a space, or anywhere for None; one waiting job is enough."""
    if one(connection, ORDERED, space) is None:
        enqueue_job(connection, identity, "embed", {} if space is None else {"space": space})


def _row(document: Document, blob: bytes) -> SearchRow:
    return SearchRow(document.id, document.group, document.speaker, blob, bounds=document.bounds)


def _named(error: Exception) -> str:
    """The kind of an error, and the first line of what it says, cut: it may quote the text that was sent."""
    first = str(error).strip().split("\n", 1)[0][:200]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
