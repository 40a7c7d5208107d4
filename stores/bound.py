"""The store as one identity sees it: the `BaseStore` to hand to other people's tools.

Such tools carry no identity and take namespaces and keys from a model, so everything that must hold is settled when the
store is bound: who reads, and where plain items go. Built on the contract alone; it runs on every backend.

Under "everthread" a tool reads the records that its identity may use here and now. What it puts there is not memory
yet: by default a record that waits for review, whatever the tool says about status, source or authority, because the
words are a model's and nobody has said them (`inferred`). Validation belongs to the one door of writes, which lies
above stores: a host that wants it hands the door in as `remember`.

Everything else a tool keeps goes to a place of this tenant and user alone, so that two users' tools never meet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from pydantic import ValidationError

from everthread.errors import AccessDenied, UsageError
from everthread.stores.access import unfit
from everthread.stores.aside import aside
from everthread.stores.filters import matches
from everthread.stores.identity import NAMESPACE_ROOT, Identity, Scope, complaint, encode_label, owners_of, within_holds
from everthread.stores.item_ops import checked
from everthread.stores.namespaces import Namespace, listed
from everthread.stores.record import Authority, Change, Decision, Provenance, Record, Relation, Status, new_id, now_utc

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore

__all__ = ["PRIVATE_ROOT", "BoundStore", "Remember"]

Remember = Callable[[Identity, Record], object]
"""Takes a candidate through the host's door. What it returns is not looked at; what it raises reaches the tool."""

PRIVATE_ROOT = "everthread-private"
"""First label of the namespaces that hold what bound tools keep: this, tenant, user, and then the tool's own labels."""
EXTRACTED_BY = "bound/1"
"""Marks the records that came through this door."""
STATEMENTS = ("statement", "content", "text")
"""Where a put value may hold what is to be remembered; the first one that is there counts."""
TAKEN = ("content_type", "kind", "subject", "predicate", "value", "entities", "tags", "importance", "concerns")
TAKEN_TIMES = ("valid_from", "valid_to")
"""What a candidate takes over of the value that was put. Status, source, authority and owner are for code to say."""
IN_USE: tuple[Status, ...] = ("active", "contested")
OPEN = ("pending", *IN_USE)
EVERYTHING = 1_000_000


class BoundStore(BaseStore):
    """See `MemoryStore.bound`. Raises as the store beneath it does, and AccessDenied for what is another's."""

    def __init__(
        self,
        store: MemoryStore,
        identity: Identity,
        *,
        thread_id: str | None = None,
        namespace: Sequence[str] | None = None,
        remember: Remember | None = None,
    ) -> None:
        if namespace is not None and (not namespace or namespace[0] in (NAMESPACE_ROOT, PRIVATE_ROOT)):
            raise UsageError(
                f"namespace {tuple(namespace)} cannot hold the items of bound tools; "
                "name one of yours, or leave it out for a private one"
            )
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config
        self._store = store
        self._identity = identity
        self._thread_id = thread_id
        self._root = private_root(identity.tenant, identity.user) if namespace is None else tuple(namespace)
        self._records = _Records(store, identity, thread_id, remember)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """One result for each operation, in order. All are checked before any is run; reads see the state before the
        writes. Items are written as one; records one by one, after them."""
        batch = checked(ops)
        candidates = [
            (op, self._records.planned(op)) for op in batch.puts.values() if op.namespace[0] == NAMESPACE_ROOT
        ]
        mapped = {n: inner for n, op in enumerate(batch.ops) if (inner := self._mapped(op)) is not None}
        answers = dict(zip(mapped, self._store.batch(mapped.values()), strict=True)) if mapped else {}
        results = [self._result(op, answers.get(n)) for n, op in enumerate(batch.ops)]
        for op, candidate in candidates:
            self._records.write(op, candidate)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, without blocking the event loop."""
        return await aside(self.batch, list(ops))

    # ---------------------------------------------------------------------------------------------------------- items

    def _mapped(self, op: Op) -> Op | None:
        """What the store beneath is asked for: the same, in this identity's place; None when it is about records."""
        match op:
            case GetOp() | PutOp() if op.namespace[:1] != (NAMESPACE_ROOT,):
                return op._replace(namespace=self._root + op.namespace)
            case SearchOp(namespace_prefix=()):
                # Merged with records: the page is cut from both.
                return op._replace(namespace_prefix=self._root, limit=op.offset + op.limit, offset=0)
            case SearchOp() if op.namespace_prefix[0] != NAMESPACE_ROOT:
                return op._replace(namespace_prefix=self._root + op.namespace_prefix)
            case ListNamespacesOp():
                return ListNamespacesOp((MatchCondition("prefix", self._root),), limit=EVERYTHING)
        return None

    def _result(self, op: Op, found: Any) -> Result:
        """The answer to an operation; `found` is that of the store beneath."""
        match op:
            case GetOp() if op.namespace[:1] == (NAMESPACE_ROOT,):
                return self._records.get(op)
            case GetOp():
                return None if found is None else Item(**self._fields(found))
            case SearchOp(namespace_prefix=()):
                both = [*self._items(found), *self._records.search(op)]
                return _ranked(both, by_score=bool(op.query))[op.offset : op.offset + op.limit]
            case SearchOp() if op.namespace_prefix[0] == NAMESPACE_ROOT:
                return self._records.search(op)[op.offset :]
            case SearchOp():
                return self._items(found)
            case ListNamespacesOp():
                own = [labels[len(self._root) :] for labels in found]
                return listed([*own, *self._records.namespaces()], op)
        return None

    def _items(self, found: Iterable[SearchItem]) -> list[SearchItem]:
        return [SearchItem(**self._fields(item), score=item.score) for item in found]

    def _fields(self, item: Item) -> dict[str, Any]:
        return {
            "namespace": item.namespace[len(self._root) :],
            "key": item.key,
            "value": item.value,
            "created_at": item.created_at,
            "updated_at": item.updated_at,
        }

    def __repr__(self) -> str:
        return f"BoundStore({self._store!r}, {self._identity.tenant!r}, {self._identity.user!r})"


class Planned(NamedTuple):
    """A write under "everthread" that passed every check which needs no writing."""

    changes: list[Change]
    """What to commit; nothing when it is so already."""
    key: str
    """The idempotency key."""


class _Records:
    """Records as one identity's items."""

    def __init__(
        self, store: MemoryStore, identity: Identity, thread_id: str | None, remember: Remember | None
    ) -> None:
        self._store = store
        self._identity = identity
        self._thread_id = thread_id
        self._remember = remember

    # ---------------------------------------------------------------------------------------------------------- read

    def get(self, op: GetOp) -> Item | None:
        """The record of this id, or what was put under this key, once it is in use."""
        record = self._found(op.namespace, op.key) if self._may_remind() else None
        return None if record is None or not self._usable(record) else Item(**self._fields(record, op.key))

    def search(self, op: SearchOp) -> list[SearchItem]:
        """The first records that the operation asks for, down to the end of its page: with a query the best first and
        then those that it does not fit, without a score; else the newest first."""
        end = op.offset + op.limit
        scopes = self._scopes(op.namespace_prefix)
        if scopes == [] or end == 0 or not self._may_remind():
            return []
        scores: dict[str, float] = {}
        found: list[Record] | None = None
        if op.query and not op.filter:
            scores = self._scores(op.query, end, scopes)
            if len(scores) == end:
                found = self._store.records(self._identity, ids=list(scores), thread_id=self._thread_id)
        if found is None:
            found = [
                record
                for record in self._store.records(self._identity, scopes=scopes, thread_id=self._thread_id)
                if self._usable(record) and matches(record.model_dump(mode="json"), op.filter or {})
            ]
            if op.query and op.filter and found:
                scores = self._scores(op.query, EVERYTHING, scopes)
        found.sort(key=lambda record: -scores.get(record.id, float("-inf")))
        return [SearchItem(**self._fields(record, record.id), score=scores.get(record.id)) for record in found[:end]]

    def namespaces(self) -> set[Namespace]:
        """The scopes that hold something for this identity."""
        records = self._store.records(self._identity, thread_id=self._thread_id) if self._may_remind() else []
        return {self._namespace(record) for record in records if self._usable(record)}

    def _scores(self, query: str, limit: int, scopes: Sequence[Scope] | None) -> dict[str, float]:
        hits = self._store.recall(self._identity, query, limit=limit, scopes=scopes, thread_id=self._thread_id).hits
        return {hit.record_id: hit.score for hit in hits if hit.record_id}

    def _scopes(self, prefix: Namespace) -> list[Scope] | None:
        """The scopes under a prefix; None for all of them, and empty for what is not this identity's."""
        tenant, place = prefix[1:2], prefix[2:]
        if tenant not in ((), (encode_label(self._identity.tenant),)):
            return []
        if not place:
            return None
        return [
            Scope(owner=owner, owner_id=owner_id)
            for owner, owner_id in owners_of(self._identity, self._thread_id)
            if (owner, encode_label(owner_id))[: len(place)] == place
        ]

    def _may_remind(self) -> bool:
        """Whether the user agrees that their memory reaches a model (R289); the user's own reads do not go this way."""
        return self._store.consent(self._identity) != "off"

    def _usable(self, record: Record) -> bool:
        """Whether it is in use and holds here and now."""
        return unfit(record, self._identity, now_utc()) is None and within_holds(
            record.scope.within, self._identity, self._thread_id
        )

    def _found(self, namespace: Namespace, key: str) -> Record | None:
        """What stands under a key, whatever its status: the tool's own, or a record by its id; if it was superseded,
        what stands in its place."""
        ids = [self._id_of(namespace, key), key]
        found = self._store.records(self._identity, ids=ids, thread_id=self._thread_id)
        record = next((record for record in found if self._namespace(record) == namespace), None)
        if record is None or record.status != "superseded":
            return record
        return next(iter(self._replacing(record, IN_USE)), record)

    def _replacing(self, record: Record, statuses: Sequence[Status]) -> list[Record]:
        """The records that supersede one, or would."""
        scope = Scope(owner=record.scope.owner, owner_id=record.scope.owner_id)
        known = self._store.records(self._identity, scopes=[scope], statuses=statuses, thread_id=self._thread_id)
        edge = ("supersedes", record.id)
        return [other for other in known if edge in [(found.kind, found.target) for found in other.relations]]

    def _namespace(self, record: Record) -> Namespace:
        return record.scope.namespace(self._identity.tenant)

    def _fields(self, record: Record, key: str) -> dict[str, Any]:
        first = self._store.record(self._identity, record.id, revision=1) if record.revision > 1 else record
        return {
            "namespace": self._namespace(record),
            "key": key,
            "value": record.model_dump(mode="json", exclude_none=True),
            "created_at": (first or record).recorded_at,
            "updated_at": record.recorded_at,
        }

    # --------------------------------------------------------------------------------------------------------- write

    def planned(self, op: PutOp) -> Planned:
        """The change that a put or a delete comes to. Raises UsageError for a value that cannot be a record and
        AccessDenied for a scope that is not this identity's, or a delete of what did not come from its tools."""
        scope = self._scope(op.namespace)
        known = self._found(op.namespace, op.key)
        changes = self._endings(known) if op.value is None else self._candidate(scope, op, known)
        seen = [*op.namespace, op.key, known and (known.id, known.revision), op.value]
        return Planned(changes, f"bound:{_digest([*seen, [(each.target, each.expected) for each in changes]])}")

    def write(self, op: PutOp, planned: Planned) -> None:
        """Hand a candidate to the door, or commit it to wait for review. Raises UsageError when it was refused."""
        candidates = [_proposed(change) for change in planned.changes if change.record is not None]
        if self._remember is not None and candidates:
            self._remember(self._identity, candidates[0])
        elif planned.changes:
            receipt = self._store.commit(self._identity, planned.changes, key=planned.key, thread_id=self._thread_id)
            for decision in receipt.decisions:
                self._check(op, decision)

    def _check(self, op: PutOp, decision: Decision) -> None:
        if decision.outcome == "refused":
            raise UsageError(f"{op.key!r} was not kept: {decision.reason}")
        if self._store.record(self._identity, str(decision.record_id)) is None:
            # The receipt is that of an earlier put.
            raise UsageError(f"{op.key!r} was not kept: the same was erased before, and is not learnt again")

    def _scope(self, namespace: Namespace) -> Scope:
        labels = [unquote(label) for label in namespace[1:]]
        if len(labels) != 3:
            raise UsageError(
                f'name the scope to write under "{NAMESPACE_ROOT}": '
                f"{Scope(owner='user', owner_id=self._identity.user).namespace(self._identity.tenant)}"
            )
        tenant, owner, owner_id = labels
        if tenant != self._identity.tenant or (owner, owner_id) not in owners_of(self._identity, self._thread_id):
            raise AccessDenied(f"user {self._identity.user} has no part in {'/'.join(namespace)}")
        return Scope.model_validate({"owner": owner, "owner_id": owner_id})

    def _candidate(self, scope: Scope, op: PutOp, known: Record | None) -> list[Change]:
        record = self._record(scope, op)
        if known is None:
            return [_change("create", record)]
        if known.status == "rejected" and known.statement == record.statement:
            raise UsageError(f"{op.key!r} was not kept: the same was rejected in review")
        if known.status in IN_USE and _says(known) != _says(record):
            # What this user's tools have proposed in its place already is revised, not proposed once more.
            mine = [other for other in self._replacing(known, ("pending",)) if self._is_own(other)]
            if not mine:
                return [_change("supersede", _fresh(record), known)]
            record = record.model_copy(update={"relations": mine[0].relations})
            known = mine[0]
        if known.status in OPEN and _says(known) == _says(record):
            return []
        if self._is_own(known):
            # It waits already, or is out of use: its next revision waits.
            return [_change("revise", record.model_copy(update={"id": known.id}), known)]
        fresh = _fresh(record)
        return [_change("supersede", fresh, known) if known.status in OPEN else _change("create", fresh)]

    def _endings(self, known: Record | None) -> list[Change]:
        if known is None or known.status not in OPEN:
            return []
        if not self._is_own(known):
            raise AccessDenied(
                f"record {known.id} did not come from a tool of user {self._identity.user}; "
                "it is ended by a correction, or erased by store.erase"
            )
        proposed = [other for other in self._replacing(known, ("pending",)) if self._is_own(other)]
        return [
            Change(
                action="end",
                target=record.id,
                expected=record.revision,
                status="archived",
                rule="bound-delete",
                reason="the tool that proposed it has taken it back",
            )
            for record in (known, *proposed)
        ]

    def _record(self, scope: Scope, op: PutOp) -> Record:
        value = op.value or {}
        said = next((value[name] for name in STATEMENTS if value.get(name)), None)
        if said is None:
            raise UsageError(f"value of {op.key!r}: nothing to remember in it; give it one of {', '.join(STATEMENTS)}")
        agents = {"agent_family": scope.owner_id} if scope.owner == "agent" else {}
        fields = {name: value[name] for name in (*TAKEN, *TAKEN_TIMES) if value.get(name) is not None}
        try:
            return Record.model_validate(
                fields
                | agents
                | {
                    "id": self._id_of(op.namespace, op.key),
                    "statement": said if isinstance(said, str) else json.dumps(said, ensure_ascii=False),
                    "scope": scope,
                    "temporal_scope": "session" if scope.owner == "session" else "long_term",
                    "provenance": Provenance(
                        source="agent",
                        thread_id=self._thread_id,
                        actor=self._identity.user,
                        extracted_by=EXTRACTED_BY,
                        observed_at=now_utc(),
                    ),
                    "stated": False,
                    "write_reason": "a tool that was given the store put it there",
                    "authority": Authority.INFERRED,
                    "status": "pending",
                }
            )
        except ValidationError as error:
            raise UsageError(f"value of {op.key!r}: {complaint(error)}") from error

    def _id_of(self, namespace: Namespace, key: str) -> str:
        """The id of what this user's tools put under a key: the same each time, and nobody else's."""
        return f"mem_{_digest([self._identity.tenant, self._identity.user, *namespace, key])[:32]}"

    def _is_own(self, record: Record) -> bool:
        source = record.provenance
        return source.extracted_by == EXTRACTED_BY and source.actor == self._identity.user


def _change(action: Any, record: Record, target: Record | None = None) -> Change:
    return Change(
        action=action,
        record=record,
        target=target.id if target else None,
        expected=target.revision if target else None,
        rule="bound-put",
        reason="a tool that was given the store proposed it",
    )


def _proposed(change: Change) -> Record:
    """The change as a candidate of its own, which says what it would take the place of."""
    record = change.record
    assert record is not None
    if change.action != "supersede" or change.target is None:
        return record
    edge = Relation(kind="supersedes", target=change.target, reason=change.reason)
    return record.model_copy(update={"relations": (*record.relations, edge)})


def _fresh(record: Record) -> Record:
    return record.model_copy(update={"id": new_id("mem")})


def _says(record: Record) -> dict[str, Any]:
    """What two puts must have in common to be the same one."""
    return record.model_dump(include={"statement", *TAKEN, *TAKEN_TIMES})


def private_root(tenant: str, user: str) -> Namespace:
    """The namespace of what bound tools keep for a user."""
    return PRIVATE_ROOT, encode_label(tenant), encode_label(user)


def _ranked(items: list[SearchItem], *, by_score: bool) -> list[SearchItem]:
    """Items and records in one order: by score where there is one, then the last updated first."""
    items.sort(key=lambda item: item.updated_at, reverse=True)
    if by_score:
        items.sort(key=lambda item: -(item.score if item.score is not None else float("-inf")))
    return items


def _digest(parts: Any) -> str:
    return sha256(json.dumps(parts, ensure_ascii=True, sort_keys=True, default=str).encode()).hexdigest()
