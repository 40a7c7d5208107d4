"""Records as LangGraph's plain store operations see them: read only, one tenant at a time.

These calls carry no identity, so they are the host's own; what names its readers is not shown to them at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from everthread.errors import UsageError
from everthread.stores.database import Connection, Database, one
from everthread.stores.filters import matches
from everthread.stores.identity import NAMESPACE_ROOT, encode_label
from everthread.stores.item_ops import checked
from everthread.stores.namespaces import Namespace, listed
from everthread.stores.record import Record
from everthread.stores.scoring import Query
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.rows import Rows
from everthread.stores.tables.search import SearchIndex, record_space
from everthread.stores.tables.times import moment

__all__ = ["PlainRecords", "is_ours"]

SHOWN = "records.tenant = :tenant AND records.readers IS NULL AND records.status IN ('active', 'contested')"
UNDER = f"""
{SHOWN} AND (:owner IS NULL OR records.owner = :owner) AND (:owner_id IS NULL OR records.owner_id = :owner_id)
ORDER BY records.recorded_at DESC, records.id
"""
PLACES = "SELECT DISTINCT owner, owner_id FROM records WHERE tenant = :tenant AND readers IS NULL"


def is_ours(op: Op) -> bool:
    """Whether an operation is about records; all others are about plain items."""
    return _prefix(op)[:1] == (NAMESPACE_ROOT,)


def _prefix(op: Op) -> Namespace:
    match op:
        case GetOp() | PutOp():
            return tuple(op.namespace)
        case SearchOp():
            return tuple(op.namespace_prefix)
        case ListNamespacesOp():
            conditions = op.match_conditions or ()
            return next((tuple(match.path) for match in conditions if match.match_type == "prefix"), ())
    return ()  # none of LangGraph's operations: refused with those on items


class PlainRecords:
    """Answers reads in the namespaces under "everthread"."""

    def __init__(self, database: Database, rows: Rows, index: SearchIndex, indexer: Indexer) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._indexer = indexer

    def read(self, op: Op) -> Result:
        """An Item or None, SearchItems (best first with a query, else the newest first), or namespaces.

        Raises UsageError for a write, and for a namespace that does not name its tenant.
        """
        if isinstance(op, PutOp):
            raise UsageError(
                f'plain writes under "{NAMESPACE_ROOT}" are closed: records need a source and a scope; '
                "use store.commit(identity, changes, key=...)"
            )
        checked([op])
        prefix = _prefix(op)
        if len(prefix) < 2 or "*" in prefix:
            raise UsageError(
                f'name the tenant: ("{NAMESPACE_ROOT}", tenant, ...), each label as Scope.namespace gives it'
            )
        with self._database.read(unquote(prefix[1])) as connection:
            if isinstance(op, GetOp):
                return self._get(connection, prefix, op.key)
            if isinstance(op, ListNamespacesOp):
                return self._namespaces(connection, prefix, op)
        return self._search(prefix, op)

    def _get(self, connection: Connection, namespace: Namespace, key: str) -> Item | None:
        if len(namespace) != 4:
            return None
        values = _place(namespace) | {"id": key}
        condition = f"{SHOWN} AND owner = :owner AND owner_id = :owner_id AND records.id = :id"
        found = next(self._rows.find(connection, condition, values), None)
        return None if found is None else Item(**self._fields(connection, namespace[1], found.record))

    def _search(self, prefix: Namespace, op: SearchOp) -> list[SearchItem]:
        scores: dict[str, float] = {}
        query = Query.of(op.query, self._indexer.query(op.query).vector) if op.query else None
        with self._database.read(unquote(prefix[1])) as connection:
            found = [
                stored.record
                for stored in self._rows.find(connection, UNDER, _place(prefix))
                if matches(stored.record.model_dump(mode="json"), op.filter or {})
            ]
            if query is not None:
                scores = self._scores(connection, _place(prefix)["tenant"], found, query)
                found.sort(key=lambda record: -scores.get(record.id, 0.0))
            return [
                SearchItem(**self._fields(connection, prefix[1], record), score=scores.get(record.id))
                for record in found[op.offset : op.offset + op.limit]
            ]

    def _scores(self, connection: Connection, tenant: str, records: Sequence[Record], query: Query) -> dict[str, float]:
        spaces = dict.fromkeys(record_space(tenant, r.scope.owner, r.scope.owner_id) for r in records)
        known = {record.id for record in records}
        everything = self._index.corpus(connection, list(spaces))
        corpus = everything.subset([id in known for id in everything.ids])
        return dict(zip(corpus.ids, map(float, corpus.score(query).fused), strict=True))

    def _namespaces(self, connection: Connection, prefix: Namespace, op: ListNamespacesOp) -> list[Namespace]:
        """The scopes of a tenant that hold something; every condition counts, as it does for plain items."""
        places = connection.execute(PLACES, {"tenant": unquote(prefix[1])}).fetchall()
        scopes = ((NAMESPACE_ROOT, prefix[1], str(owner), encode_label(str(owner_id))) for owner, owner_id in places)
        return listed(scopes, op)

    def _fields(self, connection: Connection, tenant: str, record: Record) -> dict[str, Any]:
        first = one(connection, "SELECT recorded_at FROM revisions WHERE id = ? AND revision = 1", record.id)
        return {
            "namespace": record.scope.namespace(unquote(tenant)),
            "key": record.id,
            "value": record.model_dump(mode="json", exclude_none=True),
            "created_at": moment(first),
            "updated_at": record.recorded_at,
        }


def _place(namespace: Namespace) -> dict[str, Any]:
    """Tenant, owner and owner id of a namespace; None for what it leaves open. One that is too deep matches nothing."""
    labels = [unquote(label) for label in namespace[1:]]
    if len(labels) > 3:
        return {"tenant": labels[0], "owner": "", "owner_id": ""}
    return dict(zip(("tenant", "owner", "owner_id"), [*labels, None, None], strict=False))
