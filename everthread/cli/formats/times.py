"""Times as files write them: ISO, epoch numbers, and the prose of LoCoMo and LongMemEval."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

__all__ = ["moment"]

_MONTHS = "january february march april may june july august september october november december".split()
_PROSE = re.compile(r"(\d{1,2}):(\d{2}) ?(am|pm) on (\d{1,2}) ([a-z]+),? (\d{4})")
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: \(\w+\))?(?: (\d{1,2}):(\d{2}))?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_LARGEST = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From this size on an epoch number counts nanoseconds, microseconds, milliseconds: divide by the second number."""


def moment(value: Any) -> datetime | None:
    """`value` as an aware time, or None when it is not one.

    Reads ISO 8601 (`2023-05-08T13:56:00Z`, a bare date too), epoch seconds to nanoseconds as a number or digits,
    `1:56 pm on 8 May, 2023` and `2023/05/30 (Tue) 18:40`. A time without an offset is taken as UTC.
    """
    try:
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int | float):
            return _epoch(value)
        if isinstance(value, str):
            return _written(value.strip())
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _epoch(number: float) -> datetime:
    divisor = next((divisor for size, divisor in _LARGEST if abs(number) >= size), 1)
    return datetime.fromtimestamp(number / divisor, UTC)


def _written(text: str) -> datetime | None:
    if _NUMBER.fullmatch(text) and not re.fullmatch(r"\d{8}", text):  # eight digits are a date
        return _epoch(float(text))
    if prose := _PROSE.fullmatch(text.lower()):
        hour, minute, half, day, month, year = prose.groups()
        clock = int(hour) % 12 + (12 if half == "pm" else 0)
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), clock, int(minute), tzinfo=UTC)
    if slashed := _SLASHED.fullmatch(text):
        return datetime(*(int(part or 0) for part in slashed.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
