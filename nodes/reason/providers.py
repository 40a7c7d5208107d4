"""Other sources of context beside our own memory: an external memory service or a house rule is one object (R15, R32).

Each is asked before a call of the model and told after it, in the order of registration. What it gives is for this one
call: it enters no stored message, and nothing is learnt from it (R111).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from everthread.errors import StoreError, UsageError
from everthread.nodes.block import render_foreign, without_our_tags
from everthread.nodes.node import Ask, announce, identity_of, memory_of
from everthread.nodes.state import MARK
from everthread.stores.identity import Identity
from everthread.stores.text import sound

__all__ = ["ContextProvider", "Provided", "asked_before", "checked_providers", "told_after", "tools_of"]


class Provided(NamedTuple):
    """What a provider gives for one call of the model."""

    instructions: str = ""
    """Text for the end of the system message."""
    messages: Sequence[BaseMessage] = ()
    """Messages before the thread's own."""
    tools: Sequence[BaseTool] = ()
    """Tools of the provider that the model may call now."""
    memories: Sequence[str] = ()
    """What an external memory knows: reference data and not instruction, whatever it says. Each text stands on a line
    of a block behind the instructions, inert and with the provider's key as its source."""


class ContextProvider:
    """Derive from it and override what you need; the defaults give nothing.

    A service that cannot be reached raises StoreError: the turn goes on without it and says so in the stream. Any other
    error is a fault of the code and ends the turn.
    """

    key: str = ""
    """Its name, unique among the providers of an agent."""
    tools: Sequence[BaseTool] = ()
    """Every tool that it may ever give, so that the agent's tool node knows them."""
    is_memory: bool = False
    """Whether it keeps memory: then it is neither asked nor told in a run or thread whose memory is `off`, and not told
    when it is `read`."""

    def before(self, identity: Identity, messages: Sequence[BaseMessage]) -> Provided:
        """What to add to the call that is about to be made with `messages`."""
        return Provided()

    def after(self, identity: Identity, messages: Sequence[BaseMessage], reply: AIMessage) -> None:
        """The call succeeded: `messages` are the whole request. Not called for a call that failed (R33)."""

    def wait(self, timeout: float | None = None) -> None:
        """Return when everything it was told is in effect: for a service that updates later (R264)."""

    async def abefore(self, identity: Identity, messages: Sequence[BaseMessage]) -> Provided:
        """`before` for asyncio; on a worker thread unless overridden."""
        return await asyncio.to_thread(self.before, identity, messages)

    async def aafter(self, identity: Identity, messages: Sequence[BaseMessage], reply: AIMessage) -> None:
        """`after` for asyncio; on a worker thread unless overridden."""
        await asyncio.to_thread(self.after, identity, messages, reply)


def checked_providers(providers: Sequence[ContextProvider]) -> tuple[ContextProvider, ...]:
    """The providers, in order. UsageError when one has no key, or two have the same."""
    keys = [provider.key for provider in providers]
    for provider in providers:
        if not provider.key:
            raise UsageError(f"{type(provider).__name__} has no key; give it one that is unique among the providers")
        if keys.count(provider.key) > 1:
            raise UsageError(f"two context providers have the key {provider.key!r}; give each its own")
    return tuple(providers)


def tools_of(providers: Sequence[ContextProvider]) -> list[BaseTool]:
    """Every tool that the providers may give, in order."""
    return [tool for provider in providers for tool in provider.tools]


def asked_before(
    providers: Sequence[ContextProvider], messages: Sequence[BaseMessage], runtime: Runtime[Any]
) -> Generator[Ask, Any, Provided]:
    """What all providers give together, in order; one that fails is announced and gives nothing."""
    given: list[Provided] = []
    for provider in _taking_part(providers, runtime, ("on", "read")):
        try:
            one = yield Ask(_call(provider.before, provider.abefore, identity_of(runtime)), messages)
        except StoreError as error:
            announce(runtime, "reason", "provider-failed", provider=provider.key, reason=str(error))
            continue
        given.append(_checked(provider, one))
    return Provided(
        "\n\n".join(one.instructions for one in given if one.instructions),
        [message for one in given for message in one.messages],
        [tool for one in given for tool in one.tools],
    )


def told_after(
    providers: Sequence[ContextProvider], messages: Sequence[BaseMessage], reply: AIMessage, runtime: Runtime[Any]
) -> Generator[Ask, Any, None]:
    """Tell each provider that the call succeeded, in order; one that fails is announced, and the reply stands."""
    for provider in _taking_part(providers, runtime, ("on",)):
        try:
            yield Ask(_call(provider.after, provider.aafter, identity_of(runtime), reply), messages)
        except StoreError as error:
            announce(runtime, "reason", "provider-failed", provider=provider.key, reason=str(error))


def _taking_part(
    providers: Sequence[ContextProvider], runtime: Runtime[Any], modes: Sequence[str]
) -> list[ContextProvider]:
    if not any(provider.is_memory for provider in providers):
        return list(providers)
    memory = memory_of(runtime)
    return [provider for provider in providers if memory in modes or not provider.is_memory]


class _Call(NamedTuple):
    """A call of a provider, as something a step can ask."""

    sync: Callable[..., Any]
    asynchronous: Callable[..., Any]
    identity: Identity
    rest: tuple[Any, ...]

    def invoke(self, messages: Sequence[BaseMessage]) -> Any:
        return self.sync(self.identity, messages, *self.rest)

    async def ainvoke(self, messages: Sequence[BaseMessage]) -> Any:
        return await self.asynchronous(self.identity, messages, *self.rest)


def _call(sync: Callable[..., Any], asynchronous: Callable[..., Any], identity: Identity, *rest: Any) -> Any:
    return cast(Any, _Call(sync, asynchronous, identity, rest))


def _checked(provider: ContextProvider, given: object) -> Provided:
    """What a provider gave, fit for a request: its memories as a block, no tag of ours in its words, valid Unicode, its
    messages marked as its own. UsageError when it is something else."""
    if not isinstance(given, Provided):
        raise UsageError(
            f"provider {provider.key!r} gave {type(given).__name__} from before(); return Provided(...), or Provided() "
            "for nothing"
        )
    for field, kind in (("messages", BaseMessage), ("memories", str)):
        values = getattr(given, field)
        if isinstance(values, str) or not all(isinstance(each, kind) for each in values):
            raise UsageError(
                f"provider {provider.key!r}: {field} must be a list of {kind.__name__}, not {values!r:.80}"
            )
    known = {tool.name for tool in provider.tools}
    for tool in given.tools:
        if tool.name not in known:
            raise UsageError(f"provider {provider.key!r} gave the tool {tool.name!r}, which is not among its `tools`")
    words = without_our_tags(sound(given.instructions)), render_foreign(provider.key, given.memories)
    messages = [_marked(message, provider.key) for message in given.messages]
    return given._replace(instructions="\n\n".join(filter(None, words)), messages=messages, memories=())


def _marked(message: BaseMessage, key: str) -> BaseMessage:
    marks = {**message.additional_kwargs, MARK: {"kind": "context", "provider": key}}
    content = message.content
    if isinstance(content, str):
        content = without_our_tags(sound(content))
    return message.model_copy(update={"additional_kwargs": marks, "content": content})
