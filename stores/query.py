"""A question as it is scored: its terms, its vector and the vectors of its words, and the days that it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everthread.stores.embedding import Tokens, unit
from everthread.stores.encoding import is_cjk, term_hash
from everthread.stores.keywords import LONG_QUERY
from everthread.stores.text import query_terms, spans
from everthread.stores.when import Days, days_named

__all__ = ["Query"]

Floats = NDArray[np.float32]

SAYS_NOTHING = 0
"""Stands for the hash of stop words and punctuation in `Query.words`."""
TELLING = 16
"""Length of a word's vector from which the word counts in full. A static embedder has learnt it: a word that moves the
vector of any text hardly at all says little (suggest 5, recommend 9, camera 15, Caroline 28)."""


class Query(NamedTuple):
    """A question, prepared once for any number of corpora."""

    text: str
    terms: dict[int, float]
    """Hashed terms and their weights."""
    vector: Floats | None
    """Unit vector, or None: keywords alone decide."""
    words: dict[int, Floats] | None = None
    """What each word adds to the vector, by the hash of its term; all that says nothing together under
    `SAYS_NOTHING`. None when the embedder cannot say."""
    days: tuple[Days, ...] = ()
    """The days that it names."""
    telling: dict[int, float] | None = None
    """How much each word says, from 0 to 1, by the hash of its term. None when the embedder cannot say."""

    @classmethod
    def of(
        cls,
        text: str,
        vector: NDArray[Any] | None = None,
        *,
        tokens: Tokens | None = None,
        today: date | None = None,
    ) -> Query:
        """The query of a text, with its embedding when there is one, and with that of its tokens. `today`: when it is
        asked; without it "last week" names no days."""
        weighed = {term_hash(term): weight for term, weight in query_terms(text).items()}
        said = [] if tokens is None else [*_said(text)]
        words = None if tokens is None or vector is None else _words(said, len(text), tokens)
        return cls(
            text,
            weighed,
            None if vector is None else unit(vector),
            words,
            () if today is None else tuple(days_named(text, today)),
            None if words is None else _telling(said, words),
        )

    @property
    def cjk(self) -> bool:
        """Whether it is asked in Chinese, Japanese or Korean."""
        return is_cjk(self.text)

    @property
    def share_asked(self) -> float:
        """What part of it can be what it is about: 1 for up to `LONG_QUERY` terms, ever less for more."""
        return min(1.0, LONG_QUERY / max(1, len(self.terms)))


Said = tuple[int, int, int]
"""From where to where a word stands in a text, and the hash of its term; `SAYS_NOTHING` for one that has none."""


def _said(text: str) -> Iterator[Said]:
    return ((start, end, SAYS_NOTHING if term is None else term_hash(term)) for start, end, term in spans(text))


def _words(said: Sequence[Said], length: int, tokens: Tokens) -> dict[int, Floats]:
    """Token vectors summed by word; a token belongs to the first word that it touches."""
    word_at: list[int | None] = [None] * (length + 1)
    for start, end, word in said:
        word_at[start:end] = [word] * (end - start)
    found: dict[int, Floats] = {}
    for (start, end), row in zip(tokens.places, tokens.rows, strict=True):
        touched = (word for word in word_at[start : max(end, start + 1)] if word is not None)
        word = next(touched, SAYS_NOTHING)
        found[word] = found[word] + row if word in found else row
    return found


def _telling(said: Sequence[Said], words: dict[int, Floats]) -> dict[int, float]:
    """How much each word says, however often it is said."""
    times = Counter(word for _, _, word in said if word != SAYS_NOTHING and word in words)
    if not times:
        return {}
    lengths = np.linalg.norm(np.stack([words[word] for word in times]), axis=1)
    return {
        word: min(1.0, float(length) / count / TELLING)
        for (word, count), length in zip(times.items(), lengths, strict=True)
    }
