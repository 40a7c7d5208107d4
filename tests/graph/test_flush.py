"""The flush node, alone and before compaction, with a real store."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from everthread import Identity
from everthread.errors import ModelReplyError
from everthread.nodes.compact import Compact
from everthread.nodes.extract import Candidate, Extract, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.flush import Flush
from everthread.nodes.node import Ask, runtime_for
from everthread.nodes.state import MARK, MemoryState
from everthread.stores import MemoryStore, open_store
from everthread.stores.identity import MemoryContext


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened


def one_each(messages: Sequence[BaseMessage]) -> int:
    """A counter by which every message takes one token."""
    return len(messages)


def flush(extractor: Any = None) -> Flush:
    return Flush(extractor, keep_tokens=2, counter=one_each)


def thread() -> list[AnyMessage]:
    return [
        HumanMessage("I prefer short reports with a table at the end.", id="u0"),
        AIMessage("Noted.", id="a0"),
        HumanMessage("What is on the agenda?", id="u1"),
        AIMessage("Two reports.", id="a1"),
        HumanMessage("I prefer tea.", id="u2"),
        AIMessage("Noted.", id="a2"),
    ]


class Stage:
    """A store and a context to run nodes for, and the events that they announced."""

    def __init__(self, context: Identity | MemoryContext, store: MemoryStore) -> None:
        self.context, self.store = context, store
        self.events: list[dict[str, Any]] = []

    def run(self, node: Flush | Extract | Compact, state: MemoryState) -> MemoryState:
        """The node's update."""
        runtime = runtime_for(self.context, self.store, "t1", stream_writer=self.events.append)
        return cast(MemoryState, node(state, runtime))

    def said(self) -> list[tuple[str, Any]]:
        """(node, event) of everything announced, in order."""
        return [(event["node"], event["event"]) for event in self.events]


def test_what_leaves_the_window_is_written_down_and_learnt_from(store: MemoryStore, ana: Identity) -> None:
    stage = Stage(ana, store)
    update = stage.run(flush(), {"messages": thread()})
    [record] = store.records(ana)
    assert "short reports" in record.statement
    assert record.provenance.message_ids == ("u0",)
    assert [each.message_id for each in store.transcripts.read(ana, "t1")] == ["u0", "a0", "u1", "a1"]
    assert update["flushed_to"] == "a1"
    assert [store.receipt(ana, each) is not None for each in update["receipts"]] == [True]
    assert stage.events[-1] == {"node": "flush", "event": "flushed", "messages": 4, "to": "a1"}


def test_what_stays_verbatim_is_left_for_the_end_of_the_turn(store: MemoryStore, ana: Identity) -> None:
    stage = Stage(ana, store)
    state: MemoryState = {"messages": thread()}
    state = {**state, **stage.run(flush(), state)}
    assert stage.run(Extract(), state)["flushed_to"] == "a2"
    assert [each.message_id for each in store.transcripts.read(ana, "t1")] == ["u0", "a0", "u1", "a1", "u2", "a2"]


def test_it_covers_exactly_what_compaction_will_replace(store: MemoryStore, ana: Identity) -> None:
    stage = Stage(ana, store)
    state: MemoryState = {"messages": thread()}
    flushed = stage.run(flush(), state)
    compacted = stage.run(Compact(keep_tokens=2, counter=one_each), {**state, **flushed})
    assert flushed["flushed_to"] == compacted["window"]["covers"][-1] == "a1"


@pytest.mark.parametrize("seen", ["a1", "u2", "a2"])
def test_what_extraction_has_seen_is_not_read_again(store: MemoryStore, ana: Identity, seen: str) -> None:
    stage = Stage(ana, store)
    assert stage.run(flush(), {"messages": thread(), "flushed_to": seen}) == {}
    assert stage.said() == [("flush", "skipped")]
    assert store.transcripts.read(ana, "t1") == []


def test_only_the_unseen_part_is_read(store: MemoryStore, ana: Identity) -> None:
    Stage(ana, store).run(flush(), {"messages": thread(), "flushed_to": "a0"})
    assert [each.message_id for each in store.transcripts.read(ana, "t1")] == ["u1", "a1"]


def test_a_thread_that_fits_is_not_flushed(store: MemoryStore, ana: Identity) -> None:
    assert Stage(ana, store).run(Flush(), {"messages": thread()}) == {}
    assert store.records(ana) == []


@pytest.mark.parametrize("memory", ["read", "off"])
def test_a_run_that_may_not_learn_leaves_nothing_behind(store: MemoryStore, ana: Identity, memory: Any) -> None:
    stage = Stage(MemoryContext(identity=ana, memory=memory), store)
    assert stage.run(flush(), {"messages": thread()}) == {}
    assert stage.said() == [("flush", "skipped")]
    assert (store.records(ana), store.transcripts.read(ana, "t1")) == ([], [])


def test_what_memory_put_in_itself_is_not_learnt(store: MemoryStore, ana: Identity) -> None:
    notice = HumanMessage("I prefer coffee.", id="n0", additional_kwargs={MARK: {"kind": "notice"}})
    Stage(ana, store).run(flush(), {"messages": [notice, *thread()]})
    assert [each.provenance.message_ids for each in store.records(ana)] == [("u0",)]


class Failing:
    """An extractor whose model gives nothing usable."""

    id = "failing/1"
    calls_model = False

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        yield from ()
        raise ModelReplyError("prose instead of candidates")


def test_a_failing_extractor_does_not_hold_up_the_turn_and_its_messages_wait(store: MemoryStore, ana: Identity) -> None:
    stage = Stage(ana, store)
    state: MemoryState = {"messages": thread()}
    assert stage.run(flush(Failing()), state) == {}
    assert stage.events == [
        {"node": "flush", "event": "failed", "reason": "prose instead of candidates; the end of the turn tries again"}
    ]
    assert [each.message_id for each in store.transcripts.read(ana, "t1")] == ["u0", "a0", "u1", "a1"]
    assert stage.run(Extract(), state)["flushed_to"] == "a2"
    assert ("u0",) in [each.provenance.message_ids for each in store.records(ana)]


def test_flushing_twice_learns_once(store: MemoryStore, ana: Identity) -> None:
    stage = Stage(ana, store)
    first, again = (stage.run(flush(), {"messages": thread()}) for _ in range(2))
    assert first == again
    assert [(each.revision, each.confirmed_by) for each in store.records(ana)] == [(1, ())]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_flush_and_compact_in_a_graph_keep_every_message(how: str, store: MemoryStore, ana: Identity) -> None:
    builder = StateGraph(MemoryState, context_schema=MemoryContext)
    builder.add_node("flush", flush(RuleExtractor()))
    builder.add_node("compact", Compact(keep_tokens=2, counter=one_each))
    builder.add_edge(START, "flush")
    builder.add_edge("flush", "compact")
    graph: Any = builder.compile(checkpointer=InMemorySaver(), store=store)
    config = {"configurable": {"thread_id": "t1"}}
    run = graph.invoke if how == "sync" else graph.ainvoke
    result = run({"messages": thread()}, config, context=ana)
    state = result if how == "sync" else await result
    assert state["messages"] == thread()
    assert (state["flushed_to"], state["window"]["cut"]) == ("a1", "u2")
    assert len(store.records(ana)) == 1
