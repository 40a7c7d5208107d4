"""Items of another memory through the rules of extraction into the store, a batch at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from everthread.errors import AccessDenied
from everthread.migrate.items import Item, Layout, Skipped
from everthread.migrate.mapping import Map, scope_of, text_of
from everthread.migrate.report import MigrationReport, RefusedCount
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.doubts import quoted
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.pipeline import Work, resolve_all
from everthread.nodes.extract.sameness import fingerprint
from everthread.nodes.extract.validate import Draft, Refusal, validate
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, Scope, owners_of
from everthread.stores.record import Authority, Change, Evidence, Provenance, Record, new_id, now_utc
from everthread.stores.text import sound

__all__ = ["migrate"]

BATCH = 100
"""Items that are written in one transaction."""
EXAMPLES = 5
OUTCOME = {"create": "created", "revise": "revised", "confirm": "confirmed"}
"""What a change comes to when it is written; a record that waits is `pending`, whatever the change."""
IN_USE = ("pending", "active", "contested")
KNOWN = frozenset({"already-pending", "already-known"})
"""Refusals that say: it is there."""


class Moved(NamedTuple):
    """An item on its way: whose it becomes, and in which words."""

    item: Item
    map: Map
    scope: Scope
    text: str


def migrate(
    store: MemoryStore,
    items: Iterable[Item | Skipped],
    maps: Sequence[Map],
    *,
    layout: Layout,
    identity_for: Callable[[Scope], Identity | None],
    dry_run: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> MigrationReport:
    """Write the items to the scopes that the maps say, and report what became of each.

    `identity_for` says who may write a scope: the identity, which must be a part of that scope, or None for "not this
    one". Every item passes the rules of extraction as somebody else's words. What passes is `user_implied` at most
    (R90), and in use at once only in a user's own scope. It keeps the time when it was written there; `recorded_at` is
    now, for nobody here knew it before. An item keeps its id over all runs, so a second run adds nothing, and takes no
    record back that was superseded, rejected or erased here since.

    Each batch is one transaction; after an error run it again. Raises AccessDenied when `identity_for` names somebody
    who has no part in the scope, and what `commit` raises.
    """
    run = _Migration(store, maps, layout, identity_for, dry_run)
    waiting: dict[Identity, list[Moved]] = {}
    done = 0
    for item in items:
        found = run.sort(item)
        if found is not None:
            identity, moved = found
            waiting.setdefault(identity, []).append(moved)
            if len(waiting[identity]) == BATCH:
                run.keep(identity, waiting.pop(identity))
        if run.read - done == BATCH:
            advance(BATCH)
            done = run.read
    for identity, batch in waiting.items():
        run.keep(identity, batch)
    advance(run.read - done)
    return run.report()


class _Migration:
    """Counts and decides while items go by."""

    def __init__(
        self,
        store: MemoryStore,
        maps: Sequence[Map],
        layout: Layout,
        identity_for: Callable[[Scope], Identity | None],
        dry_run: bool,
    ) -> None:
        self.store, self.maps, self.layout, self.dry_run = store, maps, layout, dry_run
        self.identity_for = identity_for
        self.now = now_utc()
        self.run, self.batches = new_id("run"), 0
        self.read = 0
        self.outcomes, self.refused, self.skipped = Counter[str](), Counter[str](), Counter[str]()
        self.unmapped, self.others = Counter[str](), Counter[str]()
        self.reasons: dict[str, str] = {}
        self.examples: list[str] = []
        self.seen: set[bytes] = set()  # digests: a source may have a million items

    def sort(self, item: Item | Skipped) -> tuple[Identity, Moved] | None:
        """Whose the item becomes; None when it becomes nobody's, which is counted."""
        self.read += 1
        if isinstance(item, Skipped):
            self.skipped[item.why] += 1
            return None
        place = scope_of(self.maps, item.namespace)
        if place is None:
            self.unmapped[sound("/".join(item.namespace))] += 1
            return None
        mapped, scope = place
        identity = self.identity_for(scope)
        if identity is None:
            self.others[str(scope)] += 1
            return None
        if (scope.owner, scope.owner_id) not in owners_of(identity):
            raise AccessDenied(f"user {identity.user} has no part in {scope}; identity_for must name somebody who has")
        text = text_of(item.value, mapped.text)
        why = self._unfit(item, text, mapped, (identity, scope))
        if text is None or why is not None:
            self.skipped[str(why)] += 1
            return None
        return identity, Moved(item, mapped, scope, sound(text))

    def _unfit(self, item: Item, text: str | None, mapped: Map, whose: tuple[Identity, Scope]) -> str | None:
        """Why there is nothing to import, if so."""
        if item.expires_at is not None and item.expires_at <= self.now:
            return "it has expired in the source"
        if text is None:
            return f"no text at {' or '.join(mapped.text)}"
        identity, scope = whose
        words = json.dumps([identity.tenant, str(scope), fingerprint(text) or text]).encode()
        digest = sha256(words).digest()[:16]
        if digest in self.seen:
            return "the source says the same twice"
        self.seen.add(digest)
        return None

    def keep(self, identity: Identity, batch: Sequence[Moved]) -> None:
        """Judge a batch of one identity, and write what is to be written."""
        ids = [_id_of(identity, self.layout, moved) for moved in batch]
        known = {record.id: record for record in self.store.records(identity, ids=ids)}
        changes = []
        for id, moved in zip(ids, batch, strict=True):
            change = self._change(identity, moved, id, known.get(id))
            if change is not None:
                changes.append(change)
        if self.dry_run:
            self._foresee(changes)
        elif changes:
            self.batches += 1
            receipt = self.store.commit(identity, changes, key=f"import:{self.run}:{self.batches}")
            for decision in receipt.decisions:
                if decision.outcome == "refused":
                    self._refuse(decision.rule, decision.reason)
                else:
                    self.outcomes[decision.outcome] += 1

    def _change(self, identity: Identity, moved: Moved, id: str, known: Record | None) -> Change | None:
        """What is to be written for an item; None for nothing, which is counted."""
        verdict = _verdict(identity, moved, id, self.layout, self.now)
        if isinstance(verdict, Refusal):
            self._refuse(verdict.rule, verdict.reason)
            return None
        if known is not None:
            return self._revised(known, verdict.record)
        work = Work(identity, "", "", (), self.now, verdicts=(verdict,))
        (change,) = resolve_all(work, self.store).changes
        if change.action == "refuse" and change.rule not in KNOWN:
            self._refuse(change.rule, change.reason)
            return None
        if change.action == "refuse" or (change.action == "confirm" and self._is_confirmed(identity, change)):
            self.outcomes["already there"] += 1
            return None
        return change

    def _revised(self, known: Record, record: Record) -> Change | None:
        """What an earlier import brought, in the source's new words. What was done with it here goes first."""
        is_ours = known.provenance.extracted_by == record.provenance.extracted_by and known.status in IN_USE
        if not is_ours or known.statement == record.statement:
            self.outcomes["already there"] += 1
            return None
        if record.status == "pending" and known.status != "pending":
            self.skipped["it changed in the source after it was approved here: correct it here"] += 1
            return None
        changed = {
            "statement": record.statement,
            "provenance": record.provenance,
            "authority": record.authority,
            "confirmed_by": (),
            "governance": record.governance,
            "expires_at": record.expires_at,
        }
        return Change(
            action="revise",
            record=known.model_copy(update=changed),
            target=known.id,
            expected=known.revision,
            rule="imported",
            reason="its text has changed in the source",
        )

    def _is_confirmed(self, identity: Identity, change: Change) -> bool:
        """Whether this very item has confirmed the record before."""
        (target,) = self.store.records(identity, ids=[str(change.target)])
        assert change.source is not None  # `Change` validates it
        return change.source.artifact in [source.artifact for source in (target.provenance, *target.confirmed_by)]

    def _foresee(self, changes: Sequence[Change]) -> None:
        for change in changes:
            record = change.record
            waits = record is not None and record.status == "pending"
            self.outcomes["pending" if waits else OUTCOME[change.action]] += 1
            if record is not None and len(self.examples) < EXAMPLES:
                self.examples.append(record.statement)

    def _refuse(self, rule: str, reason: str) -> None:
        self.refused[rule] += 1
        self.reasons.setdefault(rule, reason)

    def report(self) -> MigrationReport:
        """What was done."""
        return MigrationReport(
            layout=self.layout,
            dry_run=self.dry_run,
            read=self.read,
            created=self.outcomes["created"],
            pending=self.outcomes["pending"],
            revised=self.outcomes["revised"],
            confirmed=self.outcomes["confirmed"],
            already_there=self.outcomes["already there"],
            refused=tuple(
                RefusedCount(rule=rule, reason=self.reasons[rule], count=count)
                for rule, count in self.refused.most_common()
            ),
            skipped=dict(self.skipped.most_common()),
            unmapped=dict(self.unmapped),
            others=dict(self.others),
            examples=tuple(self.examples),
        )


def _verdict(identity: Identity, moved: Moved, id: str, layout: Layout, now: datetime) -> Draft | Refusal:
    """The record that an item becomes, or why it becomes none.

    It is judged as an agent's words: what a memory elsewhere kept, nobody has said here. So a standing order is
    refused, and what is sensitive (R284).
    """
    item, by_user = moved.item, moved.map.authority == "user_implied" and not moved.item.by_model
    observed = min(item.at or now, now)
    said = Evidence(
        thread_id="none", message_id=id, role="tool", text=moved.text, at=observed, source="agent", speaker=layout
    )
    candidate = Candidate(
        statement=moved.text,
        content_type=moved.map.content_type,
        kind="semantic" if moved.map.content_type == "fact" else moved.map.content_type,
        entities=() if _is_uuid(item.key) else (sound(item.key),),  # the key is stored too, so it is looked at
        owner=moved.scope.owner,
        messages=(1,),
        stated=False,
        write_reason=f"imported from {layout}",
    )
    ground = Ground(identity, "none", [said], extracted_by=f"import/{layout}", now=now)
    verdict = validate(candidate, ground)
    if isinstance(verdict, Refusal):
        return verdict._replace(evidence=())  # it rests on no message of ours
    assert isinstance(verdict, Draft)  # only a prospective candidate becomes a reminder
    if verdict.record.scope != moved.scope:
        return Refusal("this-conversation", "it was meant for one conversation only (R95)")
    rule = "imported"
    if moved.scope.owner != "user":
        rule = "wider-scope"
    elif not by_user or quoted(candidate, ground):
        rule = "untrusted-source"
    kept = {
        "id": id,
        "entities": (),
        "authority": Authority.USER_IMPLIED if by_user else Authority.INFERRED,
        "status": "active" if rule == "imported" else "pending",
        "expires_at": item.expires_at,
        "provenance": Provenance(
            source="import",
            actor=layout,
            artifact=sound(f"{layout}:{'/'.join((*item.namespace, item.key))}"),
            artifact_revision=item.at.isoformat() if item.at else None,
            extracted_by=f"import/{layout}",
            observed_at=observed,
        ),
    }
    return Draft(verdict.record.model_copy(update=kept), rule, f"imported from {layout}")


def _id_of(identity: Identity, layout: Layout, moved: Moved) -> str:
    """The item's id here, the same in every run."""
    # langmem's items are LangGraph's: read as either, they are the same
    family = "mem0" if layout == "mem0" else "langgraph"
    parts = [identity.tenant, str(moved.scope), family, moved.item.namespace, moved.item.key]
    return f"mem_{sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


def _is_uuid(key: str) -> bool:
    try:
        return str(UUID(key)) == key.lower() or UUID(key).hex == key.lower()
    except ValueError:
        return False
