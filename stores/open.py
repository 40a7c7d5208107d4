"""A store by its URL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from everthread.errors import UsageError
from everthread.stores.contract import MemoryStore
from everthread.stores.embedding import Embedder

__all__ = ["MEMORY_FILE", "located", "open_store", "refuse_keywords", "shown"]

_KEYWORDS = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")
"""How libpq's other way to name a server begins."""
MEMORY_FILE = "memory.db"
"""The file of long-term memory inside a home."""


def open_store(url: str | Path, *, embedder: str | Embeddings | Embedder | None = None, **options: Any) -> MemoryStore:
    """The store at `url`: "sqlite:DIR" keeps `memory.db` in that directory, "sqlite::memory:" nothing at all.

    "postgresql://user@host/database" keeps it in a schema of that database, which `?schema=NAME` names ("everthread").
    A plain path is a directory too, or the file itself when it ends in ".db". `embedder` and the other options are
    those of the backend (see `SqliteStore`, `PostgresStore`).

    Raises UsageError for another scheme, StoreError when it cannot be opened.
    """
    if is_postgres(url):
        return _postgres_store(str(url), embedder=embedder, **options)
    from everthread.stores.sqlite.store import SqliteStore

    return SqliteStore(sqlite_path(url, MEMORY_FILE), embedder=embedder, **options)


def refuse_keywords(url: str) -> None:
    """UsageError for a server that is named as `host=... password=...`: as a folder it would have the password in its
    name."""
    if _KEYWORDS.match(url):
        raise UsageError("a server is named by its URL; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE")


def is_postgres(url: str | Path) -> bool:
    """Whether a URL names a PostgreSQL database."""
    return str(url).startswith(("postgresql://", "postgres://"))


def located(url: str | Path) -> tuple[str, bool]:
    """Where a store is, the same for every way to write it and without a password, and whether there is one. Nothing
    is made. StoreError when a server cannot be reached."""
    if is_postgres(url):
        with _installed():
            from everthread.stores.postgres.address import where
            from everthread.stores.postgres.database import is_there
        return where(str(url)), is_there(str(url))
    file = Path(sqlite_path(url, MEMORY_FILE))
    return str(file.resolve()), file.is_file()


def shown(url: str | Path) -> str:
    """The URL as it may be shown: of a server neither user nor password, and of one that cannot be read nothing."""
    if not is_postgres(url):
        return str(url)
    try:
        with _installed():
            from everthread.stores.postgres.address import where
        return where(str(url))
    except UsageError:
        return "postgresql://..."


def _postgres_store(url: str, **options: Any) -> MemoryStore:
    with _installed():
        from everthread.stores.postgres.store import PostgresStore
    return PostgresStore(url, **options)


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; pip install 'everthread[postgres]'") from error


def sqlite_path(url: str | Path, name: str) -> str:
    """The file that `url` means, `name` in its directory. UsageError for a scheme that is not supported."""
    text = str(url)
    refuse_keywords(text)
    scheme, colon, rest = text.partition(":")
    if scheme == "sqlite":
        text = rest.removeprefix("//")
    elif colon and len(scheme) > 1 and (scheme.isidentifier() or rest.startswith("//")):
        raise UsageError(
            f"no backend for {scheme!r}; supported: sqlite:DIR, sqlite::memory:, postgresql://..., or a path"
        )
    if not text.strip():
        raise UsageError("the store's URL names no directory; write sqlite:./data")
    if text == ":memory:" or text.endswith(".db"):
        return text
    return str(Path(text).expanduser() / name)
