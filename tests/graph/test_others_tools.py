"""Other people's tools on `store.bound(identity)`: what they write is a candidate, what they read is theirs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from everthread import Identity
from everthread.errors import UsageError
from everthread.nodes import door
from everthread.stores import MemoryStore, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}") as opened:
        yield opened


def under(identity: Identity) -> tuple[str, ...]:
    return ("everthread", identity.tenant, "user", identity.user)


def test_what_langmems_tool_writes_waits_for_review(store: MemoryStore, ana: Identity) -> None:
    manage = create_manage_memory_tool(namespace=under(ana), store=store.bound(ana, remember=door(store)))
    manage.invoke({"content": "The user prefers green tea.", "action": "create"})
    assert store.records(ana) == []
    (record,) = store.records(ana, statuses=("pending",))
    assert "green tea" in record.statement
    assert (record.authority, record.provenance.source) == ("inferred", "agent")


def test_what_langmems_tool_must_not_write_is_refused(store: MemoryStore, ana: Identity) -> None:
    manage = create_manage_memory_tool(namespace=under(ana), store=store.bound(ana, remember=door(store)))
    with pytest.raises(UsageError):
        manage.invoke({"content": "The password is hunter2-Kx93hd82.", "action": "create"})
    assert store.records(ana, statuses=("pending", "active")) == []


def test_langmems_search_finds_what_the_identity_may_read(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    from support.records import keep, learnt

    keep(store, ana, learnt("Ana prefers green tea in the morning"))
    for identity, found in ((ana, True), (ben, False)):
        search = create_search_memory_tool(namespace=under(ana), store=store.bound(identity))
        assert ("green tea" in str(search.invoke({"query": "green tea"}))) is found


def test_langmems_tools_in_a_namespace_of_their_own_are_private(
    store: MemoryStore, ana: Identity, ben: Identity
) -> None:
    manage = create_manage_memory_tool(namespace=("notes",), store=store.bound(ana))
    manage.invoke({"content": "Ana's note about herons.", "action": "create"})
    for identity, found in ((ana, True), (ben, False)):
        search = create_search_memory_tool(namespace=("notes",), store=store.bound(identity))
        assert ("herons" in str(search.invoke({"query": "herons"}))) is found


class StoreBackend:
    """Files in a store, as deep agents keep them: one item a path, its lines as a list."""

    def __init__(self, store: BaseStore, namespace: tuple[str, ...] = ("filesystem",)) -> None:
        self.store = store
        self.namespace = namespace

    def write(self, path: str, text: str) -> None:
        now = datetime.now(UTC).isoformat()
        self.store.put(self.namespace, path, {"content": text.split("\n"), "created_at": now, "modified_at": now})

    def read(self, path: str) -> str | None:
        item = self.store.get(self.namespace, path)
        return None if item is None else "\n".join(item.value["content"])

    def paths(self) -> list[str]:
        return sorted(item.key for item in self.store.search(self.namespace, limit=100))

    def edit(self, path: str, old: str, new: str) -> None:
        self.write(path, str(self.read(path)).replace(old, new))


def test_a_file_backend_keeps_each_users_files_apart(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    anas, bens = (StoreBackend(store.bound(identity)) for identity in (ana, ben))
    anas.write("/memories/plan.md", "one\ntwo")
    anas.write("/notes.md", "three")
    anas.edit("/memories/plan.md", "two", "2")
    assert anas.paths() == ["/memories/plan.md", "/notes.md"]
    assert (anas.read("/memories/plan.md"), bens.read("/memories/plan.md")) == ("one\n2", None)
    bens.write("/notes.md", "ben's")
    assert (anas.read("/notes.md"), bens.paths()) == ("three", ["/notes.md"])


async def test_a_file_backend_under_asyncio(store: MemoryStore, ana: Identity) -> None:
    bound: Any = store.bound(ana)
    await bound.aput(("filesystem",), "/a.md", {"content": ["x"]})
    assert (await bound.aget(("filesystem",), "/a.md")).value == {"content": ["x"]}
