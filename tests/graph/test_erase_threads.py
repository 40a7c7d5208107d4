"""Erasing in both files: what a real checkpointer holds goes, is counted before, and is looked at afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from support.records import keep, learnt, said_by
from support.threads import echo_graph, on, said, say, stored_text, words_in_files

from everthread import Evidence, Identity, Scope
from everthread.graphs import create_memory_agent
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.checkpoints import Saver
from everthread.stores.identity import Memory, MemoryContext
from everthread.stores.record import Selection, now_utc

SECRET = 'Ana keeps the Xylophon-4711 under the "blue" carpet'
ALL_OF_ANA = Selection(scope=Scope(owner="user", owner_id="ana"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(tmp_path, embedder="none") as opened:
        yield opened


@pytest.fixture
def saver(threads_url: str) -> Iterator[Saver]:
    with open_checkpointer(threads_url) as opened:
        yield opened


def talk(graph: Any, store: MemoryStore, identity: Identity, thread_id: str, *texts: str) -> None:
    """Turns of a graph of the host's own, and the transcript of what the user said."""
    for n, text in enumerate(texts):
        message_id = f"{thread_id}-{n}"
        graph.invoke(say(text, message_id), on(thread_id), context=identity)
        evidence = Evidence(
            thread_id=thread_id, message_id=message_id, role="user", text=text, at=now_utc(), source="user"
        )
        store.transcripts.append(identity, [evidence])


def test_threads_of_an_erased_user_are_gone_and_others_stay(
    store: MemoryStore, saver: Saver, ana: Identity, ben: Identity, tmp_path: Path
) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    talk(graph, store, ana, "a1", "hello", SECRET)
    talk(graph, store, ana, "a2", "What about the Xylophon-4711?")
    talk(graph, store, ben, "b1", "hi")
    keep(store, ana, learnt(SECRET, provenance=said_by("ana", "a1", "a1-1")))
    dry = store.erase(ana, ALL_OF_ANA, reason="law", with_source=True, threads=saver, dry_run=True)
    assert said(graph, "a2") == ["What about the Xylophon-4711?", "re: What about the Xylophon-4711?"]
    erasure = store.erase(ana, ALL_OF_ANA, reason="law", with_source=True, threads=saver)
    assert (erasure.erased, erasure.verified, erasure.remains) == (dry.erased, True, ())
    assert erasure.erased["threads"] == 2
    assert [said(graph, thread_id) for thread_id in ("a1", "a2", "b1")] == [[], [], ["hi", "re: hi"]]
    assert "Xylophon" not in stored_text(saver)
    assert b"Xylophon" not in words_in_files(tmp_path)


def test_a_message_is_rewritten_in_each_thread_that_repeats_it(
    store: MemoryStore, saver: Saver, ana: Identity, tmp_path: Path
) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    talk(graph, store, ana, "a1", "hello", SECRET)
    # this thread's transcript does not have it: memory was off
    graph.invoke(say(f"I said: {SECRET}"), on("a2"), context=ana)
    store.transcripts.bind(ana, "a2")
    assert saver.holds([SECRET], ["a1", "a2", "a3"]) == ["a1", "a2"]
    one = Selection(thread_id="a1", message_ids=("a1-1",))
    dry = store.erase(ana, one, reason="asked", with_source=True, threads=saver, dry_run=True)
    assert saver.holds([SECRET], ["a1", "a2"]) == ["a1", "a2"]
    erasure = store.erase(ana, one, reason="asked", with_source=True, threads=saver)
    assert (erasure.erased, erasure.verified) == (dry.erased, True)
    assert saver.holds([SECRET], ["a1", "a2"]) == []
    assert said(graph, "a1") == ["hello", "re: hello", "[erased]", "[erased]"]
    assert "Xylophon" not in stored_text(saver)
    assert b"Xylophon" not in words_in_files(tmp_path)


def test_checkpoints_are_looked_at_even_when_only_the_record_goes(
    store: MemoryStore, saver: Saver, ana: Identity
) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say(SECRET), on("a1"), context=ana)
    store.transcripts.bind(ana, "a1")
    (record,) = keep(store, ana, learnt(SECRET, provenance=said_by("ana", "a1", "a1-0")))
    erasure = store.erase(ana, Selection(record_ids=(record.id,)), reason="asked", threads=saver)
    assert erasure.verified is False
    assert erasure.remains[-1] == "the same words in checkpoints of thread a1: with_source=True erases them too"


class Shift(CipherProtocol):
    """Hides words well enough for a test."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "shift", bytes((each + 1) % 256 for each in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return bytes((each - 1) % 256 for each in ciphertext)


def test_encrypted_checkpoints_hide_words_from_the_file_and_not_from_an_erasure(
    store: MemoryStore, ana: Identity, tmp_path: Path
) -> None:
    with open_checkpointer(str(tmp_path), serde=EncryptedSerializer(Shift())) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say(SECRET), on("a1"), context=ana)
        store.transcripts.bind(ana, "a1")
        assert b"Xylophon" not in words_in_files(tmp_path)
        assert saver.holds([SECRET], ["a1"]) == ["a1"]
        (record,) = keep(store, ana, learnt(SECRET, provenance=said_by("ana", "a1", "a1-0")))
        only = Selection(record_ids=(record.id,))
        assert store.erase(ana, only, reason="asked", with_source=True, threads=saver).verified
        assert saver.holds([SECRET], ["a1"]) == []
        assert said(graph, "a1") == ["[erased]", "[erased]"]


@pytest.mark.parametrize("memory", ["on", "read", "off"])
def test_a_thread_that_was_selected_is_gone_whether_or_not_it_has_a_transcript(
    store: MemoryStore, saver: Saver, ana: Identity, tmp_path: Path, memory: Memory
) -> None:
    agent = create_memory_agent().compile(checkpointer=saver, store=store)
    context = MemoryContext(identity=ana, memory=memory)
    for thread in ("a", "b"):
        agent.invoke(say(f"{SECRET}, says {thread}."), on(thread), context=context)
    whole = Selection(thread_id="a")
    dry = store.erase(ana, whole, reason="asked", with_source=True, threads=saver, dry_run=True)
    erasure = store.erase(ana, whole, reason="asked", with_source=True, threads=saver)
    assert (erasure.erased, erasure.verified) == (dry.erased, True)
    assert erasure.erased["threads"] == 1
    assert saver.get_tuple(on("a")) is None
    assert saver.get_tuple(on("b")) is not None
    assert "says a" not in stored_text(saver)


def test_a_thread_that_no_run_has_bound_is_named(store: MemoryStore, saver: Saver, ana: Identity) -> None:
    echo_graph().compile(checkpointer=saver).invoke(say(SECRET), on("a"))
    erasure = store.erase(ana, Selection(thread_id="a"), reason="asked", with_source=True, threads=saver)
    assert erasure.remains == (
        "checkpoints of thread a, if there are any: no run has bound it; checkpointer.delete_thread",
    )
    assert saver.get_tuple(on("a")) is not None
