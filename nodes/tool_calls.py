"""Tool calls and their results: what a provider demands of their order, and what to do when one is missing."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.nodes.state import MARK

__all__ = ["unanswered", "well_ordered"]

INTERRUPTED = (
    "This tool call was interrupted and has no result. Whether it took effect is unknown: check before retrying."
)


def unanswered(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """A marked result for each tool call that has none, in the order of the calls; empty when all are answered."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        ToolMessage(
            content=INTERRUPTED,
            tool_call_id=call["id"],
            name=call["name"],
            status="error",
            id=f"interrupted-{call['id']}",
            additional_kwargs={MARK: {"kind": "interrupted"}},
        )
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] and call["id"] not in answered
    ]


def well_ordered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The same messages with results moved behind their calls; OpenAI and Anthropic refuse anything else.

    A call without a result gets a marked one, a result without a call is left out, and of two results for one call the
    first that was not an interruption is kept. Pure: the thread itself is not touched.
    """
    results: dict[str, ToolMessage] = {}
    for message in [*messages, *unanswered(messages)]:
        if isinstance(message, ToolMessage):
            known = results.get(message.tool_call_id)
            if known is None or (known.id or "").startswith("interrupted-"):
                results[message.tool_call_id] = message
    ordered: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        ordered.append(message)
        if isinstance(message, AIMessage):
            ordered.extend(results[call["id"]] for call in message.tool_calls if call["id"] in results)
    return ordered
