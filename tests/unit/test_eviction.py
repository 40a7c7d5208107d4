"""Tool results that are too long for the thread."""

import json
from collections.abc import Iterator

import pytest
from langchain_core.messages import ToolMessage
from support.full_disk import fill_disk

from everthread import Identity
from everthread.nodes.eviction import EVICTED, Eviction, evict, is_evicted, pointed, whole
from everthread.stores import MemoryStore, open_store

LONG = "".join(f"line {n}: 数据 {n * n}\n" for n in range(3_000))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened


def result(text: str, name: str = "shell") -> ToolMessage:
    return ToolMessage(text, tool_call_id="call_1", name=name, id="m1", additional_kwargs={"source": "web"})


def test_a_long_result_leaves_head_tail_and_the_path_to_the_whole(store: MemoryStore, ana: Identity) -> None:
    eviction = evict(result(LONG), ana, store, thread_id="t1")
    assert eviction.artifact is not None
    kept = store.artifacts.get(ana, eviction.artifact)
    assert kept is not None
    assert (kept.kind, kept.text, kept.thread_id) == ("tool_result", LONG, "t1")
    assert eviction.message == ToolMessage(
        f"{LONG[:2_000]}\n\n[{len(LONG) - 4_000} of {len(LONG)} characters left out; "
        f"the whole result is kept as {eviction.artifact}]\n\n{LONG[-2_000:]}",
        tool_call_id="call_1",
        name="shell",
        id="m1",
        additional_kwargs={"source": "web", EVICTED: {"artifact": eviction.artifact, "characters": len(LONG)}},
    )


def test_a_result_of_just_the_limit_stays(store: MemoryStore, ana: Identity) -> None:
    message = result("x" * 30_000)
    eviction = evict(message, ana, store, thread_id="t1")
    assert eviction == Eviction(message)
    assert eviction.message is message


def test_an_evicted_result_is_not_evicted_again(store: MemoryStore, ana: Identity) -> None:
    once = evict(result(LONG), ana, store, thread_id="t1").message
    assert evict(once, ana, store, thread_id="t1", limit=100) == Eviction(once)


def test_what_reads_an_evicted_text_back_is_not_evicted(store: MemoryStore, ana: Identity) -> None:
    message = result(LONG, name="artifact_read")
    assert evict(message, ana, store, thread_id="t1") == Eviction(message)


def test_a_result_that_cannot_be_kept_stays_as_it_was(store: MemoryStore, ana: Identity) -> None:
    fill_disk(store)
    message = result(LONG)
    eviction = evict(message, ana, store, thread_id="t1")
    assert eviction.message is message
    assert eviction.artifact is None
    assert "the disk is full" in eviction.failed


def test_the_whole_result_comes_back_for_the_transcript(store: MemoryStore, ana: Identity) -> None:
    message = result(LONG)
    assert whole(evict(message, ana, store, thread_id="t1").message, ana, store) == message


def test_a_result_that_was_not_evicted_is_whole(store: MemoryStore, ana: Identity) -> None:
    message = result("short")
    assert whole(message, ana, store) is message


def test_another_user_does_not_get_the_whole(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    short = evict(result(LONG), ana, store, thread_id="t1").message
    assert whole(short, ben, store) is short


def test_pictures_in_a_result_stay(store: MemoryStore, ana: Identity) -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    message = ToolMessage([{"type": "text", "text": LONG}, image], tool_call_id="call_1")
    short = evict(message, ana, store, thread_id="t1").message
    assert [part["type"] for part in short.content if isinstance(part, dict)] == ["text", "image"]
    assert len(short.text) < 5_000
    assert whole(short, ana, store) == message


def test_a_preview_is_never_the_whole(store: MemoryStore, ana: Identity) -> None:
    short = evict(result("0123456789" * 20), ana, store, thread_id="t1", limit=100).message
    assert is_evicted(short)
    assert "[100 of 200 characters left out" in short.text


def picture(characters: int) -> dict[str, str]:
    return {"type": "image", "base64": "A" * characters, "mime_type": "image/png", "caption": "the screen"}


def shot(*parts: str | dict[str, str]) -> ToolMessage:
    return ToolMessage([*parts], tool_call_id="call_1", name="screenshot", id="m1")


def test_a_picture_that_no_model_takes_is_kept_beside_the_thread(store: MemoryStore, ana: Identity) -> None:
    small, large = picture(1_000_000), picture(6_000_000)
    message = shot({"type": "text", "text": "Two screens."}, small, large)
    eviction = evict(message, ana, store, thread_id="t1")
    assert eviction.artifact is not None
    characters = len(json.dumps(large))
    word = (
        f"[image: the screen left out: its {characters} characters are more than a model takes; it is kept as "
        f"{eviction.artifact}]"
    )
    assert eviction.message.content == [{"type": "text", "text": "Two screens."}, small, {"type": "text", "text": word}]
    assert evict(eviction.message, ana, store, thread_id="t1") == Eviction(eviction.message)
    assert whole(eviction.message, ana, store) == message
    kept = store.artifacts.get(ana, eviction.artifact)
    assert kept is not None and (kept.kind, json.loads(kept.text)) == ("original", message.content)


def test_a_picture_that_a_model_takes_stays(store: MemoryStore, ana: Identity) -> None:
    message = shot(picture(4_000_000))
    assert evict(message, ana, store, thread_id="t1", limit=10) == Eviction(message)


def test_beside_a_picture_that_is_left_out_a_long_text_is_shortened(store: MemoryStore, ana: Identity) -> None:
    message = shot({"type": "text", "text": LONG}, picture(6_000_000))
    eviction = evict(message, ana, store, thread_id="t1")
    assert is_evicted(eviction.message) and len(str(eviction.message.content)) < 5_000
    assert whole(eviction.message, ana, store) == message


def test_a_picture_that_cannot_be_kept_stays_as_it_was(store: MemoryStore, ana: Identity) -> None:
    fill_disk(store)
    message = shot(picture(6_000_000))
    eviction = evict(message, ana, store, thread_id="t1")
    assert eviction.message is message and eviction.failed


def test_a_picture_that_the_model_has_read_is_shown_by_its_name() -> None:
    shown = pointed(shot({"type": "text", "text": "The screen:"}, picture(1_000)), "sha256:ab")
    assert shown.content == (
        "The screen:\n[image: the screen]\n[a result of 31 characters, read before; the whole is kept as sha256:ab]"
    )
