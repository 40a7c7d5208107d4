"""How threads lie in their file: values that checkpoints share, files of earlier versions, what deleting leaves."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver as StockSaver
from langgraph.constants import START
from langgraph.graph import StateGraph
from support.threads import Talk, echo_graph, noise, on, said, say, stored_text, talk_graph, words_in_files

from everthread.errors import StoreError
from everthread.stores import open_checkpointer
from everthread.stores.checkpoints import SqliteSaver
from everthread.stores.checkpoints.rows import Rows
from everthread.stores.checkpoints.serializer import DICTIONARY, CompactSerializer

SECRET = "SECRET-4711"


class EarlierSerializer(JsonPlusSerializer):
    """As files were written before there was a dictionary."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, plain = super().dumps_typed(obj)
        return (kind, plain) if len(plain) < 200 else (f"{kind}+zlib", zlib.compress(plain))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, stored = data
        packed = kind.endswith("+zlib")
        return super().loads_typed((kind.removesuffix("+zlib"), zlib.decompress(stored) if packed else stored))


@pytest.fixture(params=["a new file", "a stock saver's file"])
def saver(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SqliteSaver]:
    """A checkpointer whose tables are ours, and one whose tables LangGraph made."""
    if request.param != "a new file":
        stock = StockSaver(sqlite3.connect(tmp_path / "threads.db"))
        stock.setup()
        stock.conn.close()
    with SqliteSaver(str(tmp_path / "threads.db")) as opened:
        yield opened


def blobs(saver: SqliteSaver) -> int:
    """How many values have a row of their own."""
    return int(saver.conn.execute("SELECT count(*) FROM blobs").fetchone()[0])


def without_orphans(saver: SqliteSaver, thread_id: str = "t") -> bool:
    """Whether every value is led to."""
    before = blobs(saver)
    with saver.cursor() as cursor:
        Rows(cursor, saver.serde).sweep(thread_id)
    return blobs(saver) == before


# ------------------------------------------------------------------------------------------------------------- sharing


def test_a_value_that_no_step_changed_is_stored_once(saver: SqliteSaver) -> None:
    graph = talk_graph(steps=8).compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(noise(), id="a")], "note": noise()}, on("t"))
    # The input, the note, the messages with and without the reply; the large input and its write beside them.
    assert blobs(saver) == 4
    history = list(saver.list(on("t")))
    assert len(history) == 11
    assert {each.checkpoint["channel_values"]["note"] for each in history[:-1]} == {
        history[0].checkpoint["channel_values"]["note"]
    }
    assert [len(each.checkpoint["channel_values"].get("messages", [])) for each in history] == [2] * 9 + [1, 0]


def test_what_one_reader_does_to_a_value_is_not_seen_by_another(saver: SqliteSaver) -> None:
    talk_graph().compile(checkpointer=saver).invoke(say(noise()), on("t"))
    first, second, *_ = saver.list(on("t"))
    first.checkpoint["channel_values"]["messages"].clear()
    assert len(second.checkpoint["channel_values"]["messages"]) == 2


def test_a_fork_shares_what_it_has_in_common_and_goes_its_own_way(saver: SqliteSaver) -> None:
    graph = talk_graph().compile(checkpointer=saver)
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(noise(), id=f"m{number}")], "note": f"note {noise()}"}, on("t"))
    note = graph.get_state(on("t")).values["note"]
    end_of_first = next(
        each for each in graph.get_state_history(on("t")) if each.next == () and each.values["count"] == 3
    )
    before = blobs(saver)
    graph.invoke({"messages": [HumanMessage("instead", id="x")]}, end_of_first.config)
    assert blobs(saver) == before + 2, "the messages with and without the reply"
    head = graph.get_state(on("t")).values
    assert ([each.id for each in head["messages"]], head["note"]) == (
        ["m0", "r1", "x", "r3"],
        end_of_first.values["note"],
    )
    longest = max(graph.get_state_history(on("t")), key=lambda each: len(each.values.get("messages", []))).values
    assert ([each.id for each in longest["messages"]], longest["note"]) == (["m0", "r1", "m1", "r3", "m2", "r5"], note)


def test_two_values_of_one_version_number_in_two_forks_stay_apart(saver: SqliteSaver) -> None:
    first = saver.get_next_version(None)
    assert saver.get_next_version(first) != saver.get_next_version(first)


def test_versions_rise_above_those_of_the_stock_saver() -> None:
    stock = StockSaver(sqlite3.connect(":memory:"))
    with open_checkpointer("sqlite::memory:") as saver:
        versions = [saver.get_next_version(None)]
        for _ in range(11):
            versions.append(saver.get_next_version(versions[-1]))
        assert sorted(versions) == versions
        theirs = stock.get_next_version(stock.get_next_version(None, None), None)
        assert saver.get_next_version(theirs) > theirs
    stock.conn.close()


def test_a_checkpoint_without_versions_is_stored_whole(saver: SqliteSaver) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number in range(2):
        values = {"note": f"{number} {noise()}"}
        place = saver.put(place, {**empty_checkpoint(), "channel_values": values}, {"step": number}, {})
        found = saver.get_tuple(place)
        assert found is not None
        assert found.checkpoint["channel_values"] == values


def test_large_writes_and_large_checkpoints_come_back(saver: SqliteSaver) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    versions: Any = {f"channel {noise(60)}": "1" for _ in range(60)}
    checkpoint: Any = {**empty_checkpoint(), "channel_versions": versions}
    place = saver.put(place, checkpoint, {"step": 0}, {})
    writes = [("a", noise(4_000)), ("b", 1)]
    saver.put_writes(place, writes, "task")
    saver.put_writes(place, [("__interrupt__", noise(4_000))], "asking")
    # What a task wrote stays when it runs again; how it went is what it was last.
    saver.put_writes(place, [("a", noise(4_000)), ("b", 2)], "task")
    asked = ("__interrupt__", noise(4_000))
    saver.put_writes(place, [asked], "asking")
    found = saver.get_tuple(place)
    assert found is not None
    assert found.checkpoint["channel_versions"] == versions
    assert found.pending_writes == [
        ("asking", *asked),
        ("task", *writes[0]),
        ("task", *writes[1]),
    ]
    assert (blobs(saver), without_orphans(saver)) == (3, True)


def test_a_snapshot_is_found_where_the_metadata_says_there_is_none(saver: SqliteSaver) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    counted: Any = {"step": 0, "counters_since_delta_snapshot": {"messages": (1, 1)}}
    held: Any = {**empty_checkpoint(), "channel_values": {"messages": _DeltaSnapshot([1])}}
    below = saver.put(place, held, counted, {})
    saver.put_writes(below, [("messages", 2)], "task")
    head = saver.put(below, empty_checkpoint(), counted, {})
    assert saver.get_delta_channel_history(config=head, channels=["messages", "none"]) == {
        "messages": {"seed": _DeltaSnapshot([1]), "writes": [("task", "messages", 2)]},
        "none": {"writes": []},
    }


def test_a_value_that_is_gone_is_named(saver: SqliteSaver) -> None:
    talk_graph().compile(checkpointer=saver).invoke(say(noise()), on("t"))
    saver.conn.execute("DELETE FROM blobs")
    with pytest.raises(StoreError, match="thread 't' lacks a value that its checkpoints name; restore a backup"):
        saver.get_tuple(on("t"))


def test_doctor_finds_values_that_are_gone(saver: SqliteSaver) -> None:
    talk_graph().compile(checkpointer=saver).invoke(say(noise()), on("t"))
    talk_graph().compile(checkpointer=saver).invoke(say(noise()), on("u"))
    assert [(each.ok, each.detail) for each in saver.doctor()] == [(True, "2 threads")]
    saver.conn.execute("DELETE FROM blobs WHERE id = (SELECT max(id) FROM blobs)")
    assert [(each.ok, each.detail, each.remedy) for each in saver.doctor()] == [
        (False, "values of 1 of 2 threads are gone: u", "restore a backup")
    ]


# ------------------------------------------------------------------------------------------------------- earlier files


def test_a_file_of_an_earlier_version_opens_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    earlier = StockSaver(sqlite3.connect(path, check_same_thread=False), serde=EarlierSerializer())
    mine, own = echo_graph(), talk_graph()
    for number in range(60):
        mine.compile(checkpointer=earlier).invoke(say(f"number {number} {SECRET}", f"m{number}"), on("t"))
        own.compile(checkpointer=earlier).invoke(say(f"number {number} {SECRET}", f"m{number}"), on("own"))
    before = said(mine.compile(checkpointer=earlier), "t")
    earlier.conn.close()
    size = path.stat().st_size

    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        assert path.stat().st_size < size + 64 * 1024, "nothing was written anew"
        graph, hosts = mine.compile(checkpointer=saver), own.compile(checkpointer=saver)
        assert said(graph, "t") == before
        assert len(list(hosts.get_state_history(on("own")))) == 60 * 6
        graph.invoke(say("and on"), on("t"))
        hosts.invoke(say("and on", "last"), on("own"))
        assert said(graph, "t") == [*before, "and on", "re: and on"]
        assert [each.id for each in hosts.get_state(on("own")).values["messages"]][-4:] == [
            "m59",
            "r119",
            "last",
            "r121",
        ]

        saver.copy_thread("own", "copy")
        assert saver.redact("own", [], [SECRET]) > 60 * 6
        assert saver.holds([SECRET], ["own", "copy", "t"]) == ["copy", "t"]
        saver.prune(["t", "own", "copy"])
        assert said(graph, "t") == [*before, "and on", "re: and on"]
        assert len(list(saver.list(on("own")))) == 1


def test_a_file_may_be_opened_by_two_at_once(tmp_path: Path) -> None:
    stock = StockSaver(sqlite3.connect(tmp_path / "threads.db"))
    stock.setup()
    stock.conn.close()
    with open_checkpointer(f"sqlite:{tmp_path}") as one, open_checkpointer(f"sqlite:{tmp_path}") as other:
        echo_graph().compile(checkpointer=one).invoke(say("one"), on("t"))
        echo_graph().compile(checkpointer=other).invoke(say("two"), on("t"))
        assert said(echo_graph().compile(checkpointer=one), "t") == ["one", "re: one", "two", "re: two"]


def test_the_dictionary_is_what_files_were_written_with() -> None:
    digest = "1bbc40e88cbdd1509e342e82b5237761d70c61c7f181245f260dcb04b1dccd3f"
    assert hashlib.sha256(DICTIONARY).hexdigest() == digest


def test_earlier_values_and_short_ones_load() -> None:
    serde, value = CompactSerializer(), {"messages": [HumanMessage("word " * 100, id="m")], "n": 1}
    assert [
        serde.loads_typed(each.dumps_typed(value)) for each in (JsonPlusSerializer(), EarlierSerializer(), serde)
    ] == ([value] * 3)


# ------------------------------------------------------------------------------------------------------------ deletion


def talked(saver: SqliteSaver, thread_id: str = "t", turns: int = 6) -> Any:
    """A thread on `add_messages` that knows the secret."""
    graph = talk_graph().compile(checkpointer=saver)
    for number in range(turns):
        text = f"my PIN is {SECRET}" if number == 2 else f"number {number}"
        run: Any = {**on(thread_id), "metadata": {"run_id": f"run-{number}"}}
        graph.invoke({"messages": [HumanMessage(f"{text} {noise()}", id=f"m{number}")], "note": noise()}, run)
    return graph


def test_redaction_reaches_values_that_checkpoints_share(saver: SqliteSaver, tmp_path: Path) -> None:
    graph = talked(saver)
    saver.copy_thread("t", "copy")
    assert saver.affected("t", ["m2"], [SECRET]) == saver.redact("t", ["m2"], [SECRET])
    assert saver.holds([SECRET], ["t", "copy"]) == ["copy"], "a copy's values are its own"
    saver.redact("copy", ["m2"], [SECRET])
    assert SECRET not in stored_text(saver)
    assert SECRET.encode() not in words_in_files(tmp_path)
    texts = [each.text[:9] for each in graph.get_state(on("t")).values["messages"]]
    assert texts == [
        *["number 0 ", "re: 1", "number 1 ", "re: 3", "[erased]", "re: 5"],
        *["number 3 ", "re: 7", "number 4 ", "re: 9", "number 5 ", "re: 11"],
    ]
    assert len(list(graph.get_state_history(on("t")))) == 36
    assert saver.redact("t", ["m2"], [SECRET]) == 0


def test_a_fork_of_a_redacted_checkpoint_does_not_bring_the_words_back(saver: SqliteSaver) -> None:
    graph = talked(saver)
    old = next(each for each in graph.get_state_history(on("t")) if each.next == () and each.values["count"] == 9)
    saver.redact("t", ["m2"], [SECRET])
    graph.invoke(say("and on", "x"), old.config)
    assert saver.holds([SECRET], ["t"]) == []
    assert [each.text[:8] for each in graph.get_state(on("t")).values["messages"]][4:] == [
        "[erased]",
        "re: 5",
        "and on",
        "re: 7",
    ]


def test_words_that_nothing_leads_to_are_found_and_erased(saver: SqliteSaver) -> None:
    talked(saver, turns=1)
    # As a program of another version might leave them.
    add = "INSERT INTO blobs (id, type, value) SELECT max(id) + 1, ?, ? FROM blobs"
    saver.conn.execute(add, saver.serde.dumps_typed(SECRET))
    assert saver.holds([SECRET], ["t"]) == ["t"]
    saver.redact("t", [], [SECRET])
    assert saver.holds([SECRET], ["t"]) == []


def test_pruning_deletes_the_values_that_nothing_needs_any_more(saver: SqliteSaver, tmp_path: Path) -> None:
    graph = talked(saver)
    before = graph.get_state(on("t")).values
    saver.prune(["t"])
    assert graph.get_state(on("t")).values == before
    assert (blobs(saver), without_orphans(saver)) == (2, True), "the messages and the note"


def test_deleting_runs_keeps_the_values_that_others_share(saver: SqliteSaver) -> None:
    graph = talked(saver)
    middle, head = blobs(saver), graph.get_state(on("t")).values
    saver.delete_for_runs(["run-1", "run-3"])
    assert graph.get_state(on("t")).values == head
    assert (blobs(saver) < middle, without_orphans(saver)) == (True, True)
    saver.delete_for_runs([f"run-{number}" for number in range(6)])
    assert (blobs(saver), list(saver.list(on("t")))) == (0, [])


def test_deleting_a_thread_leaves_the_values_of_others(saver: SqliteSaver) -> None:
    graphs = [talked(saver, thread_id, turns=2) for thread_id in ("a", "b", "c")]
    before = [graph.get_state(on("b")).values for graph in graphs[:1]]
    saver.delete_thread("c")
    saver.delete_thread("a")
    talked(saver, "d", turns=1)
    assert [graphs[0].get_state(on("b")).values] == before
    saver.delete_thread("b")
    saver.delete_thread("d")
    assert [saver.conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("blobs", "threads")] == [
        0,
        0,
    ]


def test_a_subgraphs_values_are_its_own(saver: SqliteSaver) -> None:
    graph = StateGraph(Talk)
    graph.add_node("inner", talk_graph().compile())
    graph.add_edge(START, "inner")
    compiled: Any = graph.compile(checkpointer=saver, interrupt_after=["inner"])
    compiled.invoke(say(noise(), "a"), on("t"))
    namespaces = {each.config["configurable"]["checkpoint_ns"].partition(":")[0] for each in saver.list(on("t"))}
    assert namespaces == {"", "inner"}
    assert [each.id for each in compiled.get_state(on("t")).values["messages"]] == ["a", "r1"]
    assert without_orphans(saver)


# ------------------------------------------------------------------------------------------------------------- crashes

WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from support.threads import noise, on, say, talk_graph
from everthread.stores import open_checkpointer

with open_checkpointer(sys.argv[1]) as saver:
    graph = talk_graph().compile(checkpointer=saver)
    while True:
        graph.invoke(say(noise(2_000)), on("t"))
        print("turn", flush=True)
"""


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_killed_writer_leaves_every_checkpoint_with_its_values(tmp_path: Path, turns: int) -> None:
    tests = Path(__file__).parents[1]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, f"sqlite:{tmp_path}", str(tests)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    with writer.stdout:
        for _ in range(turns):
            assert writer.stdout.readline() == "turn\n"
        writer.send_signal(signal.SIGKILL)
    writer.wait()
    with SqliteSaver(str(tmp_path / "threads.db")) as saver:
        history = list(saver.list(on("t")))
        assert len(history) >= 6 * turns
        assert without_orphans(saver)
        graph = talk_graph().compile(checkpointer=saver)
        graph.invoke(say("and on"), on("t"))
        assert graph.get_state(on("t")).values["messages"][-2].text == "and on"
