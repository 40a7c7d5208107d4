"""Personal numbers replaced by a mark, for hosts that would rather keep the rest of a statement than refuse it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from everthread.nodes.extract.candidate import Candidate, Extractor, Window
from everthread.nodes.extract.sensitive import has_personal_number, without_numbers
from everthread.nodes.node import Ask

__all__ = ["Redacted"]


class Redacted:
    """An extractor whose candidates have no personal numbers: `Extract(Redacted(RuleExtractor()))`.

    By default the door refuses what holds a card, account, identity or telephone number. With this, "my card 4111 1111
    1111 1111 is for travel" is kept as "my card […] is for travel". A value that was nothing but the number is left
    out; a candidate that still holds one is refused as before. Secrets are always refused.
    """

    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor

    @property
    def id(self) -> str:
        """The extractor's, marked."""
        return f"{self.extractor.id}+redacted"

    @property
    def calls_model(self) -> bool:
        """As the extractor does."""
        return self.extractor.calls_model

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        """The extractor's candidates, redacted. Raises as it does."""
        candidates = yield from self.extractor.propose(window)
        return [redacted(candidate) for candidate in candidates]


def redacted(candidate: Candidate) -> Candidate:
    """The candidate with a mark in place of each personal number, or itself when it holds none."""
    fields = {name: getattr(candidate, name) for name in ("statement", "subject", "predicate", "value")}
    changed: dict[str, str | None] = {
        name: without_numbers(text) for name, text in fields.items() if text and has_personal_number(text)
    }
    held = [each for each in candidate.entities if has_personal_number(each)]
    left = changed.get("statement") or candidate.statement
    if candidate.value and candidate.value in candidate.statement and candidate.value not in left:
        changed |= {"value": None, "predicate": None}  # the value was the number
    if not changed and not held:
        return candidate
    kept = tuple(each for each in candidate.entities if each not in held)
    return candidate.model_copy(update={**changed, "entities": kept})
