"""A store that is opened by `with` or by `async with`, whichever the caller writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

__all__ = ["Opening"]


class Closable(Protocol):
    def close(self) -> None: ...


S = TypeVar("S", bound=Closable)
A = TypeVar("A", bound=Closable)


class Opening(Generic[S, A]):
    """Nothing is opened before the block begins; what was opened is closed at its end. For one block."""

    def __init__(self, open_sync: Callable[[], S], open_async: Callable[[], A]) -> None:
        self._open_sync = open_sync
        self._open_async = open_async
        self._opened: S | A | None = None

    def __enter__(self) -> S:
        self._opened = opened = self._open_sync()
        return opened

    def __exit__(self, *failure: object) -> None:
        if self._opened is not None:
            self._opened.close()

    async def __aenter__(self) -> A:
        self._opened = opened = await asyncio.to_thread(self._open_async)
        return opened

    async def __aexit__(self, *failure: object) -> None:
        if self._opened is not None:
            await asyncio.to_thread(self._opened.close)
