"""The reason node: the one place where the model of the agent is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from everthread.errors import UsageError
from everthread.nodes.compact.budget import Counter, counter_of, fits
from everthread.nodes.compact.cut import unread
from everthread.nodes.compact.fit import within
from everthread.nodes.models import checked, is_overflow, storable
from everthread.nodes.node import Ask, Node, Steps, announce
from everthread.nodes.reason.chain import note_answer
from everthread.nodes.reason.providers import (
    ContextProvider,
    asked_before,
    checked_providers,
    told_after,
    tools_of,
)
from everthread.nodes.reason.request import Place, assemble, gathered, with_provided
from everthread.nodes.state import MemoryState
from everthread.stores.text import estimate_tokens

__all__ = ["Reason", "calls_of", "calls_tools", "checked_place", "limit_of", "overflowed", "tool_tokens"]

DEFAULT_MAX_TOKENS = 100_000
"""A request's budget when the model does not say how much it takes."""
SHARE = 0.75
"""How much of a model's input limit a request may fill: the rest is for the estimate's error and the reply."""


class Reason(Node):
    """Assembles the request and calls the model.

    `max_tokens`: what a request may take, system prompt, tools and memory included; three quarters of the model's own
    limit when it tells one. What is still longer after a compaction, or without one, goes without its oldest rounds.
    `counter`: counts the tokens of messages, for a model that has an exact count at hand; its own encoder when it was
    given one (`custom_get_token_ids`), else an estimate. `providers`: other sources of context, asked before each call
    and told after it, in order; what they give is not counted in `max_tokens`. `memory_at`: where the memory block
    stands, at the end of the system message or before the user's last message. `markers`: whether the model is asked to
    cite by [m1]; they are not in the reply that is kept. A gated graph, as `create_memory_agent` makes one, has none in
    a stream of tokens either; in a graph without a gate read it through `unmarked`.

    A request that the model's service finds too long is noted in `window.overflow`, so that the graph compacts and
    comes back once; a second time for the same last message it raises the service's error. A reply that cannot be used
    raises ModelReplyError: the thread is as it was before the call, and `invoke(None, config)` tries again. So does
    StoreError when it cannot be noted which memory the reply was made from: what cannot be traced is not given (R296).
    UsageError, when it is built, where the system prompt and the tools alone leave no room for a message.
    """

    reads_messages = True

    def __init__(
        self,
        model: BaseChatModel,
        tools: Sequence[BaseTool] = (),
        *,
        system_prompt: str = "",
        max_tokens: int | None = None,
        providers: Sequence[ContextProvider] = (),
        memory_at: Place = "system",
        markers: bool = True,
        counter: Counter | None = None,
    ) -> None:
        self._manner: dict[str, Any] = {
            "system_prompt": system_prompt,
            "memory_at": checked_place(memory_at),
            "markers": markers,
        }
        self.markers = markers
        self.max_tokens = max_tokens or limit_of(model)
        self.counter = counter or counter_of(model)
        self.providers = checked_providers(providers)
        self._model, self._tools = model, list(tools)
        self.tool_tokens = sum(tool_tokens(tool) for tool in (*tools, *tools_of(self.providers)))
        always = self.tool_tokens + estimate_tokens(system_prompt)
        if always >= self.max_tokens:
            raise UsageError(
                f"system prompt and tools take {always} tokens of the {self.max_tokens} that a request may take; "
                "shorten them, or raise max_tokens"
            )
        try:
            self._with(tools_of(self.providers))  # a model that cannot call tools is named now, not in a turn
            self.model = self._with([])
        except NotImplementedError as error:
            name = type(model).__name__
            raise UsageError(
                f"{name} cannot call tools; choose another model, or pass tools=() and recall='automatic'"
            ) from error

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns the reply in `messages`, or `window` with the overflow noted."""
        asked = assemble(state, runtime, **self._manner)
        thread = state.get("messages", [])
        messages = within(asked.messages, self.max_tokens - self.tool_tokens, unread(thread), self.counter)
        if len(messages) < len(asked.messages):
            announce(runtime, "reason", "shortened", left_out=len(asked.messages) - len(messages))
        last = str(thread[-1].id) if thread else ""
        given = yield from asked_before(self.providers, messages, runtime)
        messages = with_provided(messages, given)
        announce(runtime, "reason", "asking", messages=len(messages))
        try:
            reply = yield Ask(self._with(given.tools) if given.tools else self.model, messages)
        except Exception as error:
            window = state.get("window", {})
            if not is_overflow(error) or window.get("overflow") == last:
                raise
            announce(runtime, "reason", "overflow", reason=str(error)[:200])
            return {"window": {**window, "overflow": last}}
        answer = storable(checked(reply), thread)
        cited = note_answer(state, runtime, answer, asked)
        yield from told_after(self.providers, messages, answer, runtime)
        announce(
            runtime,
            "reason",
            "answered",
            tool_calls=[call["name"] for call in answer.tool_calls],
            cited=list(cited.used),
            **({"not_applicable": list(cited.not_applicable)} if cited.not_applicable else {}),
        )
        return {"messages": [answer]}

    def _with(self, more: Sequence[BaseTool]) -> Runnable[Any, Any]:
        """The model with its tools and some more of this call."""
        tools = [*self._tools, *more]
        return self._model.bind_tools(tools) if tools else self._model

    def over_budget(self, state: MemoryState, runtime: Runtime[Any]) -> bool:
        """Whether the next request would take more than `max_tokens`."""
        messages = gathered(state, runtime, **self._manner).messages
        return not fits(messages, self.max_tokens - self.tool_tokens, self.counter)


def overflowed(state: MemoryState) -> bool:
    """Whether the last call of the model failed because the request was too long."""
    messages = state.get("messages", [])
    return bool(messages) and state.get("window", {}).get("overflow") == messages[-1].id


def calls_tools(state: MemoryState) -> bool:
    """Whether the last message asks for tools."""
    messages = state.get("messages", [])
    return bool(messages) and isinstance(messages[-1], AIMessage) and bool(messages[-1].tool_calls)


def calls_of(state: MemoryState) -> Sequence[ToolCall]:
    """The calls of tools of the model's last reply; empty when it called none."""
    replies = (message for message in reversed(state.get("messages", [])) if isinstance(message, AIMessage))
    last = next(replies, None)
    return last.tool_calls if last else []


def checked_place(memory_at: Place) -> Place:
    """`memory_at`, when it is one of the two places; UsageError otherwise."""
    if memory_at not in get_args(Place):
        raise UsageError(f'memory_at is {memory_at!r}; say "system" or "last_message"')
    return memory_at


def limit_of(model: BaseChatModel) -> int:
    """What a request to this model may take, in tokens."""
    profile = getattr(model, "profile", None) or {}
    limit = profile.get("max_input_tokens")
    return int(limit * SHARE) if limit else DEFAULT_MAX_TOKENS


def tool_tokens(tool: BaseTool) -> int:
    """What a tool's description takes of a request, in tokens."""
    return estimate_tokens(f"{tool.name} {tool.description} {tool.tool_call_schema}")
