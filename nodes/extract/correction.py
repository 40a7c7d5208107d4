"""A person's rights over what is remembered, outside of a conversation: correct, archive, verify (R183, R185, R278).

Each returns the receipt of its commit. What is said goes through the door like anything else, with that person as its
source; the history stays. Reading back and erasing are the store's own: `record`, `history`, `erase`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from langchain_core.messages import HumanMessage

from everthread.errors import UsageError
from everthread.nodes.extract.pipeline import remember_statement
from everthread.nodes.extract.resolve import is_many_valued
from everthread.nodes.extract.review import checked_reason, thread_of
from everthread.stores.contract import READABLE, MemoryStore
from everthread.stores.identity import Identity, MemoryContext
from everthread.stores.record import Change, Receipt, Record, now_utc
from everthread.stores.threads import thread_id_for

__all__ = ["archive", "correct", "longest_unverified", "unarchive", "unverified", "verify"]

THREAD = "corrections"
"""Name of each user's thread that keeps, as evidence, the words of corrections made outside of a conversation."""


def correct(
    store: MemoryStore, identity: Identity, record_id: str, statement: str, *, reason: str | None = None
) -> Receipt:
    """Let `statement` take the place of what a record says: the old one is superseded and stays in the history.

    The words are this user's own, and are kept as evidence in the user's thread "corrections". The same rules decide as
    for what is said in a conversation (there, the tool `memory_correct` does the same with the user's message), so the
    receipt may say that it was refused, or that it waits for a curator. The same correction again does nothing twice.

    UsageError when there is no such record, or the user has not agreed to be remembered.
    """
    old = _known(store, identity, record_id)
    words = sha256(statement.encode("utf-8", "surrogatepass")).hexdigest()
    key = f"correct:{old.id}:{words}"
    done = next((each for each in store.receipts(identity, old.id) if each.key == key), None)
    if done:
        return done
    if old.status not in (*READABLE, "expired"):
        remedy = "review it with an edit" if old.status == "pending" else "correct what stands now"
        raise UsageError(f"record {record_id} is {old.status}; {remedy}")
    said = HumanMessage(statement, id=f"correction-{sha256(key.encode()).hexdigest()[:32]}")
    own = thread_of(old)
    receipt = remember_statement(
        MemoryContext(identity=identity),
        store,
        statement,
        request=said,
        thread_id=own or thread_id_for(identity, THREAD),
        key=key,
        corrects=old.id,
        reason=checked_reason(reason),
    )
    if own is None:
        store.transcripts.bind(identity, thread_id_for(identity, THREAD), name=THREAD)
    return receipt


def archive(store: MemoryStore, identity: Identity, record_id: str, *, reason: str | None = None) -> Receipt:
    """Take a record out of use; it stays readable by id, in its history and in the audit log (R179).

    UsageError when there is no such record, or it is out of use already; AccessDenied when this identity may not.
    """
    record = _known(store, identity, record_id)
    if record.status not in (*READABLE, "pending"):
        raise UsageError(f"record {record_id} is {record.status}: it is out of use already")
    change = Change(
        action="end",
        target=record.id,
        expected=record.revision,
        status="archived",
        rule="archived",
        reason=checked_reason(reason) or "a person took it out of use",
    )
    return _commit(store, identity, record, change)


def unarchive(store: MemoryStore, identity: Identity, record_id: str, *, reason: str | None = None) -> Receipt:
    """Bring an archived record back into use.

    UsageError when it is not archived, or something else stands in its place now.
    """
    record = _known(store, identity, record_id)
    if record.status != "archived":
        raise UsageError(f"record {record_id} is {record.status}, not archived: there is nothing to undo")
    return _commit(
        store,
        identity,
        record,
        _in_use(store, identity, record, "unarchived", checked_reason(reason) or "a person brought it back"),
    )


def verify(
    store: MemoryStore, identity: Identity, record_id: str, *, reason: str | None = None, now: datetime | None = None
) -> Receipt:
    """Note that a person has checked the record now. What expires is kept for as long again as it was at first; what
    has expired comes back into use (R179, R183).

    UsageError when the record is not in use and has not merely expired, or something else stands in its place.
    """
    record, now = _known(store, identity, record_id), now or now_utc()
    if record.status not in (*READABLE, "expired"):
        raise UsageError(f"record {record_id} is {record.status}: only what is in use, or has expired, can be verified")
    since = record.verified_at or store.history(identity, record_id)[0].recorded_at
    update: dict[str, Any] = {"verified_at": now}
    if record.expires_at is not None:
        update["expires_at"] = now + (record.expires_at - since)
    why = checked_reason(reason) or "a person verified it"
    if record.status == "expired":
        return _commit(store, identity, record, _in_use(store, identity, record, "verified", why, **update))
    change = Change(
        action="revise",
        record=record.model_copy(update=update),
        target=record.id,
        expected=record.revision,
        rule="verified",
        reason=why,
    )
    return _commit(store, identity, record, change)


def unverified(store: MemoryStore, identity: Identity, *, limit: int = 10) -> list[Record]:
    """What is in use and was longest unverified, that first: for a review now and then (R183)."""
    return longest_unverified(store.records(identity), limit)


def longest_unverified(records: Sequence[Record], limit: int) -> list[Record]:
    """The `limit` records whose last check lies farthest back: when a person verified it, or when it was last said."""

    def checked(record: Record) -> datetime:
        said = max(source.observed_at for source in (record.provenance, *record.confirmed_by))
        return max(said, record.verified_at or said)

    return sorted(records, key=checked)[:limit]


def _known(store: MemoryStore, identity: Identity, record_id: str) -> Record:
    record = store.record(identity, record_id)
    if record is None:
        raise UsageError(f"there is no memory {record_id}; search for its id first")
    return record


def _in_use(store: MemoryStore, identity: Identity, record: Record, rule: str, reason: str, **update: Any) -> Change:
    """The change that brings a record back, if its place is still free."""
    if record.subject and record.predicate and not is_many_valued(record):
        there = store.current(identity, record.subject, record.predicate, thread_id=thread_of(record))
        rival = next((each for each in there if each.scope == record.scope), None)
        if rival:
            raise UsageError(
                f"record {rival.id} stands in the place of {record.id} now; archive or correct that one first"
            )
    back = {"status": "active", "ended_at": None, **update}
    return Change(
        action="revise",
        record=record.model_copy(update=back),
        target=record.id,
        expected=record.revision,
        rule=rule,
        reason=reason,
    )


def _commit(store: MemoryStore, identity: Identity, record: Record, change: Change) -> Receipt:
    return store.commit(
        identity, [change], key=f"{change.rule}:{record.id}:{record.revision}", thread_id=thread_of(record)
    )
