"""The checkpointer alone: its file, its leases, erasure and retention."""

from __future__ import annotations

import asyncio
import logging
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver as StockSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt, Send, interrupt
from support.threads import echo_graph, on, said, say, stored_text, words_in_files
from typing_extensions import TypedDict

from everthread import Identity, MemoryState
from everthread.errors import Conflict, StoreError, UsageError
from everthread.stores import open_checkpointer
from everthread.stores.checkpoints import Saver, SqliteSaver
from everthread.stores.checkpoints.files import path_of
from everthread.stores.checkpoints.lease import Claim, Holder, Process, has_ended, this_process
from everthread.stores.checkpoints.redaction import Redaction
from everthread.stores.checkpoints.retention import Node, lineage, nearest_kept
from everthread.stores.checkpoints.serializer import CompactSerializer
from everthread.stores.contract import ThreadEraser
from everthread.stores.threads import below


@pytest.fixture
def saver(threads_url: str) -> Iterator[Saver]:
    with open_checkpointer(threads_url) as opened:
        yield opened


@pytest.fixture
def file_saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver(str(tmp_path / "threads.db")) as opened:
        yield opened


def long_thread(saver: Saver, thread_id: str = "t", turns: int = 20) -> Any:
    graph = echo_graph().compile(checkpointer=saver)
    for number in range(turns):
        graph.invoke(say(f"number {number}"), on(thread_id, run_id=f"run-{number}"))
    return graph


def conversation(turns: int) -> list[str]:
    return [text for number in range(turns) for text in (f"number {number}", f"re: number {number}")]


# ------------------------------------------------------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:./data", "data/threads.db"),
        ("sqlite:/var/lib/x", "/var/lib/x/threads.db"),
        ("sqlite:///var/lib/x", "/var/lib/x/threads.db"),
        ("./data", "data/threads.db"),
        ("sqlite:data/mine.db", "data/mine.db"),
        ("sqlite::memory:", ":memory:"),
        (":memory:", ":memory:"),
    ],
)
def test_an_address_names_a_file(url: str, path: str) -> None:
    assert path_of(url) == path


@pytest.mark.parametrize("url", ["", "sqlite:", "mysql://x"])
def test_another_address_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:DIR"):
        open_checkpointer(url)


def test_an_unknown_synchronous_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="EXTRA, FULL, NORMAL, OFF"):
        open_checkpointer(f"sqlite:{tmp_path}", synchronous="on; drop table checkpoints")


async def test_one_object_serves_both_worlds(threads_url: str) -> None:
    async with open_checkpointer(threads_url) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        await graph.ainvoke(say("one"), on("t"))
        await asyncio.to_thread(graph.invoke, say("two"), on("t"))
        assert said(graph, "t") == ["one", "re: one", "two", "re: two"]
        assert [each async for each in saver.alist(on("t"))] == list(saver.list(on("t")))


def test_threads_outlive_the_process_that_wrote_them(threads_url: str) -> None:
    with open_checkpointer(threads_url) as saver:
        echo_graph().compile(checkpointer=saver).invoke(say("你好 👋"), on("t"))
    with open_checkpointer(threads_url.removeprefix("sqlite:")) as saver:
        assert said(echo_graph().compile(checkpointer=saver), "t") == ["你好 👋", "re: 你好 👋"]


def test_a_file_of_the_stock_saver_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    stock = StockSaver(sqlite3.connect(path, check_same_thread=False))
    echo_graph().compile(checkpointer=stock).invoke(say("one"), on("t"))
    stock.conn.close()
    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say("two"), on("t"))
        assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE invoices (id)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="another program"):
        open_checkpointer(f"sqlite:{tmp_path}")
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "threads.db").write_bytes(b"this is a letter, not a database. " * 40)
    with pytest.raises(StoreError, match=r"threads\.db is not a SQLite database"):
        open_checkpointer(f"sqlite:{tmp_path}")


def test_a_corrupt_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        long_thread(saver, turns=5)
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match=r"threads\.db is corrupt"), open_checkpointer(f"sqlite:{tmp_path}") as saver:
        said(echo_graph().compile(checkpointer=saver), "t")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="file cannot be made"):
        open_checkpointer(f"sqlite:{tmp_path / 'file'}")


def test_a_full_disk_loses_nothing_that_was_acknowledged(file_saver: SqliteSaver) -> None:
    graph = long_thread(file_saver, turns=2)
    (pages,) = file_saver.conn.execute("PRAGMA page_count").fetchone()
    file_saver.conn.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="the disk is full"):
        graph.invoke(say(random.randbytes(20_000).hex()), on("t"))
    file_saver.conn.execute("PRAGMA max_page_count=1000000")
    assert said(graph, "t")[:4] == conversation(2)
    graph.invoke(say("and on"), on("t"))
    assert said(graph, "t")[-2:] == ["and on", "re: and on"]


def test_a_read_only_file_says_so(file_saver: SqliteSaver) -> None:
    graph = long_thread(file_saver, turns=1)
    file_saver.conn.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError, match="is read-only; check the permissions"):
        graph.invoke(say("two"), on("t"))


async def test_a_closed_checkpointer_says_so(threads_url: str) -> None:
    saver = open_checkpointer(threads_url)
    saver.close()
    saver.close()
    with pytest.raises(UsageError, match="is closed"):
        saver.get_tuple(on("t"))
    with pytest.raises(UsageError, match="is closed"):
        await saver.aget_tuple(on("t"))
    with pytest.raises(UsageError, match="is closed"), saver.turn("t"):
        pass
    with pytest.raises(UsageError, match="is closed"):
        async with saver.aturn("t"):
            pass


def test_reading_while_listing_does_not_lock(saver: Saver) -> None:
    long_thread(saver, turns=1)
    listing = saver.list(on("t"))
    next(listing)
    read: list[Any] = []
    reader = threading.Thread(target=lambda: read.append(saver.get_tuple(on("t"))))
    reader.start()
    reader.join(60)
    assert [each.checkpoint["id"] for each in read] == [next(iter(saver.list(on("t")))).checkpoint["id"]]


def test_plain_data_and_messages_load_without_a_warning(saver: Saver, caplog: pytest.LogCaptureFixture) -> None:
    class Plain(TypedDict, total=False):
        window: dict[str, Any]
        notes: list[dict[str, Any]]

    graph = StateGraph(Plain)
    graph.add_node("keep", lambda state: {"window": {"cut": "m1"}, "notes": [{"at": 1.5, "ids": ["a"]}]})
    graph.add_edge(START, "keep")
    with caplog.at_level(logging.WARNING):
        graph.compile(checkpointer=saver).invoke({"window": {}}, on("plain"))
        values = graph.compile(checkpointer=saver).get_state(on("plain")).values
        long_thread(saver, turns=2)
    assert values == {"window": {"cut": "m1"}, "notes": [{"at": 1.5, "ids": ["a"]}]}
    assert caplog.records == []


def test_messages_come_back_as_langgraphs_serializer_makes_them() -> None:
    """Ours does not validate them again; what does not have exactly the fields of today goes by LangGraph's way."""
    call = {"name": "look", "args": {"n": [1, None]}, "id": "c1"}
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    messages: list[BaseMessage] = [
        HumanMessage("你好", id="1", name="ana", additional_kwargs={"everthread": {"kind": "notice"}}),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]),
        HumanMessage("with more", more="fields"),
        AIMessage("", id="2", tool_calls=[call], usage_metadata=usage, response_metadata={"model_name": "m"}),
        AIMessageChunk(content="piece"),
        ToolMessage("found", tool_call_id="c1", id="3", artifact={"rows": [1]}, status="error"),
        SystemMessage("be brief"),
        RemoveMessage("1"),
    ]
    stock, ours = JsonPlusSerializer(), CompactSerializer()
    expected, found = stock.loads_typed(stock.dumps_typed(messages)), ours.loads_typed(ours.dumps_typed(messages))
    assert found == expected == messages
    for one, other in zip(found, expected, strict=True):
        assert (type(one), repr(one), one.model_dump()) == (type(other), repr(other), other.model_dump())
        assert one.model_fields_set == other.model_fields_set
        assert one.model_extra == other.model_extra
        assert one.model_copy(update={"content": "new"}) == other.model_copy(update={"content": "new"})
    snapshot = _DeltaSnapshot(messages)
    assert ours.loads_typed(ours.dumps_typed(snapshot)) == stock.loads_typed(stock.dumps_typed(snapshot)) == snapshot
    assert pickle.loads(pickle.dumps(found)) == expected
    assert deepcopy(found) == expected


def test_what_a_host_sets_on_a_message_besides_its_fields_changes_nothing_about_how_others_are_stored() -> None:
    serde, messages = CompactSerializer(), [HumanMessage("hello", id="1")]
    stored = serde.dumps_typed(messages)
    changed = serde.loads_typed(stored)
    changed[0].mood = "good"
    assert serde.dumps_typed(messages) == stored
    assert serde.loads_typed(serde.dumps_typed(changed))[0].mood == "good"


def test_a_list_of_plain_messages_is_stored_as_their_fields_and_comes_back_the_same() -> None:
    call = {"name": "look", "args": {"n": [1, None], "at": (1, 2)}, "id": "c1"}
    messages = [
        HumanMessage("你好", id="1", additional_kwargs={"everthread": {"kind": "notice"}}),
        AIMessage([{"type": "text", "text": "look"}], id="2", tool_calls=[call], response_metadata={"model_name": "m"}),
        ToolMessage("found", tool_call_id="c1", id="3", artifact={"rows": [1], "who": Send("node", "x")}),
        SystemMessage("be brief"),
    ]
    stock, ours = JsonPlusSerializer(), CompactSerializer()
    kind, stored = ours.dumps_typed(messages)
    assert kind == "messages+d1"
    expected, found = stock.loads_typed(stock.dumps_typed(messages)), ours.loads_typed((kind, stored))
    assert found == expected
    for one, other in zip(found, expected, strict=True):
        assert (type(one), repr(one), one.model_dump()) == (type(other), repr(other), other.model_dump())
        assert (one.model_fields_set, one.model_extra) == (other.model_fields_set, other.model_extra)
    found[0].additional_kwargs["everthread"]["kind"] = found[1].name = found[0].mood = "changed"
    assert ours.loads_typed((kind, stored)) == expected


@pytest.mark.parametrize(
    "odd",
    [
        HumanMessage("with more", more="fields"),
        HumanMessage("of another type").model_copy(update={"type": "ai"}),
        AIMessageChunk(content="piece"),
        RemoveMessage("1"),
        {"role": "user", "content": "as plain data"},
    ],
)
def test_a_list_with_anything_else_is_stored_as_langgraph_stores_it(odd: Any) -> None:
    stock, ours = JsonPlusSerializer(), CompactSerializer()
    kind, stored = ours.dumps_typed([HumanMessage("hello", id="1"), odd])
    assert kind.startswith("msgpack")
    assert ours.loads_typed((kind, stored)) == stock.loads_typed(
        stock.dumps_typed([HumanMessage("hello", id="1"), odd])
    )


def test_messages_that_were_stored_with_other_fields_are_validated() -> None:
    earlier = ormsgpack.packb([4711, {"type": "human", "content": "hello", "id": "1"}])
    assert CompactSerializer().loads_typed(("messages", earlier)) == [HumanMessage("hello", id="1")]


def test_large_values_are_stored_compressed_and_come_back_equal() -> None:
    serde = CompactSerializer()
    small, large = {"a": 1}, {"messages": [HumanMessage("word " * 400, id="m")]}
    assert serde.dumps_typed(small)[0] == "msgpack"
    kind, packed = serde.dumps_typed(large)
    assert (kind, len(packed) < 500) == ("msgpack+d1", True)
    assert [serde.loads_typed(serde.dumps_typed(each)) for each in (small, large)] == [small, large]


# ------------------------------------------------------------------------------------------------------------- metadata


async def test_nothing_that_identifies_is_in_the_file(saver: Saver, tmp_path: Path) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    secret = Identity(tenant="acme-gmbh", user="ana-maria").model_dump(exclude_none=True, exclude={"roles"})
    config: Any = {
        "configurable": {"thread_id": "t", **secret, "identity": secret, "api_token": "tok-4711"},
        "metadata": {"run_id": "run-1", "langgraph_auth_user_id": "ana-maria", "email": "ana@acme.example"},
    }
    graph.invoke(say("hello"), config)
    await graph.ainvoke(say("again"), config)
    everything = words_in_files(tmp_path) + stored_text(saver).encode()
    assert [word for word in (b"acme", b"ana-maria", b"tok-4711", b"ana@") if word in everything] == []


def test_metadata_that_a_caller_gives_is_kept_and_can_be_searched(saver: Saver) -> None:
    config: Any = {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", "user_id": "ana"},
        "metadata": {"run_id": "1"},
    }
    given: Any = {"source": "update", "step": 1, "ticket": "T-7", "user": {"access-level": "open"}}
    saver.put(config, empty_checkpoint(), given, {})
    nested = {"user.access-level": "open"} if isinstance(saver, SqliteSaver) else {"user": {"access-level": "open"}}
    assert [each.metadata for each in saver.list(None, filter={"ticket": "T-7", **nested})] == [
        {**given, "run_id": "1"}
    ]


def test_a_saver_opens_by_the_name_of_its_file(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as opened:
        long_thread(opened, turns=1)
    with open_checkpointer(f"sqlite:{tmp_path}") as opened:
        assert said(echo_graph().compile(checkpointer=opened), "t") == conversation(1)


def test_metadata_keeps_what_langgraph_reads(saver: Saver) -> None:
    long_thread(saver, turns=2)
    assert [each.metadata for each in saver.list(on("t"), limit=2)] == [
        {
            "source": source,
            "step": step,
            "parents": {},
            "run_id": "run-1",
            "counters_since_delta_snapshot": {"messages": counters},
        }
        for source, step, counters in (("loop", 4, [4, 6]), ("loop", 3, [3, 5]))
    ]
    assert len(list(saver.list(on("t"), filter={"source": "input"}))) == 2


# --------------------------------------------------------------------------------------------------------------- leases


def test_a_held_thread_is_busy_and_others_are_free(saver: Saver) -> None:
    with saver.turn("t"):
        with saver.turn("u", timeout=0):
            pass
        with pytest.raises(Conflict, match="thread 't' is busy"), saver.turn("t", timeout=0):
            pass
    with saver.turn("t", timeout=0):
        pass


async def test_a_held_thread_is_busy_for_asyncio_too(saver: Saver) -> None:
    async with saver.aturn("t"):
        with pytest.raises(Conflict, match="thread 't' is busy"):
            async with saver.aturn("t", timeout=0):
                pass
        with pytest.raises(Conflict, match="thread 't' is busy"), saver.turn("t", timeout=0):
            pass
    async with saver.aturn("t", timeout=0):
        pass


def test_a_waiter_gets_the_thread_when_it_is_given_back(saver: Saver) -> None:
    order: list[str] = []

    def wait() -> None:
        with saver.turn("t"):
            order.append("waiter")

    with saver.turn("t"):
        waiter = threading.Thread(target=wait)
        waiter.start()
        order.append("holder")
    waiter.join(60)
    assert order == ["holder", "waiter"]


async def test_many_waiters_leave_asyncios_threads_free(saver: Saver) -> None:
    done: list[int] = []

    async def run(number: int) -> None:
        async with saver.aturn("t"):
            done.append(number)

    async with saver.aturn("t"):
        waiting = [asyncio.create_task(run(number)) for number in range(40)]
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(lambda: "free") == "free"
    await asyncio.gather(*waiting)
    assert sorted(done) == list(range(40))


async def test_a_cancelled_waiter_does_not_hold_the_thread(saver: Saver) -> None:
    async def run() -> None:
        async with saver.aturn("t"):
            await asyncio.sleep(60)

    for delay in (0, 0, 0.001, 0.005, 0.02):
        task = asyncio.create_task(run())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with saver.aturn("t", timeout=60):
        pass


AN_HOUR = 3_600.0
"""A lease that no test outlives."""
HOLD = f"""
import sys, time
from everthread.stores import open_checkpointer
saver = open_checkpointer(sys.argv[1], lease_seconds={AN_HOUR})
with saver.turn("t"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_owner_is_followed_at_once(threads_url: str) -> None:
    with (
        open_checkpointer(threads_url, lease_seconds=AN_HOUR) as saver,
        subprocess.Popen([sys.executable, "-c", HOLD, threads_url], stdout=subprocess.PIPE, text=True) as owner,
    ):
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(Conflict), saver.turn("t", timeout=0):
            pass
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        with saver.turn("t", timeout=60):  # a server takes a moment to see that a session has ended
            pass


def foreign_lease(saver: SqliteSaver, host: str) -> None:
    me = this_process()
    with saver.cursor() as cursor:
        cursor.execute("INSERT INTO leases VALUES ('t', 'theirs', ?, ?, ?, 7)", (host, me.pid, me.started))


def test_a_lease_from_elsewhere_is_given_up_when_its_heart_stands_still(tmp_path: Path) -> None:
    with SqliteSaver(str(tmp_path / "threads.db"), lease_seconds=0.2) as saver:
        foreign_lease(saver, "another machine")
        with pytest.raises(Conflict), saver.turn("t", timeout=0):
            pass
        with saver.turn("t", timeout=30):
            pass


def test_a_process_that_hangs_loses_its_lease(tmp_path: Path) -> None:
    with SqliteSaver(str(tmp_path / "threads.db"), lease_seconds=0.2) as saver:
        foreign_lease(saver, this_process().host)  # it lives, and its heart does not beat
        with saver.turn("t", timeout=30):
            pass


def test_the_heart_keeps_a_lease_and_does_not_revive_a_lost_one(tmp_path: Path) -> None:
    with SqliteSaver(str(tmp_path / "threads.db"), lease_seconds=1.5) as saver, saver.turn("t"):
        beats = "SELECT token, beat FROM leases WHERE thread_id = 't'"
        while saver.conn.execute(beats).fetchone()[1] < 4:  # more than its seconds, and nobody took it
            with pytest.raises(Conflict), saver.turn("t", timeout=0.1):
                pass
        with saver.cursor() as cursor:
            cursor.execute("UPDATE leases SET token = 'theirs', beat = 0")
        threading.Event().wait(0.6)  # longer than between two beats
        assert saver.conn.execute(beats).fetchone() == ("theirs", 0)


def test_a_heart_stands_still_when_it_is_seen_to_and_not_when_its_waiter_stood_still_itself() -> None:
    """A machine that was suspended, with the owner and the waiter on it: the owner gets the time to beat again."""
    now, held = [0.0], Elsewhere(seconds=8)
    waiter = Claim(held, "t", timeout=AN_HOUR, clock=lambda: now[0])

    def taken_after(seconds: float) -> bool:
        now[0] += seconds
        return waiter.attempt()

    assert [taken_after(seconds) for seconds in (0, 100, 100, 1, 1)] == [False] * 5
    held.beat += 1
    assert [taken_after(seconds) for seconds in (1, 100, 1, 1, 1, 1, 1.5)] == [False] * 7
    assert taken_after(1)


class Elsewhere:
    """A thread that somebody on another machine holds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.beat = seconds, 0

    def holder(self, thread_id: str) -> Holder:
        return Holder("theirs", Process("another machine", 1, 0.0), self.beat)

    def take(self, thread_id: str, token: str, wanting: Holder | None) -> bool:
        return True

    def lost(self, thread_id: str) -> bool:
        return False

    def release(self, token: str) -> None:
        pass

    def close(self) -> None:
        pass


def test_closing_gives_every_thread_back(threads_url: str) -> None:
    first = open_checkpointer(threads_url)
    held = first.turn("t")
    held.__enter__()
    first.close()
    with open_checkpointer(threads_url) as second, second.turn("t", timeout=60):
        pass
    held.__exit__(None, None, None)


def test_a_process_is_told_apart_from_a_later_one_with_its_number() -> None:
    me = this_process()
    assert [
        has_ended(me),
        has_ended(me._replace(started=me.started - 100)),
        has_ended(Process(me.host, 2**22 + 1, 0.0)),
        has_ended(Process("another machine", 2**22 + 1, 0.0)),
    ] == [False, True, True, False]


# -------------------------------------------------------------------------------------------------------------- erasure

SECRET = "SECRET-4711"


def talk_about_the_secret(saver: Saver, turns: int = 60) -> Any:
    """A thread with snapshots (every 50 updates), a tool call and a pending write that all know the secret."""

    def answer(state: MemoryState) -> dict[str, Any]:
        last = state["messages"][-1]
        if last.id == "call me":
            call = {"name": "pay", "args": {"pin": SECRET}, "id": "c1", "type": "tool_call"}
            return {
                "messages": [
                    AIMessage("I use it", id="reply", tool_calls=[call], additional_kwargs={"raw": f"pin={SECRET}"}),
                    ToolMessage(f"paid with {SECRET}", id="result", tool_call_id="c1", artifact={"pin": SECRET}),
                ]
            }
        if last.id == "ask":
            interrupt({"question": f"may I use {SECRET}?"})
        return {"messages": [AIMessage(f"re: {len(state['messages'])}")], "instructions": "sha256:0"}

    graph = echo_graph(answer).compile(checkpointer=saver)
    for number in range(turns):
        text, identifier = {
            3: (f"my PIN is {SECRET}", "pin"),
            4: ("use it", "call me"),
        }.get(number, (f"number {number}", f"m{number}"))
        graph.invoke(say(text, identifier), on("t"))
    graph.invoke(say("and now?", "ask"), on("t"))
    return graph


@pytest.mark.parametrize("by", ["ids and words", "words"])
async def test_erased_words_are_nowhere_and_the_history_still_loads(saver: Saver, tmp_path: Path, by: str) -> None:
    graph = talk_about_the_secret(saver)
    assert SECRET in stored_text(saver)
    before = graph.get_state(on("t")).values["messages"]
    rows = await saver.aredact("t", ["pin", "reply"] if by == "ids and words" else [], [SECRET.lower()])
    assert rows > 4
    assert SECRET.encode() not in words_in_files(tmp_path)
    assert SECRET.casefold() not in stored_text(saver).casefold()
    after = graph.get_state(on("t")).values["messages"]
    touched = {"pin", "reply", "result"}
    assert [message for message in after if message.id not in touched] == [m for m in before if m.id not in touched]
    assert [message for message in after if message.id in touched] == [
        HumanMessage("[erased]", id="pin"),
        AIMessage("[erased]", id="reply", tool_calls=[{"name": "pay", "args": {}, "id": "c1", "type": "tool_call"}]),
        ToolMessage("[erased]", id="result", tool_call_id="c1"),
    ]
    assert len(list(graph.get_state_history(on("t")))) > 120
    assert [each.interrupts[0].value for each in graph.get_state(on("t")).tasks] == [{"question": "[erased]"}]
    assert saver.redact("t", ["pin", "reply"], [SECRET]) == 0


def test_only_the_named_messages_of_the_named_thread_are_erased(saver: Saver) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    for thread_id in ("t", "u"):
        graph.invoke(say("one", "a"), on(thread_id))
        graph.invoke(say("two", "b"), on(thread_id))
    eraser: ThreadEraser = saver
    eraser.redact("t", ["a", ""], ["", " "])
    assert said(graph, "t") == ["[erased]", "re: one", "two", "re: two"]
    assert said(graph, "u") == ["one", "re: one", "two", "re: two"]
    graph.invoke(say("three"), on("t"))
    assert said(graph, "t")[-2:] == ["three", "re: three"]


def test_a_run_that_holds_the_old_words_cannot_write_them_back(saver: Saver) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say("one", "a"), on("t"))
    loaded = saver.get_tuple(on("t"))
    assert loaded is not None
    saver.redact("t", ["a"], [])
    with pytest.raises(Conflict):
        saver.put_writes(loaded.config, [("messages", [HumanMessage("one", id="a")])], "task")


def test_redaction_reaches_into_everything_that_can_hold_text() -> None:
    redaction = Redaction(["m"], ["pin"])
    send, question = Send("pin_node", {"text": "the PIN"}), Interrupt("PIN?", id="i")
    assert redaction(
        {
            "a pin": 1,
            "list": ["pin", "fine"],
            "tuple": ("pin", 2),
            "set": {"pins"},
            "bytes": b"the pin",
            "snapshot": _DeltaSnapshot([HumanMessage("x", id="m"), HumanMessage("y", id="n")]),
            "plain": {"id": "m", "role": "user", "content": "x", "extra": "y"},
            "send": send,
            "question": question,
            "identity": Identity(tenant="pin", user="u"),
        }
    ) == {
        "[erased]": 1,
        "list": ["[erased]", "fine"],
        "tuple": ("[erased]", 2),
        "set": {"[erased]"},
        "bytes": b"[erased]",
        "snapshot": _DeltaSnapshot([HumanMessage("[erased]", id="m"), HumanMessage("y", id="n")]),
        "plain": {"id": "m", "role": "user", "content": "[erased]"},
        "send": Send("pin_node", {"text": "[erased]"}),
        "question": Interrupt("[erased]", id="i"),
        "identity": Identity(tenant="[erased]", user="u"),
    }


def test_what_needs_no_redaction_is_the_same_object() -> None:
    redaction = Redaction(["m"], ["pin"])
    value = {"messages": [HumanMessage("fine", id="n")], "more": ({"a": {1, 2}}, Send("n", [1]), None, 1.5)}
    assert redaction(value) is value


# ------------------------------------------------------------------------------------------------------------ retention


@pytest.mark.parametrize("turns", [1, 3, 20, 60])
def test_a_pruned_thread_keeps_every_message(saver: Saver, turns: int) -> None:
    graph = long_thread(saver, turns=turns)
    checkpoints = len(list(saver.list(on("t"))))
    saver.prune(["t"])
    assert said(graph, "t") == conversation(turns)
    assert len(list(saver.list(on("t")))) <= checkpoints
    graph.invoke(say("and on"), on("t"))
    assert said(graph, "t") == [*conversation(turns), "and on", "re: and on"]


async def test_pruning_drops_what_lies_before_the_last_snapshot(saver: Saver) -> None:
    long_thread(saver, turns=60)
    before = len(list(saver.list(on("t"))))
    await saver.aprune(["t"])
    kept = list(saver.list(on("t")))
    assert (before, len(kept) < 100) == (180, True)
    assert kept[-1].parent_config is None
    assert isinstance(kept[-1].checkpoint["channel_values"]["messages"], _DeltaSnapshot)


def idle_threads(saver: Saver, turns: int = 4) -> None:
    """Threads a, b and c, of so many turns each, in the order in which they were last used."""
    graph = echo_graph().compile(checkpointer=saver)
    for thread_id in "abc":
        for number in range(turns):
            graph.invoke(say(f"{number} " + "word " * 200), on(thread_id))


def lengths(saver: Saver) -> dict[str, int]:
    return {thread_id: len(list(saver.list(on(thread_id)))) for thread_id in "abc"}


async def test_threads_that_have_been_idle_for_long_are_pruned_and_go_on(saver: Saver) -> None:
    graph = long_thread(saver, turns=60)
    graph.invoke(say("short"), on("short"))
    head = saver.get_tuple(on("t"))
    assert head is not None
    last = datetime.fromisoformat(head.checkpoint["ts"])
    assert saver.retain(older_than=timedelta(days=30), now=last + timedelta(days=29)) == []
    pruned = await saver.aretain(older_than=timedelta(days=30), now=last + timedelta(days=31))
    assert pruned == ["t"]  # all of the short one is needed
    assert saver.retain(older_than=timedelta(days=30), now=last + timedelta(days=31)) == []
    graph.invoke(say("and on"), on("t"))
    assert said(graph, "t") == [*conversation(60), "and on", "re: and on"]


def test_a_file_that_is_too_large_loses_the_longest_idle_threads_first(file_saver: SqliteSaver, tmp_path: Path) -> None:
    idle_threads(file_saver, turns=20)
    file_saver.scrub()
    size = (tmp_path / "threads.db").stat().st_size
    assert file_saver.retain(max_bytes=10 * size, strategy="delete") == []
    assert file_saver.retain(max_bytes=size - 1, strategy="delete") == ["a"]
    assert (tmp_path / "threads.db").stat().st_size < size
    assert [thread_id for thread_id, length in lengths(file_saver).items() if length] == ["b", "c"]


def test_a_thread_in_a_run_is_not_idle(saver: Saver) -> None:
    idle_threads(saver, turns=1)
    with saver.turn("a"):
        assert saver.retain(older_than=timedelta(0), strategy="delete") == ["b", "c"]


@pytest.mark.parametrize("policy", [{}, {"max_bytes": -1}, {"older_than": timedelta(-1)}])
def test_retention_without_a_policy_is_refused(saver: Saver, policy: Any) -> None:
    with pytest.raises(UsageError, match="retention needs a policy"):
        saver.retain(**policy)


def test_a_pruned_interrupt_can_still_be_answered(saver: Saver) -> None:
    graph = talk_about_the_secret(saver, turns=1)
    saver.prune(["t"])
    assert [task.interrupts[0].value for task in graph.get_state(on("t")).tasks] == [
        {"question": f"may I use {SECRET}?"}
    ]


async def test_one_id_is_no_list_of_ids(saver: Saver) -> None:
    for ask in (saver.prune, saver.delete_for_runs):
        with pytest.raises(UsageError, match=r"_ids: is one text; give a list of them"):
            ask("t1")
    for aask in (saver.aprune, saver.adelete_for_runs):
        with pytest.raises(UsageError, match=r"_ids: is one text; give a list of them"):
            await aask("t1")


def test_an_unknown_strategy_is_refused(saver: Saver) -> None:
    with pytest.raises(UsageError, match="keep_latest or delete"):
        saver.prune(["t"], strategy="all")


@pytest.mark.parametrize("how", ["prune", "delete", "aprune", "adelete", "retain"])
async def test_threads_below_a_deleted_one_are_gone_and_no_others(saver: Saver, how: str) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    below_it = [f"{below('t%_é')}one", f"{below(below('t%_é') + 'one')}two"]
    beside_it = [f"{below('u')}one", below("t%_é")[:-1], "t%_é2"]
    for thread in ["t%_é", *below_it, *beside_it]:
        graph.invoke(say("hello"), on(thread))
    match how:
        case "prune":
            saver.prune(["t%_é"], strategy="delete")
        case "aprune":
            await saver.aprune(["t%_é"], strategy="delete")
        case "delete":
            saver.delete_thread("t%_é")
        case "adelete":
            await saver.adelete_thread("t%_é")
        case _:
            with ExitStack() as runs:
                for thread in beside_it:
                    runs.enter_context(saver.turn(thread))
                saver.retain(older_than=timedelta(0), strategy="delete")
    assert [saver.get_tuple(on(thread)) for thread in ["t%_é", *below_it]] == [None, None, None]
    assert None not in [saver.get_tuple(on(thread)) for thread in beside_it]


@pytest.mark.parametrize("how", ["prune", "delete", "aprune", "adelete"])
async def test_a_deleted_thread_is_gone_from_the_file(saver: Saver, tmp_path: Path, how: str) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say(SECRET), on("t"))
    graph.invoke(say("other"), on("u"))
    match how:
        case "prune":
            saver.prune(["t"], strategy="delete")
        case "aprune":
            await saver.aprune(["t"], strategy="delete")
        case "delete":
            saver.delete_thread("t")
        case "adelete":
            await saver.adelete_thread("t")
    assert SECRET.encode() not in words_in_files(tmp_path)
    assert SECRET not in stored_text(saver)
    assert [said(graph, "t"), said(graph, "u")] == [[], ["other", "re: other"]]
    graph.invoke(say("anew"), on("t"))
    assert said(graph, "t") == ["anew", "re: anew"]


def test_deleting_the_last_runs_takes_the_thread_back(saver: Saver) -> None:
    graph = long_thread(saver, turns=5)
    saver.delete_for_runs(["run-4", "run-3"])
    assert said(graph, "t") == conversation(3)
    graph.invoke(say("instead"), on("t"))
    assert said(graph, "t") == [*conversation(3), "instead", "re: instead"]


async def test_deleting_a_run_in_the_middle_loses_no_message_of_another(saver: Saver) -> None:
    graph = long_thread(saver, turns=60)
    before = said(graph, "t")
    await saver.adelete_for_runs(["run-1", "run-30", "run-58"])
    assert said(graph, "t") == before
    assert {len(each.values.get("messages", [])) for each in graph.get_state_history(on("t"))} >= {2, 60, 118, 120}


async def test_a_copied_thread_is_whole_and_goes_its_own_way(saver: Saver) -> None:
    graph = long_thread(saver, turns=3)
    saver.copy_thread("t", "u")
    await saver.acopy_thread("t", "v")
    graph.invoke(say("only here"), on("u"))
    assert said(graph, "u") == [*conversation(3), "only here", "re: only here"]
    assert [said(graph, "t"), said(graph, "v")] == [conversation(3)] * 2
    with pytest.raises(UsageError, match="'x' has no checkpoints"):
        saver.copy_thread("x", "y")
    with pytest.raises(UsageError, match="'u' has checkpoints already"):
        saver.copy_thread("t", "u")


def test_a_checkpoint_is_kept_with_what_it_is_rebuilt_from() -> None:
    held, lacking = frozenset({"a"}), frozenset({"a"})
    nodes = {
        "1": Node("1", None, frozenset(), frozenset()),
        "2": Node("2", "1", held, frozenset()),
        "3": Node("3", "2", frozenset(), lacking),
        "4": Node("4", "3", frozenset(), lacking),
        "loop": Node("loop", "loop", frozenset(), lacking),
    }
    assert [lineage(start, nodes.get) for start in ("4", "2", "loop", "none")] == [
        {"4", "3", "2"},
        {"2"},
        {"loop"},
        set(),
    ]
    parents = {"1": None, "2": "1", "3": "2", "a": "b", "b": "a"}
    assert [nearest_kept(each, parents, {"1"}) for each in ("3", "1", "a", None)] == ["1", "1", None, None]
