"""What an export may still bring when nothing proves that this store wrote it: anybody may have edited the file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from everthread.nodes.extract.sensitive import has_personal_number, has_secret
from everthread.nodes.extract.wording import gives_orders, grants_permission
from everthread.stores.entries import Kept, Owner, PortableEntry, Revision, receipt_row, record_rows
from everthread.stores.identity import Identity, owners_of
from everthread.stores.record import Authority, Decision, Provenance, Receipt, Record
from everthread.stores.transfer import Row

__all__ = ["Export", "Lowered", "Refused", "lowered"]

HIGHEST = Authority.USER_IMPLIED
"""No import without proof outranks what a user says here."""
STEERING = {
    "receipt": "a receipt says what this store has decided, and blocks the same commit",
    "input": "it would enter a thread as the user's own words",
    "job": "it would be run on the user's behalf",
    "consent": "only the user agrees to memory",
}
"""What is not taken without proof, whatever it says, and why."""


class Refused(NamedTuple):
    """Why an entry is not taken."""

    rule: str
    """Name of the rule."""
    reason: str
    """Why, without a word of it."""


class Lowered(NamedTuple):
    """An entry as it is taken."""

    rows: list[Row]
    """What is written."""
    is_lowered: bool = False
    """Whether it has less authority than the file says."""
    is_pending: bool = False
    """Whether it waits for review, and did not in the file."""


class Export(NamedTuple):
    """What an export says of itself."""

    id: str
    """Its id."""
    at: datetime
    """When it was made."""


def lowered(entry: PortableEntry, identity: Identity, owner: Owner, export: Export) -> Lowered | Refused:
    """An entry of an export that nothing proves, or why it is refused. The same entry always becomes the same rows."""
    if entry.type in STEERING:
        return Refused(f"unproven-{entry.type}", STEERING[entry.type])
    if isinstance(entry, Kept):
        return _record(entry, identity, owner, export)
    if entry.type == "task":
        unfit = _unfit(entry.texts())
        return unfit or Lowered(entry.rows(owner))
    if entry.type == "evidence":
        return Lowered([_as_of_a_file(row) for row in entry.rows(owner)])
    return Lowered(entry.rows(owner))


def _as_of_a_file(row: Row) -> Row:
    """A message whose words nobody is known to have said: nothing is learnt from it as if it were the user's."""
    source = row.values["source"]
    return row._replace(values={**row.values, "source": "file" if source in ("user", "tool") else source})


def _record(entry: Kept, identity: Identity, owner: Owner, export: Export) -> Lowered | Refused:
    history = entry.history()
    for revision in history:
        scope = revision.record.scope
        if scope.owner != "session" and (scope.owner, scope.owner_id) not in owners_of(identity):
            return Refused("other-scope", "it is not this user's, or of a project or team that the user is in here")
        if max(revision.record.recorded_at, revision.record.provenance.observed_at) > export.at:
            return Refused("later-than-export", "it says that it was learnt after the export was made")
        unfit = _unfit(_texts(revision.record))
        if unfit is not None and unfit.rule != "order":
            return unfit
    newest = history[-1].record
    in_use = newest.status in ("active", "contested")
    ordering = any(_unfit(_texts(revision.record)) is not None for revision in history)
    waits = in_use and (newest.scope.owner not in ("user", "session") or ordering)
    receipt = _receipt(entry, newest, export.id, waits)
    taken = [
        Revision(
            _believed(each.record, waits=waits and each is history[-1]), owner.user, receipt.id, each.change_reason
        )
        for each in history
    ]
    kept = entry.model_copy(update={"author": owner.user, "usage_count": 0, "last_used_at": None})
    rows = [*record_rows(owner, kept, taken), receipt_row(owner, receipt)]
    return Lowered(rows, is_lowered=newest.authority > HIGHEST, is_pending=waits)


def _believed(record: Record, *, waits: bool) -> Record:
    """The record as far as it is believed: it says that it was imported, and settles no more than a user implied."""
    update: dict[str, Any] = {
        "authority": min(record.authority, HIGHEST, key=lambda each: each.rank),
        "provenance": _imported(record.provenance),
        "confirmed_by": tuple(map(_imported, record.confirmed_by)),
        "verified_at": None,
    }
    if waits:
        update["status"] = "pending"
    return Record.model_validate(record.model_dump() | update)


def _imported(source: Provenance) -> Provenance:
    """Where it came from by its own account."""
    lower = None if source.authority is None else min(source.authority, HIGHEST, key=lambda each: each.rank)
    by = f"import/everthread ({source.source}, {source.extracted_by})"
    return source.model_copy(update={"source": "import", "extracted_by": by, "authority": lower})


def _receipt(entry: Kept, newest: Record, export: str, waits: bool) -> Receipt:
    """The receipt of this import of a record; the same in every run."""
    key = f"import:{export}:{entry.id}"
    decision = Decision(
        outcome="pending" if waits else "created",
        rule="imported",
        reason="from an export, which nothing proves to be as it was written",
        record_id=entry.id,
        revision=newest.revision,
    )
    return Receipt(
        id=f"rcp_{sha256(key.encode()).hexdigest()[:32]}", key=key, at=newest.recorded_at, decisions=(decision,)
    )


def _texts(record: Record) -> tuple[str, ...]:
    """Everything that a record says in words."""
    words = (record.statement, record.subject, record.predicate, record.value, record.write_reason)
    reasons = (relation.reason for relation in record.relations)
    return tuple(filter(None, (*words, *record.entities, *record.tags, *reasons)))


def _unfit(texts: Iterable[str]) -> Refused | None:
    """Why words are not taken without proof, if so."""
    said = tuple(texts)
    if any(map(has_secret, said)):
        return Refused("secret", "it holds a secret")
    if any(map(has_personal_number, said)):
        return Refused("personal-number", "it holds a card, account, identity or telephone number")
    if any(map(grants_permission, said)):
        return Refused("permission", "memory grants no permission and waives no check (R167)")
    if any(gives_orders(text, standing=False) for text in said):
        return Refused("order", "it tries to direct the agent")
    return None
