"""What is SQLite's own about the store: its rows, its files, and standing in for LangGraph's classes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from langgraph.store.base import PutOp
from support.full_disk import fill_disk
from support.plain import Clock, TableEmbeddings

from everthread import Identity
from everthread.errors import StoreError
from everthread.stores import SqliteStore
from everthread.stores.sqlite.aio import AsyncSqliteStore
from everthread.stores.sqlite.database import Database
from everthread.stores.tables.transcripts import READ_THESE

HERON = TableEmbeddings({"the blue heron": [0.123456, 0.654321]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def test_a_deleted_item_leaves_no_vector_and_no_byte_in_the_files(file: Path) -> None:
    with SqliteStore(file, embedder="none", index={"dims": 2, "embed": HERON, "fields": ["text"]}) as store:
        store.put(("n",), "k", {"text": "the blue heron"})
        store.delete(("n",), "k")
    database = Database(str(file))
    with database.read() as connection:
        assert list(connection.execute("SELECT * FROM item_vectors")) == []
    database.scrub()
    database.close()
    left = b"".join(found.read_bytes() for found in file.parent.iterdir())
    traces = [b"blue heron", np.array([0.123456, 0.654321], "<f4").tobytes()]
    assert [trace in left for trace in traces] == [False, False]


def test_the_sweep_deletes_vectors_with_their_items(file: Path) -> None:
    clock = Clock()
    index = {"dims": 2, "embed": HERON, "fields": ["text"]}
    with SqliteStore(file, embedder="none", index=index, clock=clock) as store:  # type: ignore[arg-type]
        for minutes in (1, None):
            store.put(("n",), f"{minutes}", {"text": "the blue heron"}, ttl=minutes)
        clock.forward(1)
        assert store.sweep_ttl() == 1
    database = Database(str(file))
    with database.read() as connection:
        counts = list(connection.execute("SELECT count(*) FROM items UNION ALL SELECT count(*) FROM item_vectors"))
    database.close()
    assert counts == [(1,), (1,)]


def test_a_batch_that_does_not_fit_leaves_nothing_behind(file: Path) -> None:
    with SqliteStore(file, embedder="none") as store:
        fill_disk(store)
        with pytest.raises(StoreError, match="the disk is full"):
            store.batch([PutOp(("n",), "small", {}), PutOp(("n",), "large", {"x": "y" * 2_000_000})])
        assert store.search(()) == []


async def test_opened_with_async_with_it_stands_in_for_langgraphs_async_store(file: Path) -> None:
    async with SqliteStore.from_conn_string(str(file), ttl={"default_ttl": 1}) as store:
        assert isinstance(store, AsyncSqliteStore)
        await store.setup()
        running = await store.start_ttl_sweeper()
        await store.aput(("n",), "k", {"n": 1})
        assert await store.sweep_ttl() == 0
        for call in (lambda: store.get(("n",), "k"), lambda: store.put(("n",), "k", {}), lambda: store.search(())):
            with pytest.raises(asyncio.InvalidStateError, match="use abatch"):
                call()
        assert [item.value for item in await asyncio.to_thread(store.search, ())] == [{"n": 1}]
        assert await store.stop_ttl_sweeper() is True
        assert running.done()
    with SqliteStore(file) as again:
        found = again.get(("n",), "k")
        assert found is not None and found.value == {"n": 1}


async def test_an_asynchronous_store_keeps_records_as_any_other(file: Path) -> None:
    identity = Identity(tenant="acme", user="ana")
    async with AsyncSqliteStore.from_conn_string(str(file)) as store:
        assert (await store.arecall(identity, "tea")).hits == ()
        assert await store.asearch(("everthread", "acme")) == []
        assert await store.bound(identity).asearch(()) == []


def test_nothing_is_opened_before_the_block_begins(file: Path) -> None:
    opening = SqliteStore.from_conn_string(str(file))
    assert not file.exists()
    with opening as store:
        assert type(store) is SqliteStore
        assert store.setup() is None  # type: ignore[func-returns-value]
    assert file.exists()


def test_what_embeds_the_items_can_be_asked_for(file: Path) -> None:
    with SqliteStore(file, index={"dims": 2, "embed": HERON}) as store:
        assert store.embeddings is HERON
    with SqliteStore(file) as store:
        assert store.embeddings is None


def test_messages_are_read_by_their_ids_through_an_index_however_long_the_thread_is(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db", embedder="none") as store, store._database.read() as connection:
        plan = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {READ_THESE}", ("t", '["m1"]', 0, -1))]
    assert "SEARCH messages USING INDEX sqlite_autoindex_messages_1 (thread_id=? AND message_id=?)" in plan
