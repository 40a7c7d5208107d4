"""A checkpointer by its URL."""

from __future__ import annotations

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.stores.checkpoints.files import path_of
from everthread.stores.checkpoints.saver import Saver
from everthread.stores.checkpoints.sqlite import SqliteSaver
from everthread.stores.open import is_postgres

__all__ = ["open_checkpointer"]


def open_checkpointer(
    url: str,
    *,
    synchronous: str = "NORMAL",
    lease_seconds: float = 10.0,
    pool_size: int = 10,
    serde: SerializerProtocol | None = None,
) -> Saver:
    """The checkpointer at `url`: `"sqlite:DIR"` or a plain directory means `DIR/threads.db`; or `"sqlite::memory:"`;
    or `"postgresql://USER:PASSWORD@HOST:PORT/DATABASE"`, with the extra `postgres`; with `?schema=NAME`, as of a store,
    the threads are in the schema NAME_threads, which is made when it is not there.

    Use it as a context manager, plain or async, or call `close()`. `serde`: another serializer, such as LangGraph's
    `EncryptedSerializer`.

    Of a file: with `synchronous="NORMAL"` a killed process loses nothing and a power cut at most the last checkpoints;
    `"FULL"` loses nothing and waits for the disk at every step. Of a server: `pool_size` connections at most, and one
    more that holds the threads of running graphs. `lease_seconds`: how long a process that hangs keeps its threads.

    Raises UsageError for a `lease_seconds` that is no time, for an address that is none and for another program's file,
    StoreError when the file is corrupt, locked, read-only or cannot be made, or the server cannot be reached or
    refuses.
    """
    if is_postgres(url):
        from everthread.stores.checkpoints.postgres import PostgresSaver

        return PostgresSaver(url, pool_size=pool_size, lease_seconds=lease_seconds, serde=serde)
    return SqliteSaver(path_of(url), synchronous=synchronous, lease_seconds=lease_seconds, serde=serde)
