"""Where in a long text the answer to a question stands. Pure functions over what the index knows of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from everthread.stores.encoding import term_hash
from everthread.stores.passages import Part, sentences
from everthread.stores.query import Query
from everthread.stores.text import terms

__all__ = ["answering"]

Floats = NDArray[np.float32]
UNKNOWN: Floats = np.zeros(0, np.float32)

LIKENESS_SHARE = 0.3
"""What likeness counts beside words in the choice of a sentence, in any language: in one text the same words stand
close together, and which of them is meant is told by the rare ones."""


def answering(text: str, query: Query, likeness: Floats = UNKNOWN, pieces: Sequence[str] = ()) -> Part:
    """The sentence of a text that answers a query best: by its words, rare ones more, and by how alike the piece is
    that it stands in. `likeness`: of each of the text's `pieces`, in order; empty when it is not known."""
    parts = sentences(text)
    found = [query.terms.keys() & set(map(term_hash, terms(text[start:end]))) for start, end in parts]
    containing = Counter(term for each in found for term in each)
    telling = query.telling or {}
    weights = {
        term: query.terms[term] * telling.get(term, 1.0) * log(1 + len(parts) / (0.5 + count))
        for term, count in containing.items()
    }
    words = [sum(weights[term] for term in each) for each in found]
    if not len(likeness):
        return parts[words.index(max(words))]
    alike = _by_best(_along(text, parts, likeness, pieces))
    scores = (1 - LIKENESS_SHARE) * _by_best(np.array(words, np.float32)) + LIKENESS_SHARE * alike
    return parts[int(np.argmax(scores))]


def _along(text: str, parts: Sequence[Part], likeness: Floats, pieces: Sequence[str]) -> Floats:
    """The likeness of the piece in which each part stands, told by the characters that are no blanks: pieces have all
    of them, in order."""
    if len(likeness) != len(pieces):
        return np.zeros(len(parts), np.float32)
    ends = np.cumsum([len("".join(piece.split())) for piece in pieces])
    blanks = np.cumsum([character.isspace() for character in text])
    middles = np.array([(start + end - 1) // 2 for start, end in parts])
    at = np.searchsorted(ends, middles - blanks[middles], "right")
    return np.asarray(np.maximum(0, likeness)[np.minimum(at, len(pieces) - 1)], np.float32)


def _by_best(values: Floats) -> Floats:
    best = values.max(initial=0)
    return np.asarray(values / best if best > 0 else values, np.float32)
