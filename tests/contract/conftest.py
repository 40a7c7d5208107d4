"""Each backend once: a test that asks for `store` runs on all of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from everthread.stores import MemoryStore, open_store

OpenStore = Callable[..., MemoryStore]

BACKENDS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda home: f"sqlite:{home}",
}
"""One line a backend: its name, and the URL of an empty store."""


@pytest.fixture(params=BACKENDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet; the same one for the whole test."""
    return BACKENDS[request.param](tmp_path / "home")


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
