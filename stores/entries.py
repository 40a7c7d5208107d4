"""Entries of an export, checked, and the rows that they are in a store: the way back from `stores/portable.py`.

A file may hold anything. What has an unknown type, a field too many or a value that cannot be is refused, by name.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import AwareDatetime, Field, ValidationError, model_validator

from everthread.errors import UsageError
from everthread.stores.artifacts import ArtifactKind
from everthread.stores.bound import private_root
from everthread.stores.identity import Frozen, Label, Memory, complaint
from everthread.stores.portable import USAGE, WRITTEN, Entry
from everthread.stores.record import Evidence, Receipt, Record
from everthread.stores.tables.artifacts import artifact_id
from everthread.stores.tables.times import micros
from everthread.stores.tables.values import as_blob, offset_of
from everthread.stores.tasks import Task
from everthread.stores.transfer import Row

__all__ = ["Kept", "Owner", "PortableEntry", "Revision", "read_entry", "receipt_row", "record_rows"]


class PortableEntry(Frozen):
    """What an entry must be to become rows again."""

    type: ClassVar[str]
    """Its type, as the file names it."""

    @abstractmethod
    def rows(self, owner: Owner) -> list[Row]:
        """The entry's rows, of this tenant and user; see `Transfer.restore`."""

    def known_as(self) -> str:
        """By what it is known."""
        return str(getattr(self, "id", None) or getattr(self, "message_id", None) or getattr(self, "key", self.type))

    def threads_of(self) -> tuple[str, ...]:
        """The threads that it belongs to."""
        thread_id = getattr(self, "thread_id", None)
        return (str(thread_id),) if thread_id else ()

    def texts(self) -> tuple[str, ...]:
        """What it says in words."""
        return tuple(text for name in ("text", "result", "key") if (text := getattr(self, name, None)))


class Owner(NamedTuple):
    """Whose the rows become."""

    tenant: str
    user: str

    def columns(self) -> dict[str, Any]:
        """As columns of a row."""
        return self._asdict()


class _Thread(PortableEntry):
    type = "thread"
    id: Label
    name: Label | None
    memory: Memory
    memory_because: str | None
    bound_at: AwareDatetime
    erased_at: AwareDatetime | None
    erased_because: str | None

    def threads_of(self) -> tuple[str, ...]:
        return (self.id,)

    def rows(self, owner: Owner) -> list[Row]:
        values: dict[str, Any] = {
            "thread_id": self.id,
            **owner.columns(),
            "name": self.name,
            "memory": self.memory,
            "memory_because": self.memory_because,
            "bound_at": micros(self.bound_at),
            "erased_at": micros(self.erased_at),
            "erased_because": self.erased_because,
        }
        return [Row("threads", values)]


class _Evidence(PortableEntry, Evidence):
    type = "evidence"

    def rows(self, owner: Owner) -> list[Row]:
        payload = None if self.payload is None else _compact(self.payload)
        values: dict[str, Any] = {
            "thread_id": self.thread_id,
            "message_id": self.message_id,
            "role": self.role,
            "source": self.source,
            "speaker": None if self.speaker is None else as_blob(self.speaker),
            "text": as_blob(self.text),
            "payload": None if payload is None else as_blob(payload),
            "at": micros(self.at),
            "at_offset": offset_of(self.at),
            "erased_at": None,
        }
        return [Row("messages", values)]


class _Erased(PortableEntry):
    type = "erased"
    thread_id: Label
    message_id: Label
    at: AwareDatetime

    def rows(self, owner: Owner) -> list[Row]:
        nothing: dict[str, Any] = {
            "role": "",
            "source": "",
            "speaker": None,
            "text": b"",
            "payload": None,
            "at": 0,
            "at_offset": 0,
        }
        ids: dict[str, Any] = {"thread_id": self.thread_id, "message_id": self.message_id, "erased_at": micros(self.at)}
        return [Row("messages", ids | nothing)]


class Revision(NamedTuple):
    """One revision of a record, and who wrote it."""

    record: Record
    actor: str
    receipt: str
    change_reason: str


class Kept(PortableEntry):
    """A record with its history, as an entry has it."""

    type = "record"

    id: Label
    author: Label
    usage_count: Annotated[int, Field(ge=0)]
    last_used_at: AwareDatetime | None
    revisions: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]

    def history(self) -> list[Revision]:
        """Its revisions, the oldest first; ValueError when they are not those of this record, one after another."""
        found = []
        for number, each in enumerate(self.revisions, 1):
            fields = {name: value for name, value in each.items() if name not in WRITTEN}
            record = Record.model_validate(fields)
            if record.id != self.id or record.revision != number or not all(type(each.get(n)) is str for n in WRITTEN):
                raise ValueError(f"revisions: {number} is not this record's revision {number}, or does not say who")
            found.append(Revision(record, *(str(each[name]) for name in WRITTEN)))
        return found

    def rows(self, owner: Owner) -> list[Row]:
        return record_rows(owner, self, self.history())


def record_rows(owner: Owner, kept: Kept, history: Sequence[Revision]) -> list[Row]:
    """A record and these revisions as rows."""
    values: dict[str, Any] = {
        "id": kept.id,
        "tenant": owner.tenant,
        "author": kept.author,
        "usage_count": kept.usage_count,
        "last_used_at": micros(kept.last_used_at),
    }
    revisions: list[dict[str, Any]] = [
        {
            "id": kept.id,
            "revision": record.revision,
            "recorded_at": micros(record.recorded_at),
            "actor": actor,
            "receipt": receipt,
            "reason": reason,
            "body": record.model_dump_json(exclude_defaults=True, exclude=USAGE),
        }
        for record, actor, receipt, reason in history
    ]
    return [Row("records", values), *(Row("revisions", each) for each in revisions)]


class _Receipt(PortableEntry, Receipt):
    type = "receipt"

    def rows(self, owner: Owner) -> list[Row]:
        return [receipt_row(owner, Receipt.model_validate(self.model_dump()))]


def receipt_row(owner: Owner, receipt: Receipt) -> Row:
    """A receipt as a row."""
    body = receipt.model_dump_json(exclude_none=True)
    return Row("receipts", {"id": receipt.id, **owner.columns(), "key": receipt.key, "body": body})


class _Task(PortableEntry, Task):
    type = "task"
    key: str | None

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, values: Any) -> Any:
        """An older version had a status for notice that was given."""
        if not isinstance(values, dict) or values.get("status") != "delivered":
            return values
        status = "scheduled" if values.get("result") is None else "completed"
        return {**values, "status": status, "told_at": values.get("due_at") or values.get("created_at")}

    def threads_of(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, (self.thread_id, self.said_in))))

    def rows(self, owner: Owner) -> list[Row]:
        due = self.due_at
        values: dict[str, Any] = {
            "id": self.id,
            **owner.columns(),
            "key": self.key,
            "text": as_blob(self.text),
            "thread_id": self.thread_id,
            "due_at": micros(due),
            "due_offset": None if due is None else offset_of(due),
            "status": self.status,
            "result": None if self.result is None else as_blob(self.result),
            "created_at": micros(self.created_at),
            "told_at": micros(self.told_at),
            "after": json.dumps(self.after),
            "said_in": self.said_in,
            "message_ids": json.dumps(self.message_ids),
        }
        return [Row("tasks", values)]


class _Artifact(PortableEntry):
    type = "artifact"
    id: str
    kind: ArtifactKind
    text: str
    created_at: AwareDatetime
    threads: Annotated[tuple[str, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_named_by_its_text(self) -> Self:
        if self.id != artifact_id(self.text):
            raise ValueError("id: is not the hash of the text")
        return self

    def threads_of(self) -> tuple[str, ...]:
        return self.threads

    def rows(self, owner: Owner) -> list[Row]:
        own = owner.columns()
        values: dict[str, Any] = {
            **own,
            "id": self.id,
            "kind": self.kind,
            "text": as_blob(self.text),
            "created_at": micros(self.created_at),
        }
        uses = [Row("artifact_uses", {**own, "artifact_id": self.id, "thread_id": each}) for each in self.threads]
        return [Row("artifacts", values), *uses]


class _Input(PortableEntry):
    type = "input"
    thread_id: Label
    message_id: Label
    delivery: Literal["queue", "steer"]
    text: str | None

    def rows(self, owner: Owner) -> list[Row]:
        text = None if self.text is None else as_blob(self.text)
        return [Row("inbox", {**self.model_dump(), "text": text})]


class _Job(PortableEntry):
    type = "job"
    id: Label
    key: str | None
    kind: Label
    lane: str | None
    payload: dict[str, Any]
    status: Literal["ready", "done", "failed", "cancelled"]
    attempts: Annotated[int, Field(ge=0)]
    error: str | None
    due_at: AwareDatetime
    created_at: AwareDatetime

    def rows(self, owner: Owner) -> list[Row]:
        values: dict[str, Any] = {
            **self.model_dump(),
            **owner.columns(),
            "payload": json.dumps(self.payload),
            "due_at": micros(self.due_at),
            "created_at": micros(self.created_at),
        }
        return [Row("jobs", values)]


class _Item(PortableEntry):
    type = "item"
    namespace: tuple[Label, ...]
    key: Label
    value: dict[str, Any]
    created_at: AwareDatetime
    updated_at: AwareDatetime
    ttl_minutes: float | None
    expires_at: AwareDatetime | None

    @model_validator(mode="after")
    def _has_whole_labels(self) -> Self:
        if any("." in label for label in self.namespace):
            raise ValueError('namespace: a label must not contain "."')
        return self

    def rows(self, owner: Owner) -> list[Row]:
        labels = (*private_root(owner.tenant, owner.user), *self.namespace)
        values: dict[str, Any] = {
            "namespace": "".join(f"{label}." for label in labels),
            "key": self.key,
            "value": _compact(self.value),
            "created_at": micros(self.created_at),
            "updated_at": micros(self.updated_at),
            "ttl_minutes": self.ttl_minutes,
            "expires_at": micros(self.expires_at),
        }
        return [Row("items", values)]


class _Consent(PortableEntry):
    type = "consent"
    memory: Memory
    at: AwareDatetime

    def rows(self, owner: Owner) -> list[Row]:
        return [Row("consents", {**owner.columns(), "memory": self.memory, "at": micros(self.at)})]


MODELS: dict[str, type[PortableEntry]] = {
    model.type: model
    for model in (
        _Thread, _Evidence, _Erased, Kept, _Receipt, _Task, _Artifact, _Input, _Job, _Item, _Consent,
    )
}  # fmt: skip


def read_entry(entry: Entry) -> PortableEntry:
    """An entry of a file, checked; `rows` gives what it is in a store. UsageError when it is none."""
    model = MODELS.get(str(entry.get("type")))
    if model is None:
        raise UsageError(f"type {entry.get('type')!r} is not known; upgrade everthread")
    try:
        read = model.model_validate({name: value for name, value in entry.items() if name != "type"})
        if isinstance(read, Kept):
            read.history()
        return read
    except ValidationError as error:
        raise UsageError(f"{entry['type']}: {complaint(error)}") from error
    except ValueError as error:
        raise UsageError(f"{entry['type']}: {error}") from error


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
