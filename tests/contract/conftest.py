"""Each backend once: a test that asks for `store` runs on all of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from support.postgres import PostgresStores

from everthread.stores import MemoryStore, open_store

OpenStore = Callable[..., MemoryStore]
OpenPlain = Callable[..., BaseStore]


def files_under(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


class Backend(NamedTuple):
    """How the suite meets a backend."""

    url: Callable[[Path], str]
    """The URL of a store that is empty; each folder has its own."""
    stored: Callable[[Path], bytes]
    """Every byte that it keeps, as it lies on the disk."""


def sqlite_backend(request: pytest.FixtureRequest) -> Backend:
    return Backend(url=lambda home: f"sqlite:{home}", stored=files_under)


def postgres_backend(request: pytest.FixtureRequest) -> Backend:
    stores: PostgresStores = request.getfixturevalue("postgres_stores")
    return Backend(url=stores.url, stored=stores.stored)


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    "sqlite": sqlite_backend,
    "postgres": postgres_backend,
}
"""One line a backend; nothing else in this folder knows them apart."""


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param](request)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of this test's store."""
    return tmp_path / "home"


@pytest.fixture
def store_url(backend: Backend, home: Path) -> str:
    """The URL of a store that does not exist yet; the same one for the whole test."""
    return backend.url(home)


@pytest.fixture
def reopen(store_url: str) -> Iterator[OpenStore]:
    """Opens the store of this test, as often as it is called and with any options; all are closed at the end."""
    with ExitStack() as opened:

        def again(**options: Any) -> MemoryStore:
            return opened.enter_context(open_store(store_url, **options))

        yield again


@pytest.fixture
def store(reopen: OpenStore) -> MemoryStore:
    """An empty store with the built-in embedder."""
    return reopen()


@pytest.fixture
def open_empty(backend: Backend, tmp_path: Path) -> OpenStore:
    """Opens another empty store with each call; the caller closes it."""
    numbers = count()

    def another(**options: Any) -> MemoryStore:
        return open_store(backend.url(tmp_path / f"empty-{next(numbers)}"), **options)

    return another


@pytest.fixture
def stored_bytes(backend: Backend, home: Path) -> Callable[[], bytes]:
    """Every byte that the store of this test keeps now."""
    return lambda: backend.stored(home)


@pytest.fixture
def open_ours(reopen: OpenStore) -> OpenStore:
    """Opens the store of this test for plain items, with any options; each keeps the same items."""
    return lambda **options: reopen(embedder="none", **options)


@pytest.fixture(params=["in_memory", *BACKENDS])
def open_plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenPlain]:
    """Opens a store for plain items: a backend of ours, or LangGraph's own."""
    if request.param == "in_memory":
        yield InMemoryStore
        return
    url = BACKENDS[request.param](request).url(tmp_path / "home")
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(open_store(url, embedder="none", **options))
