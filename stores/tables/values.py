"""How texts, and times with their zone, are kept in columns so that they come back exactly as they were put."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

__all__ = ["as_blob", "as_text", "offset_of", "zoned"]

EPOCH = datetime(1970, 1, 1)


def offset_of(time: datetime) -> int:
    """Seconds that the time's own zone is ahead of UTC at that time; kept beside `times.micros`."""
    return round((time.utcoffset() or timedelta()).total_seconds())


def zoned(micros: int, offset: int) -> datetime:
    """The aware time that `micros` and `offset_of` were taken from."""
    zone = timezone(timedelta(seconds=offset)) if offset else UTC
    # the zone is set last: converting between zones would overflow in the calendar's first and last hours
    return (EPOCH + timedelta(microseconds=micros, seconds=offset)).replace(tzinfo=zone)


def as_blob(text: str) -> bytes:
    """Any Python text as bytes: NUL characters and lone surrogates too, which SQLite's own text cannot hold."""
    return text.encode("utf-8", "surrogatepass")


def as_text(blob: bytes) -> str:
    """The text that `as_blob` was given."""
    return blob.decode("utf-8", "surrogatepass")
