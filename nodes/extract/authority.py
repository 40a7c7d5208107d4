"""How far a source can settle a question: computed from who really said it, never from what was said (R90, R291)."""

from __future__ import annotations

from collections.abc import Iterable

from everthread.stores.record import Authority, Evidence, SourceType

__all__ = ["authority_of", "source_of"]


def authority_of(
    lines: Iterable[Evidence], *, user: str, trusted_tools: frozenset[str] = frozenset(), stated: bool = True
) -> Authority:
    """The lowest authority among the messages that a candidate rests on; external when it rests on none.

    One weak source makes the whole weak, and many weak sources stay weak: repetition, a summary and an echo through a
    trusted tool raise nothing (R297). `stated=False` lowers the user's word to what it implies.
    """
    found = min(
        (_authority_of_line(line, user, trusted_tools) for line in lines),
        key=lambda authority: authority.rank,
        default=Authority.EXTERNAL,
    )
    return Authority.USER_IMPLIED if found == Authority.USER_EXPLICIT and not stated else found


def _authority_of_line(line: Evidence, user: str, trusted_tools: frozenset[str]) -> Authority:
    match line.source:
        case "user":
            # A human message that carries another name is a sub-agent or another person, not this user.
            return Authority.USER_EXPLICIT if line.speaker in (None, user) else Authority.EXTERNAL
        case "assistant":
            return Authority.INFERRED
        case "tool":
            return Authority.TOOL if line.speaker in trusted_tools else Authority.EXTERNAL
        case _:
            return Authority.EXTERNAL


def source_of(lines: Iterable[Evidence], *, user: str) -> SourceType:
    """The kind of source to name in the provenance: that of the weakest message. Another person counts as an agent."""
    order: list[SourceType] = ["web", "file", "agent", "tool", "assistant", "user"]
    kinds: list[SourceType] = [
        "agent" if line.source == "user" and line.speaker not in (None, user) else line.source for line in lines
    ]
    return min(kinds, key=order.index, default="agent")
