"""What a server does to a store and its threads: it goes and comes back, loses what was sent, is used up, is older."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from uuid import uuid4

import psycopg
import pytest
from support.cutting import Cut, cutter
from support.postgres import OwnServer, Postgres, in_database
from support.records import create, learnt
from support.threads import echo_graph, on, said, say

from everthread import Identity
from everthread.errors import StoreError, UsageError
from everthread.stores import PostgresStore, open_checkpointer, open_store
from everthread.stores.checkpoints.postgres import PostgresSaver
from everthread.stores.postgres.database import migrations


def again(write: Callable[[], object], failed: Event | None = None) -> None:
    """Try until it goes through, as a host does; `failed` is set when it did not."""
    for _ in range(100):
        try:
            write()
        except StoreError:
            if failed is not None:
                failed.set()
        else:
            return
    raise AssertionError("it never went through")


def statements(store: PostgresStore, identity: Identity) -> list[str]:
    return sorted(record.statement for record in store.records(identity))


def test_a_batch_that_its_server_leaves_in_the_middle_is_whole_when_it_is_back(
    own_server: OwnServer, ana: Identity
) -> None:
    told = [f"fact {n:02d}" for n in range(30)]
    begun, gone, missed = Event(), Event(), Event()

    def batch() -> None:
        for n, statement in enumerate(told):
            again(partial(store.commit, ana, [create(learnt(statement))], key=statement), missed)
            if n == 9:
                begun.set()
                gone.wait(60)

    with PostgresStore(own_server.url, embedder="none", timeout=2.0) as store:
        writer = Thread(target=batch)
        writer.start()
        assert begun.wait(60)
        own_server.stop()
        gone.set()
        assert missed.wait(60)
        own_server.start()
        writer.join(120)
        assert not writer.is_alive()
        assert statements(store, ana) == told
        assert store.verify_audit().detail == "chain of 30 entries verified"
        assert [finding.check for finding in store.doctor() if not finding.ok] == []


def test_a_thread_goes_on_when_its_server_is_back(own_server: OwnServer) -> None:
    with PostgresSaver(own_server.url, pool_timeout=2.0) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say("one"), on("t"))
        own_server.stop()
        with pytest.raises(StoreError, match=r"failed|no connection free"):
            graph.invoke(say("two", "u2"), on("t"))
        own_server.start()
        again(lambda: graph.invoke(say("two", "u2"), on("t")))
        assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_whose_end_is_not_known_is_tried_again_and_written_once(
    postgres: Postgres, ana: Identity, cut: Cut
) -> None:
    changes = [create(learnt("Ana likes tea")), create(learnt("Ana likes rum"))]
    with cutter(postgres.url) as between, PostgresStore(between.url, embedder="none") as store:
        store.set_consent(ana, "on")
        between.next = cut
        with pytest.raises(StoreError, match="whether it was written is not known; try again with the same key"):
            store.commit(ana, changes, key="k")
        receipt = store.commit(ana, changes, key="k")
        assert store.commit(ana, changes, key="k") == receipt
        assert statements(store, ana) == ["Ana likes rum", "Ana likes tea"]
        assert [len(store.history(ana, record.id)) for record in store.records(ana)] == [1, 1]
        assert [entry.action for entry in store.audit(ana)] == ["consent", "write"]
        assert store.verify_audit().ok


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_step_of_a_thread_whose_end_is_not_known_is_there_once(postgres: Postgres, cut: Cut) -> None:
    with cutter(postgres.url) as between, open_checkpointer(between.url) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say("one"), on("t"))
        between.next = cut
        again(lambda: graph.invoke(say("two", "u2"), on("t")))
        assert said(graph, "t") == ["one", "re: one", "two", "re: two"]


def test_a_pool_that_is_used_up_is_told(postgres: Postgres, ana: Identity) -> None:
    with PostgresStore(postgres.url, embedder="none", pool_size=1, timeout=2) as store:
        failed: list[StoreError] = []

        def another() -> None:
            try:
                store.consent(ana)
            except StoreError as error:
                failed.append(error)

        with store._database.read():
            thread = Thread(target=another)
            thread.start()
            thread.join()
        assert ["no connection is free; raise pool_size" in str(error) for error in failed] == [True]
        assert store.consent(ana) == "on"


def test_an_older_schema_is_brought_up_to_date(postgres: Postgres, ana: Identity) -> None:
    *older, newest = migrations().items()
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE SCHEMA everthread; SET search_path = everthread")
        connection.execute("CREATE TABLE migrations (number int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
        connection.execute("SELECT set_config('everthread.partitions', '4', false)")
        for number, script in older:
            connection.execute(script.encode())
            connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))
        connection.execute("INSERT INTO consents VALUES ('acme', 'ana', 'read', 0)")
    with open_store(postgres.url, embedder="none") as store:
        assert store.consent(ana) == "read"
    assert postgres.run("SELECT max(number) FROM everthread.migrations") == [(newest[0],)]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused_for_memory_and_threads(postgres: Postgres, encoding: str) -> None:
    name = f"everthread_{encoding.lower()}_{uuid4().hex[:8]}"
    postgres.run(f"CREATE DATABASE {{}} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'", name)
    try:
        with pytest.raises(StoreError, match=f"its encoding is {encoding}; make one with ENCODING 'UTF8'"):
            open_store(in_database(postgres.url, name), embedder="none")
        with pytest.raises(UsageError, match=f"encoded in {encoding}"):
            open_checkpointer(in_database(postgres.url, name))
    finally:
        postgres.run("DROP DATABASE {} WITH (FORCE)", name)
