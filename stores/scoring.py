"""How well each document of one scope answers a query: keywords and vectors, fused.

Every backend keeps one small blob a document (`encode`) beside its row, clustered by scope; a search reads the blobs of
the scope it may read (`Corpus.from_rows`) and scores them all, exactly, with the statistics of that scope alone. So
no other tenant's text can change a score. numpy only; nothing here does I/O.

The parts of a score, found by measurement on long chats in English and Chinese:

- B: BM25 of the document; W: BM25 of the document with both neighbours of its thread;
- D: cosine of the best chunk of the document and of three turns together, each after subtracting the corpus's mean;
- the thread: half of the mean of its best three documents is added to each of them;
- the speaker: a small bonus when the query names exactly one of the corpus's speakers.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.errors import StoreError
from everthread.stores.text import cjk_share, query_terms, terms

__all__ = ["Corpus", "Document", "Query", "Scores", "encode", "pieces"]

Floats = NDArray[np.float32]

K1 = 1.2
"""BM25: how fast a repeated term saturates."""
B_DOCUMENT = 0.5
"""BM25: how far a document's length counts, for the document alone."""
B_WINDOW = 0.75
"""The same for a document with its neighbours."""
DENSE_SHARE = 0.7
"""Share of the vectors in the fused score; keywords have the rest."""
CJK_DENSE_SHARE = 0.28
"""The same for a query that is CJK by more than `CJK_TEXT`: bigrams are precise there, a small embedder is not."""
CJK_TEXT = 0.3
"""Above this share of CJK characters a text counts as CJK."""
LIKE = 0.3
"""Centred cosine from which the best of a query counts in full: where nothing is like the query, the least unlike text
must not outweigh a word that is there."""
CONTEXT_SHARE = 0.3
"""Share of the three-turn context inside the dense score; the best chunk has the rest."""
WINDOW_SHARE = 0.4
"""What BM25 of the window adds."""
THREAD_SHARE = 0.5
"""What the thread adds: the mean of its best documents."""
THREAD_BEST = 3
"""How many of a thread's documents speak for it."""
SPEAKER_BONUS = 0.05
"""What is added to the only speaker that the query names."""
RARITY_PRIOR = 50
"""Coverage counts rarity as if this many documents without the term were there: in a small corpus a term that is found
must not look common beside one that is not."""
MEAN_PRIOR = 20
"""The mean vector is shrunk as if this many zero vectors were in the corpus: a small one is hardly centred."""
LONG_QUERY = 8
"""A query of more terms is rarely about all of them: coverage is taken of the geometric mean between all of its weight
and that of its heaviest `LONG_QUERY` terms."""
COVERAGE_SHARE = 0.6
"""Share of coverage in the absolute relevance; likeness of meaning has the rest, or coverage all where vectors lack."""
UNRELATED_COSINE = {False: 0.08, True: 0.45}
"""Mean cosine of the built-in embedder between unrelated texts, for a Latin and for a CJK query."""
UNRELATED_PRIOR = 20
"""`UNRELATED_COSINE` counts as this many documents of the corpus, whose own mean takes over as it grows: so another
embedder's level is learnt, and one topic in a small corpus does not hide itself."""
CHUNK = 100
"""Characters of a piece to embed: whole sentences up to this length."""
MAX_PIECES = 64
"""Pieces of one document; a long one is cut into longer pieces."""
MAX_EMBEDDED = 128_000
"""Characters of one document that are embedded; what lies beyond is found by keywords only."""
MAX_INDEXED = 1_000_000
"""Characters of one document that the keyword index takes."""


class Document(NamedTuple):
    """What is indexed: a record's statement, or one message."""

    id: str
    text: str
    speaker: str | None = None
    date: datetime | None = None
    group: str = ""
    """The thread of a message; documents of a group arrive in their order. Empty: stands for itself."""


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
    """Share of the query's term weight (by rarity; of a long query the heavier part) that the document contains:
    absolute, from 0 to 1."""
    relevance: Floats
    """`fused` times the best absolute evidence (`coverage` and `cosine` above the level of unrelated texts) that any
    document shows: the order of `fused`, on a scale that means the same for every query. What `ranking.weigh` and its
    floor take."""


# ---------------------------------------------------------------------------------------------------------- encoding

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；\n])\s*")


def pieces(document: Document) -> list[str]:
    """The texts to embed, in order: chunks of whole sentences, each prefixed by the speaker. At least one."""
    text = document.text[:MAX_EMBEDDED]
    # two pieces in a row are longer than `size` together, so there are never more than MAX_PIECES
    size = max(CHUNK, len(text) // (MAX_PIECES // 2 - 1) + 1)
    prefix = f"{document.speaker}: " if document.speaker else ""
    return [prefix + chunk for chunk in _chunks(text, size)]


def _chunks(text: str, size: int) -> list[str]:
    """Whole sentences up to `size` characters; a sentence above twice that is cut."""
    chunks: list[str] = []
    current = ""
    for sentence in _SENTENCE_END.split(text):
        if current and len(current) + len(sentence) > size:
            chunks.append(current)
            current = ""
        current = f"{current} {sentence}" if current and sentence else current + sentence
        while len(current) > 2 * size:
            chunks.append(current[:size])
            current = current[size:]
    chunks.append(current)
    return [chunk for chunk in chunks if chunk.strip()] or [" "]


@lru_cache(maxsize=100_000)
def _hash(term: str) -> int:
    """A stable 32-bit id of a term: the same in every process and on every backend."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


MONTHS = (
    "January February March April May June July August September October November December"  # as people ask
).split()


def date_terms(date: datetime) -> list[str]:
    """The terms by which people ask for a day: 8 May 2023. The clock time is noise."""
    return terms(f"{date.day} {MONTHS[date.month - 1]} {date.year}")


VERSION = 1
_HEAD = struct.Struct("<B?HHHII")
"""version, is it CJK, date terms, pieces, dimensions, body terms, length of the body in terms."""


def encode(document: Document, vectors: NDArray[Any] | None) -> bytes:
    """The document as its index keeps it: hashed terms with counts (body and date apart) and int8 vectors.

    `vectors` are the rows of `pieces(document)`, in order, or None when they are not there (yet). No word can be read
    from a blob. The first byte is the format's version.
    """
    words = terms(f"{document.speaker or ''} {document.text[:MAX_INDEXED]}")
    body = Counter(map(_hash, words))
    date = Counter(map(_hash, date_terms(document.date))) if document.date else Counter[int]()
    rows = (
        np.zeros((0, 0), np.float32) if vectors is None else np.asarray(vectors, np.float32).reshape(len(vectors), -1)
    )
    lengths = np.minimum(65_535, [len(piece) for piece in pieces(document)]) if len(rows) else np.zeros(0)
    if len(lengths) != len(rows):
        raise ValueError(f"{len(rows)} vectors for {len(lengths)} pieces of {document.id}")
    scale = np.abs(rows).max(axis=1, initial=1e-9) / 127
    return b"".join(
        (
            _HEAD.pack(VERSION, _is_cjk(document.text), len(date), len(rows), rows.shape[1], len(body), len(words)),
            np.fromiter(body.keys(), "<u4", len(body)).tobytes(),
            np.fromiter(date.keys(), "<u4", len(date)).tobytes(),
            scale.astype("<f4").tobytes(),
            np.minimum(65_535, np.fromiter(body.values(), np.int64, len(body))).astype("<u2").tobytes(),
            np.fromiter(date.values(), "<u2", len(date)).tobytes(),
            lengths.astype("<u2").tobytes(),
            np.rint(rows / scale[:, None]).astype(np.int8).tobytes(),
        )
    )


def without_vectors(blob: bytes) -> bytes:
    """A blob of `encode` as if its vectors were not there; StoreError when it is damaged."""
    try:
        row = _decode(blob)
    except (struct.error, ValueError) as error:
        raise StoreError(f"an index row cannot be read ({error}); rebuild the index") from error
    head = _HEAD.pack(VERSION, row.cjk, len(row.date_terms), 0, 0, len(row.terms), row.length)
    parts = (row.terms, row.date_terms, row.counts, row.date_counts)
    return head + b"".join(part.tobytes() for part in parts)


class _Row(NamedTuple):
    """A decoded blob; the arrays are views of it."""

    blob: bytes
    cjk: bool
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    date_terms: NDArray[np.uint32]
    date_counts: NDArray[np.uint16]
    length: int
    scales: Floats
    sizes: NDArray[np.uint16]
    vectors: NDArray[np.int8]


def _decode(blob: bytes) -> _Row:
    version, cjk, dates, count, dims, body, length = _HEAD.unpack_from(blob)
    if version != VERSION:
        raise ValueError(f"format {version} instead of {VERSION}")
    at = _HEAD.size

    def take(kind: str, n: int) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(blob, kind, n, at)
        at += found.nbytes
        return found

    term_ids, date_ids, scales = take("<u4", body), take("<u4", dates), take("<f4", count)
    counts, date_counts, sizes = take("<u2", body), take("<u2", dates), take("<u2", count)
    vectors = take("i1", count * dims).reshape(count, dims)
    return _Row(blob, cjk, term_ids, counts, date_ids, date_counts, length, scales, sizes, vectors)


# ----------------------------------------------------------------------------------------------------------- scoring


def _is_cjk(text: str) -> bool:
    return cjk_share(text) > CJK_TEXT


class Query(NamedTuple):
    """A question, prepared once for any number of corpora."""

    text: str
    terms: dict[int, float]
    """Hashed terms and their weights."""
    vector: Floats | None
    """Unit vector, or None: keywords alone decide."""

    @classmethod
    def of(cls, text: str, vector: NDArray[Any] | None = None) -> Query:
        """The query of a text, with its embedding when there is one."""
        weighed = {_hash(term): weight for term, weight in query_terms(text).items()}
        return cls(text, weighed, None if vector is None else _unit(np.asarray(vector, np.float32)))

    @property
    def dense_share(self) -> float:
        """How much the vectors count for this query."""
        return CJK_DENSE_SHARE if self.cjk else DENSE_SHARE

    @property
    def cjk(self) -> bool:
        """Whether it is asked in Chinese, Japanese or Korean."""
        return _is_cjk(self.text)


class Corpus:
    """The documents of one scope, ready to be scored; immutable. Statistics are those of exactly these documents."""

    def __init__(self, ids: list[str], groups: list[str], speakers: list[str], rows: list[_Row]) -> None:
        self.ids = ids
        """The documents' ids, in the order of the rows."""
        self._groups = groups
        self._speakers = speakers
        self._rows = rows

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, str | None, bytes]], *, known: Corpus | None = None) -> Corpus:
        """A corpus of (id, group, speaker, blob); documents of a group in their order. StoreError for a blob that is
        damaged or of another format version. Blobs that `known` (an older state of the same documents) holds already
        are not decoded again."""
        old = dict(zip(known.ids, known._rows, strict=True)) if known else {}
        ids: list[str] = []
        groups: list[str] = []
        speakers: list[str] = []
        decoded: list[_Row] = []
        for document_id, group, speaker, blob in rows:
            ids.append(document_id)
            groups.append(group)
            speakers.append(speaker or "")
            row = old.get(document_id)
            if row is not None and row.blob == blob:
                decoded.append(row)
                continue
            try:
                decoded.append(_decode(blob))
            except (struct.error, ValueError) as error:
                raise StoreError(f"index row of {document_id} cannot be read ({error}); rebuild the index") from error
        return cls(ids, groups, speakers, decoded)

    def __len__(self) -> int:
        return len(self.ids)

    def subset(self, mask: Sequence[bool] | NDArray[np.bool_]) -> Corpus:
        """The documents where `mask` is true, as a corpus of their own: the others count nowhere."""
        kept = np.flatnonzero(np.asarray(mask, bool)).tolist()
        return Corpus(
            [self.ids[n] for n in kept],
            [self._groups[n] for n in kept],
            [self._speakers[n] for n in kept],
            [self._rows[n] for n in kept],
        )

    def score(self, query: Query) -> Scores:
        """Every document's scores for this query; arrays of length 0 for an empty corpus."""
        if not self.ids:
            none = np.zeros(0, np.float32)
            return Scores(none, none, none, none, none, none)
        own, window, coverage = self._keywords.score(query.terms)
        vectors = self._dense_of(query)
        chunk, context, cosine = vectors.score(query.vector)
        dense = np.maximum(0, (1 - CONTEXT_SHARE) * chunk + CONTEXT_SHARE * context)
        keyword, semantic = _by_best(own), _by_best(dense)
        share = query.dense_share if dense.any() else 0.0
        likeness = np.where(vectors.known, dense / np.float32(max(float(dense.max()), LIKE)), keyword)
        fused = np.asarray((1 - share) * keyword + share * likeness, np.float32)
        if self._threads.exist:
            fused += WINDOW_SHARE * _by_best(window)
            fused += THREAD_SHARE * self._threads.prior(fused)
        fused += SPEAKER_BONUS * self._named_speaker(query.text)
        fused = _by_best(fused)
        meaning = vectors.meaning(cosine, query.cjk)
        evidence = np.where(vectors.known, COVERAGE_SHARE * coverage + (1 - COVERAGE_SHARE) * meaning, coverage)
        return Scores(keyword, semantic, fused, cosine, coverage, fused * np.float32(evidence.max()))

    @cached_property
    def _threads(self) -> _Threads:
        return _Threads(self._groups)

    @cached_property
    def _keywords(self) -> _Keywords:
        return _Keywords(self._rows, self._threads)

    @cached_property
    def _dense(self) -> dict[int, _Dense]:
        return {}

    def _dense_of(self, query: Query) -> _Dense:
        """The vectors of the query's dimension; rows of another one count as missing."""
        dims = 0 if query.vector is None else len(query.vector)
        if dims not in self._dense:
            self._dense[dims] = _Dense(self._rows, self._threads, dims)
        return self._dense[dims]

    @cached_property
    def _by_speaker(self) -> dict[str, Floats]:
        names = np.array([name.strip().lower() for name in self._speakers])
        return {str(name): (names == name).astype(np.float32) for name in np.unique(names) if name}

    def _named_speaker(self, text: str) -> Floats:
        """1 for the documents of the only speaker that the query names, else 0."""
        nobody = np.zeros(len(self), np.float32)
        if len(self._by_speaker) < 2:
            return nobody
        lowered = text.lower()
        words = set(re.findall(r"\w+", lowered))
        named = [name for name in self._by_speaker if _names(name, lowered, words)]
        return self._by_speaker[named[0]] if len(named) == 1 else nobody


def _names(name: str, lowered: str, words: set[str]) -> bool:
    return name.split()[0] in words if name.isascii() else name in lowered


class _Threads:
    """Who stands beside whom: neighbours inside a thread, and what a thread's documents say for each other."""

    def __init__(self, groups: list[str]) -> None:
        n = self._count = len(groups)
        numbers: dict[str, int] = {}
        # a document without a group is a thread of its own
        self._of = np.array(
            [numbers.setdefault(group or f"\x00{n}", len(numbers)) for n, group in enumerate(groups)], np.int64
        )
        self.exist = any(groups)
        order = np.argsort(self._of, kind="stable")
        beside = self._of[order[1:]] == self._of[order[:-1]]
        self._left, self._right = order[:-1][beside], order[1:][beside]
        sizes = np.bincount(self._of, minlength=len(numbers))
        self._divisor = np.minimum(THREAD_BEST, sizes).astype(np.float32)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._members = np.full((len(numbers), int(sizes.max(initial=1))), n, np.int64)
        self._members[self._of[order], np.arange(n) - np.repeat(starts, sizes)] = order

    def windowed(self, values: Floats) -> Floats:
        """Each value plus those of both neighbours of its thread."""
        total = values.copy()
        total[self._right] += values[self._left]
        total[self._left] += values[self._right]
        return total

    def prior(self, scores: Floats) -> Floats:
        """For each document the mean of its thread's best scores, 1 for the best thread."""
        table = np.append(scores, np.float32(0))[self._members]
        best = min(THREAD_BEST, table.shape[1])
        top = -np.partition(-table, best - 1, axis=1)[:, :best]
        return np.asarray(_by_best(top.sum(axis=1) / self._divisor)[self._of], np.float32)


class _Keywords:
    """Postings of the terms, in the order of the terms' ids; body and date apart, so a window counts its date once."""

    def __init__(self, rows: list[_Row], threads: _Threads) -> None:
        self._count = len(rows)
        self._threads = threads
        self._body = _Postings([row.terms for row in rows], [row.counts for row in rows])
        self._date = _Postings([row.date_terms for row in rows], [row.date_counts for row in rows])
        body = np.array([row.length for row in rows], np.float32)
        date = np.array([row.date_counts.sum() for row in rows], np.float32)
        self._own_norm = _length_norm(body + date, B_DOCUMENT)
        self._window_norm = _length_norm(threads.windowed(body) + date, B_WINDOW)

    def score(self, query: dict[int, float]) -> tuple[Floats, Floats, Floats]:
        """(BM25 of the document, BM25 of its window, share of the query's term weight that the document contains).

        Without threads there are no windows: zeros.
        """
        own = np.zeros(self._count, np.float32)
        window = np.zeros(self._count, np.float32)
        covered = np.zeros(self._count, np.float32)
        asked: list[float] = []
        bodies, dates = self._body.find(query), self._date.find(query)
        for weight, body, date in zip(query.values(), bodies, dates, strict=True):
            counts = np.zeros(self._count, np.float32)
            counts[body.rows] = body.counts
            if self._threads.exist:
                near = self._threads.windowed(counts)
                near[date.rows] += date.counts
                self._add(window, near, self._window_norm, weight, np.flatnonzero(near))
            counts[date.rows] += date.counts
            hits = np.flatnonzero(counts)
            self._add(own, counts, self._own_norm, weight, hits)
            rarity = weight * _idf(self._count + RARITY_PRIOR, len(hits))
            asked.append(rarity)
            covered[hits] += rarity
        return own, window, np.minimum(1, covered / np.float32(_to_cover(asked)))

    def _add(self, total: Floats, counts: Floats, norm: Floats, weight: float, hits: NDArray[np.int64]) -> None:
        """Add one term's BM25 where it occurs."""
        found = counts[hits]
        total[hits] += weight * (K1 + 1) * _idf(self._count, len(hits)) * found / (found + norm[hits])


def _idf(documents: int, containing: int) -> float:
    """Rarity of a term; never negative, so a word in most documents still counts a little."""
    return log(1 + (documents - containing + 0.5) / (containing + 0.5))


def _to_cover(rarities: list[float]) -> float:
    """The term weight that counts as the whole query: of a long one less than all, see `LONG_QUERY`."""
    heaviest = sum(sorted(rarities)[-LONG_QUERY:])
    return sqrt(sum(rarities) * heaviest) or 1.0


def _length_norm(lengths: Floats, b: float) -> Floats:
    return np.asarray(K1 * (1 - b + b * lengths / max(1e-9, float(lengths.mean()))), np.float32)


class _Found(NamedTuple):
    """Which documents contain a term, and how often each does."""

    rows: NDArray[np.int64]
    counts: Floats


class _Postings:
    """Where the terms of some documents are."""

    def __init__(self, terms: list[NDArray[np.uint32]], counts: list[NDArray[np.uint16]]) -> None:
        flat = np.concatenate(terms)
        order = np.argsort(flat, kind="stable")
        self._terms = flat[order]
        self._rows = np.repeat(np.arange(len(terms)), [len(row) for row in terms])[order]
        self._counts = np.concatenate(counts)[order].astype(np.float32)

    def find(self, terms: Iterable[int]) -> list[_Found]:
        """Where each of these terms is, in their order."""
        asked = np.array(list(terms), np.uint32)  # numpy would convert all that it searches to another type
        ends = zip(np.searchsorted(self._terms, asked), np.searchsorted(self._terms, asked, "right"), strict=True)
        return [_Found(self._rows[first:last], self._counts[first:last]) for first, last in ends]


class _Dense:
    """The vectors of one dimension: chunks and three-turn contexts, centred."""

    def __init__(self, rows: list[_Row], threads: _Threads, dims: int) -> None:
        self._count = len(rows)
        having = [n for n, row in enumerate(rows) if dims and row.vectors.shape[1] == dims and len(row.vectors)]
        self._having = np.array(having, np.int64)
        self.known = np.zeros(self._count, bool)
        """Which documents have vectors of this dimension."""
        self.known[self._having] = True
        self._cjk = np.array([row.cjk for row in rows])
        if not having:
            return
        chunks = np.array([len(rows[n].vectors) for n in having])
        self._starts = np.concatenate([[0], np.cumsum(chunks)[:-1]])
        scales = np.concatenate([rows[n].scales for n in having])
        raw = np.concatenate([rows[n].vectors for n in having]).astype(np.float32) * scales[:, None]
        self._raw = _unit(raw)
        self._chunk, self._chunk_mean = _centre(self._raw)
        sizes = np.concatenate([rows[n].sizes for n in having]).astype(np.float32)
        whole = np.zeros((self._count, dims), np.float32)
        whole[self._having] = np.add.reduceat(self._raw * sizes[:, None], self._starts, axis=0)
        self._context, self._context_mean = _centre(_unit(threads.windowed(whole)))

    def score(self, vector: Floats | None) -> tuple[Floats, Floats, Floats]:
        """(centred cosine of the best chunk, centred cosine of the context, plain cosine of the best chunk)."""
        chunk, context, cosine = (np.zeros(self._count, np.float32) for _ in range(3))
        if vector is None or not len(self._having):
            return chunk, context, cosine
        chunk[self._having] = self._best(self._chunk @ _unit(vector - self._chunk_mean))
        cosine[self._having] = self._best(self._raw @ vector)
        context[self._having] = (self._context @ _unit(vector - self._context_mean))[self._having]
        return chunk, context, cosine

    def meaning(self, cosine: Floats, cjk: bool) -> Floats:
        """How far each cosine rises above that of unrelated documents in the query's script, from 0 to 1."""
        alike = cosine[self.known & (self._cjk == cjk)]
        base = (alike.sum() + UNRELATED_PRIOR * UNRELATED_COSINE[cjk]) / (len(alike) + UNRELATED_PRIOR)
        return np.asarray(np.clip((cosine - base) / max(1e-6, 1 - base), 0, 1), np.float32)

    def _best(self, likeness: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(likeness, self._starts), np.float32)


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=-1, keepdims=True)), np.float32)


def _centre(rows: Floats) -> tuple[Floats, Floats]:
    """Unit rows without what all of them share, and that mean (shrunk: see `MEAN_PRIOR`)."""
    mean = rows.sum(axis=0) / (len(rows) + MEAN_PRIOR)
    return _unit(rows - mean), np.asarray(mean, np.float32)


def _by_best(values: Floats) -> Floats:
    """Divided by the best, so that it is 1; zeros when nothing is above 0."""
    best = values.max(initial=0)
    return np.asarray(values / best if best > 0 else np.zeros_like(values), np.float32)
