"""A trusted tool that only gives back what it was given is no source of its own (R297)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everthread.stores.record import Evidence
from everthread.stores.text import query_terms

__all__ = ["is_echo"]

OWN = 3
"""One in so many of the words that a result has of a statement must be the tool's own."""


def is_echo(statement: str, position: int, lines: Sequence[Evidence], outside: frozenset[int]) -> bool:
    """Whether the tool's result at this position says the statement mostly in words that it was given: the arguments of
    its call, or lines before it that came from outside (`outside`, positions).

    A tool that looks something up is asked for a name and answers with more than that; a tool that keeps notes, runs
    text or translates gives back a stranger's words, and its good name is not theirs.
    """
    said = set(query_terms(statement)) & set(query_terms(lines[position].text))
    given = set(query_terms(_arguments(lines[position], lines[:position])))
    for earlier in outside:
        if earlier < position:
            given |= set(query_terms(lines[earlier].text))
    return bool(said) and len(said - given) * OWN < len(said)


def _arguments(result: Evidence, before: Sequence[Evidence]) -> str:
    """What the call that this result answers was given, as text."""
    asked = _message(result).get("tool_call_id")
    calls = [call for line in before for call in _message(line).get("tool_calls") or () if isinstance(call, dict)]
    return " ".join(text for call in calls if asked and call.get("id") == asked for text in _texts(call.get("args")))


def _message(line: Evidence) -> dict[str, Any]:
    """The original message, as LangChain writes it down."""
    payload = line.payload or {}
    kept = payload.get("data", payload)
    return kept if isinstance(kept, dict) else {}


def _texts(value: Any) -> list[str]:
    """Every text in plain data."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in _texts(inner)]
    return [str(value)]
