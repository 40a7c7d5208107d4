"""Parts of a thread that were read last: what is given out is nobody else's, as it is stored, and forgotten in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from support.threads import echo_graph, on, said, say

from everthread.stores import open_checkpointer
from everthread.stores.checkpoints import Saver
from everthread.stores.checkpoints.recent import SECONDS, Recent
from everthread.stores.checkpoints.serializer import CompactSerializer

SERDE = CompactSerializer()


class Reader:
    """Reads one part through a `Recent`, and counts how often it is decoded."""

    def __init__(self, *messages: BaseMessage, recent: Recent | None = None) -> None:
        self.recent, self.decoded, self.messages = recent or Recent(), 0, [*messages]
        self.kind, self.stored = SERDE.dumps_typed(self.messages)

    def read(self, place: str = "a") -> Any:
        return self.recent.read(place, self.kind, self.stored, self._decode)

    def _decode(self, kind: str, stored: bytes) -> Any:
        self.decoded += 1
        return SERDE.loads_typed((kind, stored))


def call(**arguments: Any) -> AIMessage:
    return AIMessage("", id="2", tool_calls=[{"name": "look", "args": arguments, "id": "c"}])


def test_a_part_that_nobody_has_any_more_is_not_decoded_again() -> None:
    reader = Reader(HumanMessage("hello", id="1"), call(n=1))
    for _ in range(5):
        assert reader.read() == reader.messages
    assert reader.decoded == 2  # once to give out, once to know what was given out


def test_what_somebody_has_is_given_to_nobody_else() -> None:
    reader = Reader(HumanMessage("hello", id="1"), call(n=1))
    held = [reader.read() for _ in range(6)]
    assert len({id(message) for messages in held for message in messages}) == 12
    last = held[0][1]
    del held
    assert all(message is not last for _ in range(4) for message in reader.read())


def test_the_result_of_the_last_turn_may_be_held_while_the_next_is_taken() -> None:
    reader = Reader(HumanMessage("hello", id="1"))
    held = reader.read()
    for _ in range(6):
        held = reader.read()
    assert held == reader.messages
    assert reader.decoded == 3


CHANGES: list[Any] = [
    lambda found: setattr(found[0], "content", "changed"),
    lambda found: setattr(found[0], "mood", "an attribute of its own"),
    lambda found: found[0].additional_kwargs.update(new=1),
    lambda found: found[1].tool_calls[0]["args"].update(n=2),
    lambda found: found[1].tool_calls.clear(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_one_reader_changed_is_not_seen_by_the_next(change: Any) -> None:
    reader = Reader(HumanMessage("hello", id="1"), call(n=1))
    for _ in range(4):
        change(reader.read())
        found = reader.read()
        assert found == reader.messages
        assert not any(message.model_extra for message in found)
        del found


@given(st.lists(st.tuples(st.sampled_from(CHANGES), st.booleans()), max_size=8))
def test_whatever_is_done_to_what_was_read_it_is_read_as_it_is_stored(steps: list[tuple[Any, bool]]) -> None:
    reader, kept = Reader(HumanMessage("hello", id="1"), call(n=1)), []
    for change, keeps in steps:
        found = reader.read()
        assert found == reader.messages
        if keeps:
            kept.append(found)
        else:
            change(found)
    assert all(found == reader.messages for found in kept)


def test_other_bytes_in_the_same_place_are_another_part() -> None:
    recent = Recent()
    Reader(HumanMessage("my PIN is 4711", id="1"), recent=recent).read()
    assert Reader(HumanMessage("[erased]", id="1"), recent=recent).read() == [HumanMessage("[erased]", id="1")]


def test_what_is_no_list_of_messages_is_decoded_each_time() -> None:
    recent = Recent()
    given = [[{"n": 1}] for _ in range(3)]
    found = [recent.read("a", "msgpack", b"x", lambda kind, stored: given.pop()) for _ in range(3)]
    assert found == [[{"n": 1}]] * 3


def test_what_is_too_much_or_too_old_is_forgotten() -> None:
    now = [0.0]
    recent = Recent(limit=100, clock=lambda: now[0])
    reader = Reader(HumanMessage("hello " * 10, id="1"), recent=recent)
    for place in "abcdefgh":
        reader.read(place)
    assert list(recent._parts) == list("abcdefgh")[-(100 // len(reader.stored)) :]
    now[0] = SECONDS + 1
    reader.read("z")
    assert list(recent._parts) == ["z"]
    recent.forget()
    assert not recent._parts


@pytest.fixture
def saver(threads_url: str) -> Iterator[Saver]:
    with open_checkpointer(threads_url) as opened:
        yield opened


def talked(saver: Saver, turns: int) -> Any:
    graph = echo_graph().compile(checkpointer=saver)
    for number in range(turns):
        graph.invoke(say(f"number {number}.", f"h{number}"), on("t"))
    return graph


def test_what_a_host_does_to_a_result_is_in_no_later_run(saver: Saver) -> None:
    graph = talked(saver, 40)
    for number in range(3):
        result = graph.invoke(say(f"and {number}", f"x{number}"), on("t"))
        result["messages"][0].content = "changed by the host"
        result["messages"][1].additional_kwargs["shown"] = True
        read = graph.get_state(on("t")).values["messages"]
        assert (read[0].text, read[1].additional_kwargs) == ("number 0.", {})
        read[2].content = "changed again"
    del result, read
    assert said(graph, "t")[:4] == ["number 0.", "re: number 0.", "number 1.", "re: number 1."]


def test_what_is_erased_is_forgotten(saver: Saver) -> None:
    graph = talked(saver, 40)
    for _ in range(2):
        said(graph, "t")
    assert saver._recent._parts
    saver.redact("t", ["h3"], [])
    assert not saver._recent._parts
    assert said(graph, "t")[6] == "[erased]"
    saver.delete_thread("t")
    assert not saver._recent._parts


def test_what_another_process_erased_is_not_given_out(threads_url: str, saver: Saver) -> None:
    graph = talked(saver, 40)
    for _ in range(3):
        said(graph, "t")
    with open_checkpointer(threads_url) as other:
        other.redact("t", ["h3"], [])
    assert said(graph, "t")[6] == "[erased]"
