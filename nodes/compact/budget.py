"""How many tokens messages take, before they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.stores.text import estimate_tokens, most_tokens

__all__ = ["Counter", "count_tokens", "counter_of", "fits"]

Counter = Callable[[Sequence[BaseMessage]], int]
"""Counts the tokens of messages, such as a model's own `get_num_tokens_from_messages`."""

Measure = Callable[[str], int]
"""The tokens of a text: about how many, or at most."""

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
    return sum(_size(message, estimate_tokens) for message in messages)


def counter_of(model: BaseChatModel) -> Counter | None:
    """The model's own count, when its host gave it an encoder (`custom_get_token_ids`); else None.

    A model's `get_num_tokens_from_messages` is not asked: that of some calls their service, that of others downloads a
    vocabulary. A host that knows better passes it as `counter`."""
    encode = model.custom_get_token_ids
    if encode is None:
        return None
    return lambda messages: sum(_size(message, lambda text: len(encode(text))) for message in messages)


def fits(messages: Sequence[BaseMessage], limit: int, counter: Counter | None = None) -> bool:
    """Whether `messages` take at most `limit` tokens. By the estimate, what is far below it is told from its length
    alone."""
    if counter is not None:
        return counter(messages) <= limit
    return sum(_size(message, most_tokens) for message in messages) <= limit or count_tokens(messages) <= limit


def _size(message: BaseMessage, measure: Measure) -> int:
    content, besides = message.content, _besides(message)
    said = measure(content) if isinstance(content, str) else sum(_part(part, measure) for part in content)
    return FRAME + said + (measure(besides) if besides else 0)


def _besides(message: BaseMessage) -> str:
    """What a message holds besides its content: its name, the calls of tools, the id of the call that it answers."""
    words = message.name or ""
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            words += f"{call['id']}{call['name']}{_json(call['args'])}"
        for failed in message.invalid_tool_calls:
            words += f"{failed['id']}{failed['name']}{failed['args']}"
    elif isinstance(message, ToolMessage):
        words += message.tool_call_id
    return words


def _part(part: str | dict[Any, Any], measure: Measure) -> int:
    if isinstance(part, str):
        return measure(part)
    kind = part.get("type")
    if kind in REPEATED:
        return 0
    for key in ("text", "thinking", "reasoning"):
        if isinstance(part.get(key), str):
            return measure(part[key])
    if kind in ("reasoning", "non_standard"):
        return measure(_json(part))
    return MEDIA


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
