"""How many tokens messages take, before they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.stores.text import estimate_tokens

__all__ = ["Counter", "count_tokens"]

Counter = Callable[[Sequence[BaseMessage]], int]
"""Counts the tokens of messages, such as a model's own `get_num_tokens_from_messages`."""

FRAME = 4
"""Tokens of a message's role and delimiters."""
MEDIA = 1_500
"""Tokens of an image, sound or file: about the most that OpenAI or Anthropic count for an image of usual size."""
REPEATED = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Kinds of content parts that repeat what `tool_calls` says."""


def count_tokens(messages: Sequence[BaseMessage], counter: Counter | None = None) -> int:
    """The tokens of `messages`: by `counter`, or else by an estimate that knows Chinese from English.

    The estimate counts text, tool calls with their arguments, names and ids, and a flat amount for each image or file,
    however long its base64 is.
    """
    if counter is not None:
        return counter(messages)
    return sum(_estimate(message) for message in messages)


def _estimate(message: BaseMessage) -> int:
    words = [message.name or ""]
    if isinstance(message, AIMessage):
        words += [f"{call['id']}{call['name']}{_json(call['args'])}" for call in message.tool_calls]
        words += [f"{call['id']}{call['name']}{call['args']}" for call in message.invalid_tool_calls]
    elif isinstance(message, ToolMessage):
        words.append(message.tool_call_id)
    if isinstance(message.content, str):
        return FRAME + estimate_tokens(message.content) + estimate_tokens("".join(words))
    return FRAME + sum(_part(part) for part in message.content) + estimate_tokens("".join(words))


def _part(part: str | dict[Any, Any]) -> int:
    if isinstance(part, str):
        return estimate_tokens(part)
    kind = part.get("type")
    if kind in REPEATED:
        return 0
    for key in ("text", "thinking", "reasoning"):
        if isinstance(part.get(key), str):
            return estimate_tokens(part[key])
    if kind in ("reasoning", "non_standard"):
        return estimate_tokens(_json(part))
    return MEDIA


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
