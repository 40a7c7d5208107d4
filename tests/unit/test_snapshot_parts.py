"""Snapshots of a long thread: each is the parts of the one before it, and what came since."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver as StockPostgresSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver as StockSaver
from langgraph.types import StateUpdate
from support.threads import echo_graph, on, said, say, stored_text

from everthread.stores import open_checkpointer
from everthread.stores.checkpoints import Saver
from everthread.stores.checkpoints.layout import BLOBS
from everthread.stores.checkpoints.parts import LARGEST, SMALLEST, divided, items_of, joined

SECRET = "SECRET-4711"


@pytest.fixture
def saver(threads_url: str) -> Iterator[Saver]:
    with open_checkpointer(threads_url) as opened:
        yield opened


def talked(saver: Saver, first: int, last: int, thread_id: str = "t") -> Any:
    """A graph of a thread that said `first` to `last`, two messages for each; every 50 updates it takes a snapshot."""
    graph = echo_graph().compile(checkpointer=saver)
    for number in range(first, last):
        graph.invoke(say(f"number {number}.", f"h{number}"), on(thread_id))
    return graph


def conversation(turns: int) -> list[str]:
    return [text for number in range(turns) for text in (f"number {number}.", f"re: number {number}.")]


def snapshots(saver: Saver, thread_id: str = "t") -> list[list[Any]]:
    """Where the parts of each snapshot of a thread are, the newest first."""
    with saver._rows() as rows:
        named = [kept.checkpoint.get(BLOBS, {}).get("messages") for kept in rows.all_kept(thread_id)]
    return [each for each in named if each is not None]


def lists(saver: Saver, thread_id: str = "t") -> list[list[AnyMessage]]:
    """Every list of at least `SMALLEST` messages that has a row of its own."""
    with saver._rows() as rows:
        return [each for each in rows.all_blobs(thread_id) if isinstance(each, list) and len(each) >= SMALLEST]


# ------------------------------------------------------------------------------------------------------------- dividing

items = st.lists(st.one_of(st.integers(0, 1), st.booleans(), st.sampled_from(["a", "b"])), max_size=80)


@given(items, st.lists(items, max_size=4))
def test_parts_are_the_whole_in_order_and_nothing_else(whole: list[Any], before: list[list[Any]]) -> None:
    parts = list(divided(whole, before))
    assert repr(joined([part for _, part in parts]).value) == repr(whole)
    assert [repr(before[at]) for at, part in parts if at is not None] == [repr(p) for at, p in parts if at is not None]


@given(st.lists(st.integers(1, 120), min_size=1, max_size=8))
def test_what_was_divided_before_is_divided_in_the_same_way(growth: list[int]) -> None:
    parts: list[list[Any]] = []
    stored = length = 0
    for more in growth:
        length += more
        found = list(divided(list(range(length)), parts))
        stored += sum(len(part) for at, part in found if at is None)
        parts = [part for _, part in found]
        assert all(SMALLEST <= len(part) <= LARGEST for part in parts[:-1])
    assert stored <= length + SMALLEST * len(growth)


def test_a_changed_item_is_a_new_part_between_old_ones() -> None:
    before = [list(range(start, start + 30)) for start in (0, 30, 60)]
    whole: list[Any] = [item for part in before for item in part]
    whole[40] = "changed"
    assert [at for at, _ in divided(whole, before)] == [0, None, 2]
    assert [at for at, _ in divided(whole[1:], before)][:2] == [None, None]


def test_equal_is_not_enough_to_be_the_same() -> None:
    ones, trues = [{"n": 1}] * 30, [{"n": True}] * 30
    assert list(divided(trues, [ones])) == [(None, trues)]
    as_user, as_model = ([kind("a", id=str(n)) for n in range(30)] for kind in (HumanMessage, AIMessage))
    assert list(divided([*as_user], [as_model])) == [(None, as_user)]


def test_what_is_short_or_no_list_is_stored_whole() -> None:
    assert [items_of(each) for each in (_DeltaSnapshot([1] * 24), _DeltaSnapshot({"a": 1}), [1] * 100, None)] == [
        None
    ] * 4
    assert items_of(_DeltaSnapshot([1] * 25)) == [1] * 25


# -------------------------------------------------------------------------------------------------------------- storing


def test_a_message_is_in_one_part_however_many_snapshots_there_are(saver: Saver) -> None:
    graph = talked(saver, 0, 130)
    assert [len(places) for places in snapshots(saver)] == [5, 4, 3, 2, 1]
    assert len({str(place) for places in snapshots(saver) for place in places}) == 5
    stored = Counter(message.id for part in lists(saver) for message in part)
    assert set(stored.values()) == {1}
    assert said(graph, "t") == conversation(130)
    assert [len(each.values["messages"]) for each in graph.get_state_history(on("t"), limit=30)][::3] == list(
        range(260, 240, -2)
    )


def test_a_change_of_an_old_message_is_stored_with_its_part_alone(saver: Saver) -> None:
    graph = talked(saver, 0, 80)
    before = graph.get_state(on("t")).config
    graph.update_state(on("t"), {"messages": [HumanMessage("changed", id="h3")]}, as_node="echo")
    talked(saver, 80, 105)
    newest, *older = snapshots(saver)
    assert [place in older[0] for place in newest] == [False, True, True, False]
    assert [each.values["messages"][6].text for each in (graph.get_state(on("t")), graph.get_state(before))] == [
        "changed",
        "number 3.",
    ]


def test_a_fork_shares_the_parts_of_what_it_has_in_common(saver: Saver) -> None:
    graph = talked(saver, 0, 60)
    middle = next(each for each in graph.get_state_history(on("t")) if len(each.values["messages"]) == 110)
    fork = graph.update_state(middle.config, {"messages": [HumanMessage("or else", id="x")]}, as_node="echo")
    assert [message.text for message in graph.get_state(fork).values["messages"]][-2:] == ["re: number 54.", "or else"]
    newest, *older = snapshots(saver)
    assert [place in older[0] for place in newest] == [True, True, False]


def test_two_checkpointers_go_on_with_each_others_parts(threads_url: str, saver: Saver) -> None:
    with open_checkpointer(threads_url) as other:
        for first in range(0, 120, 20):
            talked((saver, other)[first // 20 % 2], first, first + 20)
    assert said(talked(saver, 120, 120), "t") == [
        text for n in range(120) for text in (f"number {n}.", f"re: number {n}.")
    ]
    assert set(Counter(message.id for part in lists(saver) for message in part).values()) == {1}


def test_a_large_update_is_divided(saver: Saver) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    many = [HumanMessage(f"number {n}.", id=str(n)) for n in range(3 * LARGEST)]
    graph.bulk_update_state(on("t"), [[StateUpdate({"messages": [each]}, "echo")] for each in many])
    graph.update_state(on("t"), {"messages": many[:1]}, as_node="echo")
    assert graph.get_state(on("t")).values["messages"] == many
    assert max(len(part) for part in lists(saver)) <= LARGEST


# ----------------------------------------------------------------------------------------------- erasing and retention


def test_erased_words_are_in_no_part(saver: Saver) -> None:
    graph = talked(saver, 0, 40)
    graph.invoke(say(f"my code is {SECRET}", "secret"), on("t"))
    talked(saver, 41, 130)
    old = next(each for each in graph.get_state_history(on("t")) if len(each.values["messages"]) == 150)
    places = snapshots(saver)
    assert saver.redact("t", ["secret"], [SECRET]) > 0
    assert SECRET not in stored_text(saver)
    assert not saver.holds([SECRET], ["t"])
    assert snapshots(saver) == places
    for state in (graph.get_state(on("t")), graph.get_state(old.config)):
        assert [message.text for message in state.values["messages"][80:82]] == ["[erased]", "[erased]"]
    talked(saver, 130, 160)
    assert SECRET not in stored_text(saver)
    assert len(said(graph, "t")) == 320


def test_pruning_keeps_the_parts_that_the_head_needs(saver: Saver) -> None:
    graph = talked(saver, 0, 80)
    graph.update_state(on("t"), {"messages": [HumanMessage("changed", id="h3")]}, as_node="echo")
    talked(saver, 80, 110)
    before, stored = said(graph, "t"), len(lists(saver))
    saver.prune(["t"])
    assert said(graph, "t") == before
    assert len(lists(saver)) == stored - 1  # the part with the message as it was
    assert saver.doctor()[0].ok
    talked(saver, 110, 140)
    assert said(graph, "t")[: len(before)] == before


def test_a_part_that_is_gone_is_named(saver: Saver) -> None:
    talked(saver, 0, 80)
    with saver._rows("t") as rows:
        kept = next(each for each in rows.all_kept("t") if "messages" in each.checkpoint.get(BLOBS, {}))
        places = kept.checkpoint[BLOBS]["messages"]
        lost = [-1, *places[1:]] if isinstance(places[0], int) else ["lost", *places[1:]]
        rows.put_back(kept._replace(checkpoint={**kept.checkpoint, BLOBS: {"messages": lost}}))
    assert "values of 1 of 1 threads are gone: t" in saver.doctor()[0].detail


def test_a_copy_has_parts_of_its_own(saver: Saver) -> None:
    graph = talked(saver, 0, 80)
    saver.copy_thread("t", "u")
    saver.delete_thread("t")
    assert said(graph, "u") == conversation(80)
    talked(saver, 80, 110, "u")
    assert [len(places) for places in snapshots(saver, "u")] == [4, 3, 2, 1]


# ----------------------------------------------------------------------------------------------------- files of before


def test_a_thread_whose_snapshots_are_whole_goes_on_with_them_as_parts(saver: Saver) -> None:
    """As they were stored before there were parts."""
    graph = talked(saver, 0, 60)
    with saver._rows("t") as rows:
        for kept in rows.all_kept("t"):
            if "messages" in kept.checkpoint.get(BLOBS, {}):
                found = rows.find(*kept.key)
                assert found is not None
                whole = found.checkpoint["channel_values"]["messages"]
                values = {**kept.checkpoint["channel_values"], "messages": whole}
                rows.put_back(kept._replace(checkpoint={**kept.checkpoint, "channel_values": values, BLOBS: {}}))
        rows.sweep("t")
    assert lists(saver) == []
    talked(saver, 60, 110)
    assert said(graph, "t") == conversation(110)
    assert set(Counter(message.id for part in lists(saver) for message in part).values()) == {1}


def test_a_long_thread_of_the_stock_saver_goes_on(threads_url: str, tmp_path: Path) -> None:
    if threads_url.startswith("sqlite"):
        connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
        talked(StockSaver(connection), 0, 60)  # type: ignore[arg-type]
        connection.close()
    else:
        with psycopg.connect(threads_url, autocommit=True, row_factory=psycopg.rows.dict_row) as server:
            stock = StockPostgresSaver(server)
            stock.setup()
            talked(stock, 0, 60)  # type: ignore[arg-type]
    with open_checkpointer(threads_url) as saver:
        graph = talked(saver, 60, 140)
        assert said(graph, "t") == conversation(140)
        assert saver.doctor()[0].ok
