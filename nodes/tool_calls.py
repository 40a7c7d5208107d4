"""Tool calls and their results: what a provider demands of their order, and what to do when one is missing."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.nodes.state import MARK, mark_of

__all__ = ["unanswered", "well_ordered"]

INTERRUPTED = (
    "This tool call was interrupted and has no result. Whether it took effect is unknown: check before retrying."
)

Answers = dict[tuple[int, str], ToolMessage]
"""The result of each call, by the position of the message that called and the call's id: some providers use the same
ids again and again."""


def unanswered(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """A marked result for each tool call that has none, in the order of the calls; empty when all are answered."""
    called_at: dict[str, int] = {}
    waiting: dict[tuple[int, str], tuple[AIMessage, str, str]] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                if call_id := call["id"]:
                    called_at[call_id] = position
                    waiting[position, call_id] = (message, call_id, call["name"])
        elif isinstance(message, ToolMessage):
            waiting.pop((called_at.get(message.tool_call_id, -1), message.tool_call_id), None)
    return [_interrupted(*each) for each in waiting.values()]


def well_ordered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The same messages with results moved behind their calls; OpenAI and Anthropic refuse anything else.

    A call without a result gets a marked one, a result without a call is left out, and of two results for one call the
    first that was not an interruption is kept. Pure: the thread itself is not touched.
    """
    answers = _answers(messages)
    ordered: list[BaseMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        ordered.append(message)
        if isinstance(message, AIMessage):
            ordered.extend(
                answers.get((position, call_id)) or _interrupted(message, call_id, call["name"])
                for call in message.tool_calls
                if (call_id := call["id"])
            )
    return ordered


def _answers(messages: Sequence[BaseMessage]) -> Answers:
    """Each result belongs to the last message before it that made a call of its id."""
    called_at: dict[str, int] = {}
    answers: Answers = {}
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            if message.tool_calls:
                called_at |= {call_id: position for call in message.tool_calls if (call_id := call["id"])}
        elif isinstance(message, ToolMessage) and message.tool_call_id in called_at:
            place = called_at[message.tool_call_id], message.tool_call_id
            if place not in answers or _is_interruption(answers[place]):
                answers[place] = message
    return answers


def _interrupted(caller: AIMessage, call_id: str, name: str) -> ToolMessage:
    return ToolMessage(
        content=INTERRUPTED,
        tool_call_id=call_id,
        name=name,
        status="error",
        id=f"interrupted-{caller.id}-{call_id}",
        additional_kwargs={MARK: {"kind": "interrupted"}},
    )


def _is_interruption(message: ToolMessage) -> bool:
    return mark_of(message).get("kind") == "interrupted"
