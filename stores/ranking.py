"""How much a record deserves to be recalled: its relevance, weighed by how far it can be trusted, and when.

Pure functions over records; what each signal was is handed back with the score, so that `explain` can show it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from everthread.stores.record import Authority, Hit, Record, Signals
from everthread.stores.text import normalise, query_terms

__all__ = [
    "FLOOR",
    "ON_DEMAND_FLOOR",
    "Dropped",
    "collapse",
    "entity_links",
    "once",
    "signals_of",
    "task_matches",
    "weigh",
]

FLOOR = 0.20
"""Below this score a record is not worth a prompt: nothing is better than the best of the bad (R194).

Chosen so that at most 2 % of the questions that are answered lose their answer, with room for other data: 1.1 % of
LoCoMo's and of LongMemEval's, 1.2 % of MADial's Chinese dialogues and 0.6 % of its English ones, none of the 34
labelled questions of the tests. What it holds back: 68 % of questions asked of another person's chat, 29 % of those
asked of another haystack, 23 % of those that ask one speaker for what the other said, 76 % of what is said in one
Chinese chat when another one's memories are asked; of the labelled ones 88 % of the unrelated, and one in 16 of those
about the right person or thing that no memory answers. It does not separate long Chinese dialogues, and of answers in
entirely other words one in three passes: the built-in embedder knows no better.
"""
ON_DEMAND_FLOOR = 0.14
"""The floor of a search that a model asks for: it sees near misses too, and still not the best of the bad. On the
labelled memories of the tests it answers as many related questions, 7 instead of 5 of 16 paraphrased ones, and 6 of 34
unrelated ones."""
HALF_LIFE_DAYS = 30.0
"""An episode counts half after this many days. Facts and preferences do not age by themselves (R184)."""
RECENCY_WEIGHT = 0.25
"""An episode can lose at most this share of its score by age: bounded, so an old exact answer beats a new near miss."""
CONFIDENCE_WEIGHT = 0.10
"""A record of which the extraction was not sure loses up to this share."""
IMPORTANCE_WEIGHT = 0.06
"""Importance moves the score by at most half of this share either way."""
GRAPH_WEIGHT = 0.10
"""What a link through an entity adds, in proportion to the relevance that is there."""
TASK_WEIGHT = 0.10
"""The same for a match with the task in hand."""
CONTESTED_PENALTY = 0.10
"""A contested record loses this share: it still comes, together with its counterpart."""
EXPIRED_PENALTY = 0.50
"""A record past its time loses this share."""
UNVERIFIED_PENALTY = 0.10
"""A record that is to be verified before use, and was not within `HALF_LIFE_DAYS`, loses this share."""
AUTHORITY_TRUST: dict[Authority, float] = {
    Authority.EXTERNAL: 0.80,
    Authority.INFERRED: 0.85,
    Authority.TOOL: 0.92,
    Authority.ARTIFACT: 0.95,
    Authority.USER_IMPLIED: 0.95,
    Authority.USER_EXPLICIT: 1.0,
    Authority.POLICY: 1.0,
}
"""The factor of each authority: trust weighs relevance, it never replaces it."""
AUTHORITY_SHARE = {authority: authority.rank / (len(Authority) - 1) for authority in Authority}
"""How far each authority settles a question, from 0 to 1."""


def weigh(record: Record, *, relevance: float, graph: float, now: datetime, task: float = 0.0) -> float:
    """A record's score (R193).

    `relevance` is absolute, from 0 to 1 (`Scores.relevance`); everything else only weighs it, so a trusted record that
    has nothing to do with the question stays below the floor. An expired guess at 0.95 never beats a fresh
    authoritative record at 0.78.
    """
    recency = _recency(record, now)
    score = (
        relevance
        * AUTHORITY_TRUST[record.authority]
        * (1 - CONFIDENCE_WEIGHT * (1 - record.confidence))
        * (1 - RECENCY_WEIGHT * (1 - recency if record.kind == "episodic" else 0))
        * (1 + IMPORTANCE_WEIGHT * (record.importance - 0.5))
        * (1 + GRAPH_WEIGHT * graph)
        * (1 + TASK_WEIGHT * task)
        * (1 - _contradiction(record))
        * (1 - _staleness(record, now))
    )
    return min(1.0, score)


def signals_of(record: Record, *, found: Signals, graph: float, now: datetime, task: float = 0.0) -> Signals:
    """What a record's score is made of (R192); `found`: what the search says of its text."""
    return found.model_copy(
        update={
            "graph": graph,
            "recency": _recency(record, now),
            "importance": record.importance,
            "authority": AUTHORITY_SHARE[record.authority],
            "task": task,
            "contradiction": _contradiction(record),
            "staleness": _staleness(record, now),
        }
    )


def _contradiction(record: Record) -> float:
    return CONTESTED_PENALTY if record.status == "contested" else 0.0


def _recency(record: Record, now: datetime) -> float:
    """1 for now, half after `HALF_LIFE_DAYS`; 0 for what does not age."""
    if record.kind != "episodic":
        return 0.0
    days = max(0.0, (now - (record.valid_from or record.provenance.observed_at)).total_seconds() / 86_400)
    return float(0.5 ** (days / HALF_LIFE_DAYS))


def _staleness(record: Record, now: datetime) -> float:
    if (record.expires_at and record.expires_at <= now) or not record.is_valid_at(now) or record.status == "expired":
        return EXPIRED_PENALTY
    if not record.verify_before_use:
        return 0.0
    checked = record.verified_at or record.provenance.observed_at
    return UNVERIFIED_PENALTY if (now - checked).total_seconds() > HALF_LIFE_DAYS * 86_400 else 0.0


def entity_links(query: str, records: Iterable[Record]) -> list[float]:
    """For each record the share of its entities that the query names, from 0 to 1; 0 for a record without any."""
    asked = normalise(query)
    return [_share_named(asked, record.entities) for record in records]


def task_matches(task: str | None, records: Sequence[Record]) -> list[float]:
    """For each record how much of what it says the task in hand names too, by weight, from 0 to 1; 0 without a task."""
    if not (task and records):
        return [0.0] * len(records)
    named = query_terms(task).keys()
    return [_share_of(query_terms(record.statement), named) for record in records]


def _share_of(said: Mapping[str, float], named: Collection[str]) -> float:
    return round(sum(weight for term, weight in said.items() if term in named) / (sum(said.values()) or 1.0), 4)


def _share_named(asked: str, entities: Sequence[str]) -> float:
    if not entities:
        return 0.0
    return sum(_is_named(normalise(entity), asked) for entity in entities) / len(entities)


def _is_named(entity: str, asked: str) -> bool:
    if not entity:
        return False
    if not entity.isascii():
        return entity in asked
    return re.search(rf"(?<![a-z0-9]){re.escape(entity)}(?![a-z0-9])", asked) is not None


class Dropped(NamedTuple):
    """A record that another one says as well."""

    record: Record
    score: float
    reason: str
    """Such as "says the same as mem_1f0c"."""


def collapse(
    ranked: Iterable[tuple[Record, float]], *, most: int | None = None
) -> tuple[list[tuple[Record, float]], list[Dropped]]:
    """The records without near-duplicates, in the order given, and those that were dropped, each with the reason.
    `most`: how many to keep; what comes after is not looked at.

    Two records say the same when their words are the same but for articles, case and punctuation, or when subject,
    predicate and value are; and when also every number, date and negation is. "5 years" and "6 years" are two facts,
    and so are two episodes of different days. The first of them, the better one, is kept.
    """
    kept: list[tuple[Record, float]] = []
    dropped: list[Dropped] = []
    seen: dict[tuple[str, ...], list[Record]] = {}
    for record, score in ranked:
        if len(kept) == most:
            break
        keys = _keys(record)
        alike = (known for key in keys for known in seen.get(key, ()))
        same = next((known for known in alike if _exact(known) == _exact(record)), None)
        if same is None:
            for key in keys:
                seen.setdefault(key, []).append(record)
            kept.append((record, score))
        else:
            dropped.append(Dropped(record, score, f"says the same as {same.id}"))
    return kept, dropped


def once(hits: Sequence[Hit]) -> tuple[list[Hit], list[Hit]]:
    """Messages in the order given, what one speaker says again only once, and the repetitions, each with the reason.

    The same is what differs in nothing but case, white space and how it ends, on whatever day it is said: a message may
    be code, where each sign counts. The first, the better one, says in its `why` where it was said again.
    """
    first: dict[tuple[str | None, str], Hit] = {}
    again: dict[str, list[Hit]] = {}
    repeated: list[Hit] = []
    for hit in hits:
        said = normalise(hit.statement)
        known = first.setdefault((hit.speaker, said.rstrip(_ENDS) or said), hit)
        if known is not hit:
            again.setdefault(_place(known), []).append(hit)
            repeated.append(hit.model_copy(update={"why": f"dropped: it says the same as {_place(known)} ({hit.why})"}))
    return [_with_places(hit, again.get(_place(hit), ())) for hit in first.values()], repeated


_ENDS = " .!。！…~～"


def _place(hit: Hit) -> str:
    return f"{', '.join(hit.message_ids)} in thread {hit.thread_id}"


def _with_places(hit: Hit, again: Sequence[Hit]) -> Hit:
    if not again:
        return hit
    return hit.model_copy(update={"why": f"{hit.why}; said again: {'; '.join(map(_place, again))}"})


_WORD = re.compile(r"[^\W_]+(?:[.:/,'’-][^\W_]+)*")
_FIGURE = re.compile(
    r"[+-]?\d+(?:[.,:/-]\d+)*%?|[零〇一二两三四五六七八九十百千万亿]+"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|once|twice|half)\b"
    r"|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|today|yesterday|tomorrow)s?\b"
    r"|周[一二三四五六日天末]|星期[一二三四五六日天]|今天|昨天|明天"
)
_NEGATION = re.compile(
    r"\b(?:not?|never|none|nobody|nothing|neither|nor|without|cannot|stopped|quit)\b|n[’']t\b|[不没無无非别未勿否]|停止"
)
_ARTICLES = frozenset({"a", "an", "the"})


def _keys(record: Record) -> list[tuple[str, ...]]:
    """What another record must share with this one to say the same; whoever does is then looked at by `_exact`."""
    said = normalise(record.statement)
    keys = [tuple([word for word in _WORD.findall(said) if word not in _ARTICLES])]
    if record.subject and record.predicate and record.value:
        keys.append(("\x00", *map(normalise, (record.subject, record.predicate, record.value))))
    return keys


def _exact(record: Record) -> tuple[object, ...]:
    """The numbers, dates and negations of a record, and the day of an episode."""
    said = normalise(record.statement)
    return (*sorted(_FIGURE.findall(said)), "|", *sorted(_NEGATION.findall(said)), _day(record))


def _day(record: Record) -> str | None:
    """The day of an episode: what happened twice is not a duplicate."""
    if record.kind != "episodic":
        return None
    return (record.valid_from or record.provenance.observed_at).date().isoformat()
