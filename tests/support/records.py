"""Records and changes as tests write them: short where nothing depends on it, whole where it does."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

from langchain_core.embeddings import Embeddings

from everthread import Identity, Record, Scope
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Decision, Provenance

__all__ = ["NOON", "BrokenEmbeddings", "Clock", "TopicEmbeddings", "create", "keep", "learnt", "said_by", "write"]

NOON = datetime(2026, 5, 8, 12, 0, 0, 123456, tzinfo=UTC)
_keys = count()


def said_by(user: str = "ana", thread_id: str = "t1", *message_ids: str, at: datetime = NOON) -> Provenance:
    """A user's own words in a thread."""
    return Provenance(
        source="user",
        thread_id=thread_id,
        message_ids=message_ids or ("m1",),
        actor=user,
        extracted_by="test/1",
        observed_at=at,
    )


def learnt(statement: str, owner: Any = "user", owner_id: str = "ana", **fields: Any) -> Record:
    """A record that a user stated."""
    defaults: dict[str, Any] = {
        "scope": Scope(owner=owner, owner_id=owner_id),
        "provenance": said_by(),
        "write_reason": "the user said so",
        "authority": "user_explicit",
    }
    if owner == "session":
        defaults["temporal_scope"] = "session"
    if owner == "agent":
        defaults["agent_family"] = owner_id
    return Record(statement=statement, **(defaults | fields))


def create(record: Record) -> Change:
    return Change(action="create", record=record, rule="new", reason="nothing like it was known")


def write(
    store: MemoryStore, identity: Identity, *changes: Change, key: str | None = None, thread_id: str | None = None
) -> tuple[Decision, ...]:
    """Commit under a fresh key and return the decisions."""
    receipt = store.commit(identity, changes, key=key or f"key-{next(_keys)}", thread_id=thread_id)
    return receipt.decisions


def keep(store: MemoryStore, identity: Identity, *records: Record, thread_id: str | None = None) -> list[Record]:
    """Create records and return them as they were stored."""
    write(store, identity, *map(create, records), thread_id=thread_id)
    return [record for record in map(lambda r: store.record(identity, r.id), records) if record is not None]


class TopicEmbeddings(Embeddings):
    """Meaning by topic: texts that name a word of the same topic are alike, all others are not. Remembers its calls."""

    TOPICS = (("cat", "kitten", "feline"), ("train", "rail", "locomotive"), ("paint", "canvas"))

    def __init__(self) -> None:
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.extend(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        return [0.1 + any(word in text.lower() for word in topic) for topic in self.TOPICS] + [0.1]


class BrokenEmbeddings(TopicEmbeddings):
    """Fails while `broken` is set, as a provider does that cannot be reached."""

    def __init__(self, *, broken: bool = True) -> None:
        super().__init__()
        self.broken = broken

    def _vector(self, text: str) -> list[float]:
        if self.broken:
            raise ConnectionError("the provider cannot be reached")
        return super()._vector(text)


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now
