"""Items as they stand in the files of other memories."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from support.foreign import history_db, langgraph_db, mem0_export

from everthread.errors import UsageError
from everthread.migrate import Item, Layout, Skipped, items_of, read
from everthread.stores import open_store

MAY = datetime(2025, 5, 8, 12, 0, tzinfo=UTC)
TEA = {"content": "Ana prefers tea."}


def test_langgraphs_file_gives_its_items_with_their_times(tmp_path: Path) -> None:
    path = langgraph_db(
        tmp_path / "s.db", [(("memories", "ana"), "k", TEA), (("b",), "k", {"x": 1})], at="2025-05-08 12:00:00"
    )
    assert read(path, "langgraph") == [Item(("b",), "k", {"x": 1}, MAY), Item(("memories", "ana"), "k", TEA, MAY)]


def test_the_source_is_not_changed(tmp_path: Path) -> None:
    path = langgraph_db(tmp_path / "s.db", [(("memories", "ana"), "k", TEA)])
    before = path.read_bytes()
    path.chmod(0o444)
    read(path, "langgraph")
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("ignore:The default datetime adapter:DeprecationWarning")  # LangGraph's store, on 3.12
def test_an_item_with_a_time_to_live_says_when_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SqliteStore.from_conn_string(str(path), ttl={}) as store:
        store.setup()
        store.put(("a",), "k", TEA, ttl=60)
    (item,) = read(path, "langgraph")
    assert isinstance(item, Item) and item.at is not None and item.expires_at is not None
    assert 3500 < (item.expires_at - item.at).total_seconds() < 3700


def test_a_file_of_the_first_version_has_no_expiry(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE store (prefix text, key text, value text, created_at, updated_at)")
        connection.execute("INSERT INTO store VALUES ('a.b', 'k', '{\"x\": 1}', '2025-05-08 12:00:00', NULL)")
        connection.execute("INSERT INTO store VALUES ('a.b', 'l', '[1]', NULL, NULL)")
        connection.execute("INSERT INTO store VALUES ('a.b', 'm', 'torn', NULL, NULL)")
    unreadable = Skipped("its value is not a JSON object")
    assert read(path, "langmem") == [Item(("a", "b"), "k", {"x": 1}, MAY), unreadable, unreadable]


def test_torn_text_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = langgraph_db(tmp_path / "s.db", [(("a",), "k", TEA), (("b",), "k", TEA)], at="2025-05-08 12:00:00")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE store SET key = CAST(x'6bff' AS TEXT) WHERE prefix = 'a'")
    assert read(path, "langgraph") == [Item(("a",), "k\ufffd", TEA, MAY), Item(("b",), "k", TEA, MAY)]


def test_a_source_that_is_in_use_is_read(tmp_path: Path) -> None:
    path = langgraph_db(tmp_path / "s.db", [])
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO store (prefix, key, value, updated_at) VALUES ('a', 'k', '{}', '2025-05-08 12:00')")
        writer.commit()
        assert read(path, "langgraph") == [Item(("a",), "k", {}, MAY)]


@pytest.mark.parametrize("wrap", [list, lambda found: {"results": found}])
def test_mem0s_export_has_its_owners_as_namespace(tmp_path: Path, wrap: Any) -> None:
    first = {
        "id": "1",
        "memory": "Ana prefers tea.",
        "user_id": "ana",
        "agent_id": "helper",
        "created_at": "2025-05-01T00:00:00+00:00",
        "updated_at": "2025-05-08T05:00:00-07:00",
        "metadata": {"category": "food"},
    }
    second = {
        "id": "2",
        "memory": "x",
        "attributed_to": "assistant",
        "expiration_date": "2030-01-01",
        "created_at": "?",
    }
    path = mem0_export(tmp_path / "m.json", wrap([first, second, {"memory": "no id"}, "text"]))
    no_id = Skipped("it is not a memory with an id")
    assert read(path, "mem0") == [
        Item(("user_id", "ana", "agent_id", "helper"), "1", first, MAY),
        Item(("nobody",), "2", second, None, datetime(2030, 1, 1, tzinfo=UTC), by_model=True),
        no_id,
        no_id,
    ]


def test_mem0s_history_gives_the_last_state_of_each_memory(tmp_path: Path) -> None:
    created, updated = "2025-05-01T00:00:00+00:00", "2025-05-08T12:00:00+00:00"
    path = history_db(
        tmp_path / "history.db",
        [
            ("m1", "Ana prefers coffee.", "ADD", created, None, 0, "user"),
            ("m2", "Ana has a cat.", "ADD", created, None, 0, "user"),
            ("m3", "Ana may like trains.", "ADD", updated, None, 0, "assistant"),
            ("m1", "Ana prefers tea.", "UPDATE", created, updated, 0, "user"),
            ("m2", None, "DELETE", created, updated, 1, "user"),
        ],
    )
    assert read(path, "mem0") == [
        Item(("history",), "m1", {"memory": "Ana prefers tea."}, MAY),
        Skipped("the source deleted it"),
        Item(("history",), "m3", {"memory": "Ana may like trains."}, MAY, by_model=True),
    ]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_open_store_gives_each_item_once(kind: str, tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "s.db")) as stored:
        stored.setup()
        check_items_of(InMemoryStore() if kind == "memory" else stored)


def check_items_of(store: BaseStore) -> None:
    for namespace in (("a",), ("a", "b"), ("c",)):
        store.put(namespace, "k", {"in": list(namespace)})
    assert [(item.namespace, item.value) for item in items_of(store)] == [
        (("a",), {"in": ["a"]}),
        (("a", "b"), {"in": ["a", "b"]}),
        (("c",), {"in": ["c"]}),
    ]


@pytest.mark.parametrize(
    ("layout", "content", "complaint"),
    [
        ("langgraph", None, "is not a file"),
        ("langgraph", "hello", "is not a SQLite file"),
        ("mem0", "hello", "neither a SQLite file nor JSON"),
        ("mem0", "[" * 100_000, "neither a SQLite file nor JSON"),
        ("mem0", '{"a": 1}', "holds no list of memories"),
        ("mem0", "3", "holds no list of memories"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, layout: str, content: str | None, complaint: str) -> None:
    path = tmp_path / "source"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=complaint):
        read(path, cast(Layout, layout))


@pytest.mark.parametrize("layout", ["langgraph", "mem0"])
def test_a_database_of_another_kind_is_refused(tmp_path: Path, layout: Layout) -> None:
    open_store(f"sqlite:{tmp_path}").close()
    with pytest.raises(UsageError, match="has no table"):
        read(tmp_path / "memory.db", layout)


def test_a_url_is_refused_with_the_way_that_there_is() -> None:
    with pytest.raises(UsageError, match=r"^a URL is no file; use postgres_items"):
        read(Path("postgresql://host/db"), "langgraph")
