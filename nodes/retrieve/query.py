"""What to look for: the current request, with the one before it when the request alone says too little (R190)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from everthread.nodes.state import is_marked
from everthread.stores.text import cjk_share, is_telling, query_terms

__all__ = ["queries_of"]

FEW_TERMS = 3
"""A request with fewer content words than this may lean on the one before it."""

_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|or|so|then|what about|how about)\b"
    r"|\b(?:it|its|he|him|his|she|her|they|them|their|this|that|these|those|there|ones?|same|else|more|also|too)\b"
    r"|[它他她这那也]|呢|还有",
    re.I,
)
"""A word that stands for something said before: "and in German?", "where does she live?", "那周末呢"."""


def queries_of(messages: Sequence[AnyMessage]) -> list[str]:
    """The texts to search for in turn, until one finds something; empty when the user has said nothing.

    The newest user message. When it has few content words, then also the one before it together with it, and only that
    when it points back to something.
    """
    said = (m.text for m in reversed(messages) if isinstance(m, HumanMessage) and not is_marked(m))
    newest, before = next(said, ""), next(said, None)
    if before is None or _words(newest) >= FEW_TERMS:
        return [newest] if newest else []
    together = f"{before}\n{newest}"
    return [together] if _POINTS_BACK.search(newest) else [text for text in (newest, together) if text.strip()]


def _words(text: str) -> float:
    """About how many content words a text has. Unspaced scripts are searched by bigrams, two for a word."""
    if not is_telling(text):
        return 0
    terms = [term for term in query_terms(text) if len(term) > 1]
    return sum(0.5 if cjk_share(term) else 1 for term in terms)
