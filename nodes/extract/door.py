"""The door for what other people's tools write: `store.bound(identity, remember=door(store))`.

A tool's words are a model's: nobody has said them. So they pass the same rules as everything that is learnt, and what
passes waits for review, whatever the tool says about status, source or authority.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

from everthread.errors import UsageError
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.pipeline import Work, resolve_all
from everthread.nodes.extract.validate import Draft, Refusal, validate
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity
from everthread.stores.record import Authority, Change, Evidence, Receipt, Record, new_id, now_utc

__all__ = ["door"]

NO_ERROR = frozenset({"already-pending", "already-known"})
"""Refusals that leave the tool where it wanted to be."""


def door(store: MemoryStore) -> Callable[[Identity, Record], Receipt | None]:
    """A function that takes what a bound store was given through validate, resolve and commit.

    It returns the receipt, or None when the same is known already. It raises UsageError for what a rule refuses: a
    secret, a personal number, an order to the agent, a sensitive fact that nobody stated, what was rejected in a
    review before. The receipt of a refusal holds no word of it.
    """

    def remember(identity: Identity, record: Record) -> Receipt | None:
        thread_id = record.provenance.thread_id
        change = _change(identity, record, store)
        if change.action == "confirm":
            return None  # a tool that repeats it is no further source
        receipt = store.commit(identity, [change], key=_key(record, change), thread_id=thread_id)
        if change.action == "refuse" and change.rule not in NO_ERROR:
            raise UsageError(f"it was not kept: {change.reason} ({change.rule}, receipt {receipt.id})")
        return receipt

    return remember


def _change(identity: Identity, record: Record, store: MemoryStore) -> Change:
    """What the candidate comes to."""
    verdict = _verdict(identity, record)
    if isinstance(verdict, Refusal):
        return Change(action="refuse", rule=verdict.rule, reason=verdict.reason)
    replaced = next((edge.target for edge in record.relations if edge.kind == "supersedes"), None)
    found = {known.id: known for known in store.records(identity, ids=[each for each in (record.id, replaced) if each])}
    for action, target in (("revise", found.get(record.id)), ("supersede", found.get(replaced or ""))):
        if target is not None:
            return Change.model_validate(
                {
                    "action": action,
                    "record": verdict.record,
                    "target": target.id,
                    "expected": target.revision,
                    "rule": verdict.rule,
                    "reason": verdict.reason,
                }
            )
    work = Work(identity, record.provenance.thread_id or "", "", (), now_utc(), verdicts=(verdict,))
    (change,) = resolve_all(work, store).changes
    return change


def _verdict(identity: Identity, record: Record) -> Draft | Refusal:
    """The record as it may be kept, waiting; or why it may not."""
    said = Evidence(
        thread_id=record.provenance.thread_id or "none",
        message_id=record.id,
        role="tool",
        text=record.statement,
        at=record.provenance.observed_at,
        source="agent",
    )
    candidate = Candidate(
        statement=record.statement,
        content_type="fact" if record.content_type == "summary" else record.content_type,
        kind=record.kind,
        subject=record.subject,
        predicate=record.predicate,
        value=record.value,
        entities=(*record.entities, *record.tags),  # all of it is stored, so all of it is looked at
        owner=record.scope.owner,
        messages=(1,),
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        concerns=record.concerns,
        sensitivity=record.governance.sensitivity,
        write_reason=record.write_reason,
    )
    ground = Ground(identity, said.thread_id, [said], extracted_by=record.provenance.extracted_by)
    verdict = validate(candidate, ground)
    if isinstance(verdict, Refusal):
        return verdict._replace(evidence=())  # it rests on no message
    assert isinstance(verdict, Draft)  # only a prospective candidate becomes a reminder
    if verdict.record.scope.owner == "session" != record.scope.owner:
        return Refusal("this-conversation", "it was meant for one conversation only (R95)")
    judged = verdict.record.governance.model_dump(include={"sensitivity", "retention_days"})
    governance = record.governance.model_copy(update=judged)
    kept = record.model_copy(update={"governance": governance, "status": "pending", "authority": Authority.INFERRED})
    return Draft(kept, verdict.rule, verdict.reason)


def _key(record: Record, change: Change) -> str:
    """The same put again writes once. A refusal's key says nothing of what was refused."""
    if change.action == "refuse" or change.record is None:
        return f"door:{new_id('put')}"
    said = change.record.model_dump(mode="json", exclude={"recorded_at", "provenance"})
    return f"door:{sha256(json.dumps([said, change.target, change.expected], sort_keys=True).encode()).hexdigest()}"
