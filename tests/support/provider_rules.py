"""What OpenAI and Anthropic demand of a request, as their documentation says it, over what their clients would send."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

__all__ = ["anthropic_refuses", "openai_refuses"]


def openai_refuses(messages: Sequence[BaseMessage]) -> list[str]:
    """Why Chat Completions would refuse the request; empty when it would not."""
    from langchain_openai import ChatOpenAI

    payload = ChatOpenAI(model="gpt-4.1", api_key="none")._get_request_payload([*messages])["messages"]  # type: ignore[arg-type]
    return [*_openai(payload)]


def _openai(payload: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not payload:
        yield "no messages"
    waiting: list[str] = []
    for place, message in enumerate(payload):
        role = message["role"]
        if role not in ("system", "developer", "user", "assistant", "tool"):
            yield f"{place}: role {role}"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"{place}: a result of {message['tool_call_id']}, which the message before does not call"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"{place}: calls without results: {waiting}"
        calls = [call["id"] for call in message.get("tool_calls", [])]
        if len(set(calls)) < len(calls) or not all(calls):
            yield f"{place}: ids of calls {calls}"
        waiting = calls
        if role == "assistant" and not message.get("content") and not calls:
            yield f"{place}: an assistant's message with neither content nor calls"
        if role in ("user", "system") and message.get("content") in (None, []):
            yield f"{place}: no content"
    if waiting:
        yield f"calls without results at the end: {waiting}"


def anthropic_refuses(messages: Sequence[BaseMessage]) -> list[str]:
    """Why the Messages API would refuse the request; empty when it would not."""
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model_name="claude-sonnet-4-5", api_key="none", timeout=None, stop=None)  # type: ignore[arg-type]
    try:
        payload = model._get_request_payload([*messages])
    except ValueError as error:
        return [f"the client refuses: {error}"]
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in payload["messages"]:
        blocks = _blocks(message["content"])
        if not blocks:
            return [f"an empty message of the {message['role']}"]
        if turns and turns[-1][0] == message["role"]:  # "consecutive turns are combined into a single turn"
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], blocks))
    return [*_system(payload.get("system")), *_anthropic(turns)]


def _system(system: Any) -> Iterator[str]:
    if system is not None and not all(block.get("text", "?").strip() for block in _blocks(system)):
        yield "empty text in the system prompt"


def _anthropic(turns: Sequence[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    if not turns or turns[0][0] != "user":
        yield "the first message is not the user's"
    called: list[str] = []
    waiting: list[str] = []
    for place, (role, blocks) in enumerate(turns):
        kinds = [block["type"] for block in blocks]
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield f"{place}: a text block without text"
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            yield f"{place}: results {answered} for calls {waiting}"
        if "tool_result" in kinds[len(answered) :]:
            yield f"{place}: a result behind other content"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if waiting and role != "assistant":
            yield f"{place}: the user calls"
        called += waiting
        if role == "assistant" and place == len(turns) - 1 and kinds[-1] == "text":
            text = blocks[-1]["text"]
            if text != text.rstrip():
                yield "the last message ends with white space"
    if waiting:
        yield f"calls without results at the end: {waiting}"
    if len(set(called)) < len(called):
        yield f"ids of calls are not unique: {called}"
    if not all(re.fullmatch(r"[a-zA-Z0-9_-]+", each) for each in called):
        yield f"ids of calls with other characters: {called}"


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block if isinstance(block, dict) else {"type": "text", "text": block} for block in content]
