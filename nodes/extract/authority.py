"""How far a source can settle a question: computed from who really said it, never from what was said (R90, R291)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everthread.stores.record import Authority, Evidence, SourceType

__all__ = ["Artifact", "artifact_of", "authority_of", "source_of"]


class Artifact(NamedTuple):
    """An approved document, as the host's tool named it."""

    name: str
    """A reference that the host can resolve."""
    revision: str
    """Its revision."""


def authority_of(
    lines: Iterable[Evidence],
    *,
    user: str,
    trusted_tools: frozenset[str] = frozenset(),
    stated: bool = True,
    echoes: frozenset[str] = frozenset(),
) -> Authority:
    """The lowest authority among the messages that a candidate rests on; external when it rests on none.

    One weak source makes the whole weak, and many weak sources stay weak: repetition, a summary and an echo through a
    trusted tool raise nothing (R297). `stated=False` lowers the user's word to what it implies. `echoes`: ids of the
    results of trusted tools that only give back what they were given.

    | source                                     | authority              |
    |--------------------------------------------|------------------------|
    | this user's message                        | user_explicit          |
    | the assistant's                            | inferred               |
    | a trusted tool's result                    | tool                   |
    | the same, naming an artifact and revision  | artifact               |
    | an echo of a trusted tool                  | external               |
    | any other tool, the web, a file, an agent  | external               |
    | a review by a curator                      | policy, and only there |
    """
    found = min(
        (
            Authority.EXTERNAL if line.message_id in echoes else _authority_of_line(line, user, trusted_tools)
            for line in lines
        ),
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
        case "tool" if line.speaker in trusted_tools:
            return Authority.ARTIFACT if artifact_of(line) else Authority.TOOL
        case _:
            return Authority.EXTERNAL


def artifact_of(line: Evidence) -> Artifact | None:
    """The approved document that a tool's result comes from; None when it names none.

    A host says so in its tool's code: `ToolMessage.artifact`, which no model writes or sees, holds `artifact` (a
    reference) and `revision`. It counts only for a tool that the host trusts.
    """
    payload = line.payload or {}
    kept = payload.get("data", payload)
    named = kept.get("artifact") if isinstance(kept, dict) and line.source == "tool" else None
    if not isinstance(named, dict):
        return None
    name, revision = named.get("artifact"), named.get("revision")
    if isinstance(name, str) and isinstance(revision, str) and name.strip() and revision.strip():
        return Artifact(name.strip(), revision.strip())
    return None


def source_of(lines: Iterable[Evidence], *, user: str) -> SourceType:
    """The kind of source to name in the provenance: that of the weakest message. Another person counts as an agent."""
    order: list[SourceType] = ["web", "file", "agent", "tool", "assistant", "user"]
    kinds: list[SourceType] = [
        "agent" if line.source == "user" and line.speaker not in (None, user) else line.source for line in lines
    ]
    return min(kinds, key=order.index, default="agent")
