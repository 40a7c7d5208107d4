"""How well each document of one scope answers a query: keywords and vectors, fused.

Every backend keeps one small blob a document (`encode`) beside its row; a search reads the blobs of the scope it may
read as columns (`segments.Segment`) and scores them all, exactly, with the statistics of that scope alone (`Corpus`).
So no other tenant's text can change a score. numpy only; nothing here does I/O.

The parts of a score, found by measurement on long chats in English and Chinese, each beside the best of the question:

- B: BM25 of the document; D: cosine of its best chunk and of three documents together, after subtracting the corpus's
  mean, for a question whose words count the less the more documents have them;
- the context: BM25 of the document with both neighbours of its thread, and BM25 of the thread, the more the shorter
  documents are;
- all of BM25 as far as any document covers the question, D as far as any is like it: the best of the bad is not 1;
- the speaker that the question names, the days that it names, and a document of few words, each as a factor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.stores.embedding import unit
from everthread.stores.encoding import Document, encode, pieces, term_hash
from everthread.stores.keywords import Hits, Keywords, Threads, Whole
from everthread.stores.query import SAYS_NOTHING, Query
from everthread.stores.segments import BLOCK, Indexed, Names, Segment, Vectors
from everthread.stores.text import stem
from everthread.stores.when import MONTHS

__all__ = ["Corpus", "Document", "Query", "Scores", "encode", "pieces"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

DENSE_SHARE = 0.75
"""Share of the vectors in what a document scores by itself; keywords have the rest."""
CJK_DENSE_SHARE = 0.3
"""The same for a query that is CJK by more than `CJK_TEXT`: bigrams are precise there, a small embedder is not."""
LIKE = 0.3
"""Centred cosine from which the best of a query counts in full: where nothing is like the query, the least unlike text
must not outweigh a word that is there."""
NEAR_SHARE = 0.4
"""Share of the three-document context inside the dense score; the best chunk has the rest."""
COVER = 0.7
"""Share of the question that some document covers, from which keywords count in full (of a long question less): where
its words are hardly there, a chance hit on one of them must not outweigh what is like it. A CJK question's keywords
always count: single characters cover little, and bigrams are precise."""
CONTEXT_TERMS = 16
"""BM25 of the window and that of the thread add a half when documents have so many terms in the mean, and the less the
longer they are: a line of a chat is understood from its neighbours, a paragraph by itself. Both add it as far as
documents have neighbours at all."""
SPEAKER_BONUS = 0.25
"""What the only speaker that the query names gains, in proportion: nothing is lifted that has no other merit."""
DAYS_BONUS = 0.6
"""The same for a document of the days that the query names."""
FEW_TERMS = 1
"""A document of so many terms counts half, one of n times as many n/(n+1): "Great!" is like everything."""
MEAN_PRIOR = 20
"""The mean vector is shrunk as if this many zero vectors were in the corpus: a small one is hardly centred."""
COVERAGE_SHARE = {False: 0.5, True: 0.7}
"""Share of coverage in the absolute relevance, for a Latin query of up to `LONG_QUERY` terms, and ever less in a longer
one, and for any CJK query; likeness of meaning has the rest, or coverage all where vectors lack."""
DOUBT = 2.0
"""How far the absolute relevance sinks, in proportion, when others than the speaker asked about have said what fits
better. It does not rise when they have not: a name must not make an answer of what is none."""
UNRELATED_COSINE = 0.08
"""Mean cosine of the built-in embedder between unrelated texts. For CJK it has no level of its own: texts of the same
characters are all alike to it, so there the cosine is centred."""
UNRELATED_PRIOR = 20
"""`UNRELATED_COSINE` counts as this many documents of the corpus, whose own mean takes over as it grows: so another
embedder's level is learnt, and one topic in a small corpus does not hide itself."""


class Scores(NamedTuple):
    """Arrays aligned with `Corpus.ids`."""

    keyword: Floats
    """BM25 of the document, 1 for the best of this query."""
    semantic: Floats
    """Likeness of meaning, 1 for the best of this query; 0 without vectors."""
    fused: Floats
    """All parts together, 1 for the best of this query: what to order by."""
    cosine: Floats
    """Raw cosine of the best chunk, not centred: absolute, so that it can be compared with a floor."""
    coverage: Floats
    """Share of the query's term weight (by rarity and by how telling a word is; of a long query the heavier part) that
    the document contains: absolute, from 0 to 1."""
    meaning: Floats
    """How far the likeness of meaning is above that of unrelated texts, from 0 to 1: absolute."""
    context: Floats
    """What neighbours and thread share with the query, 1 for the best of this query; 0 where there are no threads."""
    of_days: Mask
    """Whether it is of the days that the query names."""
    of_speaker: Mask
    """Whether it is of the only speaker that the query names."""
    relevance: Floats
    """`fused` times the best absolute evidence (`coverage` and `cosine` above the level of unrelated texts) that any
    document shows, or any of the speaker that the query names: the order of `fused`, on a scale that means the same for
    every query. What `ranking.weigh` and its floor take."""


class Corpus:
    """The documents of one scope, ready to be scored; immutable. Statistics are those of exactly these documents."""

    def __init__(
        self,
        segments: Sequence[Segment],
        order: Ints,
        *,
        spans: dict[int, _Spans] | None = None,
        whole: Whole | None = None,
    ) -> None:
        self.segments = tuple(segments)
        """Where the documents are. A corpus may hold only some rows of a segment."""
        self._order = order
        self._offsets = np.cumsum([0, *map(len, segments)])
        self._known_spans = spans or {}
        self._whole = whole

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, ...]]) -> Corpus:
        """A corpus of `Indexed` rows, or of their first fields: (id, group, speaker, blob); documents of a group in
        their order. StoreError for a blob that is damaged or of another format version."""
        found = [Indexed(*row, seq=n, place=n) if len(row) == 4 else Indexed(*row) for n, row in enumerate(rows)]
        return cls((), np.zeros(0, np.int64)).plus(found) if found else cls((), np.zeros(0, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Corpus]) -> Corpus:
        """The documents of several corpora as one, in this order."""
        if len(parts) < 2:
            return parts[0] if parts else cls((), np.zeros(0, np.int64))
        offsets = np.cumsum([0, *(part._offsets[-1] for part in parts)])
        orders = [part._order + offset for part, offset in zip(parts, offsets, strict=False)]
        return cls([each for part in parts for each in part.segments], np.concatenate(orders))

    def plus(self, rows: Sequence[Indexed], *, kept: Mask | None = None) -> Corpus:
        """This corpus with more rows, each where its `place` is, and without those of its own that `kept` says are
        gone: what a corpus made anew would be, at the cost of what changed. StoreError for a damaged blob."""
        order = self._order if kept is None else self._order[kept]
        segments = [*self.segments, Segment.of(rows)] if rows else [*self.segments]
        fresh = np.arange(len(rows), dtype=np.int64) + self._offsets[-1]
        spans = {dims: dense.spans for dims, dense in self._dense.items() if dense.spans is not None}
        return Corpus(*_settled(segments, np.concatenate([order, fresh])), spans=self._known_spans | spans)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def ids(self) -> list[str]:
        """The documents' ids, in order."""
        return self.ids_of(range(len(self)))

    def id(self, n: int) -> str:
        """The id of the n-th document."""
        segment, row = self._row(n)
        return segment.ids[row]

    def ids_of(self, positions: Sequence[int]) -> list[str]:
        """The ids of these documents."""
        raw = self._order[np.asarray(positions, np.int64)]
        parts = np.searchsorted(self._offsets, raw, "right") - 1
        rows = raw - self._offsets[parts]
        return [self.segments[part].ids[row] for part, row in zip(parts.tolist(), rows.tolist(), strict=True)]

    def seqs(self) -> Ints:
        """The number of the write that left each document."""
        return np.asarray(self._column("seqs"), np.int64)

    def find(self, id: str) -> int | None:
        """Which document has this id; None when none has."""
        for segment, offset in zip(self.segments, self._offsets, strict=False):
            for row in segment.ids.find(id):
                if self._place is None or self._place[offset + row] >= 0:
                    return int(offset + row if self._place is None else self._place[offset + row])
        return None

    def _row(self, n: int) -> tuple[Segment, int]:
        raw = int(self._order[n])
        part = int(np.searchsorted(self._offsets, raw, "right")) - 1
        return self.segments[part], raw - int(self._offsets[part])

    def subset(self, mask: Sequence[bool] | Mask) -> Corpus:
        """The documents where `mask` is true, as a corpus of their own: the others count nowhere."""
        return Corpus(self.segments, self._order[np.asarray(mask, bool)])

    def part_of(self, whole: Whole) -> Corpus:
        """The same documents, scored as what they are among all of a scope. For those that stand for themselves."""
        return Corpus(self.segments, self._order, whole=whole)

    def beside(self, others: Corpus, query: Query) -> Corpus:
        """These documents and all those of another corpus, scored as they are among all that these are of and those."""
        assert self._whole is not None
        dims = 0 if query.vector is None else len(query.vector)
        more = others.summed(dims, [*query.terms, *(query.words or ())])
        containing = {term: self._whole.containing.get(term, 0) + count for term, count in more.containing.items()}
        whole = Whole(self._whole.numbers + more.numbers, containing)
        return Corpus.joined([self, others]).part_of(whole)

    def summed(self, dims: int, terms: Iterable[int] = ()) -> Whole:
        """What these documents are in all, for vectors of so many numbers and these terms."""
        asked = list(terms)
        found = [self._find(kind, asked) for kind in ("body", "date")]
        containing = {
            term: len(np.union1d(body.rows, date.rows)) for term, body, date in zip(asked, *found, strict=True)
        }
        plain = np.array([len(self), self._column("lengths").sum() + self._column("dated").sum(), 0, 0], np.float64)
        dense = _Dense(self, dims, None) if len(self) else None
        vectors = np.zeros((3, dims)) if dense is None else dense.summed(plain)
        return Whole(np.concatenate([plain, vectors.reshape(-1)]), containing)

    def directions(self, query: Query) -> list[Floats]:
        """Where the best documents lie by their meaning: the directions in which the most is to be looked for."""
        if query.vector is None:
            return []
        weighed = self._weighed(query)
        if self._whole is None or weighed is None:
            return [query.vector]
        mean = self._whole.vectors(0) / (self._whole.numbers[2] + MEAN_PRIOR)
        return [unit(np.asarray(weighed - mean, np.float32)), query.vector]

    def holding(self, allows: Callable[[str], bool], now: int, as_of: int | None = None) -> Mask:
        """Which documents hold now (microseconds since 1970), for whom `allows` says of their reach; with `as_of`,
        those that the store had then."""
        allowed = np.array([allows(reach) for reach in self._reaches.known], bool)[self._reaches.codes]
        held = allowed & (self._since <= now) & (now < self._until)
        if as_of is not None:
            held &= (self._column("known") <= as_of) & (as_of < self._column("gone"))
        return np.asarray(held, bool)

    @property
    def nbytes(self) -> int:
        """What its segments take of the memory."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def derived_nbytes(self) -> int:
        """What it takes itself once it was asked something."""
        return 100 * len(self)

    def score(self, query: Query) -> Scores:
        """Every document's scores for this query; arrays of length 0 for an empty corpus."""
        if not len(self):
            none, nowhere = np.zeros(0, np.float32), np.zeros(0, bool)
            return Scores(none, none, none, none, none, none, none, nowhere, nowhere, none)
        found = self._keywords.score(query.terms, query.telling)
        vectors = self._dense_of(query)
        chunk, near, cosine = vectors.score(query.vector, self._weighed(query))
        dense = np.maximum(0, (1 - NEAR_SHARE) * chunk + NEAR_SHARE * near)
        keyword, semantic = _by_best(found.own), _by_best(dense)
        share = (CJK_DENSE_SHARE if query.cjk else DENSE_SHARE) if dense.any() else 0.0
        sure = np.float32(1 if query.cjk else min(1.0, float(found.covered.max()) / (COVER * query.share_asked)))
        likeness = np.where(vectors.known, dense / np.float32(max(float(dense.max()), LIKE)), sure * keyword)
        fused = np.asarray((1 - share) * sure * keyword + share * likeness, np.float32)
        context = np.zeros_like(fused)
        if self._threads is not None:
            context = _by_best(found.window) + _by_best(found.thread)
            fused += sure * np.float32(self._context_share * self._threads.followed) * context
        of_days = self._of_days(query)
        fused *= self._said_much * (1 + DAYS_BONUS * of_days.astype(np.float32))
        likely = COVERAGE_SHARE[query.cjk] * (1 if query.cjk else query.share_asked)
        meaning: Floats = np.maximum(0, chunk) if query.cjk else vectors.meaning(cosine, query)
        evidence = np.where(vectors.known, likely * found.told + (1 - likely) * meaning, found.told)
        named = self._named_speaker(query.text)
        if named is None:
            named = np.zeros(len(self), bool)
            scale = evidence.max()
        else:
            beside = _by_best(fused)
            gap = beside[named].max() - beside[~named].max()
            scale = evidence[named].max() * max(0, 1 + DOUBT * min(0, gap))
            fused[named] *= 1 + SPEAKER_BONUS
        fused = _by_best(fused)
        relevance = fused * np.float32(scale)
        return Scores(
            keyword, semantic, fused, cosine, found.told, meaning, _by_best(context), of_days, named, relevance
        )

    def likeness(self, n: int, query: Query) -> Floats:
        """How alike each piece of the n-th document is to the query, its words weighed: the centred cosine. Empty when
        that is not known."""
        return self._dense_of(query).likeness(n, self._weighed(query))

    @property
    def _context_share(self) -> float:
        """What the context adds to a document's own score."""
        return CONTEXT_TERMS / (CONTEXT_TERMS + float(self._keywords.lengths.mean()))

    @property
    def _said_much(self) -> Floats:
        """How far each document counts by how many terms it has."""
        lengths = self._keywords.lengths
        return lengths / (lengths + np.float32(FEW_TERMS))

    def _of_days(self, query: Query) -> Mask:
        """Which documents are of the days that the query names: of the first of several ranges that has any."""
        for days in query.days:
            within = (self._days >= _day_number(days.first)) & (self._days <= _day_number(days.last))
            if within.any():
                return np.asarray(within, bool)
        return np.zeros(len(self), bool)

    def _weighed(self, query: Query) -> Floats | None:
        """The query's vector with each word weighed by how few documents have it: what is in all of them, a name or a
        stop word, counts half. The plain vector where the words are not known."""
        if query.words is None or query.vector is None:
            return query.vector
        shares = self._keywords.shares(query.words)
        shares[SAYS_NOTHING] = 1.0
        rows = [row / np.float32(1 + shares[word]) for word, row in query.words.items()]
        return unit(np.sum(rows, axis=0)) if rows else query.vector

    # ------------------------------------------------------------------------------------------------------- columns

    def _column(self, name: str) -> Any:
        """A column of all segments, in the order of the documents."""
        if not self.segments:
            return np.zeros(0)
        return np.concatenate([getattr(segment, name) for segment in self.segments])[self._order]

    def _names(self, name: str) -> Names:
        names = Names.joined([getattr(segment, name) for segment in self.segments])
        return Names(names.known, names.codes[self._order])

    @cached_property
    def _place(self) -> Ints | None:
        """Where each row of the segments stands among the documents, -1 for nowhere; None when nothing is moved."""
        total = int(self._offsets[-1])
        if len(self._order) == total and np.array_equal(self._order, np.arange(total)):
            return None
        place = np.full(total, -1, np.int64)
        place[self._order] = np.arange(len(self._order))
        return place

    def _placed(self, rows: NDArray[np.integer[Any]], offset: int) -> Ints:
        """Where rows of a segment stand among the documents, -1 for nowhere."""
        raw = rows + np.int64(offset)
        return raw if self._place is None else self._place[raw]

    @cached_property
    def _since(self) -> Ints:
        return np.asarray(self._column("since"), np.int64)

    @cached_property
    def _until(self) -> Ints:
        return np.asarray(self._column("until"), np.int64)

    @cached_property
    def _reaches(self) -> Names:
        return self._names("reaches")

    @cached_property
    def _speakers(self) -> Names:
        return self._names("speakers")

    @cached_property
    def _threads(self) -> Threads | None:
        """Who stands beside whom; None when every document stands for itself."""
        if all(segment.groups.known in ((), ("",)) for segment in self.segments):
            return None
        groups = self._names("groups")
        threads = Threads(groups) if any(groups.known) else None
        return threads if threads and threads.followed else None

    @cached_property
    def _keywords(self) -> Keywords:
        return Keywords(self._find, self._column("lengths"), self._column("dated"), self._threads, self._whole)

    def _find(self, kind: str, terms: Iterable[int]) -> list[Hits]:
        """Where each term is in the documents' "body" or "date", in their order."""
        asked = list(terms)
        parts = [getattr(segment, kind).find(asked) for segment in self.segments]
        offsets = self._offsets.tolist()
        return [
            Hits.of(
                [
                    (self._placed(part[n].rows, offset), part[n].counts)
                    for part, offset in zip(parts, offsets, strict=False)
                ]
            )
            for n in range(len(asked))
        ]

    @cached_property
    def _dense(self) -> dict[int, _Dense]:
        return {}

    def _dense_of(self, query: Query) -> _Dense:
        """The vectors of the query's dimension; rows of another one count as missing."""
        dims = 0 if query.vector is None else len(query.vector)
        if dims not in self._dense:
            self._dense[dims] = _Dense(self, dims, self._known_spans.get(dims))
        return self._dense[dims]

    @cached_property
    def _days(self) -> Ints:
        """The day of each document as `_day_number`, 0 for none: read off the terms of its date."""
        years = [str(year) for year in YEARS]
        numbers = np.zeros((3, len(self)), np.int64)
        for row, words in enumerate((years, MONTHS, [str(day) for day in range(1, 32)])):
            found = self._keywords.dated([term_hash(stem(word.lower())) for word in words])
            for n, hits in enumerate(found, YEARS.start if row == 0 else 1):
                numbers[row, hits.rows] = n
        return np.asarray((numbers[0] * 12 + numbers[1]) * 31 + numbers[2], np.int64)

    @cached_property
    def _by_speaker(self) -> dict[str, Mask]:
        plain = [name.strip().lower() for name in self._speakers.known]
        names = np.array(plain)[self._speakers.codes]
        return {name: names == name for name in sorted(set(names.tolist())) if name}

    def _named_speaker(self, text: str) -> Mask | None:
        """Which documents are of the only speaker that the query names, when it names one of several."""
        if len(self._by_speaker) < 2:
            return None
        lowered = text.lower()
        words = set(_WORD.findall(lowered))
        named = [name for name in self._by_speaker if _names(name, lowered, words)]
        return self._by_speaker[named[0]] if len(named) == 1 else None


YEARS = range(1970, 2100)
"""The years in which a document's day is looked for."""


def _day_number(day: date) -> int:
    """A number that grows with the day."""
    return (day.year * 12 + day.month) * 31 + day.day


_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""A word, also where no blank stands between it and Chinese, Japanese or Korean."""


def _names(name: str, lowered: str, words: set[str]) -> bool:
    return name.split()[0] in words if name.isascii() else name in lowered


FEWER = 4
"""A segment is merged into the one before it unless that one has more than so many times its rows: so there are few,
and a row is copied a few times in its life."""
GONE_SHARE = 0.25
"""All segments are merged when more than this share of their rows is gone."""


def _settled(segments: list[Segment], order: Ints) -> tuple[list[Segment], Ints]:
    """The same documents in few segments, sorted by their places."""
    offsets = np.cumsum([0, *map(len, segments)])
    used = np.zeros(int(offsets[-1]), bool)
    used[order] = True
    masks = [used[first:last] for first, last in pairwise(offsets.tolist())]
    counts = [int(mask.sum()) for mask in masks]
    first = len(segments) - 1
    while first > 0 and counts[first - 1] <= FEWER * sum(counts[first:]):
        first -= 1
    if len(order) < (1 - GONE_SHARE) * len(used):
        first = 0
    if first < len(segments) - 1 or (segments and counts[first] < (1 - GONE_SHARE) * len(segments[first])):
        merged = Segment.joined(segments[first:], masks[first:])
        segments, masks = [*segments[:first], merged], [*masks[:first], np.ones(len(merged), bool)]
        used = np.concatenate(masks)
    rows = np.flatnonzero(used)
    places = np.concatenate([segment.places for segment in segments])[rows] if segments else rows
    return segments, rows if (np.diff(places) >= 0).all() else rows[np.argsort(places, kind="stable")]


class _Spans(NamedTuple):
    """How long the sum of each document's vectors and its neighbours' is, known by the writes that left the three: what
    is written later beside others leaves them as they are."""

    keys: Ints
    """Documents x (seq, seq of the one before, of the one after; -1 for none), sorted by the first."""
    lengths: Floats


class _Centred(NamedTuple):
    """Cosines to what is left of unit rows when the mean of all is taken away, from plain products alone."""

    mean: Floats
    along: Floats
    """Each row times the mean."""

    def cosine(self, products: Floats, vector: Floats) -> Floats:
        """`products`: each row times the vector."""
        square = float(self.mean @ self.mean)
        away = np.sqrt(np.maximum(NOTHING_LEFT**2, 1 + square - 2 * self.along))
        rest = vector - self.mean
        products = products - self.along - np.float32(self.mean @ vector - square)
        shares = products / (away * np.float32(max(1e-9, float(np.linalg.norm(rest)))))
        return np.asarray(np.clip(shares, -1, 1), np.float32)


NOTHING_LEFT = 1e-3
"""Below this length what is left of a vector without the mean is rounding."""


class _Dense:
    """The vectors of one dimension: chunks and three-turn contexts, centred. Everything is read off the products of the
    int8 chunks with a vector, so that nothing else of that size is in memory."""

    def __init__(self, corpus: Corpus, dims: int, spans: _Spans | None) -> None:
        self._corpus = corpus
        self._corpus_dims = dims
        self._count = len(corpus)
        self._parts: list[tuple[Vectors, Ints]] = [
            (segment.vectors[dims], corpus._placed(segment.vectors[dims].rows, offset))
            for segment, offset in zip(corpus.segments, corpus._offsets.tolist(), strict=False)
            if dims in segment.vectors
        ]
        self.known = np.zeros(self._count, bool)
        """Which documents have vectors of this dimension."""
        for _, places in self._parts:
            self.known[places[places >= 0]] = True
        self._cjk = np.asarray(corpus._column("cjk"), bool)
        self.spans: _Spans | None = None
        """What a corpus with a few more documents need not measure again."""
        if not self.known.any():
            return
        self._length: Floats = np.maximum(np.float32(1e-9), self._lengths(spans))
        self._centre()

    def _centre(self) -> None:
        """The means of chunks and of contexts (shrunk: see `MEAN_PRIOR`), and every row along them."""
        spread = self._windowed(np.float32(1) / self._length)
        chunks = 0
        totals: list[Floats] = []
        for vectors, places in self._parts:
            if self._corpus._threads is None and (places >= 0).all():
                there, sums = len(vectors.chunks), vectors.sums
            else:
                kept = (places >= 0)[vectors.of_chunk].astype(np.float32)
                sums = vectors.total(kept, kept * vectors.sizes * spread[places][vectors.of_chunk])
                there = int(kept.sum())
            chunks += there
            totals.append(np.stack(sums))
        documents, sums_of_all = self._count, np.sum(totals, axis=0)
        if (scope := self._corpus._whole) is not None:
            documents, chunks = scope.documents, int(scope.numbers[2])
            sums_of_all = np.stack([scope.vectors(0), scope.vectors(1)]).astype(np.float32)
        counts = np.array([[chunks + MEAN_PRIOR], [documents + MEAN_PRIOR]], np.float32)
        mean, context = sums_of_all / counts
        whole, self._chunks = np.zeros(self._count, np.float32), []
        for vectors, places in self._parts:
            along, along_context = vectors.along(mean, context)
            self._chunks.append(_Centred(mean, along))
            _put(whole, places, vectors.summed(along_context))
        self._contexts = _Centred(context, self._windowed(whole) / self._length)

    def _lengths(self, spans: _Spans | None) -> Floats:
        """How long the sum of each document's vectors and its neighbours' is."""
        lengths = np.zeros(self._count, np.float32)
        threads = self._corpus._threads
        if threads is None:
            for vectors, places in self._parts:
                _put(lengths, places, vectors.lengths)
            return lengths
        beside = np.full((3, self._count), -1, np.int64)
        beside[0] = np.arange(self._count)
        beside[1, threads.right], beside[2, threads.left] = threads.left, threads.right
        keys = np.where(beside >= 0, self._corpus.seqs()[beside], -1).T
        unknown = np.ones(self._count, bool)
        if spans is not None and len(spans.keys):
            at = np.minimum(np.searchsorted(spans.keys[:, 0], keys[:, 0]), len(spans.keys) - 1)
            unknown = (spans.keys[at] != keys).any(axis=1)
            lengths[~unknown] = spans.lengths[at[~unknown]]
        rest = threads.order[unknown[threads.order]]
        for start in range(0, len(rest), BLOCK):
            block = rest[start : start + BLOCK]
            positions, places = np.unique(beside[:, block], return_inverse=True)  # each is looked up once
            three = self._whole(positions)[places.reshape(3, -1)].sum(axis=0)
            lengths[block] = np.sqrt(np.einsum("ij,ij->i", three, three))
        order = np.argsort(keys[:, 0])
        self.spans = _Spans(keys[order], lengths[order])
        return lengths

    def _whole(self, positions: Ints) -> Floats:
        """The sum of each document's vectors; zeros for position -1."""
        raw = np.where(positions >= 0, self._corpus._order[positions], -1)
        found = np.zeros((len(raw), self._parts[0][0].chunks.shape[1]), np.float32)
        for segment, offset in zip(self._corpus.segments, self._corpus._offsets.tolist(), strict=False):
            mine = np.flatnonzero((raw >= offset) & (raw < offset + len(segment)))
            if found.shape[1] in segment.vectors and len(mine):
                found[mine] = segment.vectors[found.shape[1]].whole(raw[mine] - offset)
        return found

    def _windowed(self, values: Floats) -> Floats:
        threads = self._corpus._threads
        return values if threads is None else threads.windowed(values)

    def score(self, vector: Floats | None, weighed: Floats | None) -> tuple[Floats, Floats, Floats]:
        """(centred cosine of the best chunk, centred cosine of the context, plain cosine of the best chunk): the first
        two of the vector whose words are weighed."""
        chunk, context, cosine, whole = (np.zeros(self._count, np.float32) for _ in range(4))
        if vector is None or weighed is None or not self.known.any():
            return chunk, context, cosine
        asked = (vector,) if weighed is vector else (vector, weighed)
        for (vectors, places), centred in zip(self._parts, self._chunks, strict=True):
            plain, *others = vectors.along(*asked)
            products = others[0] if others else plain
            _put(cosine, places, vectors.best(plain))
            _put(chunk, places, vectors.best(centred.cosine(products, weighed)))
            _put(whole, places, vectors.summed(products))
        near = self._contexts.cosine(self._windowed(whole) / self._length, weighed)
        context[self.known] = near[self.known]
        return chunk, context, cosine

    def likeness(self, n: int, vector: Floats | None) -> Floats:
        """The centred cosine of each chunk of one document."""
        if vector is not None and self.known.any() and self.known[n]:
            for (vectors, places), centred in zip(self._parts, self._chunks, strict=True):
                for row in np.flatnonzero(places == n).tolist():
                    chunks = unit(vectors.unit_chunks(row) - centred.mean)
                    return np.asarray(chunks @ unit(vector - centred.mean), np.float32)
        return np.zeros(0, np.float32)

    def summed(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums of `keywords.Whole` that are vectors; counts what there is of them into `plain`."""
        total = np.zeros((3, self._corpus_dims))
        for vectors, places in self._parts:
            there = places >= 0
            chunks, directions = vectors.total(
                there[vectors.of_chunk].astype(np.float32),
                (there / np.maximum(1e-9, vectors.lengths))[vectors.of_chunk].astype(np.float32) * vectors.sizes,
            )
            latin = there & ~self._cjk[np.maximum(0, places)]
            share = latin / np.bincount(vectors.of_chunk, minlength=len(places))
            (middles,) = vectors.total(share[vectors.of_chunk].astype(np.float32))
            total += np.stack([chunks, directions, middles])
            plain[2:4] += [there[vectors.of_chunk].sum(), latin.sum()]
        return total

    def meaning(self, cosine: Floats, query: Query) -> Floats:
        """How far each cosine rises above that of unrelated documents that are not CJK, from 0 to 1."""
        scope = self._corpus._whole
        if scope is None or query.vector is None:
            alike = cosine[self.known & ~self._cjk]
            likeness, documents = float(alike.sum()), len(alike)
        else:
            likeness, documents = float(scope.vectors(2) @ query.vector), int(scope.numbers[3])
        base = (likeness + UNRELATED_PRIOR * UNRELATED_COSINE) / (documents + UNRELATED_PRIOR)
        return np.asarray(np.clip((cosine - base) / max(1e-6, 1 - base), 0, 1), np.float32)


def _put(column: Floats, places: Ints, values: Floats) -> None:
    """Write values where their rows stand; those that stand nowhere are left out."""
    if (places >= 0).all():
        column[places] = values
    else:
        column[places[places >= 0]] = values[places >= 0]


def _by_best(values: Floats) -> Floats:
    """Divided by the best, so that it is 1; zeros when nothing is above 0."""
    best = values.max(initial=0)
    return np.asarray(values / best if best > 0 else np.zeros_like(values), np.float32)
