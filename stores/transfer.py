"""Memory on the move: a store as rows, whole or one user's part of it, and the copy of a whole store into another.

A backend implements `Transfer`; copying, exporting and restoring are written once, on top of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from pydantic import Field

from everthread.errors import StoreError, UsageError
from everthread.stores.identity import NAMESPACE_ROOT, Frozen, Identity, Owner

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore

__all__ = ["CopyReport", "Mark", "Outcome", "Part", "Row", "Snapshot", "Sums", "Transfer", "copy"]

BATCH = 1_000
"""Rows that are written in one transaction."""
COUNTERS = "counters"
"""Rows of this table say which number a table gave out last: no number is ever given twice."""
ITSELF = Identity(tenant=NAMESPACE_ROOT, user=NAMESPACE_ROOT)
"""On whose behalf a whole store is copied."""

Value = str | int | float | bytes | None


class Row(NamedTuple):
    """One row of a store, the same from every backend: times are microseconds since 1970, texts that may hold anything
    are UTF-8 bytes in which lone surrogates pass, JSON is text."""

    table: str
    """The table, by the name that it has in `stores/sqlite/migrations`."""
    values: Mapping[str, Value]
    """Its columns by name."""


class Part(NamedTuple):
    """What is dumped of a store: everything of one user, or the records of one scope."""

    tenant: str
    user: str
    """The user: whose threads, records, receipts and so on."""
    owner: tuple[Owner, str] | None = None
    """The owner of a scope: its records, whoever wrote them, and this user's receipts of them. None for all that is
    the user's: the scope of that user, and what that user has written elsewhere."""


class Mark(Frozen):
    """How far a copy has come, kept in the store that is written to, in the transaction that wrote so far."""

    source: str
    """`Transfer.id` of the store that is copied."""
    rows: int = 0
    """Rows that are here."""
    sums: dict[str, tuple[int, str]] = Field(default_factory=dict)
    """Of each table, how many they are, and their sum: see `Sums`."""


Outcome = Literal["new", "there", "other", "erased"]
"""What became of an entry: written; there already (perhaps gone on from there); something else has its id, which is
left alone; or it was erased here, and stays away."""


class Snapshot(Protocol):
    """One consistent state of a store, whatever is written meanwhile."""

    def dump(self, part: Part | None = None) -> Iterator[Row]:
        """Every row that is not derived from others, in an order that is the same each time: a row comes after those
        it refers to, the log last.

        Of a `part`: threads, messages, records (each followed by its revisions, the oldest first), receipts, tasks,
        artifacts, their uses, inputs, jobs, items, consents, in the order in which they came about.
        """


class Transfer(Protocol):
    """What a backend does to move memory."""

    def id(self) -> str:
        """Names this store and tells nothing else. A copy of it has the same."""

    def key(self) -> bytes:
        """A secret of this store, made at first use, by which it knows again what it gave out. It is copied with it."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The store as it is now, to be read at length."""

    def unfinished(self) -> Mark | None:
        """How far a copy into this store had come when it was stopped; None when there is none."""

    def load(self, rows: Sequence[Row], mark: Mark) -> None:
        """Write rows and the mark in one transaction. UsageError for a table or column that is not known here, and for
        a row whose key is taken."""

    def clear(self) -> None:
        """Remove everything that an unfinished copy has written. UsageError when there is no mark."""

    def finish(self) -> None:
        """Remove the mark: the copy is complete."""

    def restore(self, identity: Identity, entries: Sequence[Sequence[Row]], *, dry_run: bool = False) -> list[Outcome]:
        """Bring back entries of a user, each all or nothing, all in one transaction; what became of each, in order.

        An entry is a row with those that belong to it, without the numbers that a store gives out itself: they are
        found by their ids. What is there is never changed. What is in use is searchable in the same transaction. What
        was erased here, by its words, its id or its thread, does not come back. `dry_run` writes nothing.
        """

    def note(self, identity: Identity, action: Literal["export", "import", "copy"], detail: Mapping[str, Any]) -> None:
        """Add to the audit log that memory was moved; `detail` holds ids and counts."""


class Sums:
    """How many rows of each table there are, and a sum over them that does not depend on their order."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._sums: dict[str, int] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Count these rows as well. Counters are passed over: they rise by themselves."""
        for table, values in rows:
            if table != COUNTERS:
                told = repr((table, sorted(values.items()))).encode("utf-8", "surrogatepass")
                self._counts[table] = self._counts.get(table, 0) + 1
                number = int.from_bytes(sha256(told).digest())
                self._sums[table] = (self._sums.get(table, 0) + number) % (1 << 256)

    @property
    def counts(self) -> dict[str, int]:
        """Rows by table."""
        return dict(self._counts)

    def told(self) -> dict[str, tuple[int, str]]:
        """By table: how many, and the sum as hexadecimal digits."""
        return {table: (count, f"{self._sums[table]:064x}") for table, count in self._counts.items()}


class CopyReport(Frozen):
    """What a copy has done."""

    rows: dict[str, int]
    """Rows by table; both stores have the same, which was compared after the copy."""
    resumed_at: int
    """Rows that an earlier, interrupted run had written; 0 for none."""
    already: bool
    """Whether the target had been the same before, and nothing was written."""
    searchable: int
    """Texts that can be searched in the target."""


def copy(
    source: MemoryStore, target: MemoryStore, *, advance: Callable[[int], None] = lambda count: None
) -> CopyReport:
    """Copy a whole store into an empty one: all tenants and users, history, tombstones and the audit chain.

    What is derived (the search index) is built anew. A run that was killed goes on where it stopped; if the source has
    changed since, it begins anew. Both stores are compared at the end, and the chain is followed. It is noted in the
    source's log. `advance` is called with how many rows were done.

    Raises UsageError when the target holds other memory, StoreError when a backend fails or the copy differs.
    """
    mark = target.transfer.unfinished()
    there = _sums_of(target)
    if mark is None and there.counts:
        if there.told() == _sums_of(source).told():
            return CopyReport(rows=there.counts, resumed_at=0, already=True, searchable=0)
        raise UsageError("the target holds other memory; copy into an empty store")
    if mark is not None and (mark.source != source.transfer.id() or mark.sums != there.told()):
        raise UsageError(
            "the target holds an unfinished copy of another store, or was written to since; copy into an empty store"
        )
    mark = mark or Mark(source=source.transfer.id())
    source.transfer.note(ITSELF, "copy", {"resumed_at": mark.rows})
    with source.transfer.snapshot() as snapshot:
        resumed_at = _agreed(snapshot, mark)
        if resumed_at < mark.rows:
            target.transfer.clear()
        sums = _load(snapshot, target.transfer, mark.source, resumed_at, advance)
    copied = _sums_of(target)
    if copied.told() != sums.told():
        different = [table for table in sums.told() if sums.told()[table] != copied.told().get(table)]
        raise StoreError(f"the copy differs in {', '.join(different)}; empty the target and copy again")
    chain = target.verify_audit()
    if not chain.ok:
        raise StoreError(f"the audit chain does not hold in the copy: {chain.detail}; look at the source with `doctor`")
    searchable = target.rebuild()
    target.transfer.finish()
    return CopyReport(rows=sums.counts, resumed_at=resumed_at, already=False, searchable=searchable)


def _sums_of(store: MemoryStore) -> Sums:
    sums = Sums()
    with store.transfer.snapshot() as snapshot:
        sums.add(snapshot.dump())
    return sums


def _agreed(snapshot: Snapshot, mark: Mark) -> int:
    """How many rows of the source are in the target as they are now; 0 when any of them has changed."""
    sums = Sums()
    sums.add(islice(snapshot.dump(), mark.rows))
    return mark.rows if sums.told() == mark.sums else 0


def _load(snapshot: Snapshot, target: Transfer, source: str, resumed_at: int, advance: Callable[[int], None]) -> Sums:
    """Write what is not in the target yet; the sums of everything."""
    sums, done, rows = Sums(), 0, snapshot.dump()
    while batch := list(islice(rows, BATCH)):
        sums.add(batch)
        done += len(batch)
        if done > resumed_at:
            fresh = batch[max(0, resumed_at - (done - len(batch))) :]
            target.load(fresh, Mark(source=source, rows=done, sums=sums.told()))
        advance(len(batch))
    return sums
