"""Plain items: the whole BaseStore contract for every namespace that is not ours.

Reads of a batch see the state before its writes, and the last write of a key wins, as in LangGraph's own stores. Texts
are embedded first; then everything happens in one transaction, and a batch that fails leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from everthread.stores.aside import aside
from everthread.stores.database import EVERY, Connection, Database, Lane
from everthread.stores.filters import matches
from everthread.stores.item_ops import Batch, checked
from everthread.stores.namespaces import Namespace, listed
from everthread.stores.record import now_utc
from everthread.stores.tables.item_vectors import Embedded, Floats, ItemVectors

__all__ = ["Items"]

NEVER_EXPIRED = -(2**63)
"""A horizon before every time."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LAST = "\U0010ffff" * 64
"""After every namespace: the last code point is no character."""
LANE = Lane("items")
"""Batches take turns: the reads of one see one state."""
BLOCK = 1_024
"""Vectors that are scored at once, so that a search takes little memory."""

GET = """
SELECT id, namespace, key, value, created_at, updated_at, ttl_minutes IS NOT NULL
FROM items
WHERE namespace = :namespace AND key = :key AND (expires_at IS NULL OR expires_at > :horizon)
"""

BY_ID = """
SELECT id, namespace, key, value, created_at, updated_at, ttl_minutes IS NOT NULL
FROM items
WHERE id = ?
"""

SEARCH = """
SELECT id, namespace, key, value, created_at, updated_at, ttl_minutes IS NOT NULL
FROM items
WHERE namespace >= :first AND namespace < :after AND (expires_at IS NULL OR expires_at > :horizon)
ORDER BY updated_at DESC, namespace, key
LIMIT :limit OFFSET :offset
"""

VECTORS = """
SELECT item, vector
FROM items JOIN item_vectors ON item = id
WHERE namespace >= :first AND namespace < :after AND (expires_at IS NULL OR expires_at > :horizon)
    AND length(vector) = :size
"""

NAMESPACES = "SELECT DISTINCT namespace FROM items WHERE expires_at IS NULL OR expires_at > :horizon"

# An item that had expired was gone: what is put in its place is new.
PUT = """
INSERT INTO items (namespace, key, value, created_at, updated_at, ttl_minutes, expires_at)
VALUES (:namespace, :key, :value, :now, :now, :ttl, :expires_at)
ON CONFLICT (namespace, key) DO UPDATE SET
    value = excluded.value,
    created_at = iif(items.expires_at <= :horizon, excluded.created_at, items.created_at),
    updated_at = excluded.updated_at,
    ttl_minutes = excluded.ttl_minutes,
    expires_at = excluded.expires_at
RETURNING id
"""

DELETE = "DELETE FROM items WHERE namespace = ? AND key = ?"

DELETE_VECTORS = "DELETE FROM item_vectors WHERE item = ?"

PUT_VECTOR = "INSERT INTO item_vectors (item, field, part, vector) VALUES (?, ?, ?, ?)"

REFRESH = """
UPDATE items
SET expires_at = :now + CAST(ttl_minutes * 60000000 AS BIGINT)
WHERE id = :id
"""

SWEEP = "DELETE FROM items WHERE expires_at <= ?"


class Row(NamedTuple):
    """A row of `items`, as the queries select it."""

    id: int
    namespace: str
    key: str
    value: str
    created_at: int
    updated_at: int
    expires: int


class Moment(NamedTuple):
    """When a batch runs, in microseconds."""

    now: int
    horizon: int
    """What expires at it or before is gone."""


class Items:
    """The items of one database file.

    `index` adds vector search: `embed`, `dims`, `fields`, `distance_type`. Of `ttl` only `omit_expired` is read here
    (False keeps expired items readable until they are swept; otherwise they are gone at once); `BaseStore` has applied
    the other settings before an operation arrives. `clock` says what time it is.

    Raises UsageError for an index config that is incomplete.
    """

    def __init__(
        self,
        database: Database,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], datetime] = now_utc,
    ) -> None:
        self._database = database
        self._vectors = ItemVectors(index) if index else None
        self._omit_expired = ttl.get("omit_expired", True) if ttl else True
        self._clock = clock

    @property
    def embeddings(self) -> Embeddings | None:
        """What embeds the items; None without an index."""
        return self._vectors.embeddings if self._vectors else None

    @property
    def vectors(self) -> ItemVectors | None:
        """What makes the vectors of items; None without an index."""
        return self._vectors

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations as one; one result for each, in their order.

        A get gives an Item or None; a search SearchItems, with a query the nearest first and what has no vector last,
        else the last updated first; a listing its namespaces, sorted; a put None.

        Raises UsageError (InvalidNamespaceError for a namespace) for an operation that cannot be run or a value that
        JSON cannot hold, StoreError when the backend fails, and whatever the embedder raises.
        """
        batch = checked(ops)
        return self._run(batch, self._vectors.embed(batch) if self._vectors else None)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` without blocking the event loop; the embedder's own asynchronous methods are used."""
        batch = checked(ops)
        embedded = await self._vectors.aembed(batch) if self._vectors else None
        return await aside(self._run, batch, embedded)

    def sweep_ttl(self) -> int:
        """Delete what has expired, vectors included; returns how many items that were."""
        with self._database.write(LANE) as connection:
            connection.execute(SWEEP, (_micros(self._clock()),))
            return connection.changes()

    def _run(self, batch: Batch, embedded: Embedded | None) -> list[Result]:
        if batch.puts:
            with self._database.write(LANE) as connection:
                moment = self._moment()
                results, touched = _Reader(connection, moment, self._vectors, embedded).results(batch.ops)
                _refresh(connection, moment, touched)
                _write(connection, moment, batch, embedded)
            return results
        with self._database.read() as connection:
            moment = self._moment()
            results, touched = _Reader(connection, moment, self._vectors, embedded).results(batch.ops)
        if touched:
            with self._database.write(LANE) as connection:
                _refresh(connection, moment, touched)
        return results

    def _moment(self) -> Moment:
        """Now. Taken inside the transaction, so that a writer who waited is dated after the one it waited for."""
        now = _micros(self._clock())
        return Moment(now, now if self._omit_expired else NEVER_EXPIRED)


class _Reader:
    """Answers the reads of one batch from one consistent state."""

    def __init__(
        self, connection: Connection, moment: Moment, vectors: ItemVectors | None, embedded: Embedded | None
    ) -> None:
        self._connection = connection
        self._moment = moment
        self._vectors = vectors
        self._queries = embedded.queries if embedded else {}

    def results(self, ops: Iterable[Op]) -> tuple[list[Result], list[int]]:
        """One result for each operation, and the ids of the items whose life their reading prolongs."""
        results: list[Result] = []
        touched: list[int] = []
        for op in ops:
            rows: list[Row] = []
            match op:
                case GetOp():
                    rows = self._get(op)
                    results.append(_item(rows[0]) if rows else None)
                case SearchOp():
                    scored = self._search(op)
                    rows = [row for row, _ in scored]
                    results.append([_search_item(row, score) for row, score in scored])
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    results.append(None)
            if isinstance(op, GetOp | SearchOp) and op.refresh_ttl:
                touched.extend(row.id for row in rows if row.expires)
        return results, touched

    def _rows(self, sql: str, values: dict[str, Any] | tuple[Any, ...]) -> Iterator[Row]:
        return map(Row._make, self._connection.execute(sql, values))

    def _get(self, op: GetOp) -> list[Row]:
        place = {"namespace": _path(op.namespace), "key": op.key, "horizon": self._moment.horizon}
        return list(self._rows(GET, place))

    def _search(self, op: SearchOp) -> list[tuple[Row, float | None]]:
        """The page that was asked for, with scores when there is a query and an index."""
        query = self._queries.get(op.query or "")
        if query is not None:
            return self._page_by_score(op, query)
        if op.filter:
            return [(row, None) for row in islice(self._candidates(op), op.offset, op.offset + op.limit)]
        page = self._within(op) | {"limit": op.limit, "offset": op.offset}
        return [(row, None) for row in self._rows(SEARCH, page)]

    def _within(self, op: SearchOp) -> dict[str, Any]:
        first, after = _span(op.namespace_prefix)
        return {"first": first, "after": after, "horizon": self._moment.horizon}

    def _candidates(self, op: SearchOp) -> Iterator[Row]:
        """Every item that the search may return, the last updated first."""
        rows = self._rows(SEARCH, self._within(op) | {"limit": EVERY, "offset": 0})
        conditions = op.filter
        return (row for row in rows if matches(json.loads(row.value), conditions)) if conditions else rows

    def _page_by_score(self, op: SearchOp, query: Floats) -> list[tuple[Row, float | None]]:
        candidates = [row.id for row in self._candidates(op)]
        scores = self._scores(op, query)
        # Sorting is stable: the last updated comes first among equals. What has no vector comes after all that have.
        ranked = sorted((n for n in candidates if n in scores), key=lambda n: -scores[n])
        ranked += [n for n in candidates if n not in scores]
        page = ranked[op.offset : op.offset + op.limit]
        return [(row, scores.get(row.id)) for n in page for row in self._rows(BY_ID, (n,))]

    def _scores(self, op: SearchOp, query: Floats) -> dict[int, float]:
        """By item, the score of its nearest vector."""
        assert self._vectors is not None
        best: dict[int, float] = {}
        stored = self._connection.execute(VECTORS, self._within(op) | {"size": self._vectors.size})
        while block := list(islice(stored, BLOCK)):
            for (item, _), score in zip(block, self._vectors.scores(query, [blob for _, blob in block]), strict=True):
                best[item] = max(score, best.get(item, score))
        return best

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        rows = self._connection.execute(NAMESPACES, {"horizon": self._moment.horizon})
        return listed((_labels(path) for (path,) in rows), op)


def _write(connection: Connection, moment: Moment, batch: Batch, embedded: Embedded | None) -> None:
    for place, op in batch.puts.items():
        if op.value is None:
            connection.execute(DELETE, (_path(op.namespace), op.key))
            continue
        item: dict[str, Any] = {
            "namespace": _path(op.namespace),
            "key": op.key,
            "value": batch.values[place],
            "now": moment.now,
            "horizon": moment.horizon,
            "ttl": op.ttl,
            "expires_at": None if op.ttl is None else moment.now + int(op.ttl * 60_000_000),
        }
        item_id = cast(int, connection.execute(PUT, item).fetchall()[0][0])
        connection.execute(DELETE_VECTORS, (item_id,))
        if embedded:
            connection.executemany(PUT_VECTOR, embedded.rows(place, item_id))


def _refresh(connection: Connection, moment: Moment, ids: Iterable[int]) -> None:
    connection.executemany(REFRESH, [{"id": item_id, "now": moment.now} for item_id in ids])


def _path(namespace: Namespace) -> str:
    """A namespace as it is stored: ("acme", "ana") is "acme.ana." """
    return "".join(f"{label}." for label in namespace)


def _labels(path: str) -> Namespace:
    return tuple(path.split(".")[:-1])


def _span(prefix: Namespace) -> tuple[str, str]:
    """The range of stored namespaces that start with these labels, each label whole: from the first to the end.

    The last "." becomes the character after it, "/". Everything starts with no label, and comes before `LAST`.
    """
    path = _path(prefix)
    return path, path[:-1] + "/" if path else LAST


def _item(row: Row) -> Item:
    return Item(
        value=json.loads(row.value),
        key=row.key,
        namespace=_labels(row.namespace),
        created_at=_time(row.created_at),
        updated_at=_time(row.updated_at),
    )


def _search_item(row: Row, score: float | None) -> SearchItem:
    return SearchItem(
        _labels(row.namespace), row.key, json.loads(row.value), _time(row.created_at), _time(row.updated_at), score
    )


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def _time(micros: int) -> datetime:
    return EPOCH + micros * MICROSECOND
