"""The whole turn as one graph.

START -> restore -> retrieve -> [over budget?] -> reason <-> tools -> extract -> [due?] track, consolidate -> END
                                     | yes           ^
                                     +-> flush -> compact   (also after a tool's result, and once after an overflow)

Each of several calls in one reply runs as a step of its own, so that an `interrupt()` in one of them gets its own
answer, and what the others did is not done again; `gather` waits for them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send

from everthread.graphs.gate import MemoryGraph
from everthread.nodes import Compact, Consolidate, Extract, Flush, Reason, Restore, Retrieve, Track, memory_tools
from everthread.nodes.compact import Summariser, Tracker
from everthread.nodes.compact.budget import Counter
from everthread.nodes.compact.cut import many_turns
from everthread.nodes.eviction import LIMIT, PREVIEW
from everthread.nodes.extract import Extractor, RuleExtractor
from everthread.nodes.extract.later import When
from everthread.nodes.models import load_model
from everthread.nodes.reason import ContextProvider, OfflineModel, artifact_read, calls_of, overflowed, tool_node
from everthread.nodes.reason.providers import tools_of
from everthread.nodes.reason.request import Place
from everthread.nodes.restore import ProjectInstructions
from everthread.nodes.state import MemoryState
from everthread.stores.identity import MemoryContext

__all__ = ["create_memory_agent"]


def create_memory_agent(
    model: BaseChatModel | str | None = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    *,
    system_prompt: str = "",
    instructions: ProjectInstructions | Callable[[], str] | str | None = None,
    recall: Literal["automatic", "on_demand", "both"] = "both",
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
    providers: Sequence[ContextProvider] = (),
    trusted_tools: frozenset[str] = frozenset(),
    exclude_external: bool = False,
    retrieve: Retrieve | None = None,
    memory_at: Place = "system",
    markers: bool = True,
) -> MemoryGraph[MemoryState, MemoryContext, MemoryState, MemoryState]:
    """An agent with memory, as a builder: `.compile(checkpointer=saver, store=store)` makes it a graph to invoke with
    `context=Identity(...)`.

    `model`: any LangChain chat model, or its name as `provider:name`; without one an `OfflineModel` that needs no
    network. UsageError when no model of that name can be loaded.
    `recall`: memory is put before the model each turn, fetched by its tools, or both (R202).
    `extractor`, `summariser`, `tracker`: rules without a model by default; `ModelExtractor(model)`,
    `ModelSummariser(model)` and `ModelTracker(model)` send the conversation to their model (R287).
    `when`: whether extraction is `inline` or a `job` for a `Worker`; None is a job for an extractor that calls a model,
    so that no reply waits for it (R117).
    `max_tokens`: what one request may take before the older part of the thread is compacted; `keep_tokens`: how much of
    its end stays verbatim then, half of `max_tokens` when None. `keep_turns`: how many turns of the user stay verbatim
    at most; the older ones leave when twice as many have come, however short the request is (R38, R60). `counter`: the
    model's exact count of tokens, as in `Reason`; an estimate when None.
    `evict_over`: characters from which on a tool's result leaves the thread for the artifacts; `preview`: how many of
    its head, and of its tail, stay.
    `providers`: other sources of context (an external memory service, a house rule), asked before each call of the
    model and told after it, in order.
    `trusted_tools`: the tools whose results may settle something; `exclude_external`: a thread that takes in content of
    the web, of a file or of another tool learns nothing from then on, until its user says otherwise.
    `retrieve`: a `Retrieve` with settings of yours. `memory_at`: whether the memory block ends the "system" message or
    stands before the user's "last_message". `markers`: whether the model is asked to cite it; see `Reason`.
    """
    own = [each if isinstance(each, BaseTool) else tool(each) for each in tools]
    all_tools = [*own, *(memory_tools() if recall != "automatic" else [])]
    all_tools += [artifact_read] if all_tools else []
    extractor = extractor or RuleExtractor()
    reason = Reason(
        load_model(model) if isinstance(model, str) else model or OfflineModel(),
        all_tools,
        system_prompt=system_prompt,
        max_tokens=max_tokens,
        providers=providers,
        memory_at=memory_at,
        markers=markers,
        counter=counter,
    )
    keep_tokens = keep_tokens or reason.max_tokens // 2
    track, consolidate = Track(tracker), Consolidate(extractor, trusted_tools=trusted_tools, when=when)
    cutting: Any = {"keep_tokens": keep_tokens, "keep_turns": keep_turns, "counter": reason.counter}
    learning: Any = {"trusted_tools": trusted_tools, "exclude_external": exclude_external, "when": when}

    def before_model(state: MemoryState) -> Literal["flush", "reason"]:
        runtime = _running()
        full = runtime and (many_turns(state, keep_turns) or reason.over_budget(state, runtime))
        return "flush" if full else "reason"

    def after_model(state: MemoryState) -> str | list[Send]:
        if overflowed(state):
            return "flush"
        calls = calls_of(state)
        if len(calls) > 1:
            return [Send("tools", [call]) for call in calls]
        return "tools" if calls else "extract"

    def after_tools(state: MemoryState) -> Literal["gather", "flush", "reason"]:
        return "gather" if len(calls_of(state)) > 1 else before_model(state)

    def after_extract(state: MemoryState) -> Literal["track", "consolidate", "__end__"]:
        return "track" if track.due(state) else after_track(state)

    def after_track(state: MemoryState) -> Literal["consolidate", "__end__"]:
        runtime = _running()
        return "consolidate" if runtime and consolidate.due(state, runtime) else "__end__"

    graph = MemoryGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("restore", Restore(instructions))
    graph.add_node("retrieve", retrieve or (Retrieve.nothing() if recall == "on_demand" else Retrieve()))
    graph.add_node("reason", reason)
    own_words = trusted_tools if exclude_external else None
    graph.add_node("tools", tool_node([*all_tools, *tools_of(reason.providers)], evict_over, preview, own_words))
    graph.add_node("gather", _nothing)
    graph.add_node("flush", Flush(extractor, **cutting, **learning))
    graph.add_node("compact", Compact(summariser, tracker=tracker, **cutting))
    graph.add_node("extract", Extract(extractor, **learning))
    graph.add_node("track", track)
    graph.add_node("consolidate", consolidate)

    graph.add_edge(START, "restore")
    graph.add_edge("restore", "retrieve")
    graph.add_conditional_edges("retrieve", before_model)
    graph.add_conditional_edges("reason", after_model, ["flush", "tools", "extract"])
    graph.add_conditional_edges("tools", after_tools)
    graph.add_conditional_edges("gather", before_model)
    graph.add_edge("flush", "compact")
    graph.add_edge("compact", "reason")
    graph.add_conditional_edges("extract", after_extract)
    graph.add_conditional_edges("track", after_track)
    graph.add_edge("consolidate", END)
    return graph


def _nothing(state: MemoryState) -> None:
    """What happens where paths only come together."""


def _running() -> Runtime[Any] | None:
    """The run's runtime; None in `update_state`, which decides what is next on behalf of nobody (a path function that
    asks for its runtime as a parameter cannot be called there)."""
    runtime: Runtime[Any] | None = get_runtime()
    return runtime
