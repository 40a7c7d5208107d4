"""An embedder that is slow, fails, hangs or is another one than before: nothing waits for it and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from support.records import NOON, TopicEmbeddings, create, keep, learnt, write

from everthread import Evidence, Identity
from everthread.stores import MemoryStore
from everthread.stores.embedding import Hurried, LangchainEmbedder


class GatedEmbeddings(TopicEmbeddings):
    """Answers nothing before its gate is opened, as a provider does that hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.asked = Event(), Event()

    def _vector(self, text: str) -> list[float]:
        self.asked.set()
        self.gate.wait(60)
        return super()._vector(text)


class WatchingEmbeddings(TopicEmbeddings):
    """While it is asked, others read and write: what holds a lock meanwhile holds them up."""

    def __init__(self) -> None:
        super().__init__()
        self.others: Callable[[], object] = lambda: None
        self.held_up: list[str] = []

    def _vector(self, text: str) -> list[float]:
        other = Thread(target=self.others, daemon=True)
        other.start()
        other.join(60)
        if other.is_alive():
            self.held_up.append(text)
        return super()._vector(text)


def said(text: str, message_id: str = "m1") -> Evidence:
    return Evidence(thread_id="t1", message_id=message_id, role="user", text=text, at=NOON, source="user")


def test_others_read_and_write_while_an_embedder_hangs(reopen: Any, ana: Identity, ben: Identity) -> None:
    embeddings = GatedEmbeddings()
    store: MemoryStore = reopen(embedder=LangchainEmbedder(embeddings, dims=4))
    other: MemoryStore = reopen(embedder="none")
    (known,) = keep(other, ana, learnt("Ana rides the train"))
    writer = Thread(target=lambda: write(store, ana, create(learnt("Ana has a kitten"))))
    writer.start()
    assert embeddings.asked.wait(60)
    assert store.records(ana) == [known]
    assert [hit.record_id for hit in other.recall(ana, "train").hits] == [known.id]
    assert store.inbox.admit(ana, "t1", "m1", "hello")
    (written,) = keep(other, ben, learnt("Ben paints", owner_id="ben"))
    assert store.records(ben) == [written]
    embeddings.gate.set()
    writer.join()
    assert [record.statement for record in store.records(ana)] == ["Ana has a kitten", "Ana rides the train"]


def test_a_write_does_not_wait_for_an_embedder_that_hangs(reopen: Any, ana: Identity) -> None:
    embeddings = GatedEmbeddings()
    impatient = Hurried(LangchainEmbedder(embeddings, dims=4), 0.05, pause=0)
    store: MemoryStore = reopen(embedder=impatient)
    (kitten,) = keep(store, ana, learnt("Ana has a kitten"))
    assert store.transcripts.append(ana, [said("I paint on canvas")]) == 1
    recall = store.recall(ana, "kitten", sources={"records", "evidence"})
    assert [hit.record_id for hit in recall.hits] == [kitten.id]
    assert recall.degraded == ("semantic: TimeoutError: embedder GatedEmbeddings did not answer within 0.05 seconds",)
    assert {finding.check for finding in store.doctor() if not finding.ok} == {"vectors"}
    embeddings.gate.set()
    patient: MemoryStore = reopen(embedder=LangchainEmbedder(embeddings, dims=4))
    assert patient.jobs.drain(patient.handlers()) == 3, "of either write, and of the store that found them so"
    assert patient.recall(ana, "felines").hits[0].signals.semantic == 1.0
    assert all(finding.ok for finding in patient.doctor())


def test_an_embedder_that_hung_is_left_alone_for_a_while() -> None:
    embeddings = GatedEmbeddings()
    embedder = Hurried(LangchainEmbedder(embeddings, dims=4), 0.01)
    with pytest.raises(TimeoutError, match=r"did not answer within 0\.01 seconds"):
        embedder.embed_query("kitten")
    with pytest.raises(TimeoutError, match="hung, and is not asked for 30 seconds"):
        embedder.embed_documents(["kitten"])
    embeddings.gate.set()
    assert embeddings.documents == []


def test_no_embedder_is_asked_inside_a_transaction_or_under_a_lock(reopen: Any, ana: Identity, ben: Identity) -> None:
    embeddings = WatchingEmbeddings()
    store: MemoryStore = reopen(embedder=LangchainEmbedder(embeddings, dims=4))
    index = {"dims": 4, "embed": embeddings, "fields": ["$"]}
    items: MemoryStore = reopen(embedder="none", index=index)

    def others() -> None:
        store.inbox.admit(ben, "t2", "m", "hello")
        items.inbox.admit(ben, "t2", "m", "hello")
        store.records(ana)

    embeddings.others = others
    (kitten,) = keep(store, ana, learnt("Ana has a kitten"))
    store.transcripts.append(ana, [said("I paint on canvas")])
    store.recall(ana, "felines", sources={"records", "evidence"})
    store.recall(ana, "felines", as_of=kitten.recorded_at)
    items.put(("plain",), "k", {"text": "train"})
    items.search(("plain",), query="rail")
    store.rebuild()
    keep(reopen(embedder="none"), ana, learnt("Ana rides the train"))
    store.jobs.enqueue(ana, "embed", {})
    assert store.jobs.drain(store.handlers()) == 1
    assert all(finding.ok for finding in store.doctor())
    assert embeddings.held_up == []
    assert len(embeddings.documents) >= 6


def test_a_space_that_is_written_to_all_the_time_is_rebuilt_all_the_same(reopen: Any, ana: Identity) -> None:
    embeddings = WatchingEmbeddings()
    store: MemoryStore = reopen(embedder=LangchainEmbedder(embeddings, dims=4))
    busy: MemoryStore = reopen(embedder="none")
    keep(store, ana, learnt("Ana has a kitten"))
    embeddings.others = lambda: keep(busy, ana, learnt("Ana rides the train"))
    store.rebuild()
    assert embeddings.held_up == []
    embeddings.others = lambda: None
    store.jobs.drain(store.handlers())
    assert all(finding.ok for finding in store.doctor())


def test_a_failing_embedder_leaves_the_other_ones_vectors(reopen: Any, ana: Identity) -> None:
    first: MemoryStore = reopen(embedder=TopicEmbeddings())
    keep(first, ana, learnt("Ana has a kitten"))
    gone = Hurried(LangchainEmbedder(GatedEmbeddings(), dims=4), 0.01, pause=0)
    second: MemoryStore = reopen(embedder=gone)
    assert second.jobs.drain(second.handlers()) == 0
    assert len(second.recall(ana, "kitten").hits) == 1
    assert first.recall(ana, "felines").hits[0].signals.semantic == 1.0


class Own:
    """An embedder of somebody's own, which answers with `number` for each of `dims` places."""

    id = "own"

    def __init__(self) -> None:
        self.number, self.dims = 1.0, 4

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.full((len(texts), self.dims), self.number, dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_are_no_vectors_whoever_made_them(reopen: Any, ana: Identity, number: float) -> None:
    own = Own()
    store: MemoryStore = reopen(embedder=own)
    (kitten,) = keep(store, ana, learnt("Ana has a kitten"))
    own.number = number
    (train,) = keep(store, ana, learnt("Ana rides the train"))
    found = store.recall(ana, "kitten")
    assert [(hit.record_id, hit.signals.semantic) for hit in found.hits] == [(kitten.id, 0.0)]
    assert found.degraded == ("semantic: ModelReplyError: embedder own returned numbers that are none, or without end",)
    assert [hit.record_id for hit in store.recall(ana, "train").hits] == [train.id]
    own.number = 1.0
    assert store.jobs.drain(store.handlers()) == 1
    assert {hit.record_id for hit in store.recall(ana, "kitten").hits} == {kitten.id, train.id}


def test_a_vector_of_another_length_is_told_and_not_taken_for_a_search_by_meaning(reopen: Any, ana: Identity) -> None:
    own = Own()
    store: MemoryStore = reopen(embedder=own)
    (kitten,) = keep(store, ana, learnt("Ana has a kitten"))
    assert store.recall(ana, "kitten").degraded == ()
    own.dims = 3
    found = store.recall(ana, "kitten")
    assert [(hit.record_id, hit.signals.semantic) for hit in found.hits] == [(kitten.id, 0.0)]
    assert found.degraded == ("semantic: own answered with 3 numbers, and the index holds vectors of 4",)


def test_vectors_of_two_embedders_are_never_compared(reopen: Any, ana: Identity) -> None:
    first: MemoryStore = reopen(embedder=LangchainEmbedder(TopicEmbeddings(), name="one", dims=4))
    kitten, train = keep(first, ana, learnt("Ana has a kitten"), learnt("Ana rides the train"))
    second: MemoryStore = reopen(embedder=LangchainEmbedder(TopicEmbeddings(), name="two", dims=4))
    (cat,) = keep(second, ana, learnt("Ana has a cat"))
    signals = {hit.record_id: hit.signals.semantic for hit in second.recall(ana, "felines").hits}
    assert signals == {cat.id: 1.0}
    of_first = {hit.record_id: hit.signals.semantic for hit in first.recall(ana, "felines cat").hits}
    assert (of_first[kitten.id], of_first[cat.id]) == (1.0, 0.0)
    assert train.id not in of_first or of_first[train.id] < 0.5
