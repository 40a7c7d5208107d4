"""One document as the search index keeps it: a small blob of hashed terms and int8 vectors, the same on every backend.

No word can be read from a blob. `encode` makes one, `segments.Segment` reads many at once.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.errors import StoreError
from everthread.stores.text import cjk_share, stem, terms
from everthread.stores.when import MONTHS

__all__ = [
    "HEAD",
    "VERSION",
    "Bounds",
    "Document",
    "encode",
    "encode_all",
    "is_cjk",
    "pieces",
    "term_hash",
    "without_vectors",
]

CJK_TEXT = 0.3
"""Above this share of CJK characters a text counts as CJK."""
CHUNK = 100
"""Characters of a piece to embed: whole sentences up to this length."""
MAX_PIECES = 64
"""Pieces of one document; a long one is cut into longer pieces."""
MAX_EMBEDDED = 128_000
"""Characters of one document that are embedded; what lies beyond is found by keywords only."""
MAX_INDEXED = 1_000_000
"""Characters of one document that the keyword index takes."""


class Bounds(NamedTuple):
    """When and for whom a document holds; without any, always and for all who read its space."""

    since: int | None = None
    """From when, in microseconds since 1970."""
    until: int | None = None
    """Until when, exclusive."""
    reach: str | None = None
    """For whom, as `reach.reach_of` says it."""
    known: int = 0
    """Since when the store has it so, in microseconds since 1970; 0: always."""
    gone: int | None = None
    """Until when it had, exclusive; None: it still has."""


class Document(NamedTuple):
    """What is indexed: a record's statement, or one message."""

    id: str
    text: str
    speaker: str | None = None
    date: datetime | None = None
    group: str = ""
    """The thread of a message; documents of a group arrive in their order. Empty: stands for itself."""
    bounds: Bounds = Bounds()
    """When and for whom it holds; not part of what is encoded."""


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
def term_hash(term: str) -> int:
    """A stable 32-bit id of a term: the same in every process and on every backend."""
    return _hash(term)


def _hash(term: str) -> int:
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def _said(day: date) -> str:
    """A day as people ask for it: 8 May 2023. The clock time is noise."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


_ASCII_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=100_000)
def _word_hash(word: str) -> int:
    """The hash of an ASCII word's one term."""
    return _hash(stem(word))


def _counts(text: str) -> Counter[int]:
    """How often each term occurs, by its hash, in the order of first occurrence."""
    # the same terms either way
    if text.isascii():
        return Counter(map(_word_hash, _ASCII_WORD.findall(text.lower())))
    return Counter(map(term_hash, terms(text)))


@lru_cache(maxsize=1_000)
def _date_counts(day: date) -> Counter[int]:
    return _counts(_said(day))


VERSION = 1
MOST = 65_535
"""What a count or a length can say in a blob."""
HEAD = struct.Struct("<B?HHHII")
"""version, is it CJK, date terms, pieces, dimensions, body terms, length of the body in terms."""


def encode(document: Document, vectors: NDArray[Any] | None) -> bytes:
    """The document as its index keeps it: hashed terms with counts (body and date apart) and int8 vectors.

    `vectors` are the rows of `pieces(document)`, in order, or None when they are not there (yet). No word can be read
    from a blob. The first byte is the format's version.
    """
    if vectors is None or not len(vectors):
        return _blob(document, [], np.zeros(0, "<f4"), np.zeros((0, 0), np.int8))
    texts = pieces(document)
    if len(texts) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(texts)} pieces of {document.id}")
    return next(iter(encode_all([document], [texts], np.asarray(vectors, np.float32).reshape(len(vectors), -1))))


def encode_all(
    documents: Sequence[Document], texts: Sequence[Sequence[str]], vectors: NDArray[np.float32]
) -> Iterator[bytes]:
    """`encode` for many: `texts` are the pieces of each document, `vectors` one row a piece, in the same order."""
    scales = np.abs(vectors).max(axis=1, initial=1e-9) / 127
    chunks, scales = np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype("<f4")
    first = 0
    for document, parts in zip(documents, texts, strict=True):
        last = first + len(parts)
        yield _blob(document, [len(part) for part in parts], scales[first:last], chunks[first:last])
        first = last


def _blob(document: Document, sizes: Sequence[int], scales: NDArray[np.float32], chunks: NDArray[np.int8]) -> bytes:
    body = _counts(f"{document.speaker or ''} {document.text[:MAX_INDEXED]}")
    dates = _date_counts(document.date.date()) if document.date else {}
    numbers = [*body.values(), *dates.values(), *sizes]
    if max(numbers, default=0) > MOST:
        numbers = [min(MOST, number) for number in numbers]
    return b"".join(
        (
            HEAD.pack(VERSION, is_cjk(document.text), len(dates), *chunks.shape, len(body), sum(body.values())),
            struct.pack(f"<{len(body) + len(dates)}I", *body, *dates),
            scales.tobytes(),
            struct.pack(f"<{len(numbers)}H", *numbers),
            chunks.tobytes(),
        )
    )


def without_vectors(blob: bytes) -> bytes:
    """A blob of `encode` as if its vectors were not there; StoreError when it is damaged."""
    try:
        version, cjk, dates, count, _dims, body, length = HEAD.unpack_from(blob)
        if version != VERSION:
            raise ValueError(f"format {version} instead of {VERSION}")
    except (struct.error, ValueError) as error:
        raise StoreError(f"an index row cannot be read ({error}); rebuild the index") from error
    terms_end = HEAD.size + 4 * (body + dates)
    counts = terms_end + 4 * count
    words = blob[HEAD.size : terms_end] + blob[counts : counts + 2 * (body + dates)]
    return HEAD.pack(version, cjk, dates, 0, 0, body, length) + words


def is_cjk(text: str) -> bool:
    """Whether a text counts as Chinese, Japanese or Korean."""
    return cjk_share(text) > CJK_TEXT
