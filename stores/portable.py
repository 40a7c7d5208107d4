"""What is kept for a user, as it stands in an export: one typed object each.

Datetimes have an offset and microseconds. Everything is written out, also what has its default: a file is read without
this version of everthread. `stores/entries.py` makes rows of it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from pydantic import BaseModel

from everthread.stores.record import Receipt, Record
from everthread.stores.tables.times import moment
from everthread.stores.tables.values import as_text, zoned
from everthread.stores.transfer import Row

__all__ = ["FOLLOWING", "USAGE", "WRITTEN", "Entry", "Found", "plain", "record_of", "told"]

Entry = dict[str, Any]
"""One object of an export, with its `type`."""

USAGE = {"usage_count", "last_used_at"}
"""Fields of a record that are counted beside its revisions."""
WRITTEN = ("actor", "receipt", "change_reason")
"""What a revision says of its writing, beside the fields of the record."""
FOLLOWING = frozenset({"revisions", "artifact_uses"})
"""Rows that belong to the one before them."""
WORKS = {"leased": "ready"}
"""A job that somebody is at work on waits in the file: the lease stays where it was given."""


def told(value: datetime | None) -> str | None:
    """A time with its offset and microseconds: `2026-05-08T12:00:00.123456+00:00`."""
    return None if value is None else value.isoformat(timespec="microseconds")


def plain(value: Any) -> Any:
    """Our data as plain JSON; times as `told`, sets in order."""
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(part) for part in value)
    if isinstance(value, datetime):
        return told(value)
    return value.value if isinstance(value, Enum) else value


class Found(NamedTuple):
    """A row of a user's part with those that follow it: what becomes one entry."""

    rows: Sequence[Row]
    """The row, and its revisions or uses."""
    history: Sequence[Record] = ()
    """What the revisions say, for a record."""

    @property
    def type(self) -> str:
        """The type of the entry."""
        row = self.rows[0]
        return "erased" if _is_erased(row) else TYPE[row.table]

    def entry(self) -> Entry:
        """The entry."""
        match self.rows[0].table:
            case "records":
                return _record(self.rows, self.history)
            case "artifacts":
                return _artifact(self.rows)
            case table:
                return ENTRY[table](self.rows[0].values)


def _is_erased(row: Row) -> bool:
    return row.table == "messages" and row.values["erased_at"] is not None


def record_of(row: Row) -> Record:
    """What a row of `revisions` says."""
    return Record.model_validate_json(str(row.values["body"]))


def _record(rows: Sequence[Row], history: Sequence[Record]) -> Entry:
    row = rows[0].values
    used = row["last_used_at"]
    return {
        "type": "record",
        "id": row["id"],
        "author": row["author"],
        "usage_count": row["usage_count"],
        "last_used_at": told(None if used is None else moment(int(used))),
        "revisions": [
            {
                **{name: value for name, value in plain(record).items() if name not in USAGE},
                "actor": each.values["actor"],
                "receipt": each.values["receipt"],
                "change_reason": each.values["reason"],
            }
            for each, record in zip(rows[1:], history, strict=True)
        ],
    }


def _thread(row: Mapping[str, Any]) -> Entry:
    return {
        "type": "thread",
        "id": row["thread_id"],
        "name": row["name"],
        "memory": row["memory"],
        "memory_because": row["memory_because"],
        "bound_at": _time(row["bound_at"]),
        "erased_at": _time(row["erased_at"]),
        "erased_because": row["erased_because"],
    }


def _message(row: Mapping[str, Any]) -> Entry:
    if row["erased_at"] is not None:
        ids = {"thread_id": row["thread_id"], "message_id": row["message_id"]}
        return {"type": "erased", **ids, "at": _time(row["erased_at"])}
    payload = row["payload"]
    return {
        "type": "evidence",
        "thread_id": row["thread_id"],
        "message_id": row["message_id"],
        "role": row["role"],
        "speaker": _text(row["speaker"]),
        "text": as_text(row["text"]),
        "at": told(zoned(row["at"], row["at_offset"])),
        "source": row["source"],
        "payload": None if payload is None else json.loads(as_text(payload)),
    }


def _receipt(row: Mapping[str, Any]) -> Entry:
    return {"type": "receipt", **plain(Receipt.model_validate_json(str(row["body"])))}


def _task(row: Mapping[str, Any]) -> Entry:
    due = row["due_at"]
    return {
        "type": "task",
        "id": row["id"],
        "key": row["key"],
        "text": as_text(row["text"]),
        "thread_id": row["thread_id"],
        "due_at": None if due is None else told(zoned(due, row["due_offset"])),
        "status": row["status"],
        "result": _text(row["result"]),
        "created_at": _time(row["created_at"]),
        "told_at": _time(row["told_at"]),
        "after": json.loads(row["after"]),
        "said_in": row["said_in"],
        "message_ids": json.loads(row["message_ids"]),
    }


def _artifact(rows: Sequence[Row]) -> Entry:
    row = rows[0].values
    return {
        "type": "artifact",
        "id": row["id"],
        "kind": row["kind"],
        "text": _text(row["text"]),
        "created_at": _time(row["created_at"]),
        "threads": [use.values["thread_id"] for use in rows[1:]],
    }


def _input(row: Mapping[str, Any]) -> Entry:
    return {
        "type": "input",
        "thread_id": row["thread_id"],
        "message_id": row["message_id"],
        "delivery": row["delivery"],
        "text": _text(row["text"]),
    }


def _job(row: Mapping[str, Any]) -> Entry:
    return {
        "type": "job",
        "id": row["id"],
        "key": row["key"],
        "kind": row["kind"],
        "lane": row["lane"],
        "payload": json.loads(row["payload"]),
        "status": WORKS.get(row["status"], row["status"]),
        "attempts": row["attempts"],
        "error": row["error"],
        "due_at": _time(row["due_at"]),
        "created_at": _time(row["created_at"]),
    }


def _item(row: Mapping[str, Any]) -> Entry:
    return {
        "type": "item",
        "namespace": str(row["namespace"]).split(".")[3:-1],  # behind the user's own root
        "key": row["key"],
        "value": json.loads(row["value"]),
        "created_at": _time(row["created_at"]),
        "updated_at": _time(row["updated_at"]),
        "ttl_minutes": row["ttl_minutes"],
        "expires_at": _time(row["expires_at"]),
    }


def _consent(row: Mapping[str, Any]) -> Entry:
    return {"type": "consent", "memory": row["memory"], "at": _time(row["at"])}


ENTRY = {
    "threads": _thread,
    "messages": _message,
    "receipts": _receipt,
    "tasks": _task,
    "inbox": _input,
    "jobs": _job,
    "items": _item,
    "consents": _consent,
}


TYPE = {
    "threads": "thread",
    "messages": "evidence",
    "records": "record",
    "receipts": "receipt",
    "tasks": "task",
    "artifacts": "artifact",
    "inbox": "input",
    "jobs": "job",
    "items": "item",
    "consents": "consent",
}


def _time(value: Any) -> str | None:
    return None if value is None else told(moment(value))


def _text(value: Any) -> str | None:
    return None if value is None else as_text(value)
