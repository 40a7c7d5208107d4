"""The gate at a graph's entry: one run of a thread at a time, on behalf of the thread's own user, at the right time.

Only the entry can do this. A node sees neither a second run that loaded the same checkpoint, nor whether its own run
replays an old one; and it runs after the input was written.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, nullcontext
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import ensure_config
from langgraph._internal._constants import CONFIG_KEY_DURABILITY, CONFIG_KEY_RUNTIME, CONFIG_KEY_TASK_ID
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Durability, StateUpdate
from langgraph.typing import ContextT, InputT, OutputT, StateT
from pydantic import BaseModel

from everthread.errors import Conflict, UsageError
from everthread.graphs.soundness import asks_to_cite, check, keeps_threads
from everthread.nodes.reason.streams import UnmarkedStream, unmarked_events
from everthread.stores.aside import aside
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, MemoryContext, memory_context

__all__ = ["GatedGraph", "MemoryGraph", "gate"]


Narrow = Callable[[Any], Any]
Whose = Callable[[Any], Any]
"""From the context that a run's caller gave to the one that the run gets; AccessDenied when there is none for it."""

PLACE = {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"}
"""What of `configurable` says where a run is, whatever a context calls by the same name."""


@runtime_checkable
class Leasing(Protocol):
    """A checkpointer that can hold a thread for one run."""

    def turn(self, thread_id: str, timeout: float) -> AbstractContextManager[None]:
        """Hold the thread; Conflict when it is still busy after `timeout` seconds."""

    def aturn(self, thread_id: str, timeout: float) -> AbstractAsyncContextManager[None]:
        """`turn` for asyncio."""


class GatedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs of one thread wait for each other, up to `timeout` seconds; then Conflict.

    With a MemoryStore, a run needs an identity in its context and a thread that is that identity's: AccessDenied comes
    before anything is written (R23, R294). A run from an old checkpoint recalls memory as it was then (`as_of`). The
    input of a run that was overtaken (it hung for longer than its lease) waits in the inbox; its Conflict names it.

    Inside another graph's run it is a plain subgraph: the outermost graph is the entry. State, input and context are
    typed loosely, since both `("user", "hello")` and a bare `Identity` are welcome.
    """

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        narrow: Narrow | None = None,
        whose: Whose | None = None,
        inside: Durability | None = None,
        **parts: Any,
    ) -> None:
        super().__init__(**parts)
        self.timeout = timeout
        self.narrow = narrow
        """What of an input enters the graph; all of it when None."""
        self.whose = whose
        """What a run's context is; the one that the caller gave when None."""
        self.inside = inside
        """When it saves itself inside another graph's run: as its host does when None."""
        self.cites = False
        """Whether a model in it is asked to cite by markers, which nobody is to see in a stream of its tokens."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """As LangGraph's; the thread is held until the iterator ends or is closed. Tokens come without markers."""
        input = self.narrow(input) if self.narrow else input
        entry = self._entry(config, options.get("context"))
        if entry is None:
            yield from super().stream(input, saving(config, self.inside), **options)
            return
        shown = UnmarkedStream() if self.cites else None
        entry.bind()
        with entry.hold():
            config = unmirrored(config, entry.given)
            options["context"] = entry.context_at(entry.moment())
            parts = cast(Generator[Any, None, None], super().stream(input, config, **options))
            try:
                with contextlib.closing(parts):  # before the thread is given back, as below
                    for part in parts:
                        yield from shown.of(part) if shown else (part,)
                yield from shown.end() if shown else ()
            except Conflict as error:
                if named := entry.overtaken(error, input):
                    raise named from error
                raise

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """As LangGraph's; the thread is held until the iterator ends or is closed. Tokens come without markers."""
        input = self.narrow(input) if self.narrow else input
        entry = self._entry(config, options.get("context"))
        if entry is None:
            async with closing(super().astream(input, saving(config, self.inside), **options)) as parts:
                async for part in parts:
                    yield part
            return
        shown = UnmarkedStream() if self.cites else None
        await aside(entry.bind)
        async with entry.ahold():
            config = unmirrored(config, entry.given)
            options["context"] = entry.context_at(await entry.amoment())
            # Closed before the thread is given back: a run that is left alone is over only then.
            try:
                async with closing(super().astream(input, config, **options)) as parts:
                    async for part in parts:
                        for each in shown.of(part) if shown else (part,):
                            yield each
                for part in shown.end() if shown else ():
                    yield part
            except Conflict as error:
                if named := await aside(entry.overtaken, error, input):
                    raise named from error
                raise

    def astream_events(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's, which runs `astream`; what a chat model replies comes without markers in each version."""
        events = super().astream_events(input, config, **options)
        if options.get("version") == "v3" or not self.cites:
            return events
        return unmarked_events(cast(AsyncGenerator[Any, None], events))

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """As LangGraph's, holding the thread. (`update_state` comes through here.) An update has no context, so only a
        graph that knows itself whose it is checks that."""
        entry = self._entry(config, None)
        if entry and self.whose:
            entry.bind()
        with entry.hold() if entry else nullcontext():
            return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As LangGraph's, holding the thread."""
        entry = self._entry(config, None)
        if entry and self.whose:
            await aside(entry.bind)
        async with entry.ahold() if entry else nullcontext():
            return await super().abulk_update_state(config, supersteps)

    def _entry(self, config: RunnableConfig | None, context: Any) -> Entry | None:
        """What the call is about to enter; None inside another graph's run, which has entered already."""
        merged = ensure_config(self.config, config)
        configurable = merged["configurable"]
        # A server hands store and context over in a runtime. What its client put into `configurable` is plain data, so
        # only the object counts.
        handed = configurable.get(CONFIG_KEY_RUNTIME)
        runtime = handed if isinstance(handed, Runtime) else None
        if CONFIG_KEY_TASK_ID in configurable and runtime is not None:
            return None
        if context is None and runtime is not None:
            context = runtime.context
        thread_id = configurable.get("thread_id")
        saver, store = self._resolve_checkpointer(merged), self.store if runtime is None else runtime.store
        if saver is None and self.checkpointer is None and isinstance(store, MemoryStore) and keeps_threads(self):
            raise UsageError(
                "the graph was compiled without a checkpointer, so that each run would begin its thread anew; "
                'use compile(checkpointer=open_checkpointer("sqlite:./data")), or checkpointer=False where every run '
                "brings its whole thread"
            )
        return Entry(
            thread_id=None if thread_id is None else str(thread_id),
            saver=saver,
            store=store,
            given=context,
            context=self.whose(context) if self.whose else context,
            schema=self.context_schema,
            addressed=addressed_checkpoint(configurable),
            timeout=0.0 if runs_in(thread_id) else self.timeout,
        )


class Entry(NamedTuple):
    """A call that comes from outside: a run, or an update of a thread's state."""

    thread_id: str | None
    saver: BaseCheckpointSaver[Any] | None
    store: Any
    given: Any
    """The context that the caller gave."""
    context: Any
    """The context to run with."""
    schema: Any
    """The graph's context schema."""
    addressed: str | None
    """The checkpoint that the caller names, if it names one."""
    timeout: float
    """How many seconds to wait for the thread."""

    def bind(self) -> None:
        """Make the thread this identity's; AccessDenied without an identity, or when it is another user's."""
        if isinstance(self.store, MemoryStore):
            identity = memory_context(self.context).identity
            if self.thread_id is not None:
                self.store.transcripts.bind(identity, self.thread_id)

    def hold(self) -> AbstractContextManager[None]:
        """Hold the thread, if the saver can."""
        if isinstance(self.saver, Leasing) and self.thread_id is not None:
            return self.saver.turn(self.thread_id, self.timeout)
        return nullcontext()

    def ahold(self) -> AbstractAsyncContextManager[None]:
        """`hold` for asyncio."""
        if isinstance(self.saver, Leasing) and self.thread_id is not None:
            return self.saver.aturn(self.thread_id, self.timeout)
        return nullcontext()

    def moment(self) -> datetime | None:
        """When the addressed checkpoint was made, if the thread has moved past it; else None."""
        if not self.addressed or self.saver is None:
            return None
        return moment_of(self.saver.get_tuple(self._at(self.addressed)), self.saver.get_tuple(self._at(None)))

    async def amoment(self) -> datetime | None:
        """`moment` for asyncio."""
        if not self.addressed or self.saver is None:
            return None
        addressed = await self.saver.aget_tuple(self._at(self.addressed))
        return moment_of(addressed, await self.saver.aget_tuple(self._at(None)))

    def _at(self, checkpoint_id: str | None) -> RunnableConfig:
        place = {"thread_id": self.thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
        return {"configurable": place}

    def overtaken(self, error: Conflict, input: Any) -> Conflict | None:
        """What to raise instead of `error` where another run has continued this thread (ours hung for longer than its
        lease): the user's words of `input` wait in the inbox now, and are named. None where there are none, or `error`
        is about something else."""
        if error.thread_id is None or error.thread_id != self.thread_id or not isinstance(self.store, MemoryStore):
            return None
        context = memory_context(self.context)
        said = words_of(input) if context.root else []
        if not said:
            return None
        for message_id, text in said:
            self.store.inbox.admit(context.identity, self.thread_id, message_id, text)
        ids = [message_id for message_id, _ in said]
        return Conflict(
            f"thread {self.thread_id!r} was continued by another run, up to checkpoint {error.winner}; the input "
            f"{', '.join(ids)} of this run waits in the inbox, and the thread's next run answers it",
            winner=error.winner,
            thread_id=self.thread_id,
            inputs=ids,
        )

    def context_at(self, moment: datetime | None) -> Any:
        """The run's context; of a run from the past, with `as_of` set, unless the caller set it."""
        if not isinstance(self.store, MemoryStore):
            return self.context
        if moment is not None and memory_context(self.context).as_of is None:
            return at_time(self.context, moment, self.schema)
        # LangGraph would build the schema's class from a dict, and a bare identity is not one.
        return memory_context(self.context) if plain_for(self.schema, self.context) else self.context


def words_of(input: Any) -> list[tuple[str, str]]:
    """(message id, text) of what a user says in a graph's input, where both are known."""
    messages = input.get("messages", []) if isinstance(input, Mapping) else getattr(input, "messages", [])
    return [
        (message.id, message.content)
        for message in (messages if isinstance(messages, list | tuple) else [messages])
        if isinstance(message, HumanMessage) and message.id and isinstance(message.content, str)
    ]


def saving(config: RunnableConfig | None, durability: Durability | None) -> RunnableConfig | None:
    """A subgraph's config with another durability than its host's."""
    if config is None or durability is None:
        return config
    return {**config, "configurable": {**config.get("configurable", {}), CONFIG_KEY_DURABILITY: durability}}


def closing(parts: AsyncIterator[Any]) -> aclosing[AsyncGenerator[Any, None]]:
    """Close LangGraph's stream, which is a generator, at the end of the block, and not when it is collected."""
    return aclosing(cast(AsyncGenerator[Any, None], parts))


def unmirrored(config: RunnableConfig | None, context: Any) -> RunnableConfig | None:
    """The config without what it repeats of a context of plain data.

    LangGraph's server copies the context into `configurable`, and from there into the metadata of every checkpoint,
    where it would be readable and outlive every erasure (R294)."""
    if not config or not isinstance(context, Mapping):
        return config
    mirrored = context.keys() - PLACE
    clean: dict[str, Any] = dict(config)
    for part in {"configurable", "metadata"} & clean.keys():
        clean[part] = {k: v for k, v in clean[part].items() if k not in mirrored or context[k] != v}
    return cast(RunnableConfig, clean)


def addressed_checkpoint(configurable: Mapping[str, Any]) -> str | None:
    """The checkpoint of the thread that a config names; of a subgraph's checkpoint, its host's."""
    if configurable.get("checkpoint_ns"):
        host: str | None = configurable.get("checkpoint_map", {}).get("")
        return host
    checkpoint_id: str | None = configurable.get("checkpoint_id")
    return checkpoint_id


def runs_in(thread_id: Any) -> bool:
    """Whether this call comes from inside a run of the same thread, which it could only wait for in vain."""
    ambient = (var_child_runnable_config.get() or {}).get("configurable", {})
    return CONFIG_KEY_TASK_ID in ambient and ambient.get("thread_id") == thread_id is not None


def moment_of(addressed: CheckpointTuple | None, head: CheckpointTuple | None) -> datetime | None:
    """When `addressed` was made; None when it is the head, since resuming that is no replay, or does not exist."""
    if addressed is None or head is None or addressed.checkpoint["id"] == head.checkpoint["id"]:
        return None
    return datetime.fromisoformat(addressed.checkpoint["ts"])


def plain_for(schema: Any, context: Any) -> bool:
    """Whether `context` is plain data where our own context class is expected."""
    return schema is MemoryContext and isinstance(context, Mapping)


def at_time(context: Any, moment: datetime, schema: Any = None) -> Any:
    """A run's context as of `moment`, of the same kind: a host's own class keeps its other fields."""
    then = memory_context(context).model_copy(update={"as_of": moment})
    if isinstance(context, Identity | MemoryContext) or plain_for(schema, context):
        return then
    if isinstance(context, Mapping):
        return {**context, "identity": then.identity, "as_of": moment, "memory": then.memory}
    if isinstance(context, BaseModel):
        return context.model_copy(update={"identity": then})
    if dataclasses.is_dataclass(context) and not isinstance(context, type):
        return dataclasses.replace(context, identity=then)
    clone = copy.copy(context)
    clone.identity = then
    return clone


def gate(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    *,
    timeout: float = 60.0,
    narrow: Narrow | None = None,
    whose: Whose | None = None,
    inside: Durability | None = None,
) -> GatedGraph:
    """The same graph with a gate: `gate(create_agent(..., checkpointer=saver, store=store))`.

    Runs of one thread wait for each other up to `timeout` seconds. `narrow` takes an input and returns what of it is to
    enter the graph, and so its checkpoints. `whose` takes a run's context and returns the one to run with, for a host
    that knows better than its caller who is asking. `inside="exit"`: inside another graph's run it is stored only when
    it is interrupted or fails. Raises UsageError for what is not a compiled graph, and for one
    whose memory nodes cannot work: see `graphs/soundness.py`.
    """
    if not isinstance(graph, CompiledStateGraph):
        raise UsageError(f"gate() takes a compiled graph, not {type(graph).__name__}; write gate(builder.compile(...))")
    check(graph)
    parts = {name: part for name, part in vars(graph).items() if name != "__orig_class__"}
    gated = GatedGraph(**{**parts, "timeout": timeout, "narrow": narrow, "whose": whose, "inside": inside})
    # The constructor drops what `compile` sets afterwards.
    vars(gated).update(parts, timeout=timeout, narrow=narrow, whose=whose, inside=inside, cites=asks_to_cite(graph))
    return gated


class MemoryGraph(StateGraph[StateT, ContextT, InputT, OutputT]):
    """A `StateGraph` whose `compile` returns a gated graph."""

    narrow: Narrow | None = None
    """What of an input enters the graph; all of it when None."""
    inside: Durability | None = None
    """When it saves itself inside another graph's run; see `gate`."""

    def compile(self, *args: Any, **options: Any) -> GatedGraph:
        """As LangGraph's, with a gate."""
        return gate(super().compile(*args, **options), narrow=self.narrow, inside=self.inside)
