"""The parts of snapshots that were read last, decoded: to make thousands of messages anew took most of a turn.

Whoever reads a part gets messages that nobody else has, and that are as they are stored: a message is given out again
only when nothing refers to it any more, and nothing in it was changed. A part is known by its stored bytes, which are
read each time: what was erased or changed, by whomever, is never given out. What is erased in this process is forgotten
at once, and what nobody reads after `SECONDS`, when anything else is read.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from langchain_core.messages import BaseMessage

__all__ = ["Recent"]

BYTES = 2_000_000
"""Of what is kept, as it is stored: some 8,000 messages of 500 characters."""
SECONDS = 600.0
"""How long a part is kept that nobody reads."""

Decode = Callable[[str, bytes], Any]


@dataclass
class _Part:
    stored: tuple[str, bytes]
    sets: list[list[BaseMessage]]
    """The messages as they were given out, at most twice: a host still has the result of a turn when it begins the
    next."""
    pristine: list[BaseMessage] | None = None
    """The same, which nobody has. Made when the part is read again. The texts are those of the sets: each is held once,
    and is seen to be unchanged without reading it."""
    read_at: float = 0.0


class Recent:
    """The parts that a checkpointer read last; threads may share it. `limit`: bytes that are kept, as stored."""

    def __init__(self, limit: int = BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock, self._bytes = limit, clock, 0
        self._parts: OrderedDict[Hashable, _Part] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, place: Hashable, kind: str, stored: bytes, decode: Decode) -> Any:
        """The value of a part: what `decode(kind, stored)` is. `place`: where it is stored."""
        with self._lock:
            part = self._taken(place)
            if part is None or part.stored != (kind, stored):
                value = decode(kind, stored)
                if not _are_messages(value):
                    return value
                part = _Part((kind, stored), [value])
            else:
                value = self._given_again(part, decode)
            part.read_at = self._clock()
            self._parts[place] = part
            self._bytes += len(stored)
            self._shorten(part.read_at - SECONDS)
            # Copied under the lock: from now on somebody has them.
            return list(value)

    def look(self, place: Hashable, kind: str, stored: bytes, decode: Decode) -> Any:
        """The same, only to be looked at: not to be changed, or given to anybody."""
        with self._lock:
            part = self._parts.get(place)
            known = part.pristine if part is not None and part.stored == (kind, stored) else None
        return decode(kind, stored) if known is None else known

    def forget(self) -> None:
        """Keep nothing of what was read."""
        with self._lock:
            self._parts.clear()
            self._bytes = 0

    def _given_again(self, part: _Part, decode: Decode) -> list[BaseMessage]:
        if part.pristine is None:
            part.pristine = _with_texts_of(part.sets[0], decode(*part.stored))
        for messages in part.sets:
            if _nobody_has(messages) and _are_unchanged(messages, part.pristine):
                return messages
        part.sets = [*part.sets[-1:], _with_texts_of(part.pristine, decode(*part.stored))]
        return part.sets[-1]

    def _taken(self, place: Hashable) -> _Part | None:
        part = self._parts.pop(place, None)
        self._bytes -= len(part.stored[1]) if part else 0
        return part

    def _shorten(self, since: float) -> None:
        """Drop what was read before, and the oldest of what is too much."""
        while self._parts and (self._bytes > self._limit or next(iter(self._parts.values())).read_at < since):
            self._taken(next(iter(self._parts)))


def _are_messages(value: Any) -> bool:
    return type(value) is list and all(isinstance(each, BaseMessage) for each in value)


def _nobody_has(messages: list[BaseMessage]) -> bool:
    return set(map(sys.getrefcount, messages)) <= {_ALONE}


def _with_texts_of(known: list[BaseMessage], messages: list[BaseMessage]) -> list[BaseMessage]:
    """`messages`, which nobody has yet, with the same objects for texts that are equal."""
    for one, other in zip(known, messages, strict=True):
        texts = [(name, value) for name, value in [*one.__dict__.items()] if isinstance(value, str)]
        other.__dict__.update([(name, text) for name, text in texts if other.__dict__.get(name) == text])
    return messages


def _are_unchanged(messages: list[BaseMessage], pristine: list[BaseMessage]) -> bool:
    if any(map(_extra, messages)):
        return False
    return [*map(_fields, messages)] == [*map(_fields, pristine)]


_fields, _extra = attrgetter("__dict__"), attrgetter("__pydantic_extra__")


_ALONE = next(map(sys.getrefcount, [object()]))
"""References to what only a list has, as they are counted here."""
