"""Blocking work beside an event loop, on threads of our own.

Not on the loop's own pool (`asyncio.to_thread`): a host may fill that with synchronous runs which wait for a thread
that an asynchronous run holds, and that run would then wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["aside"]

Given = ParamSpec("Given")
Result = TypeVar("Result")

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()
"""One a loop, as the loop's own is: it ends with the loop, and a fork begins with none."""


async def aside(function: Callable[Given, Result], /, *args: Given.args, **options: Given.kwargs) -> Result:
    """What `function` returns or raises; it runs on a thread, in the caller's context. Never wait in it for a run."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = ThreadPoolExecutor(thread_name_prefix="everthread")
    return await loop.run_in_executor(pool, partial(copy_context().run, partial(function, *args, **options)))
