"""What every backend's artifacts promise."""

from hashlib import sha256
from typing import Any, cast

import pytest

from everthread import Identity
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import Artifact
from everthread.stores.record import now_utc


def test_an_artifact_is_named_by_its_text(store: MemoryStore, ana: Identity) -> None:
    before = now_utc()
    id = store.artifacts.put(ana, "summary", "They chose PostgreSQL.", thread_id="t1")
    assert id == "sha256:" + sha256(b"They chose PostgreSQL.").hexdigest()
    found = store.artifacts.get(ana, id)
    assert found is not None
    assert before <= found.created_at <= now_utc()
    assert found == Artifact(
        id=id, kind="summary", text="They chose PostgreSQL.", thread_id="t1", created_at=found.created_at
    )


def test_the_same_text_is_kept_once(store: MemoryStore, ana: Identity) -> None:
    id = store.artifacts.put(ana, "instructions", "Be brief.", thread_id="t1")
    first = store.artifacts.get(ana, id)
    assert store.artifacts.put(ana, "tool_result", "Be brief.", thread_id="t1") == id
    assert store.artifacts.get(ana, id) == first


@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800", "\ud83d\ude00", "emoji 🙂 שלום 你好"])
def test_no_character_of_an_artifact_is_lost(store: MemoryStore, ana: Identity, text: str) -> None:
    found = store.artifacts.get(ana, store.artifacts.put(ana, "original", text))
    assert found is not None
    assert (found.text, found.thread_id) == (text, None)


def test_an_artifact_of_ten_megabytes_is_kept_whole(store: MemoryStore, ana: Identity) -> None:
    text = "0123456789" * 1_000_000
    found = store.artifacts.get(ana, store.artifacts.put(ana, "tool_result", text))
    assert found is not None
    assert found.text == text


def test_only_its_user_sees_an_artifact(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    id = store.artifacts.put(ana, "summary", "private", thread_id="t1")
    assert [store.artifacts.get(other, id) for other in (ben, stranger)] == [None, None]
    assert [store.artifacts.erase(other, [id]) for other in (ben, stranger)] == [0, 0]
    for refused in (
        lambda: store.artifacts.put(ben, "summary", "private", thread_id="t1"),
        lambda: store.artifacts.of_thread(ben, "t1"),
    ):
        with pytest.raises(AccessDenied):
            refused()
    assert store.artifacts.put(ben, "summary", "private") == id
    found = [store.artifacts.get(owner, id) for owner in (ana, ben)]
    assert [artifact and artifact.thread_id for artifact in found] == ["t1", None]


def test_an_artifact_that_does_not_exist_is_none(store: MemoryStore, ana: Identity) -> None:
    assert store.artifacts.get(ana, "sha256:00") is None


def test_a_threads_artifacts_are_listed_the_oldest_first(store: MemoryStore, ana: Identity) -> None:
    ids = [store.artifacts.put(ana, "summary", text, thread_id="t1") for text in ("one", "two", "three")]
    store.artifacts.put(ana, "summary", "elsewhere", thread_id="t2")
    assert [artifact.id for artifact in store.artifacts.of_thread(ana, "t1")] == ids
    assert store.artifacts.of_thread(ana, "t9") == []


def test_an_artifact_goes_with_the_last_thread_that_holds_it(store: MemoryStore, ana: Identity) -> None:
    shared = store.artifacts.put(ana, "instructions", "Be brief.", thread_id="t1")
    store.artifacts.put(ana, "instructions", "Be brief.", thread_id="t2")
    own = store.artifacts.put(ana, "summary", "of t1 alone", thread_id="t1")
    free = store.artifacts.put(ana, "original", "of no thread")

    store.transcripts.erase(ana, "t1", reason="test")
    kept = store.artifacts.get(ana, shared)
    assert kept is not None
    assert kept.thread_id == "t2"
    assert store.artifacts.get(ana, own) is None

    store.transcripts.erase(ana, "t2", reason="test")
    assert store.artifacts.get(ana, shared) is None
    assert store.artifacts.get(ana, free) is not None


def test_an_artifact_is_erased_by_id(store: MemoryStore, ana: Identity) -> None:
    gone = store.artifacts.put(ana, "summary", "mentions Brno", thread_id="t1")
    kept = store.artifacts.put(ana, "summary", "mentions nothing", thread_id="t1")
    assert store.artifacts.erase(ana, [gone, gone, "sha256:00"]) == 1
    assert [artifact.id for artifact in store.artifacts.of_thread(ana, "t1")] == [kept]
    assert store.artifacts.put(ana, "summary", "mentions Brno", thread_id="t1") == gone


def test_an_artifact_of_another_kind_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="kind: must be 'summary', 'coverage'"):
        store.artifacts.put(ana, cast(Any, "poem"), "Roses are red")


def test_a_threads_artifacts_are_listed_by_kind(store: MemoryStore, ana: Identity) -> None:
    ids = [
        store.artifacts.put(ana, kind, f"{kind} {number}", thread_id="t1")
        for number in range(2)
        for kind in ("summary", "coverage", "tool_result")
    ]
    found = store.artifacts.of_thread(ana, "t1", kinds=("summary", "coverage"))
    assert [each.id for each in found] == [ids[0], ids[1], ids[3], ids[4]]
    assert store.artifacts.of_thread(ana, "t1", kinds=()) == []
