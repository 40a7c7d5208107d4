"""What the background pass would change: pure functions from records to decided changes (R179, R186, R187)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from everthread.stores.record import Change, Record
from everthread.stores.text import normalise

__all__ = ["plan_expiry", "plan_merge"]


def plan_expiry(records: Sequence[Record], now: datetime) -> list[Change]:
    """An `end` for each record whose time is over at `now`: it leaves recall and stays in its history."""
    return [
        Change(
            action="end",
            target=record.id,
            expected=record.revision,
            status="expired",
            rule="expired",
            reason=f"its time ended on {ended:%Y-%m-%d}",
        )
        for record in records
        if (ended := _ended(record, now)) is not None
    ]


def plan_merge(records: Sequence[Record]) -> list[Change]:
    """For records of one scope that say the same: the oldest is confirmed by each other's source, the others end.

    "The same" is the normalised statement: numbers, dates and negations are part of it. Likeness merges nothing.
    """
    same: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.recorded_at, record.id)):
        same[str(record.scope), normalise(record.statement)].append(record)
    changes: list[Change] = []
    for kept, *others in same.values():
        for number, other in enumerate(others):
            changes.append(
                Change(
                    action="confirm",
                    target=kept.id,
                    expected=kept.revision + number,
                    source=other.provenance,
                    rule="same-statement",
                    reason="another record says the same",
                )
            )
            changes.append(
                Change(
                    action="end",
                    target=other.id,
                    expected=other.revision,
                    status="archived",
                    rule="same-statement",
                    reason=f"{kept.id} says the same",
                )
            )
    return changes


def _ended(record: Record, now: datetime) -> datetime | None:
    ends = [moment for moment in (record.valid_to, record.expires_at) if moment is not None and moment <= now]
    return min(ends) if ends else None
