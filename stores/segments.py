"""Many documents of the index as columns: read from their blobs at once, scored without an object for each.

A segment never changes. What is written later is another segment; now and then small ones are merged. Which of its rows
count, and in which order, is said by whoever holds it (`scoring.Corpus`), so a deleted row costs nothing until the next
merge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from everthread.errors import StoreError
from everthread.stores.encoding import HEAD, VERSION

__all__ = ["Indexed", "Postings", "Segment", "Vectors"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

BLOCK = 1_024
"""Rows that are widened from int8 to float32 at a time: they stay in the processor's cache."""
FOREVER = np.iinfo(np.int64).max
SINCE_EVER = np.iinfo(np.int64).min


class Indexed(NamedTuple):
    """A row of the search index."""

    id: str
    group: str
    """Texts that were said together, in the order of their `place`; "" for a text that stands for itself."""
    speaker: str | None
    blob: bytes
    """What `encoding.encode` returned."""
    seq: int = 0
    """Number of the write that left it: unique among the rows of a space."""
    place: int = 0
    """Where it stands in its space: a row that is written again stays there."""
    since: int | None = None
    """From when it holds, in microseconds since 1970; None: always."""
    until: int | None = None
    """Until when, exclusive."""
    reach: str = ""
    """For whom it holds, as `reach.reach_of` has said it; rows of the same reach are judged once."""
    known: int = 0
    """Since when the store has it so, in microseconds since 1970."""
    gone: int | None = None
    """Until when it had, exclusive; None: it still has."""


class Strings:
    """Texts in one piece of memory: 100,000 Python strings would take twice as much, and a pass of the collector."""

    def __init__(self, texts: Iterable[str]) -> None:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._data = b"".join(encoded)
        self._ends = np.cumsum([0, *map(len, encoded)])

    def __getitem__(self, n: int) -> str:
        return self._data[self._ends[n] : self._ends[n + 1]].decode("utf-8", "surrogatepass")

    def find(self, text: str) -> list[int]:
        """The rows that are this text."""
        sought, found, at = text.encode("utf-8", "surrogatepass"), [], -1
        while sought and (at := self._data.find(sought, at + 1)) >= 0:
            n = int(np.searchsorted(self._ends, at, "right")) - 1
            if self._ends[n] == at and self._ends[n + 1] == at + len(sought):
                found.append(n)
        return found

    @property
    def nbytes(self) -> int:
        return len(self._data) + self._ends.nbytes


class Names(NamedTuple):
    """A column of few different texts."""

    known: tuple[str, ...]
    codes: NDArray[np.int32]
    """Which of them each row has."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        listed = list(texts)
        numbers = {text: n for n, text in enumerate(dict.fromkeys(listed))}
        return cls(tuple(numbers), np.array([*map(numbers.__getitem__, listed)], np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Names]) -> Self:
        """The columns one below the other."""
        numbers: dict[str, int] = {}
        codes = [
            np.array([numbers.setdefault(text, len(numbers)) for text in part.known], np.int32)[part.codes]
            for part in parts
        ]
        return cls(tuple(numbers), np.concatenate(codes) if codes else np.zeros(0, np.int32))


class Found(NamedTuple):
    """Which rows contain a term, and how often each does."""

    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]


class Postings:
    """Where each term is, in the order of the terms' hashes."""

    def __init__(self, terms: NDArray[np.uint32], rows: NDArray[np.int32], counts: NDArray[np.uint16]) -> None:
        order = np.argsort(terms)
        self.terms, self.rows, self.counts = terms[order], rows[order], counts[order]

    def find(self, terms: Iterable[int]) -> list[Found]:
        """Where each of these terms is, in their order."""
        asked = np.array(list(terms), np.uint32)  # numpy would convert all that it searches to another type
        ends = zip(np.searchsorted(self.terms, asked), np.searchsorted(self.terms, asked, "right"), strict=True)
        return [Found(self.rows[first:last], self.counts[first:last]) for first, last in ends]

    @property
    def nbytes(self) -> int:
        return self.terms.nbytes + self.rows.nbytes + self.counts.nbytes


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of one dimension: int8 chunks, those of a row one below the other."""

    rows: NDArray[np.int32]
    """The rows that have vectors, ascending."""
    starts: NDArray[np.int64]
    """The first chunk of each of them."""
    chunks: NDArray[np.int8]
    """Chunks x dimensions. Their scale is of no account: a vector is its direction."""
    sizes: Floats
    """Characters of each chunk's text."""

    @cached_property
    def inverse(self) -> Floats:
        """One over the length of each chunk."""
        lengths = np.empty(len(self.chunks), np.float32)
        for part, block in self._blocks():
            lengths[part] = np.sqrt(np.einsum("ij,ij->i", block, block))
        return np.asarray(1 / np.maximum(1e-9, lengths), np.float32)

    @cached_property
    def of_chunk(self) -> Ints:
        """For each chunk, which of `rows` it belongs to, counted from 0."""
        return np.repeat(np.arange(len(self.rows)), np.diff(np.append(self.starts, len(self.chunks))))

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        """The chunks as float32, some at a time, each until the next is asked for. What is multiplied with a block is
        one vector: for a matrix of two or three, BLAS starts threads that take longer than the work."""
        wide = _wide_rows(self.chunks.shape[1])
        for start in range(0, len(self.chunks), BLOCK):
            block = self.chunks[start : start + BLOCK]
            wide[: len(block)] = block
            yield slice(start, start + len(block)), wide[: len(block)]

    def along(self, *directions: Floats) -> list[Floats]:
        """For each direction, each unit chunk times it."""
        products = [np.empty(len(self.chunks), np.float32) for _ in directions]
        for part, block in self._blocks():
            for product, direction in zip(products, directions, strict=True):
                product[part] = block @ direction
        return [product * self.inverse for product in products]

    def total(self, *weights: Floats) -> list[Floats]:
        """For each column of weights, the sum of the unit chunks, each times its weight."""
        scaled = [column * self.inverse for column in weights]
        totals = [np.zeros(self.chunks.shape[1]) for _ in weights]
        for part, block in self._blocks():
            for total, column in zip(totals, scaled, strict=True):
                total += column[part] @ block
        return [total.astype(np.float32) for total in totals]

    @cached_property
    def sums(self) -> list[Floats]:
        """The sum of all unit chunks, and that of the directions of all `whole` rows."""
        inverse: Floats = np.reciprocal(np.maximum(1e-9, self.lengths))
        return self.total(np.ones(len(self.chunks), np.float32), self.sizes * inverse[self.of_chunk])

    def best(self, values: Floats) -> Floats:
        """The highest of each row's chunks."""
        return values if self.single else np.asarray(np.maximum.reduceat(values, self.starts), np.float32)

    def summed(self, values: Floats) -> Floats:
        """The sum of each row's chunks, weighed by their sizes."""
        values = values * self.sizes
        return values if self.single else np.asarray(np.add.reduceat(values, self.starts), np.float32)

    @property
    def single(self) -> bool:
        """Whether each row has one chunk."""
        return len(self.rows) == len(self.chunks)

    def unit_chunks(self, n: int) -> Floats:
        """The unit chunks of the n-th of `rows`."""
        chunks = slice(self.starts[n], self.starts[n + 1] if n + 1 < len(self.starts) else None)
        return np.asarray(self.chunks[chunks] * self.inverse[chunks, None], np.float32)

    def whole(self, rows: Ints) -> Floats:
        """The sum of each row's unit chunks, weighed by their sizes; zeros for a row that has none."""
        sums = np.zeros((len(rows), self.chunks.shape[1]), np.float32)
        if not len(self.rows):
            return sums
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        having = np.flatnonzero(self.rows[at] == rows)
        chunks, starts = _ranges(self.starts, len(self.chunks), at[having])
        if len(having):
            weights = (self.inverse * self.sizes)[chunks]
            sums[having] = np.add.reduceat(self.chunks[chunks] * weights[:, None], starts, axis=0)
        return sums

    @cached_property
    def lengths(self) -> Floats:
        """The length of each row's `whole`."""
        if self.single:
            return self.sizes
        blocks = np.split(self.rows, range(BLOCK, len(self.rows), BLOCK))
        return np.concatenate([np.linalg.norm(self.whole(block.astype(np.int64)), axis=1) for block in blocks])

    def taken(self, kept: NDArray[np.bool_], renumbered: Ints) -> Vectors:
        """The vectors of the rows that are kept, under the rows' new numbers."""
        mine = np.flatnonzero(kept[self.rows])
        chunks, starts = _ranges(self.starts, len(self.chunks), mine)
        rows = renumbered[self.rows[mine]].astype(np.int32)
        return Vectors(rows, starts, self.chunks[chunks], self.sizes[chunks])

    @classmethod
    def joined(cls, parts: Sequence[Vectors], dims: int) -> Self:
        """Vectors whose rows are numbered in common, in the order of the rows."""
        if not parts:
            return cls(
                np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros((0, dims), np.int8), np.zeros(0, np.float32)
            )
        rows = np.concatenate([part.rows for part in parts])
        before = np.cumsum([0, *(len(part.chunks) for part in parts)])
        starts = np.concatenate([part.starts + offset for part, offset in zip(parts, before[:-1], strict=True)])
        chunks = np.concatenate([part.chunks for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        order = np.argsort(rows, kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return cls(rows, starts, chunks, sizes)
        taken, new = _ranges(starts, len(chunks), order)
        return cls(rows[order], new, chunks[taken], sizes[taken])

    @property
    def nbytes(self) -> int:
        # with what is derived from it at use: inverse, of_chunk, lengths
        return self.rows.nbytes + self.starts.nbytes + self.chunks.nbytes + self.sizes.nbytes + 16 * len(self.chunks)


_scratch = threading.local()


def _wide_rows(dims: int) -> Floats:
    """Room for a block, the same for the whole life of a thread: fresh memory costs more than what is done in it."""
    rows: Floats | None = getattr(_scratch, "rows", None)
    if rows is None or rows.shape[1] != dims:
        rows = _scratch.rows = np.empty((BLOCK, dims), np.float32)
    return rows


def _ranges(starts: Ints, end: int, chosen: Ints) -> tuple[Ints, Ints]:
    """The chunks of the chosen rows, one row after the other, and where each row's then start."""
    counts = np.diff(np.append(starts, end))[chosen]
    new = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(new, counts) + np.repeat(starts[chosen], counts), new


@dataclass(frozen=True, eq=False)
class Segment:
    """The columns of some documents, one row each."""

    ids: Strings
    seqs: Ints
    places: Ints
    groups: Names
    speakers: Names
    reaches: Names
    since: Ints
    until: Ints
    known: Ints
    gone: Ints
    cjk: NDArray[np.bool_]
    lengths: Floats
    """Terms of each document, without its date's."""
    dated: Floats
    """Terms of each document's date."""
    body: Postings
    date: Postings
    vectors: dict[int, Vectors]
    """By dimension: usually one."""

    def __len__(self) -> int:
        return len(self.seqs)

    @classmethod
    def of(cls, rows: Sequence[Indexed]) -> Segment:
        """The columns of these rows. StoreError names the first whose blob is damaged, or of another version."""
        heads = np.array([_head(row) for row in rows], np.int64).reshape(-1, 7)
        _, cjk, dates, count, dims, body, length = heads.T
        starts = _starts(rows, heads)
        parts = [
            b"".join([row.blob[a:b] for row, a, b in zip(rows, first, last, strict=True)])
            for first, last in pairwise(starts)
        ]
        terms, date_terms = (np.frombuffer(part, "<u4") for part in parts[:2])
        counts, date_counts, sizes = (np.frombuffer(part, "<u2") for part in parts[3:6])
        numbers = np.arange(len(rows), dtype=np.int32)
        of_date = np.repeat(numbers, dates)
        return cls(
            ids=Strings(row.id for row in rows),
            seqs=np.array([row.seq for row in rows], np.int64),
            places=np.array([row.place for row in rows], np.int64),
            groups=Names.of(row.group for row in rows),
            speakers=Names.of(row.speaker or "" for row in rows),
            reaches=Names.of(row.reach for row in rows),
            since=np.array([SINCE_EVER if row.since is None else row.since for row in rows], np.int64),
            until=np.array([FOREVER if row.until is None else row.until for row in rows], np.int64),
            known=np.array([row.known for row in rows], np.int64),
            gone=np.array([FOREVER if row.gone is None else row.gone for row in rows], np.int64),
            cjk=cjk.astype(bool),
            lengths=length.astype(np.float32),
            dated=np.bincount(of_date, date_counts, len(rows)).astype(np.float32),
            body=Postings(terms, np.repeat(numbers, body), counts),
            date=Postings(date_terms, of_date, date_counts),
            vectors=_vectors(count, dims, sizes, parts[6]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Segment], kept: Sequence[NDArray[np.bool_]]) -> Segment:
        """One segment of the rows that are kept of each part, in the order of their places."""
        sizes = [int(mask.sum()) for mask in kept]
        places = np.concatenate([part.places[mask] for part, mask in zip(parts, kept, strict=True)])
        order = np.argsort(places, kind="stable")
        new = np.empty(len(order), np.int64)
        new[order] = np.arange(len(order))
        renumbered = []
        for mask, offset in zip(kept, np.cumsum([0, *sizes]), strict=False):
            numbers = np.full(len(mask), -1, np.int64)
            numbers[mask] = new[offset : offset + int(mask.sum())]
            renumbered.append(numbers)

        def column(name: str) -> Any:
            columns = [getattr(part, name)[mask] for part, mask in zip(parts, kept, strict=True)]
            return np.concatenate(columns)[order]

        def names(name: str) -> Names:
            columns: list[Names] = [getattr(part, name) for part in parts]
            cut = [Names(c.known, c.codes[mask]) for c, mask in zip(columns, kept, strict=True)]
            whole = Names.joined(cut)
            return Names(whole.known, whole.codes[order])

        def postings(name: str) -> Postings:
            found: list[Postings] = [getattr(part, name) for part in parts]
            rows = [numbers[each.rows] for each, numbers in zip(found, renumbered, strict=True)]
            there = np.concatenate(rows) >= 0
            return Postings(
                np.concatenate([each.terms for each in found])[there],
                np.concatenate(rows)[there].astype(np.int32),
                np.concatenate([each.counts for each in found])[there],
            )

        ids = [part.ids[n] for part, mask in zip(parts, kept, strict=True) for n in np.flatnonzero(mask).tolist()]
        dimensions = dict.fromkeys(dims for part in parts for dims in part.vectors)
        return cls(
            ids=Strings(ids[n] for n in order.tolist()),
            seqs=column("seqs"),
            places=column("places"),
            groups=names("groups"),
            speakers=names("speakers"),
            reaches=names("reaches"),
            since=column("since"),
            until=column("until"),
            known=column("known"),
            gone=column("gone"),
            cjk=column("cjk"),
            lengths=column("lengths"),
            dated=column("dated"),
            body=postings("body"),
            date=postings("date"),
            vectors={
                dims: Vectors.joined(
                    [
                        part.vectors[dims].taken(mask, numbers)
                        for part, mask, numbers in zip(parts, kept, renumbered, strict=True)
                        if dims in part.vectors
                    ],
                    dims,
                )
                for dims in dimensions
            },
        )

    @cached_property
    def nbytes(self) -> int:
        """What it takes of the memory."""
        times = (self.since, self.until, self.known, self.gone)
        columns = (self.seqs, self.places, *times, self.cjk, self.lengths, self.dated)
        codes = sum(
            names.codes.nbytes + sum(map(len, names.known)) for names in (self.groups, self.speakers, self.reaches)
        )
        rest = (
            self.ids.nbytes + self.body.nbytes + self.date.nbytes + sum(part.nbytes for part in self.vectors.values())
        )
        return sum(column.nbytes for column in columns) + codes + rest


def _head(row: Indexed) -> tuple[int, ...]:
    if len(row.blob) < HEAD.size:
        raise _damaged(row.id, f"{len(row.blob)} bytes")
    head = HEAD.unpack_from(row.blob)
    if head[0] != VERSION:
        raise _damaged(row.id, f"format {head[0]} instead of {VERSION}")
    return head


def _starts(rows: Sequence[Indexed], heads: Ints) -> list[list[int]]:
    """Where the seven parts of each blob start, and where the last ends; StoreError when that is not the blob's end."""
    _, _, dates, count, dims, body, _ = heads.T
    lengths = (
        np.full(len(rows), HEAD.size),
        4 * body,
        4 * dates,
        4 * count,
        2 * body,
        2 * dates,
        2 * count,
        count * dims,
    )
    starts = np.cumsum(lengths, axis=0)
    for n in np.flatnonzero(starts[-1] != [len(row.blob) for row in rows])[:1].tolist():
        raise _damaged(rows[n].id, f"{len(rows[n].blob)} bytes instead of {starts[-1][n]}")
    return [start.tolist() for start in starts]


def _damaged(id: str, what: str) -> StoreError:
    return StoreError(f"index row of {id} cannot be read ({what}); rebuild the index")


def _vectors(count: Ints, dims: Ints, sizes: NDArray[np.uint16], data: bytes) -> dict[int, Vectors]:
    """The chunks of all rows by dimension."""
    found = {}
    chunk_ends, byte_ends = np.cumsum(count), np.cumsum(count * dims)
    flat = np.frombuffer(data, np.int8)
    for size in np.unique(dims[count > 0]).tolist():
        rows = np.flatnonzero((dims == size) & (count > 0))
        if len(rows) == int((count > 0).sum()):  # the usual case: all of one dimension, nothing to pick
            chunks, picked = flat.reshape(-1, size), sizes
        else:
            chunks = np.concatenate([flat[byte_ends[n] - count[n] * size : byte_ends[n]] for n in rows]).reshape(
                -1, size
            )
            picked = np.concatenate([sizes[chunk_ends[n] - count[n] : chunk_ends[n]] for n in rows])
        starts = np.cumsum(count[rows]) - count[rows]
        found[size] = Vectors(rows.astype(np.int32), starts, chunks, picked.astype(np.float32))
    return found
