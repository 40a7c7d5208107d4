"""The channel of a thread's messages holds what LangGraph's reducer would make of every update."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from langgraph.types import Overwrite

from everthread.nodes.thread import ThreadChannel

ids = st.sampled_from(["1", "2", "3", "4", "5", "6", "7", "8"])
messages = st.one_of(
    st.builds(lambda id, text: HumanMessage(text, id=id), ids, st.sampled_from("ab")),
    st.builds(lambda id: AIMessage("", id=id), st.one_of(ids, st.none())),
    st.builds(lambda id: RemoveMessage(id=id), st.one_of(ids, st.just(REMOVE_ALL_MESSAGES))),
    st.just({"role": "user", "content": "as plain data"}),
)
writes = st.one_of(messages, st.lists(messages, max_size=3), st.builds(Overwrite, st.lists(ids.map(HumanMessage))))
steps = st.lists(st.tuples(st.lists(writes, max_size=2), st.booleans()), max_size=8)


def told(channel: DeltaChannel[Any]) -> list[tuple[str, str | None, str]]:
    return [(each.type, each.id, each.text) for each in channel.get()]


@given(steps)
def test_it_holds_what_a_delta_channel_holds(steps: list[tuple[list[Any], bool]]) -> None:
    ours: Any = ThreadChannel(_messages_delta_reducer, list, snapshot_frequency=50)
    reducer: Any = _messages_delta_reducer
    plain: Any = DeltaChannel(reducer, list, snapshot_frequency=50)
    ours, plain = ours.from_checkpoint(None), plain.from_checkpoint(None)
    for values, copied in steps:
        if sum(isinstance(value, Overwrite) for value in values) > 1:
            continue
        if copied:  # what is done to a copy is seen in no other
            ours.copy().update([[HumanMessage("of a copy", id="9")]])
            ours, plain = ours.copy(), plain.copy()
        assert ours.update(values) == plain.update(values)
        assert told(ours) == told(plain)
    written = [("task", "messages", value) for values, _ in steps for value in values]
    ours.replay_writes(written)
    plain.replay_writes(written)
    assert told(ours) == told(plain)


def test_a_thread_that_was_begun_anew_knows_what_it_has() -> None:
    channel: Any = ThreadChannel(_messages_delta_reducer, list).from_checkpoint(None)
    channel.update([[HumanMessage("a", id="1")]])
    channel.update([[RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("b", id="2")]])
    channel.update([[HumanMessage("B", id="2")]])
    assert told(channel) == [("human", "2", "B")]


def test_a_step_in_which_nothing_was_said_costs_no_look_at_the_thread() -> None:
    channel: Any = ThreadChannel(_messages_delta_reducer, list).from_checkpoint(None)
    channel.update([[HumanMessage("a", id="1")]])
    known = channel._ids
    assert not channel.update([])
    assert channel._ids is known
    assert known == {"1"}


def test_a_list_that_a_node_changed_in_place_is_looked_at_again() -> None:
    channel: Any = ThreadChannel(_messages_delta_reducer, list).from_checkpoint(None)
    channel.update([[HumanMessage("a", id="1")]])
    channel.get().append(HumanMessage("b", id="2"))
    channel.update([[HumanMessage("B", id="2")]])
    assert told(channel) == [("human", "1", "a"), ("human", "2", "B")]


def test_each_update_is_a_new_list() -> None:
    channel: Any = ThreadChannel(_messages_delta_reducer, list).from_checkpoint(None)
    channel.update([[HumanMessage("a", id="1")]])
    before = channel.get()
    channel.update([[HumanMessage("b", id="2")]])
    assert (len(before), len(channel.get())) == (1, 2)
