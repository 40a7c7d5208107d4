"""What is sent when compaction was not enough, or gave no summary: the newest whole rounds that fit (R60)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.messages import BaseMessage, SystemMessage

from everthread.nodes.compact.budget import Counter, count_tokens, fits
from everthread.nodes.compact.cut import whole_starts
from everthread.nodes.sendable import sendable
from everthread.nodes.state import mark_of

__all__ = ["within"]

LEAD = 20
"""Tokens of the words that stand before a reply which now comes first."""


def within(
    request: Sequence[BaseMessage], limit: int, unread: Collection[str], counter: Counter | None = None
) -> list[BaseMessage]:
    """The request in at most `limit` tokens, where that is possible: without its oldest rounds. The system message, the
    summary, and what the model has not read yet (`unread`, ids of messages) always stay (R66, R70). The thread keeps
    everything."""
    if fits(request, limit, counter):
        return [*request]
    first = next((n for n, message in enumerate(request) if not _stays(message)), len(request))
    head, rounds = request[:first], request[first:]
    needed = next((n for n, message in enumerate(rounds) if message.id in unread), len(rounds))
    starts = [0, *(start for start in whole_starts(rounds) if start <= needed)]
    room = limit - count_tokens(head, counter) - LEAD
    fitting = (start for start in starts if count_tokens(rounds[start:], counter) <= room)
    return sendable([*head, *rounds[next(fitting, starts[-1]) :]])


def _stays(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage) or mark_of(message).get("kind") == "summary"
