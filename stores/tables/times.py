"""Times as SQLite keeps them: microseconds since 1970 in UTC, which compare and index as whole numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

__all__ = ["micros", "moment"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def micros(time: datetime) -> int: ...
@overload
def micros(time: None) -> None: ...
@overload
def micros(time: datetime | None) -> int | None: ...
def micros(time: datetime | None) -> int | None:
    """An aware time as microseconds since 1970; None stays None."""
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


def moment(micros: int) -> datetime:
    """Microseconds since 1970 as an aware time in UTC."""
    return EPOCH + timedelta(microseconds=micros)
