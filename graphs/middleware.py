"""Memory for an agent that LangChain's `create_agent` made: the nodes of the turn, hung on its hooks.

before_agent      restore, retrieve
wrap_model_call   [over budget, or refused as too long?] flush, compact; the request, assembled
wrap_tool_call    oversized results leave the thread
after_model       extract, once the reply is final; track and consolidate what is due
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph.message import add_messages
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from everthread.errors import UsageError
from everthread.nodes import Compact, Consolidate, Extract, Flush, Restore, Retrieve, Track, memory_tools
from everthread.nodes.compact import Summariser, Tracker
from everthread.nodes.compact.budget import Counter, counter_of, fits
from everthread.nodes.compact.cut import checked_turns, many_turns, unread
from everthread.nodes.compact.fit import within
from everthread.nodes.eviction import LIMIT, PREVIEW
from everthread.nodes.extract import Extractor, RuleExtractor
from everthread.nodes.extract.later import When
from everthread.nodes.models import is_overflow, storable
from everthread.nodes.node import Ask, adrive, announce, drive, identity_of, store_of, thread_of
from everthread.nodes.reason import ContextProvider, artifact_read
from everthread.nodes.reason.chain import note_answer
from everthread.nodes.reason.node import checked_place, limit_of, tool_tokens
from everthread.nodes.reason.providers import Provided, asked_before, checked_providers, told_after, tools_of
from everthread.nodes.reason.request import Assembled, Place, assemble, with_provided
from everthread.nodes.reason.tools import akept, kept
from everthread.nodes.restore import ProjectInstructions
from everthread.nodes.sendable import joined
from everthread.nodes.state import MARK, Channels, MemoryState, MemoryUpdate
from everthread.stores.text import estimate_tokens

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ExtendedModelResponse
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "langchain":
        raise  # it is there, and something that it needs is not
    raise UsageError(
        "MemoryMiddleware needs the package langchain, which is not installed; pip install 'everthread[langchain]'"
    ) from error

__all__ = ["MemoryMiddleware"]

Model = Callable[[ModelRequest[Any]], Any]
Reply = ModelResponse[Any] | ExtendedModelResponse[Any]
ToolResult = ToolMessage | Command[Any]


class MemoryAgentState(AgentState[Any], Channels):
    """The state of an agent with memory: its messages under whatever reducer it has, and our channels."""


class MemoryMiddleware(AgentMiddleware[MemoryAgentState, Any, Any]):
    """Memory for `create_agent(model, middleware=[MemoryMiddleware()], store=open_store(...), checkpointer=...)`.

    Put it first in the list: what the others change in a message or a reply (redaction, a person's decision on a tool
    call) is then what is learnt, and what they do to a request they do to the whole of it. Leave out
    `SummarizationMiddleware`, which deletes messages; this compacts and deletes none.

    `recall`: memory is put before the model each turn, fetched by its tools, or both (R202). `retrieve`: a `Retrieve`
    with settings of yours. `extractor`, `summariser`, `tracker`: rules without a model by default. `when`: whether
    extraction is `inline` or a `job` for a worker, as in `Extract`. `max_tokens`: what a request may take before the
    older part leaves the model's view; three quarters of the model's own limit when it tells one. `keep_tokens`: how
    much of the end stays verbatim then; half of `max_tokens` when None. `keep_turns`, `counter`, `evict_over` and
    `preview`: as in `create_memory_agent`. `trusted_tools`: the tools whose results may settle something.
    `deliver=False` is for a sub-agent: inputs and notices are left to the outermost graph (R305).
    `providers`: other sources of context, asked before each call of the model and told after it. `memory_at`: where the
    memory block stands. `markers`: whether the model is asked to cite it. Both as in `Reason`.

    Identity is the run's `context`: AccessDenied without one, before the model is asked. What an extractor learns by
    asking a model is left to a job, which a `Worker` does, and so is what an inline one could not learn.
    """

    state_schema = MemoryAgentState

    def __init__(
        self,
        *,
        instructions: ProjectInstructions | Callable[[], str] | str | None = None,
        recall: Literal["automatic", "on_demand", "both"] = "both",
        retrieve: Retrieve | None = None,
        extractor: Extractor | None = None,
        when: When | None = None,
        summariser: Summariser | None = None,
        tracker: Tracker | None = None,
        max_tokens: int | None = None,
        keep_tokens: int | None = None,
        keep_turns: int | None = None,
        counter: Counter | None = None,
        evict_over: int = LIMIT,
        preview: int = PREVIEW,
        trusted_tools: frozenset[str] = frozenset(),
        exclude_external: bool = False,
        deliver: bool = True,
        providers: Sequence[ContextProvider] = (),
        memory_at: Place = "system",
        markers: bool = True,
    ) -> None:
        self.memory_at = checked_place(memory_at)
        self.markers = markers
        self.providers = checked_providers(providers)
        own = memory_tools() if recall != "automatic" else []
        self.tools = [*own, artifact_read, *tools_of(self.providers)]
        self.restore = Restore(instructions, deliver=deliver)
        self.retrieve = None if recall == "on_demand" else retrieve or Retrieve()
        self.extractor = extractor or RuleExtractor()
        self.summariser = summariser
        self.tracker = tracker
        self.max_tokens = max_tokens
        self.keep_tokens, self.keep_turns = keep_tokens, checked_turns(keep_turns)
        self.counter = counter
        own_words = trusted_tools if exclude_external else None
        self._around_tools: Any = {"evict_over": evict_over, "preview": preview, "own_words": own_words}
        self.trusted_tools = trusted_tools
        self.exclude_external = exclude_external
        self.when = when
        self.extract = Extract(
            self.extractor, trusted_tools=trusted_tools, exclude_external=exclude_external, when=when
        )
        self.track = Track(tracker)
        self.consolidate = Consolidate(self.extractor, trusted_tools=trusted_tools, when=when)
        self._tool_sizes: dict[str, int] = {}

    # ------------------------------------------------------------------------------------------------------ the hooks

    def before_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> MemoryUpdate:
        """Called by the agent as a turn begins: new messages in the thread, references of what was recalled."""
        update: MemoryUpdate = drive(self._begun(view_of(state), runtime))
        return update

    async def abefore_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> MemoryUpdate:
        """`before_agent` for asyncio."""
        update: MemoryUpdate = await adrive(self._begun(view_of(state), runtime))
        return update

    def wrap_model_call(self, request: ModelRequest[Any], handler: Model) -> Reply:
        """Called by the agent around its model: the request is assembled, and cut when it would be too long."""
        reply: Reply = drive(self._asked(request, Call(request, handler)))
        return reply

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Reply:
        """`wrap_model_call` for asyncio."""
        reply: Reply = await adrive(self._asked(request, Call(request, handler)))
        return reply

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        """Called by the agent around each tool: of an oversized result the thread keeps head, tail and path."""
        return kept(request, handler, deliver=self.restore.deliver, **self._around_tools)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """`wrap_tool_call` for asyncio."""
        return await akept(request, handler, deliver=self.restore.deliver, **self._around_tools)

    def after_model(self, state: MemoryAgentState, runtime: Runtime[Any]) -> MemoryUpdate | None:
        """Called by the agent after each reply: learns once it is final, before any `after_agent` hook could raise."""
        update: MemoryUpdate | None = drive(self._ended(view_of(state), runtime))
        return update

    async def aafter_model(self, state: MemoryAgentState, runtime: Runtime[Any]) -> MemoryUpdate | None:
        """`after_model` for asyncio."""
        update: MemoryUpdate | None = await adrive(self._ended(view_of(state), runtime))
        return update

    # ------------------------------------------------------------------------------------------------------ the steps

    def _begun(self, state: MemoryState, runtime: Runtime[Any]) -> Generator[Ask, Any, MemoryUpdate]:
        restored = yield from self.restore.steps(state, runtime)
        if self.retrieve is None:
            return cast(MemoryUpdate, restored)
        recalled = yield from self.retrieve.steps(with_update(state, restored), runtime)
        return {**cast(MemoryUpdate, restored), **cast(MemoryUpdate, recalled)}

    def _asked(self, asked: ModelRequest[Any], call: Call) -> Generator[Ask, Any, Reply]:
        """One call of the agent's model, and a second when the provider found the first too long."""
        runtime = asked.runtime
        # A resumed run does not begin again: whose thread it is must be known here as well (R23).
        store_of(runtime).transcripts.bind(identity_of(runtime), thread_of(runtime))
        limit = self.max_tokens or limit_of(asked.model)
        stored = view_of(asked.state)
        changed: MemoryUpdate = {}
        shown = self._assembled(asked, stored, runtime)
        counter, room = self.counter or counter_of(asked.model), limit - self._tool_tokens(asked)
        if many_turns(stored, self.keep_turns) or not fits(shown.messages, room, counter):
            changed = yield from self._compacted(stored, runtime, limit, counter)
            shown = self._assembled(asked, with_update(stored, changed), runtime)
        given = yield from asked_before(self.providers, shown.messages, runtime)
        call = call.offering(given, self.providers)
        messages = with_provided(within(shown.messages, room, unread(stored["messages"]), counter), given)
        try:
            response = yield Ask(cast(Any, call), messages)
        except Exception as error:
            if not is_overflow(error):
                raise
            stored = with_update(stored, changed)
            announce(runtime, "middleware", "overflow", reason=str(error)[:200])
            again = yield from self._compacted(overflowing(stored), runtime, limit, counter)
            if "window" not in again:
                raise
            changed = {**changed, **again}
            shown = self._assembled(asked, with_update(stored, again), runtime)
            messages = with_provided(shown.messages, given)
            response = yield Ask(cast(Any, call), messages)
        response = as_stored(response, stored["messages"])
        note_answer(stored, runtime, replied(response), shown)
        yield from told_after(self.providers, messages, replied(response), runtime)
        return ExtendedModelResponse(response, Command(update=changed)) if changed else cast(Reply, response)

    def _assembled(self, asked: ModelRequest[Any], state: MemoryState, runtime: Runtime[Any]) -> Assembled:
        return assembled(asked, state, runtime, memory_at=self.memory_at, markers=self.markers)

    def _compacted(
        self, state: MemoryState, runtime: Runtime[Any], limit: int, counter: Counter | None
    ) -> Generator[Ask, Any, MemoryUpdate]:
        """Flush, then compact; both decide by the same state."""
        cutting: Any = {
            "keep_tokens": self.keep_tokens or limit // 2,
            "keep_turns": self.keep_turns,
            "counter": counter,
        }
        flush = Flush(
            self.extractor,
            trusted_tools=self.trusted_tools,
            exclude_external=self.exclude_external,
            when=self.when,
            **cutting,
        )
        flushed = yield from flush.steps(state, runtime)
        compacted = yield from Compact(self.summariser, tracker=self.tracker, **cutting).steps(state, runtime)
        return {**cast(MemoryUpdate, flushed), **cast(MemoryUpdate, compacted)}

    def _ended(self, state: MemoryState, runtime: Runtime[Any]) -> Generator[Ask, Any, MemoryUpdate | None]:
        if not is_final(state):
            return None
        learnt = yield from self.extract.steps(state, runtime)
        if self.consolidate.due(state, runtime):
            yield from self.consolidate.steps(state, runtime)
        if self.track.due(state):
            learnt = {**cast(MemoryUpdate, learnt), **cast(MemoryUpdate, (yield from self.track.steps(state, runtime)))}
        return cast(MemoryUpdate, learnt) or None

    def _tool_tokens(self, asked: ModelRequest[Any]) -> int:
        """What the descriptions of the request's tools take; each is measured once."""
        for tool in asked.tools:
            if isinstance(tool, BaseTool) and tool.name not in self._tool_sizes:
                self._tool_sizes[tool.name] = tool_tokens(tool)
        return sum(
            self._tool_sizes[tool.name]
            if isinstance(tool, BaseTool)
            else estimate_tokens(json.dumps(tool, default=str))
            for tool in asked.tools
        )


class Call(NamedTuple):
    """The agent's own way to its model, as something a step can ask."""

    request: ModelRequest[Any]
    """What the agent would ask."""
    handler: Callable[..., Any]
    """The rest of the agent's middleware, and the model."""

    def invoke(self, messages: list[AnyMessage]) -> Any:
        """Ask with these messages, the system message first if there is one."""
        return self.handler(self._with(messages))

    async def ainvoke(self, messages: list[AnyMessage]) -> Any:
        """`invoke` for asyncio."""
        return await self.handler(self._with(messages))

    def offering(self, given: Provided, providers: Sequence[ContextProvider]) -> Call:
        """The call without those tools of the providers that were not given for it."""
        withheld = {tool.name for tool in tools_of(providers)} - {tool.name for tool in given.tools}
        tools = [tool for tool in self.request.tools if getattr(tool, "name", None) not in withheld]
        return self._replace(request=self.request.override(tools=tools)) if withheld else self

    def _with(self, messages: list[AnyMessage]) -> ModelRequest[Any]:
        first = messages[0] if messages else None
        if isinstance(first, SystemMessage):
            return self.request.override(system_message=first, messages=messages[1:])
        return self.request.override(messages=messages)


def assembled(
    asked: ModelRequest[Any], state: MemoryState, runtime: Runtime[Any], *, memory_at: Place, markers: bool
) -> Assembled:
    """The request as the model gets it: the agent's system message with ours at its end, then what `window` shows of
    the messages, as an outer middleware left them."""
    shown: MemoryState = {**state, "messages": asked.messages}
    ours = assemble(shown, runtime, memory_at=memory_at, markers=markers)
    first, rest = ours.messages[:1], ours.messages[1:]
    if first and isinstance(first[0], SystemMessage):
        return ours._replace(messages=[joined(asked.system_message, first[0]), *rest])
    return ours._replace(messages=[*([asked.system_message] if asked.system_message else []), *ours.messages])


def view_of(state: Any) -> MemoryState:
    """The agent's state as the nodes read it. A summary that LangChain's own middleware put among the messages, in the
    user's role, is marked: nobody said it, so nothing is learnt from it."""
    view = cast(MemoryState, dict(state))
    view["messages"] = [unsaid(message) for message in state.get("messages", [])]
    return view


def unsaid(message: AnyMessage) -> AnyMessage:
    """The message, marked when it is a summary of `SummarizationMiddleware`."""
    if message.additional_kwargs.get("lc_source") != "summarization":
        return message
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: {"kind": "summary"}}})


def with_update(state: MemoryState, update: Any) -> MemoryState:
    """The state with a node's update, as the graph's reducers will make it."""
    changed = cast(MemoryState, {**state, **update})
    if "messages" in update:
        changed["messages"] = cast(list[AnyMessage], add_messages(cast(Any, state["messages"]), update["messages"]))
    return changed


def overflowing(state: MemoryState) -> MemoryState:
    """The state, with the note that a provider found the request too long: at most half of it stays."""
    newest = state["messages"][-1].id if state["messages"] else None
    return {**state, "window": {**state.get("window", {}), "overflow": str(newest)}}


def replied(response: Any) -> AIMessage:
    """The model's own reply, the last if the rest of the agent's middleware made several."""
    return _replies(response)[-1]


def as_stored(response: Any, thread: Sequence[AnyMessage]) -> Any:
    """The response with its replies as the thread can keep them."""
    if isinstance(response, AIMessage):
        return storable(response, thread)
    response.result[:] = [storable(each, thread) if isinstance(each, AIMessage) else each for each in response.result]
    return response


def _replies(response: Any) -> list[AIMessage]:
    messages = [response] if isinstance(response, AIMessage) else response.result
    return [message for message in messages if isinstance(message, AIMessage)]


def is_final(state: MemoryState) -> bool:
    """Whether the turn is answered: a reply without tool calls, or a structured one, which a tool's result ends."""
    last = state["messages"][-1]
    if isinstance(last, AIMessage):
        return not last.tool_calls
    return state.get("structured_response") is not None
