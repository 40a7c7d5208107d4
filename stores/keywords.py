"""BM25 over postings: of each document, of it with its neighbours, and of its thread. Pure functions over arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.stores.segments import Names

__all__ = ["LONG_QUERY", "Hits", "Keywords", "Threads", "Words"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

K1 = 1.2
"""BM25: how fast a repeated term saturates."""
B_DOCUMENT = 0.5
"""BM25: how far a document's length counts, for the document alone."""
B_CONTEXT = 0.75
"""The same for a document with its neighbours, and for a thread."""
RARITY_PRIOR = 50
"""Coverage counts rarity as if this many documents without the term were there: in a small corpus a term that is found
must not look common beside one that is not."""
LONG_QUERY = 8
"""A query of more terms is rarely about all of them: who has the heaviest so many has covered it. Of a CJK text they
are mostly bigrams."""


class Threads:
    """Who stands beside whom, and in which thread."""

    def __init__(self, groups: Names) -> None:
        n = len(groups.codes)
        codes = groups.codes.astype(np.int64)
        if "" in groups.known:  # a document without a group is a thread of its own
            alone = np.flatnonzero(codes == groups.known.index(""))
            codes[alone] = len(groups.known) + np.arange(len(alone))
        _, self.of = np.unique(codes, return_inverse=True)
        """Which thread each document is in."""
        self.order = order = np.argsort(self.of, kind="stable")
        """All documents, thread by thread."""
        beside = self.of[order[1:]] == self.of[order[:-1]]
        self.left, self.right = order[:-1][beside], order[1:][beside]
        """Pairs of neighbours, by position."""
        self._beside = np.full((2, n), n)
        self._beside[0, self.right], self._beside[1, self.left] = self.left, self.right
        self.count = int(self.of.max()) + 1
        self.followed = 1 - self.count / n
        """Share of the documents that follow another one in their thread."""

    def windowed(self, values: Floats) -> Floats:
        """Each value plus those of both neighbours of its thread."""
        total = values.copy()
        total[self.right] += values[self.left]
        total[self.left] += values[self.right]
        return total

    def around(self, hits: Hits) -> Floats:
        """`windowed` of a term that few documents have."""
        n = len(self.of)
        rows = np.concatenate([hits.rows, *self._beside[:, hits.rows]])
        return np.bincount(rows, np.tile(hits.counts, 3), n + 1)[:n].astype(np.float32)

    def summed(self, values: Floats) -> Floats:
        """The sum of each thread's values."""
        return np.bincount(self.of, values, self.count).astype(np.float32)


class Hits(NamedTuple):
    """Which documents contain a term, and how often each does."""

    rows: Ints
    counts: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[Ints, NDArray[np.uint16]]]) -> Hits:
        """Those of all segments that are among the documents."""
        if not parts:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.float32))
        rows = np.concatenate([part[0] for part in parts])
        counts = np.concatenate([part[1] for part in parts]).astype(np.float32)
        there = rows >= 0
        return cls(rows, counts) if there.all() else cls(rows[there], counts[there])


class Whole(NamedTuple):
    """What a scope holds in all, of which some documents are looked at: their scores are those that they have among
    all. Documents of threads have none: what they score depends on those beside them."""

    numbers: NDArray[np.float64]
    """Sums over all documents: how many there are, their terms, their chunks, how many that are not CJK have vectors;
    then, each of as many numbers as a vector: their unit chunks, their directions, the middle of the chunks of each
    that is not CJK."""
    containing: dict[int, int]
    """How many documents contain each term that is asked for."""

    @property
    def documents(self) -> int:
        return int(self.numbers[0])

    @property
    def length(self) -> float:
        """Terms of a document, on average."""
        return float(self.numbers[1]) / max(1.0, float(self.numbers[0]))

    def vectors(self, n: int) -> NDArray[np.float64]:
        """The n-th of the sums that are vectors."""
        dims = (len(self.numbers) - PLAIN) // 3
        return self.numbers[PLAIN + n * dims : PLAIN + (n + 1) * dims]


PLAIN = 4
"""Numbers of a `Whole` that are no vectors."""

Find = Callable[[str, Iterable[int]], list[Hits]]
"""Where each of some terms is, in their order; in the documents' "body" or "date"."""


class Words(NamedTuple):
    """What the keywords say of each document."""

    own: Floats
    """BM25 of the document."""
    window: Floats
    """BM25 of the document with its neighbours; zeros where there are no threads."""
    thread: Floats
    """BM25 of its thread; zeros where there are no threads."""
    covered: Floats
    """Share of the query's term weight, by rarity, that the document contains; of a long query of its heavier part."""
    told: Floats
    """The same with each term counting by how telling it is, too."""


class Keywords:
    """BM25 over postings; body and date apart, so that a window or a thread counts a date once."""

    def __init__(
        self, find: Find, lengths: Floats, dated: Floats, threads: Threads | None, whole: Whole | None = None
    ) -> None:
        self._find = find
        self.lengths = lengths
        """Terms of each document, without its date's."""
        self._count = len(lengths)
        self._whole = whole
        self._documents = self._count if whole is None else whole.documents
        self._threads = threads
        self._own_norm = _length_norm(lengths + dated, B_DOCUMENT, None if whole is None else whole.length)
        if threads is not None:
            self._window_norm = _length_norm(threads.windowed(lengths) + dated, B_CONTEXT)
            self._thread_norm = _length_norm(threads.summed(lengths), B_CONTEXT)

    def score(self, query: Mapping[int, float], telling: Mapping[int, float] | None = None) -> Words:
        """What a query of weighed terms finds. `telling`: how much each term says, from 0 to 1, where that is known."""
        own, window, covered, told = (np.zeros(self._count, np.float32) for _ in range(4))
        threads = self._threads
        thread = np.zeros(threads.count if threads else 0, np.float32)
        asked: list[float] = []
        meant: list[float] = []
        bodies, dates = self._find("body", query), self._find("date", query)
        for (term, weight), body, day in zip(query.items(), bodies, dates, strict=True):
            if threads is not None:
                near = threads.around(body)
                near[day.rows] += day.counts
                _add(window, near, self._window_norm, weight)
                said = np.bincount(threads.of[body.rows], body.counts, threads.count).astype(np.float32)
                said[np.unique(threads.of[day.rows])] += 1
                _add(thread, said, self._thread_norm, weight)
            hits = body if not len(day.rows) else self._together(body, day)
            containing = self._containing(term, len(hits.rows))
            own[hits.rows] += weight * _bm25(hits.counts, self._own_norm[hits.rows], self._documents, containing)
            rarity = weight * _idf(self._documents + RARITY_PRIOR, containing)
            asked.append(rarity)
            covered[hits.rows] += rarity
            meant.append(rarity * (telling or {}).get(term, 1.0))
            told[hits.rows] += meant[-1]
        return Words(
            own,
            window,
            window if threads is None else thread[threads.of],
            np.minimum(1, covered / np.float32(_to_cover(asked))),
            np.minimum(1, told / np.float32(_to_cover(meant))),
        )

    def _together(self, body: Hits, day: Hits) -> Hits:
        """A term of the body and of the date, each document once."""
        counts = np.zeros(self._count, np.float32)
        counts[body.rows] = body.counts
        counts[day.rows] += day.counts
        rows = np.flatnonzero(counts)
        return Hits(rows, counts[rows])

    def _containing(self, term: int, here: int) -> int:
        """How many documents contain a term, when so many of these do."""
        return here if self._whole is None else max(here, self._whole.containing.get(term, 0))

    def shares(self, terms: Iterable[int]) -> dict[int, float]:
        """Which part of the documents contains each term, dates aside."""
        asked = dict.fromkeys(terms, 0.0)
        return {
            term: self._containing(term, len(hits.rows)) / self._documents
            for term, hits in zip(asked, self._find("body", asked), strict=True)
        }

    def dated(self, terms: Sequence[int]) -> list[Hits]:
        """Which documents have each term in their date, in the order of the terms."""
        return self._find("date", dict.fromkeys(terms, 0.0))


def _add(total: Floats, found: Floats, norm: Floats, weight: float) -> None:
    """Add one term's BM25 where it occurs."""
    hits = np.flatnonzero(found)
    total[hits] += weight * _bm25(found[hits], norm[hits], len(total), len(hits))


def _bm25(counts: Floats, norms: Floats, documents: int, containing: int) -> Floats:
    """One term's BM25 where it occurs."""
    return np.asarray(np.float32((K1 + 1) * _idf(documents, containing)) * counts / (counts + norms), np.float32)


def _idf(documents: int, containing: int) -> float:
    """Rarity of a term; never negative, so a word in most documents still counts a little."""
    return log(1 + (documents - containing + 0.5) / (containing + 0.5))


def _to_cover(weights: Sequence[float]) -> float:
    """The weight that counts as the whole query; 1 when it has none."""
    return sum(sorted(weights)[-LONG_QUERY:]) or 1.0


def _length_norm(lengths: Floats, b: float, mean: float | None = None) -> Floats:
    if mean is None:
        mean = float(lengths.mean())
    return np.asarray(K1 * (1 - b + b * lengths / max(1e-9, mean)), np.float32)
