"""What fits: hits into a token budget, the best first (R195)."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.stores.record import Hit
from everthread.stores.text import estimate_tokens

__all__ = ["pack"]

LINE_TOKENS = 40
"""What a line of the block takes beside its statement: owner, type, source, date, id."""


def pack(hits: Sequence[Hit], budget_tokens: int) -> tuple[list[Hit], list[Hit]]:
    """(kept, left out): hits in order while they fit. One that is too long is left out and shorter ones still go in."""
    kept: list[Hit] = []
    left_out: list[Hit] = []
    room = budget_tokens
    for hit in hits:
        cost = estimate_tokens(hit.statement) + LINE_TOKENS
        if cost <= room:
            kept.append(hit)
            room -= cost
        else:
            left_out.append(hit)
    return kept, left_out
