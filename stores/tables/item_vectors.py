"""Vectors of plain items: which texts are embedded, by what, and how a query scores against them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path
from numpy.typing import NDArray

from everthread.errors import UsageError
from everthread.stores.item_ops import Batch, Place

__all__ = ["Embedded", "IndexedText", "ItemVectors", "VectorIndexConfig"]

Floats = NDArray[np.float32]
Distance = Literal["cosine", "l2", "inner_product"]


class VectorIndexConfig(IndexConfig, total=False):
    """LangGraph's index config, with what its persistent stores take besides."""

    distance_type: Distance
    """How near two vectors are; `cosine` when it is not given."""
    text_fields: list[str] | str | None
    """Another name of `fields`, which its SqliteStore reads."""


class IndexedText(NamedTuple):
    """One text of an item that gets a vector."""

    field: str
    """The configured path that found it."""
    part: int
    """Its place among the texts of that path."""
    text: str
    """What the embedder sees."""


class Embedded(NamedTuple):
    """The vectors of one batch, made before its transaction begins."""

    texts: dict[Place, list[IndexedText]]
    """What is embedded of each item."""
    documents: dict[str, bytes]
    """By text, as stored."""
    queries: dict[str, Floats]
    """By query."""

    def rows(self, place: Place, item_id: int) -> list[tuple[int, str, int, bytes]]:
        """The rows of `item_vectors` for the item at this place."""
        return [(item_id, found.field, found.part, self.documents[found.text]) for found in self.texts[place]]


class Wanted(NamedTuple):
    """What one batch needs to have embedded, each text once."""

    texts: dict[Place, list[IndexedText]]
    documents: list[str]
    queries: list[str]


class ItemVectors:
    """An index config at work. Raises UsageError when the config is incomplete or names an unknown distance."""

    def __init__(self, config: IndexConfig) -> None:
        self.dims = _dims(config)
        self.fields = _fields(config)
        self.distance = _distance(config)
        if config.get("embed") is None:
            raise UsageError("index.embed: missing; give an Embeddings, a function, or 'provider:model'")
        self.embeddings = ensure_embeddings(config["embed"])

    @property
    def size(self) -> int:
        """Bytes of one stored vector. Rows of another size came from another embedder and are not compared."""
        return 4 * self.dims

    def texts(self, op: PutOp) -> list[IndexedText]:
        """What of this item is embedded: the configured fields, those that the operation names, or nothing."""
        if op.value is None or op.index is False:
            return []
        paths = self.fields if op.index is None else op.index
        return [
            IndexedText(path, part, text)
            for path in dict.fromkeys(paths)
            for part, text in enumerate(get_text_at_path(op.value, path))
            if text.strip()
        ]

    def embed(self, batch: Batch) -> Embedded:
        """Embed the documents in one call and each query by itself. Whatever the embedder raises passes through."""
        wanted = self._wanted(batch)
        vectors = self.embeddings.embed_documents(wanted.documents) if wanted.documents else []
        return self._embedded(wanted, vectors, [self.embeddings.embed_query(query) for query in wanted.queries])

    async def aembed(self, batch: Batch) -> Embedded:
        """`embed`, by the embedder's own asynchronous methods."""
        wanted = self._wanted(batch)
        vectors = await self.embeddings.aembed_documents(wanted.documents) if wanted.documents else []
        return self._embedded(wanted, vectors, [await self.embeddings.aembed_query(query) for query in wanted.queries])

    def _wanted(self, batch: Batch) -> Wanted:
        texts = {place: self.texts(op) for place, op in batch.puts.items()}
        documents = dict.fromkeys(found.text for listed in texts.values() for found in listed)
        return Wanted(texts, list(documents), list(dict.fromkeys(batch.queries)))

    def _embedded(self, wanted: Wanted, vectors: list[list[float]], queries: list[list[float]]) -> Embedded:
        documents = (vector.tobytes() for vector in self._checked(wanted.documents, vectors))
        return Embedded(
            wanted.texts,
            dict(zip(wanted.documents, documents, strict=True)),
            dict(zip(wanted.queries, self._checked(wanted.queries, queries), strict=True)),
        )

    def _checked(self, texts: list[str], vectors: list[list[float]]) -> list[Floats]:
        if len(vectors) != len(texts):
            raise UsageError(
                f"index.embed: returned {len(vectors)} vectors for {len(texts)} texts; return one for each"
            )
        return [self._vector(vector) for vector in vectors]

    def _vector(self, numbers: list[float]) -> Floats:
        if len(numbers) != self.dims:
            raise UsageError(
                f"index.dims: is {self.dims}, but the embedder returns {len(numbers)} numbers; set dims={len(numbers)}"
            )
        vector = np.asarray(numbers, dtype="<f4")
        if not np.isfinite(vector).all():
            raise UsageError("index.embed: returned a vector with numbers that are not finite")
        return vector

    def scores(self, query: Floats, stored: list[bytes]) -> list[float]:
        """One score for each stored vector, higher is nearer: cosine, minus the L2 distance, or inner product."""
        vectors = np.frombuffer(b"".join(stored), dtype="<f4").reshape(len(stored), self.dims).astype(np.float64)
        if self.distance == "l2":
            return cast(list[float], (-np.linalg.norm(vectors - query, axis=1)).tolist())
        products = vectors @ query
        if self.distance == "cosine":
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
            # A vector without length has no direction: it is like nothing, rather than not a number.
            products = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return cast(list[float], products.tolist())


def _dims(config: IndexConfig) -> int:
    dims: Any = config.get("dims")
    if not isinstance(dims, int) or dims < 1:
        raise UsageError(f"index.dims: must be the number of dimensions of the embedder, not {dims!r}")
    return dims


def _fields(config: IndexConfig) -> list[str]:
    """The paths to embed; the whole value when none is configured."""
    fields = config.get("fields") or cast(VectorIndexConfig, config).get("text_fields") or ["$"]
    return [fields] if isinstance(fields, str) else list(fields)


def _distance(config: IndexConfig) -> Distance:
    distance = cast(VectorIndexConfig, config).get("distance_type", "cosine")
    if distance not in get_args(Distance):
        raise UsageError(f"index.distance_type: unknown {distance!r}; use one of {', '.join(get_args(Distance))}")
    return distance
