"""What the tests of plain items stand on: a table of vectors, a clock to turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from langchain_core.embeddings import Embeddings

__all__ = ["Clock", "TableEmbeddings"]


class TableEmbeddings(Embeddings):
    """Looks vectors up, and remembers what it was asked; a text that is not in the table is a KeyError."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.extend(texts)
        return [list(self.vectors[text]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return list(self.vectors[text])


class Clock:
    """A time that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)
