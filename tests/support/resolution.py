"""A memory of plain data that does what `resolve` decides, as a store does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from everthread.nodes.extract.resolve import resolve, settled
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Change, Record

__all__ = ["PlainMemory"]


class PlainMemory:
    """Records by id. `take` resolves a draft against all of them and applies what comes of it."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = {record.id: record for record in records}

    def take(self, draft: Draft) -> Change:
        """Returns the change that was decided, applied."""
        known = list(self.records.values())
        change = resolve(draft, known)
        for each in (change, *settled(draft, change, known)):
            self._apply(each)
        return change

    def all(self, *statuses: str) -> Sequence[Record]:
        """The records with one of these statuses, in the order they came."""
        return [record for record in self.records.values() if record.status in statuses]

    def _apply(self, change: Change) -> None:
        target = self.records.get(change.target or "")
        assert target is None or change.expected == target.revision
        new, waits = change.record, change.record is not None and change.record.status == "pending"
        if new is not None:
            contested = change.action == "contest" and not waits
            self.records[new.id] = new.model_copy(update={"status": "contested"}) if contested else new
        if target is None or waits:
            return
        match change.action:
            case "supersede":
                self._revise(target, status="superseded")
            case "contest":
                self._revise(target, status="contested")
            case "end":
                self._revise(target, status=change.status)
            case "confirm":
                assert change.source is not None
                self._revise(target, confirmed_by=(*target.confirmed_by, change.source))

    def _revise(self, record: Record, **update: Any) -> None:
        update["revision"] = record.revision + 1
        self.records[record.id] = record.model_copy(update=update)
