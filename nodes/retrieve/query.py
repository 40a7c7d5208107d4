"""What to look for: the current request, with the one before it when the request alone says too little (R190)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime

from langchain_core.messages import AnyMessage, HumanMessage

from everthread.nodes.state import is_marked, last_request
from everthread.stores.messages import time_of
from everthread.stores.text import cjk_share, ends_of, is_telling, query_terms

__all__ = ["asked_at", "phrases_of", "queries_of", "task_in"]

MOST = 4_000
"""Characters of a request that are looked through for what it points to; the search itself cuts a longer one and says
so."""
FEW_TERMS = 3
"""A request with fewer content words than this may lean on the one before it."""

_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|or|so|then|what about|how about)\b"
    r"|\b(?:it|its|he|him|his|she|her|they|them|their|this|that|these|those|there|ones?|same|else|more|also|too)\b"
    r"|[它他她这那也]|呢|还有",
    re.I,
)
"""A word that stands for something said before: "and in German?", "where does she live?", "那周末呢"."""
_QUOTED = re.compile(
    r'"([^"\n]{2,200})"|“([^”\n]{2,200})”|「([^」\n]{2,200})」|『([^』\n]{2,200})』|《([^》\n]{2,200})》'
)
"""What somebody sets apart: by quotation marks, or as a title."""


def queries_of(messages: Sequence[AnyMessage]) -> list[str]:
    """The texts to search for in turn, until one finds something; empty when the user has said nothing.

    The newest user message. When it has few content words, then also the one before it together with it, and only that
    when it points back to something. At last what it quotes: the rest may be about what to do with it. Entities and
    days that a text names are for the search to find (`stores.ranking`, `stores.when`).
    """
    said = (m.text for m in reversed(messages) if isinstance(m, HumanMessage) and not is_marked(m))
    newest, before = next(said, ""), next(said, None)
    request = ends_of(newest, MOST)
    if before is None or _words(request) >= FEW_TERMS:
        texts = [newest]
    else:
        together = f"{ends_of(before, MOST)}\n{newest}"
        texts = [together] if _POINTS_BACK.search(request) else [newest, together]
    return list(dict.fromkeys(text for text in (*texts, "\n".join(phrases_of(request))) if text.strip()))


def phrases_of(text: str) -> list[str]:
    """What a text quotes, each once, in order."""
    found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return list(dict.fromkeys(phrase.strip() for phrase in found if phrase.strip()))


def asked_at(messages: Sequence[AnyMessage]) -> datetime | None:
    """When the user's newest message was said, by itself: the days that it names are counted from then (R191), and not
    from when a run is resumed. None when it does not say."""
    request = last_request(list(messages))
    return None if request is None else time_of(request)


def task_in(task_state: str) -> str:
    """What is being worked on and what comes next, of a TaskState as JSON; empty for what is none."""
    try:
        state = json.loads(task_state)
    except ValueError:
        return ""
    parts = (state.get("task"), state.get("next_step")) if isinstance(state, dict) else ()
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _words(text: str) -> float:
    """About how many content words a text has. Unspaced scripts are searched by bigrams, two for a word."""
    if not is_telling(text):
        return 0
    terms = [term for term in query_terms(text) if len(term) > 1]
    return sum(0.5 if cjk_share(term) else 1 for term in terms)
