"""What only a server has: addresses, privileges, lost connections, threads that LangGraph's own saver began."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver as StockSaver
from support.postgres import Postgres, in_database, replica_that_reads
from support.savers import lose_leases
from support.threads import echo_graph, noise, on, said, say, stored_text, talk_graph

from everthread.errors import Conflict, StoreError, UsageError
from everthread.stores import open_checkpointer, open_store
from everthread.stores.checkpoints.postgres import PostgresSaver
from everthread.stores.checkpoints.postgres.server import TABLES
from everthread.stores.checkpoints.serializer import CompactSerializer

SECRET = "SECRET-4711"
PASSWORD = "p@ss/w?rd%1"


@pytest.fixture
def saver(postgres: Postgres) -> Iterator[PostgresSaver]:
    with PostgresSaver(postgres.url) as opened:
        yield opened


def counts(postgres: Postgres) -> list[int]:
    """How many rows each table of threads has."""
    return [int(str(postgres.run("SELECT count(*) FROM {}", table)[0][0])) for table in TABLES.split(", ")]


def with_options(url: str, options: str) -> str:
    """The URL of connections with these settings."""
    return f"{url}{'&' if '?' in url else '?'}options={options.replace(' ', '%20').replace('=', '%3D')}"


# ------------------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:p@ss@host/db",
        "postgresql://ana:secret/part@host/db",
        "postgresql://ana:secret@host/db?nonsense=1",
        "postgres://ana:secret@[host/db",
    ],
)
def test_a_torn_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(UsageError, match="the URL cannot be read; write postgresql://USER:PASSWORD@HOST") as caught:
        open_checkpointer(url)
    assert not {"ss@host", "secret", "nonsense"} & set(str(caught.value).split())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://ana:secret@localhost:port/db", "postgres://ana:[secret@localhost:1/db"])
def test_an_address_that_leads_nowhere_is_named_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match=r"postgresql://ana@localhost:\w+/db failed .*; check host, port") as caught:
        open_checkpointer(url)
    assert "secret" not in str(caught.value)


def test_a_wrong_password_is_refused_and_not_shown(postgres: Postgres) -> None:
    role = postgres.guarded(PASSWORD)
    with pytest.raises(StoreError) as caught:
        open_checkpointer(postgres.url_of(role, "an0ther"))
    assert role in str(caught.value)
    assert "an0ther" not in str(caught.value)


def test_no_server_and_no_database_are_named(postgres: Postgres) -> None:
    with pytest.raises(StoreError, match=r"postgresql://ana@127\.0\.0\.1:1/db failed"):
        open_checkpointer("postgresql://ana:hidden-1@127.0.0.1:1/db")
    with pytest.raises(StoreError, match='database "absent" does not exist'):
        open_checkpointer(postgres.url.replace(postgres.url.split("/")[3].partition("?")[0], "absent"))


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Postgres) -> None:
    name = f"everthread_latin_{uuid4().hex[:8]}"
    postgres.run("CREATE DATABASE {} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'", name)
    try:
        with pytest.raises(UsageError, match="encoded in LATIN1"):
            open_checkpointer(in_database(postgres.url, name))
    finally:
        postgres.run("DROP DATABASE {} WITH (FORCE)", name)


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("everthread.stores.checkpoints.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(UsageError, match=r"pip install 'everthread\[postgres\]'"):
        open_checkpointer("postgresql://localhost/db")


def test_a_pool_needs_a_connection(postgres: Postgres) -> None:
    with pytest.raises(UsageError, match="pool_size=0"):
        open_checkpointer(postgres.url, pool_size=0)


def test_many_may_open_an_empty_database_at_once(postgres: Postgres) -> None:
    with ThreadPoolExecutor(6) as pool:
        savers = list(pool.map(lambda _: open_checkpointer(postgres.url), range(6)))
    for number, saver in enumerate(savers):
        echo_graph().compile(checkpointer=saver).invoke(say(str(number)), on("t"))
    assert said(echo_graph().compile(checkpointer=savers[0]), "t")[::2] == [str(number) for number in range(6)]
    for saver in savers:
        saver.close()
    assert postgres.run("SELECT count(*), max(v) FROM checkpoint_migrations") == [(10, 9)]


def test_a_role_that_may_only_use_the_tables_needs_no_more(postgres: Postgres) -> None:
    role = postgres.guarded(PASSWORD)
    url = postgres.url_of(role, PASSWORD)
    with pytest.raises(StoreError, match="permission denied for schema public; open it once as a role that may create"):
        open_checkpointer(url)
    open_checkpointer(postgres.url).close()
    postgres.run("GRANT SELECT ON checkpoint_migrations TO {}", role)
    with open_checkpointer(url) as saver, pytest.raises(StoreError, match="permission denied for table") as caught:
        saver.get_tuple(on("t"))
    assert PASSWORD not in str(caught.value)
    postgres.run(
        "GRANT SELECT, INSERT, UPDATE, DELETE"
        " ON checkpoints, checkpoint_blobs, checkpoint_writes, checkpoint_writers TO {}",
        role,
    )
    with open_checkpointer(url) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say("one"), on("t"))
        assert said(graph, "t") == ["one", "re: one"]


def test_schemas_of_one_database_are_apart(postgres: Postgres) -> None:
    postgres.run("CREATE SCHEMA one")
    postgres.run("CREATE SCHEMA two")
    one, two = (open_checkpointer(with_options(postgres.url, f"-csearch_path={name}")) for name in ("one", "two"))
    with one, two, one.turn("t"), two.turn("t", timeout=0):
        echo_graph().compile(checkpointer=one).invoke(say("x"), on("u"))
        assert said(echo_graph().compile(checkpointer=two), "u") == []
    with pytest.raises(UsageError, match="search_path names no schema"):
        open_checkpointer(with_options(postgres.url, "-csearch_path=absent"))


# ----------------------------------------------------------------------------------------- threads of a stock saver


@pytest.mark.parametrize("build", [echo_graph, talk_graph])
def test_threads_of_the_stock_saver_go_on(postgres: Postgres, build: Any) -> None:
    with StockSaver.from_conn_string(postgres.url) as stock:
        stock.setup()
        theirs = build().compile(checkpointer=stock)
        for number in range(30):
            run: Any = {**on("t"), "metadata": {"run_id": f"run-{number}"}}
            theirs.invoke(say(f"number {number} {SECRET if number == 3 else ''}", f"m{number}"), run)
        before = [each.values for each in theirs.get_state_history(on("t"))]
    with open_checkpointer(postgres.url) as saver:
        graph = build().compile(checkpointer=saver)
        assert [each.values for each in graph.get_state_history(on("t"))] == before
        graph.invoke(say("and on", "x"), on("t"))
        saver.copy_thread("t", "copy")
        assert saver.affected("t", [], [SECRET]) == saver.redact("t", [], [SECRET]) > 0
        assert saver.holds([SECRET], ["t", "copy"]) == ["copy"]
        saver.delete_for_runs(["run-7"])
        saver.prune(["t", "copy"])
        texts = [message.text for message in graph.get_state(on("copy")).values["messages"]]
        assert texts[:-2] == [message.text for message in before[0]["messages"]]
        assert texts[-2] == "and on"
        assert said(graph, "t") == ["[erased]" if SECRET in text else text for text in texts]
        graph.invoke(say("once more"), on("t"))
        assert said(graph, "t")[-2] == "once more"
        assert [each.ok for each in saver.doctor()] == [True]


# ------------------------------------------------------------------------------------------------- what is stored


def test_a_value_that_no_step_changed_is_stored_once(saver: PostgresSaver, postgres: Postgres) -> None:
    graph = talk_graph(steps=8).compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(noise(), id="a")], "note": noise()}, on("t"))
    # the input, the note, the messages with and without the reply
    assert counts(postgres)[:2] == [11, 4]


def test_nothing_that_was_said_is_stored_but_through_the_serializer(postgres: Postgres) -> None:
    class Hidden(CompactSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, stored = super().dumps_typed(obj)
            return f"{kind}+hidden", bytes(255 - byte for byte in stored)

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed((data[0].removesuffix("+hidden"), bytes(255 - byte for byte in data[1])))

    with open_checkpointer(postgres.url, serde=Hidden()) as saver:
        graph = talk_graph().compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage(SECRET, id="a")], "note": SECRET, "count": 4711}, on("t"))
        assert graph.get_state(on("t")).values["note"] == SECRET
        assert SECRET in stored_text(saver)
    rows = [str(row) for table in TABLES.split(", ") for row in postgres.run("SELECT * FROM {}", table)]
    assert [row for row in rows if SECRET in row or "4711" in row.replace(SECRET, "")] == []


def test_characters_that_the_server_has_no_place_for(saver: PostgresSaver) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    metadata: Any = {"nul": {"a": "x\0y"}, "said": "a \\u0000 b", "torn": "z\ud800"}
    values = {"note": f"{noise()}\0\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "small": "\0"}
    saved = saver.put(place, {**empty_checkpoint(), "channel_values": values}, metadata, {})
    found = saver.get_tuple(saved)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert found.metadata == {"nul": {"a": "xy"}, "said": "a \\u0000 b", "torn": "z"}
    with pytest.raises(UsageError, match="check ids and metadata"):
        saver.get_tuple(on("a\0b"))


def test_a_checkpoint_saved_again_below_its_own_descendant_ends_the_walk(saver: PostgresSaver) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first, second = empty_checkpoint(), empty_checkpoint()
    below = saver.put(place, first, {}, {})
    head = saver.put(below, second, {}, {})
    saver.put_writes(below, [("messages", 1)], "task")
    saver.put(head, first, {}, {})
    assert saver.get_delta_channel_history(config=head, channels=["messages"]) == {
        "messages": {"writes": [("task", "messages", 1)]}
    }


def test_values_that_are_gone_are_named(saver: PostgresSaver, postgres: Postgres) -> None:
    for thread_id in ("t", "u"):
        talk_graph().compile(checkpointer=saver).invoke(say(noise()), on(thread_id))
    assert [(each.ok, each.detail) for each in saver.doctor()] == [(True, "2 threads")]
    postgres.run("DELETE FROM checkpoint_blobs WHERE thread_id = 'u'")
    assert [(each.ok, each.detail) for each in saver.doctor()] == [(False, "values of 1 of 2 threads are gone: u")]
    with pytest.raises(StoreError, match="thread 'u' lacks a value that its checkpoints name; restore a backup"):
        saver.get_tuple(on("u"))


def test_what_is_deleted_leaves_no_row(saver: PostgresSaver, postgres: Postgres) -> None:
    graph = talk_graph().compile(checkpointer=saver)
    for number in range(3):
        run: Any = {**on("t"), "metadata": {"run_id": f"run-{number}"}}
        graph.invoke({"messages": [HumanMessage(noise(), id=f"m{number}")], "note": noise()}, run)
    saver.copy_thread("t", "u")
    saver.prune(["t"])
    assert postgres.run("SELECT count(*) FROM checkpoint_blobs WHERE thread_id = 't'") == [(2,)]
    saver.delete_for_runs([f"run-{number}" for number in range(3)])
    assert counts(postgres) == [0, 0, 0, 0]
    saver.scrub()


def test_what_a_replica_still_reads_is_not_scrubbed(saver: PostgresSaver, postgres: Postgres) -> None:
    talk_graph().compile(checkpointer=saver).invoke({"messages": [HumanMessage("hello")]}, on("t"))
    with replica_that_reads(postgres.url):
        saver.delete_thread("t")
        saver.retain(max_bytes=0)  # frees what it can, and promises nothing
        with pytest.raises(StoreError, match="1 sessions, here or on replicas, still see the state before"):
            saver.scrub()
    saver.scrub()


def test_what_is_too_large_loses_the_longest_idle_threads_first(saver: PostgresSaver, postgres: Postgres) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    for thread_id in "abc":
        graph.invoke(say(noise()), on(thread_id))
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    rows = [postgres.run("SELECT coalesce(sum(pg_column_size(r.*)), 0)::int FROM {} r", table) for table in tables]
    size = sum(int(str(each[0][0])) for each in rows)
    assert saver.retain(max_bytes=size, strategy="delete") == []
    assert saver.retain(max_bytes=size - 1, strategy="delete") == ["a"]
    assert saver.retain(max_bytes=size // 2, strategy="delete") == ["b"]
    assert postgres.run("SELECT DISTINCT thread_id FROM checkpoints") == [("c",)]


def test_pruning_beside_runs_that_no_gate_holds_up_leaves_no_hole(saver: PostgresSaver) -> None:
    going, graph = threading.Event(), talk_graph().compile(checkpointer=saver)

    def prune() -> None:
        while not going.is_set():
            saver.prune(["t"])

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune)
        for number in range(15):
            graph.invoke({"messages": [HumanMessage(noise(), id=f"m{number}")], "note": noise()}, on("t"))
        going.set()
        pruning.result(60)
    assert [each.ok for each in saver.doctor()] == [True]
    assert len(graph.get_state(on("t")).values["messages"]) == 30


# ------------------------------------------------------------------------------------------------- what goes wrong


def test_a_run_whose_connection_was_lost_writes_nothing_more(saver: PostgresSaver) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say("one"), on("t"))
    with saver.turn("t"), saver.turn("u"):
        loaded = saver.get_tuple(on("t"))
        assert loaded is not None
        lose_leases(saver)
        with pytest.raises(Conflict, match="thread 't' is no longer held by this run") as caught:
            saver.put_writes(loaded.config, [("messages", [HumanMessage("stale")])], "task")
        assert (caught.value.thread_id, caught.value.winner) == ("t", loaded.checkpoint["id"])
        with saver.turn("t", timeout=0):  # the next run takes it at once, and the first may write no more
            with pytest.raises(Conflict, match="continued by another run"):
                saver.put_writes(loaded.config, [("messages", [HumanMessage("stale")])], "task")
    graph.invoke(say("two"), on("t"))
    assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


HANG = """
import os, signal, sys
from everthread.errors import Conflict
from everthread.stores import open_checkpointer, open_store
from langchain_core.messages import HumanMessage

with open_checkpointer(sys.argv[1], lease_seconds=0.5) as saver, saver.turn("t"):
    loaded = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    print("holds", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        saver.put_writes(loaded.config, [("messages", [HumanMessage("stale")])], "task")
    except Conflict as error:
        print(error.thread_id, flush=True)
"""


def test_a_process_that_hangs_loses_its_threads_and_writes_nothing_more(
    saver: PostgresSaver, postgres: Postgres
) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say("one"), on("t"))
    hanging = subprocess.Popen([sys.executable, "-c", HANG, postgres.url], stdout=subprocess.PIPE, text=True)
    assert hanging.stdout is not None
    assert hanging.stdout.readline() == "holds\n"
    os.waitid(os.P_PID, hanging.pid, os.WSTOPPED)
    graph.invoke(say("two"), on("t"))  # waits until the server has ended the other's session
    hanging.send_signal(signal.SIGCONT)
    assert hanging.communicate()[0] == "t\n"
    assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


def test_a_process_that_works_for_longer_than_a_lease_keeps_its_threads(postgres: Postgres) -> None:
    with open_checkpointer(postgres.url, lease_seconds=3) as saver:
        with saver.turn("t"):
            with pytest.raises(Conflict, match="busy"), saver.turn("t", timeout=4):
                pass
            loaded = saver.get_tuple(on("t"))
            assert loaded is None
        heart = "everthread-leases"
        wait_until(lambda: all(thread.name != heart for thread in threading.enumerate()))
        with saver.turn("t"):
            pass


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_lease_lasts_some_time(postgres: Postgres, tmp_path: Path, kind: str, seconds: float) -> None:
    url = f"sqlite:{tmp_path}" if kind == "sqlite" else postgres.url
    with pytest.raises(UsageError, match="is no time for a lease"):
        open_checkpointer(url, lease_seconds=seconds)


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to that")


def test_connections_that_were_cut_while_idle_are_replaced(saver: PostgresSaver, postgres: Postgres) -> None:
    graph = echo_graph().compile(checkpointer=saver)
    graph.invoke(say("one"), on("t"))
    cut = (
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE application_name = 'everthread threads' AND datname = current_database()"
    )
    assert len(postgres.run(cut)) >= 2
    graph.invoke(say("two"), on("t"))
    assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


def test_a_server_that_goes_in_the_middle_leaves_nothing_half_written(postgres: Postgres) -> None:
    class Cutting(CompactSerializer):
        cut = False

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            if self.cut and obj == "the second value " * 20:
                others = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                postgres.run(f"{others} AND datname = current_database()")
            return super().dumps_typed(obj)

    serde = Cutting()
    with open_checkpointer(postgres.url, serde=serde) as saver:
        place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        values = {"a": noise(), "b": "the second value " * 20}
        checkpoint: Any = {**empty_checkpoint(), "channel_values": values}
        serde.cut = True
        with pytest.raises(StoreError, match=r"failed \(.*; check host, port.*then try again"):
            saver.put(place, checkpoint, {}, {})
        assert counts(postgres) == [0, 0, 0, 0]
        serde.cut = False
        found = saver.get_tuple(saver.put(place, checkpoint, {}, {}))
        assert found is not None
        assert found.checkpoint["channel_values"] == values


def test_a_pool_that_is_used_up_says_so(postgres: Postgres) -> None:
    with PostgresSaver(postgres.url, pool_size=1, pool_timeout=2) as saver, saver.pool.connection():
        with pytest.raises(StoreError, match="has no connection free; raise pool_size"):
            saver.get_tuple(on("t"))


def test_a_statement_that_takes_too_long_says_so(saver: PostgresSaver, postgres: Postgres) -> None:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with (
        psycopg.connect(postgres.url) as other,
        open_checkpointer(with_options(postgres.url, "-cstatement_timeout=2000")) as hasty,
    ):
        other.execute("LOCK TABLE checkpoints")
        with pytest.raises(StoreError, match="took longer than its statement_timeout; nothing was written"):
            hasty.put(place, empty_checkpoint(), {}, {})
    hasty_and_locked = with_options(postgres.url, "-clock_timeout=100")
    with psycopg.connect(postgres.url) as other, open_checkpointer(hasty_and_locked) as hasty:
        other.execute("LOCK TABLE checkpoints")
        with pytest.raises(StoreError, match="kept a lock for longer than its lock_timeout"):
            hasty.put(place, empty_checkpoint(), {}, {})
    assert counts(postgres) == [0, 0, 0, 0]


def test_a_server_that_only_reads_says_so(saver: PostgresSaver, postgres: Postgres) -> None:
    reading = with_options(postgres.url, "-cdefault_transaction_read_only=on")
    with open_checkpointer(reading) as standby, pytest.raises(StoreError, match="is read-only; connect to the primary"):
        echo_graph().compile(checkpointer=standby).invoke(say("one"), on("t"))


def test_a_table_that_is_gone_is_named(saver: PostgresSaver, postgres: Postgres) -> None:
    postgres.run("DROP TABLE checkpoint_writers")
    with pytest.raises(StoreError, match="has lost a table; open the checkpointer again"):
        saver.get_tuple(on("t"))


def test_threads_of_a_store_with_a_schema_have_one_beside_it(postgres: Postgres) -> None:
    for name in ("team", 'A b"\\c'):
        url = f"{postgres.url}{'&' if '?' in postgres.url else '?'}schema={quote(name, safe='')}&partitions=1"
        for _ in range(2):
            with open_store(url, embedder="none"), open_checkpointer(url) as saver:
                assert list(saver.list(None)) == []
        assert postgres.run("SELECT count(*) FROM {}.checkpoints", f"{name}_threads") == [(0,)]
    assert postgres.run("SELECT to_regclass('public.checkpoints') IS NULL") == [(True,)]
    with pytest.raises(UsageError, match="_threads has 68 bytes"):
        open_checkpointer(f"{postgres.url}{'&' if '?' in postgres.url else '?'}schema={'x' * 60}")
