"""How much a record deserves to be recalled: its relevance, weighed by how far it can be trusted, and when.

Pure functions over records; what each signal was is handed back with the score, so that `explain` can show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from everthread.stores.record import Authority, Record, Signals
from everthread.stores.text import normalise

__all__ = ["FLOOR", "Dropped", "collapse", "entity_links", "weigh"]

FLOOR = 0.30
"""Below this score a record is not worth a prompt: nothing is better than the best of the bad (R194)."""
HALF_LIFE_DAYS = 30.0
"""An episode counts half after this many days. Facts and preferences do not age by themselves (R184)."""
RECENCY_WEIGHT = 0.25
"""An episode can lose at most this share of its score by age: bounded, so an old exact answer beats a new near miss."""
IMPORTANCE_WEIGHT = 0.06
"""Importance moves the score by at most half of this share either way."""
GRAPH_WEIGHT = 0.10
"""What a link through an entity adds, in proportion to the relevance that is there."""
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


def weigh(
    record: Record, *, relevance: float, semantic: float, keyword: float, graph: float, now: datetime
) -> tuple[float, Signals]:
    """A record's score and what it is made of (R192, R193).

    `relevance` is absolute, from 0 to 1 (`Scores.relevance`); everything else only weighs it, so a trusted record that
    has nothing to do with the question stays below the floor. An expired guess at 0.95 never beats a fresh
    authoritative record at 0.78.
    """
    recency = _recency(record, now)
    contradiction = CONTESTED_PENALTY if record.status == "contested" else 0.0
    staleness = _staleness(record, now)
    score = (
        relevance
        * AUTHORITY_TRUST[record.authority]
        * (0.9 + 0.1 * record.confidence)
        * (1 - RECENCY_WEIGHT * (1 - recency if record.kind == "episodic" else 0))
        * (1 + IMPORTANCE_WEIGHT * (record.importance - 0.5))
        * (1 + GRAPH_WEIGHT * graph)
        * (1 - contradiction)
        * (1 - staleness)
    )
    return min(1.0, score), Signals(
        semantic=semantic,
        keyword=keyword,
        graph=graph,
        recency=recency,
        importance=record.importance,
        authority=record.authority.rank / (len(Authority) - 1),
        contradiction=contradiction,
        staleness=staleness,
    )


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


def collapse(ranked: Sequence[tuple[Record, float]]) -> tuple[list[tuple[Record, float]], list[Dropped]]:
    """The records without near-duplicates, best first, and those that were dropped, each with the reason."""
    kept: list[tuple[Record, float]] = []
    dropped: list[Dropped] = []
    seen: dict[str, str] = {}
    for record, score in ranked:
        key = _WORDS.sub(" ", normalise(record.statement)).strip()
        if key in seen:
            dropped.append(Dropped(record, score, f"says the same as {seen[key]}"))
        else:
            seen[key] = record.id
            kept.append((record, score))
    return kept, dropped


_WORDS = re.compile(r"[^\w%+-]+")
