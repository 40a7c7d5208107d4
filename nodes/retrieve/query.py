"""What to look for: the current request, with the one before it when the request alone says too little (R190)."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from everthread.nodes.state import is_marked
from everthread.stores.text import query_terms

__all__ = ["query_of"]

FEW_TERMS = 3
"""A request with fewer content words than this ("and in German?") leans on the one before it."""


def query_of(messages: Sequence[AnyMessage]) -> str:
    """The text to search for: the newest user message, after the one before it when it has few content words.

    Empty when the user has said nothing."""
    said = [message.text for message in messages if isinstance(message, HumanMessage) and not is_marked(message)]
    if not said:
        return ""
    if len(said) > 1 and len(query_terms(said[-1])) < FEW_TERMS:
        return f"{said[-2]}\n{said[-1]}"
    return said[-1]
