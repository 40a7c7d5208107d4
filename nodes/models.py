"""The edge to chat models: one is loaded by name, an overflow is recognised, a reply is checked before it is used.

Providers say the same thing in different words. Here the words become one answer, so that no node knows a provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any
from uuid import uuid4

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from everthread.errors import ModelReplyError, UsageError

__all__ = ["checked", "is_overflow", "load_model", "storable"]

_OVERFLOW = re.compile(
    r"context_length_exceeded"  # OpenAI and whoever copies its bodies
    r"|maximum context length"  # OpenAI, vLLM, Mistral, DeepSeek
    r"|maximum prompt length"  # xAI
    r"|prompt is too long"  # Anthropic
    r"|exceeds? (the |model )?context (limit|window|length)"  # Anthropic with max_tokens, OpenAI Responses, Ollama
    r"|exceeds the available context size"  # llama.cpp
    r"|input tokens exceed the configured limit"  # OpenAI projects
    r"|input token count.{0,40} exceeds the maximum"  # Gemini
    r"|input is too long for requested model"  # Bedrock
    r"|ContextWindowExceededError",  # LiteLLM
    re.IGNORECASE | re.DOTALL,
)

_REASON_KEYS = {"openai": ("finish_reason", "status")}
"""Clients that always say why a reply ended, and where: Chat Completions by `finish_reason`, Responses by `status`."""


def load_model(spec: str, **options: Any) -> BaseChatModel:
    """The chat model named by `provider:name`, such as `openai:gpt-4.1-mini`; `options` go to its constructor.

    OpenAI needs the package langchain-openai; every other provider the extra `everthread[langchain]` and the
    provider's own package. Nothing is sent. Raises UsageError for an unknown provider, a missing package (with the pip
    command), missing credentials, or options that the model refuses.
    """
    provider, colon, name = spec.partition(":")
    if not (provider and colon and name):
        raise UsageError(f"model {spec!r} is not provider:name; write for example openai:gpt-4.1-mini")
    if provider == "openai":
        return _load_openai(spec, name, options)
    chat_models = _package("langchain.chat_models", spec, f"pip install 'everthread[langchain]' langchain-{provider}")
    try:
        model: BaseChatModel = chat_models.init_chat_model(name, model_provider=provider, **options)
    except ImportError as error:  # langchain's message names the provider's package and the pip command
        raise UsageError(f"model {spec!r} cannot be loaded: {_one_line(error)}") from error
    except ValueError as error:
        raise UsageError(f"model {spec!r} cannot be loaded: {_one_line(error)}") from error
    return model


def _load_openai(spec: str, name: str, options: dict[str, Any]) -> BaseChatModel:
    # Directly, not through langchain: one package less to install, and half the time to import.
    langchain_openai = _package("langchain_openai", spec, "pip install langchain-openai")
    credentials_error: type[Exception] = import_module("openai").OpenAIError
    try:
        model: BaseChatModel = langchain_openai.ChatOpenAI(model=name, **options)
    except (ValueError, credentials_error) as error:
        raise UsageError(f"model {spec!r} cannot be loaded: {_one_line(error)}") from error
    return model


def _package(module: str, spec: str, remedy: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # it is there, and something that it needs is not
        raise UsageError(f"model {spec!r} needs a package that is not installed; {remedy}") from error


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):  # its own text repeats the input, and that may hold a key
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
    return " ".join(str(error).split())


def is_overflow(error: BaseException) -> bool:
    """Whether a model refused a request because it is too long for its context window, whoever the provider is.

    A client's own exception type counts, else the error's code, else its words; causes are looked at too. Only to be
    asked about errors that a call of a model raised.
    """
    return any(
        isinstance(each, ContextOverflowError)
        or getattr(each, "code", None) == "context_length_exceeded"
        or _OVERFLOW.search(f"{type(each).__name__}: {each}") is not None
        for each in _causes(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        yield each
        seen.add(id(each))
        each = each.__cause__


def checked(reply: Any) -> AIMessage:
    """`reply` itself, if it is a whole answer: text, or tool calls whose arguments can be read.

    Raises ModelReplyError otherwise. A stream that ends without a finish reason is an error and not a short answer: the
    client accepts it in silence. Models that never give a reason (Ollama, fakes) are taken at their word.
    """
    if not isinstance(reply, AIMessage):
        raise ModelReplyError(f"the model answered with {type(reply).__name__} instead of an AIMessage")
    if _broke_off(reply):
        raise ModelReplyError(f"the model's reply broke off after {len(reply.text)} characters: no finish reason came")
    if reply.invalid_tool_calls:
        names = ", ".join(str(call["name"]) for call in reply.invalid_tool_calls)
        raise ModelReplyError(f"the model called a tool with arguments that are not JSON: {names}")
    if not reply.tool_calls and not reply.text.strip():
        refusal = reply.additional_kwargs.get("refusal")
        raise ModelReplyError(f"the model declined to answer: {refusal}" if refusal else "the model's reply is empty")
    return reply


def storable(reply: AIMessage, thread: Sequence[BaseMessage]) -> AIMessage:
    """The reply as a thread can keep it, the same object where nothing was wrong: under an id that no message of
    `thread` has, since it would take that one's place, and with numbers of more than 64 bits in its calls, which no
    checkpoint can hold, as text."""
    changed: dict[str, Any] = {}
    if reply.id is not None and reply.id in map(attrgetter("id"), thread):
        changed["id"] = f"{reply.id}-{uuid4().hex[:8]}"
    calls = [{**call, "args": _small(call["args"])} for call in reply.tool_calls]
    if calls != reply.tool_calls:
        changed["tool_calls"] = calls
    if not changed:
        return reply
    if isinstance(reply.content, list):
        changed["content"] = _small(reply.content)
    return reply.model_copy(update=changed)


def _small(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {key: _small(each) for key, each in value.items()}
    return [_small(each) for each in value] if isinstance(value, list) else value


def _broke_off(reply: AIMessage) -> bool:
    metadata = reply.response_metadata
    if metadata.get("finish_reason", "") is None:  # the client reports reasons, and has none for this reply
        return True
    keys = _REASON_KEYS.get(metadata.get("model_provider", ""))
    return keys is not None and not any(metadata.get(key) for key in keys)
