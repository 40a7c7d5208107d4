"""The door of a store: what it could not keep or count with is refused before anything is done, in the same words
whichever backend it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import wraps
from inspect import isfunction, signature
from typing import Any, TypeVar

from langgraph.store.base import BaseStore
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from everthread.errors import UsageError
from everthread.stores.arguments import checked
from everthread.stores.identity import aware

__all__ = ["fault_in", "guarded", "unsound"]

ANY_TEXT = frozenset({"error", "job", "ops", "payload", "query", "result", "speaker", "task", "text"})
"""Arguments and fields that may hold any text: it is kept as bytes or as JSON, or is only read. `ops` are looked at
by themselves (`item_ops.py`), `job` the store gave out itself."""
MOST = 2**63
"""Whole numbers are counted up to this one, by each backend."""
LONGEST = timedelta(days=366_000)
"""A thousand years: a time that far from any other may be none."""

T = TypeVar("T")
Fault = tuple[str, str] | None
"""Where something is wrong ("changes[0].record.subject"), and what with which remedy."""


def guarded(cls: type[T]) -> type[T]:
    """A part of a store, each of its public methods behind the door: UsageError for text with a NUL character or a lone
    surrogate where not any text may be, for a whole number of more than 64 bits, a number of seconds or a length of
    time that is none, and for a time without a zone. Types are looked at by `arguments.checked`: not of what
    LangGraph's `BaseStore` has, which is called as it is there, and not of what works on a `connection`."""
    theirs = dir(BaseStore) if issubclass(cls, BaseStore) else []
    for name, method in list(vars(cls).items()):
        if isfunction(method) and not name.startswith("_"):
            typed = name not in theirs and "connection" not in method.__annotations__
            setattr(cls, name, _behind_door(checked(method) if typed else method))
    return cls


def _behind_door(method: Callable[..., Any]) -> Callable[..., Any]:
    names = tuple(signature(method).parameters)[1:]

    @wraps(method)
    def entered(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check(zip(names, args, strict=False))
        _check(kwargs.items())
        return method(self, *args, **kwargs)

    return entered


def _check(arguments: Iterable[tuple[str, Any]]) -> None:
    for name, value in arguments:
        fault = _fault(name, value)
        if fault is not None:
            raise UsageError(": ".join((f"{name}{fault[0]}", fault[1])))


def _fault(name: str, value: Any) -> Fault:
    """What is wrong in a value of this name, and where below it."""
    if value is None or name in ANY_TEXT or isinstance(value, bool | bytes):
        return None
    if isinstance(value, str):
        told = unsound(value)
    elif isinstance(value, int | float):
        told = "must not be negative" if name == "limit" and value < 0 else _uncountable(value)
    elif isinstance(value, datetime):
        aware(value, name)
        return None
    elif isinstance(value, timedelta):
        told = None if abs(value) <= LONGEST else f"{value.days} days is too long; give less than a thousand years"
    else:
        return _fault_within(name, value)
    return None if told is None else ("", told)


def _fault_within(name: str, value: Any) -> Fault:
    parts: Iterable[tuple[str, str, Any]]
    if isinstance(value, dict) and name != "value":  # that of an item is JSON, which may hold any text
        parts = ((f".{key}", str(key), part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        parts = ((f"[{n}]", "", part) for n, part in enumerate(value))
    elif isinstance(value, BaseModel) and not _is_plainly_sound(value):
        parts = ((f".{each}", each, part) for each, part in value.__dict__.items())
    else:
        return None
    for place, each, part in parts:
        fault = _fault(each, part)
        if fault is not None:
            return place + fault[0], fault[1]
    return None


def _is_plainly_sound(model: BaseModel) -> bool:
    """Whether nothing in it has a NUL character or a lone surrogate; its fields say themselves what numbers they take.
    This is asked of every record that is written, and ten times as fast as a look at each field."""
    try:
        return "\\u0000" not in model.model_dump_json()
    except PydanticSerializationError:
        return False


def fault_in(model: BaseModel) -> str | None:
    """The first part of it that could not be kept, with what is wrong and the remedy; None when there is none."""
    fault = _fault_within("", model)
    return None if fault is None else f"{fault[0][1:]}: {fault[1]}"


def unsound(text: str) -> str | None:
    """What keeps a text from being kept as text by each backend, and the remedy; None when nothing does."""
    if text.isascii() and "\0" not in text:
        return None
    if "\0" in text:
        return f"{text[:80]!r} has a NUL character; leave it out"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{text[:80]!r} has a lone surrogate, which is not valid Unicode; leave it out"
    return None


def _uncountable(value: int | float) -> str | None:
    if isinstance(value, float) and not (math.isfinite(value) and abs(value) <= LONGEST.total_seconds()):
        return f"{value} is no number that anything is counted by; give a smaller one"
    return None if -MOST <= value < MOST else f"{str(value)[:40]} is too large; give a number below 2**63"
