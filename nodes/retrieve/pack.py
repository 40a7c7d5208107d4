"""What fits: candidates into a budget, the best first (R195)."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.nodes.block import line
from everthread.nodes.retrieve.candidate import Candidate, LeftOut, Sifted
from everthread.nodes.retrieve.checks import contradicted
from everthread.stores.passages import MOST_TOKENS, part_shown
from everthread.stores.text import estimate_tokens

__all__ = ["pack"]

BESIDES = " [said by somebody whose name is not short, 2026-05-08, thread 0123456789abcdef]"
"""About what a line says beside the words of a message or a task."""


def pack(candidates: Sequence[Candidate], tokens: int, characters: int | None = None) -> Sifted:
    """The candidates in order while their lines fit into so many tokens, and characters when that is given. One that is
    too long is left out and shorter ones still go in; of a contest both sides fit, or neither is kept. A message takes
    at most half of all, and less where less is left: of a longer one it is the passage that answers, with what stands
    around it."""
    kept: list[Candidate] = []
    left_out: list[LeftOut] = []
    most = min(MOST_TOKENS, tokens // 2)
    for group in _groups(candidates):
        if group[0].source == "evidence":
            group = [_cut(group[0], min(most, tokens))]
        lines = [line(each.record, 1, each.checked) if each.record else each.shown + BESIDES for each in group]
        cost, length = sum(map(estimate_tokens, lines)), sum(map(len, lines))
        if cost <= tokens and (characters is None or length <= characters):
            kept += group
            tokens -= cost
            characters = None if characters is None else characters - length
        else:
            together = " with what it stands against" if len(group) > 1 else ""
            left_out += [LeftOut(each, "over-budget", f"it does not fit{together}") for each in group]
    return Sifted(kept, left_out)


def _cut(candidate: Candidate, tokens: int) -> Candidate:
    """A message as a line of so many tokens has it."""
    passage = candidate.hit.passage if candidate.hit else None
    return candidate._replace(part=part_shown(candidate.text, passage, tokens - estimate_tokens(BESIDES)))


def _groups(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """The candidates one by one, contested ones with those that they stand against, where the first of them stands."""
    there = {candidate.id: candidate for candidate in candidates if candidate.record}
    grouped: set[str] = set()
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.record is None:
            groups.append([candidate])
        elif candidate.id not in grouped:
            group = [
                candidate,
                *(there[id] for id in contradicted(candidate.record) if id in there and id not in grouped),
            ]
            grouped |= {each.id for each in group}
            groups.append(group)
    return groups
