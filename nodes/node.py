"""What all nodes are: a step of a turn, written once, run by `invoke` and by `ainvoke`.

A node's logic is a generator, `steps(state, runtime)`. It yields an `Ask` where it needs a model, is sent the reply (or
has the model's error raised at that place), and returns its update. The two drivers here differ only in how they wait.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import ExecutionInfo, Runtime, get_runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from everthread.errors import UsageError
from everthread.nodes.state import MemoryState, MemoryUpdate, NodeInput
from everthread.stores.aside import aside
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, Memory, MemoryContext, identity_from, memory_context

__all__ = [
    "Ask",
    "Node",
    "Steps",
    "announce",
    "as_agent",
    "chosen_here",
    "context_of",
    "identity_of",
    "memory_of",
    "named_thread",
    "runtime_for",
    "store_of",
    "thread_of",
    "wrong_store",
]

Outcome = MemoryUpdate | Command[str]


class Ask(NamedTuple):
    """A call of a model that a node waits for."""

    model: Runnable[Any, Any]
    """A chat model, or one with tools or structured output bound."""
    messages: Sequence[BaseMessage]
    """The request."""


Steps = Generator[Ask, Any, Outcome]


class Node(Runnable[MemoryState, Outcome]):
    """A step of a turn. Add it to any graph with `add_node`, or call it alone: `node(state, runtime)`."""

    reads_messages: ClassVar[bool] = False
    """Whether it makes no sense in a graph whose state has no `messages`."""

    @abstractmethod
    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """The node's logic: yields `Ask`s, returns a partial update of the state."""

    def __call__(self, state: NodeInput, runtime: Runtime[Any]) -> Outcome:
        """Run the step and return its update. `runtime` carries context and store; see `runtime_for`.

        LangGraph takes the node's input schema from this signature, and adds the channels that the graph lacks."""
        outcome: Outcome = drive(self.steps(state, runtime))
        return outcome

    async def acall(self, state: MemoryState, runtime: Runtime[Any]) -> Outcome:
        """The same for asyncio: the store works on a worker thread, the model through `ainvoke`."""
        outcome: Outcome = await adrive(self.steps(state, runtime))
        return outcome

    def invoke(self, input: MemoryState, config: RunnableConfig | None = None, **kwargs: Any) -> Outcome:
        """Called by LangGraph; the runtime is the run's own. UsageError when the graph's state has no messages."""
        self._check(input)
        return self(input, get_runtime())

    async def ainvoke(self, input: MemoryState, config: RunnableConfig | None = None, **kwargs: Any) -> Outcome:
        """Called by LangGraph under asyncio."""
        self._check(input)
        return await self.acall(input, get_runtime())

    def _check(self, state: MemoryState) -> None:
        """A channel with a reducer is there from the start, so a missing one means that the graph has none."""
        if self.reads_messages and "messages" not in state:
            raise UsageError(
                f"{type(self).__name__} found no messages in the graph's state; derive the state from MemoryState, or "
                "give it messages: Annotated[list[AnyMessage], add_messages]"
            )


def drive(steps: Generator[Ask, Any, Any]) -> Any:
    """Run a generator of `Ask`s to its end with `invoke`; returns what it returns."""
    try:
        ask = next(steps)
        while True:
            try:
                reply = ask.model.invoke(ask.messages)
            except Exception as error:  # the step decides: it may compact and try again, or let it through
                ask = steps.throw(error)
            else:
                ask = steps.send(reply)
    except StopIteration as done:
        return done.value


async def adrive(steps: Generator[Ask, Any, Any]) -> Any:
    """Run a generator of `Ask`s to its end with `ainvoke`; its own work runs on a worker thread."""
    ended = object()
    result: list[Any] = []

    def advance(move: Any, *values: Any) -> Any:
        # StopIteration cannot cross a future, so the end is a value.
        try:
            return move(*values)
        except StopIteration as done:
            result.append(done.value)
            return ended

    ask = await aside(advance, next, steps)
    while ask is not ended:
        try:
            reply = await ask.model.ainvoke(ask.messages)
        except Exception as error:  # as above: the step decides
            ask = await aside(advance, steps.throw, error)
        else:
            ask = await aside(advance, steps.send, reply)
    return result[0]


class RunRuntime(Protocol):
    """What these functions need of a runtime: LangGraph's `Runtime` and a tool's `ToolRuntime` both have it."""

    @property
    def context(self) -> Any: ...
    @property
    def store(self) -> BaseStore | None: ...
    @property
    def execution_info(self) -> ExecutionInfo | None: ...
    @property
    def stream_writer(self) -> Callable[[Any], None]: ...


def context_of(runtime: RunRuntime) -> MemoryContext:
    """The run's memory context; AccessDenied when it names no identity."""
    return memory_context(runtime.context)


def identity_of(runtime: RunRuntime) -> Identity:
    """The identity on whose behalf the run works; AccessDenied when there is none. The one place where nodes, tools and
    middleware get it from."""
    return identity_from(runtime.context)


def store_of(runtime: RunRuntime) -> MemoryStore:
    """The run's store; UsageError when it is missing or is not a MemoryStore."""
    if isinstance(runtime.store, MemoryStore):
        return runtime.store
    raise wrong_store(runtime.store)


def wrong_store(store: object) -> UsageError:
    """The error to raise for a store that is missing or none of ours."""
    found = "no store" if store is None else type(store).__name__
    return UsageError(
        f"the graph was compiled with {found}, and memory needs a MemoryStore; "
        'use compile(store=open_store("sqlite:./data"))'
    )


def memory_of(runtime: RunRuntime) -> Memory:
    """Whether this run may learn (`on`), only recall (`read`), or neither (`off`): the strictest of what was chosen for
    the run and for its thread (R288), and of what its user agrees to (R289)."""
    here = chosen_here(runtime)
    return here if here == "off" else _stricter(here, store_of(runtime).consent(identity_of(runtime)))


def chosen_here(runtime: RunRuntime) -> Memory:
    """The same for the run and its thread alone: what a user wants forgotten is forgotten without consent, too."""
    context, thread_id = context_of(runtime), named_thread(runtime)
    if context.memory == "off" or thread_id is None:
        return context.memory
    return _stricter(context.memory, store_of(runtime).transcripts.memory_of(context.identity, thread_id))


def _stricter(one: Memory, other: Memory) -> Memory:
    return next(each for each in ("off", "read", "on") if each in (one, other))


def thread_of(runtime: RunRuntime) -> str:
    """The run's thread id; UsageError when the run has none."""
    thread_id = named_thread(runtime)
    if not thread_id:
        raise UsageError(
            'the run has no thread id; pass config={"configurable": {"thread_id": "..."}}, '
            "and compile the graph with a checkpointer"
        )
    return thread_id


def named_thread(runtime: RunRuntime) -> str | None:
    """The run's thread id, as text even when the host numbers its threads; None when it has none."""
    thread_id: object = runtime.execution_info.thread_id if runtime.execution_info else None
    return None if thread_id is None else str(thread_id)


def runtime_for(
    identity: Identity | MemoryContext, store: MemoryStore, thread_id: str | None = None, **options: Any
) -> Runtime[Any]:
    """A runtime to call a node alone with, in a notebook or a test: `Retrieve()(state, runtime_for(ana, store))`."""
    info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id=thread_id)
    return Runtime(context=identity, store=store, execution_info=info, **options)


def as_agent(runtime: RunRuntime, name: str, *, version: str | None = None, memory: Memory = "read") -> MemoryContext:
    """The run's context for a sub-agent of this name: `sub.invoke({...}, context=as_agent(runtime, "researcher"))`.

    It acts for the same user and reads what that user and this agent may, not what another agent learnt for itself. It
    has none of the user's roles, and it learns nothing (R308) unless `memory="on"`; it is never more than the run may.
    Inputs that wait and notices of tasks are left to the outermost agent (R305).
    What it is told is not the user's word: give the message a name, `HumanMessage(brief, name="supervisor")`.
    """
    context = context_of(runtime)
    acting = {**context.identity.model_dump(), "agent": name, "agent_version": version, "roles": frozenset()}
    allowed = _stricter(context.memory, memory)
    return MemoryContext.model_validate({"identity": acting, "memory": allowed, "as_of": context.as_of, "root": False})


def announce(runtime: RunRuntime, node: str, event: str, **details: Any) -> None:
    """Say in the custom stream what a node did and why: `{"node": ..., "event": ..., **details}`, plain data."""
    runtime.stream_writer({"node": node, "event": event, **details})
