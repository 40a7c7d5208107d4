"""The compact node, alone and in a graph, with a real store."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from support.full_disk import fill_disk
from support.models import FakeModel

from everthread import Identity
from everthread.errors import AccessDenied, StoreError, UsageError
from everthread.nodes.compact import Compact, ModelSummariser, ModelTracker, Summary, TaskState, summaries_of
from everthread.nodes.compact.summary import HEADINGS
from everthread.nodes.node import Ask, runtime_for
from everthread.nodes.state import MemoryState, visible
from everthread.stores import MemoryStore, open_store
from everthread.stores.identity import MemoryContext
from everthread.stores.messages import from_messages
from everthread.stores.record import Selection

GOOD = "\n".join(f"{heading}\n- PostgreSQL 16 it is" for heading in HEADINGS)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened


class Stage:
    """A store and an identity to run the node for, and the events that it announced."""

    def __init__(self, identity: Identity, store: MemoryStore) -> None:
        self.identity, self.store = identity, store
        self.events: list[dict[str, Any]] = []

    def run(self, compact: Compact, state: MemoryState) -> MemoryState:
        """The node's update."""
        runtime = runtime_for(self.identity, self.store, "t1", stream_writer=self.events.append)
        return cast(MemoryState, compact(state, runtime))

    def after(self, compact: Compact, state: MemoryState) -> MemoryState:
        """The state with the node's update in it."""
        return {**state, **self.run(compact, state)}

    def text(self, artifact_id: str) -> str:
        artifact = self.store.artifacts.get(self.identity, artifact_id)
        assert artifact is not None
        return artifact.text


@pytest.fixture
def stage(ana: Identity, store: MemoryStore) -> Stage:
    return Stage(ana, store)


def one_each(messages: Sequence[BaseMessage]) -> int:
    """A counter by which every message takes one token."""
    return len(messages)


def thread(turns: int, start: int = 0) -> list[AnyMessage]:
    """Turns of a decision and its confirmation, with ids u0, a0, u1, ..."""
    return [
        message
        for n in range(start, turns)
        for message in (
            HumanMessage(f"We decided on option {n}.", id=f"u{n}"),
            AIMessage(f"Option {n} is confirmed.", id=f"a{n}"),
        )
    ]


def by_rules(keep: int = 4) -> Compact:
    return Compact(keep_tokens=keep, counter=one_each)


def test_a_summary_and_a_task_state_take_the_place_of_the_older_messages(stage: Stage) -> None:
    state: MemoryState = {"messages": thread(4)}
    update = stage.run(by_rules(), state)
    window = update["window"]
    assert update == {
        "window": {
            "cut": "u2",
            "summary": window["summary"],
            "coverage": window["coverage"],
            "task_state": window["task_state"],
            "tracked_to": "a3",
            "covers": ["u0", "a1"],
            "generator": "rules/1",
            "compacted_at": "a3",
        }
    }
    assert stage.text(window["summary"]) == (
        "## Conclusions\n- user: We decided on option 0.\n- assistant: Option 0 is confirmed.\n"
        "- user: We decided on option 1.\n- assistant: Option 1 is confirmed."
    )
    assert TaskState.model_validate_json(stage.text(window["task_state"])).task == "We decided on option 3."
    assert [m.id for m in visible({**state, **update})] == ["u2", "a2", "u3", "a3"]


def test_the_texts_belong_to_the_thread(stage: Stage) -> None:
    window = stage.run(by_rules(), {"messages": thread(4)})["window"]
    kept = [stage.store.artifacts.get(stage.identity, window[key]) for key in ("summary", "task_state")]
    assert [(each.kind, each.thread_id) for each in kept if each] == [("summary", "t1"), ("task_state", "t1")]


def test_it_says_what_it_did(stage: Stage) -> None:
    window = stage.run(by_rules(), {"messages": thread(4)})["window"]
    assert stage.events == [
        {
            "node": "compact",
            "event": "compacted",
            "messages": 4,
            "tokens": [8, 4],
            **{key: window[key] for key in ("cut", "covers", "generator", "summary", "task_state")},
        }
    ]


def test_the_earlier_summary_feeds_the_next_and_covers_the_whole(stage: Stage) -> None:
    state = stage.after(by_rules(), {"messages": thread(4)})
    state["messages"] = [*state["messages"], *thread(6, start=4)]
    window = stage.run(by_rules(), state)["window"]
    assert (window["cut"], window["covers"]) == ("u4", ["u0", "a3"])
    assert stage.text(window["summary"]).count("We decided on option") == 4


def test_from_a_message_its_summaries_are_found_and_from_a_summary_its_messages(stage: Stage) -> None:
    first = stage.after(by_rules(), {"messages": thread(4)})
    again: MemoryState = {"messages": [*first["messages"], *thread(6, start=4)], "window": first["window"]}
    second = stage.after(by_rules(), again)
    older, newer = summaries_of(stage.store, stage.identity, "t1")
    assert [older.id, newer.id] == [first["window"]["summary"], second["window"]["summary"]]
    assert older.messages == ("u0", "a0", "u1", "a1")
    assert newer.messages == (*older.messages, "u2", "a2", "u3", "a3")
    assert (newer.text, newer.generator) == (stage.text(newer.id), "rules/1")
    assert summaries_of(stage.store, stage.identity, "t1", message_id="a1") == [older, newer]
    assert summaries_of(stage.store, stage.identity, "t1", message_id="u3") == [newer]
    assert summaries_of(stage.store, stage.identity, "t1", message_id="u4") == []


def test_another_users_summaries_are_refused(stage: Stage, ben: Identity) -> None:
    stage.run(by_rules(), {"messages": thread(4)})
    with pytest.raises(AccessDenied):
        summaries_of(stage.store, ben, "t1")


def test_a_summary_that_was_erased_with_a_message_stands_for_none(stage: Stage) -> None:
    messages = thread(4)
    stage.store.transcripts.append(stage.identity, from_messages("t1", messages, identity=stage.identity))
    stage.run(by_rules(), {"messages": messages})
    one = Selection(thread_id="t1", message_ids=("u0",))
    stage.store.erase(stage.identity, one, reason="asked", with_source=True)
    assert summaries_of(stage.store, stage.identity, "t1") == []
    assert stage.store.artifacts.of_thread(stage.identity, "t1") == []


def test_an_earlier_summary_that_was_erased_is_made_again_from_the_messages(stage: Stage) -> None:
    state = stage.after(by_rules(), {"messages": thread(4)})
    state["messages"] = thread(6)
    state["window"]["summary"] = "sha256:gone"
    window = stage.run(by_rules(), state)["window"]
    assert window["covers"] == ["u0", "a3"]
    assert stage.text(window["summary"]).count("We decided on option") == 4


def test_a_thread_that_fits_is_left_alone(stage: Stage) -> None:
    assert stage.run(by_rules(keep=8), {"messages": thread(4)}) == {}
    assert stage.events == [{"node": "compact", "event": "skipped", "reason": "nothing can leave the window"}]


def test_it_does_not_compact_twice_without_new_content(stage: Stage) -> None:
    state = stage.after(by_rules(keep=100), {"messages": thread(8), "window": {"overflow": "a7"}})
    assert state["window"]["cut"] == "u4"
    assert stage.run(by_rules(keep=100), state) == {}


def test_a_noted_overflow_stays_noted_so_that_only_one_more_try_follows(stage: Stage) -> None:
    update = stage.run(by_rules(), {"messages": thread(4), "window": {"overflow": "a3"}})
    assert update["window"]["overflow"] == "a3"


class Saying:
    """A summariser that always says the same, or gives something else, or raises it."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def summarise(self, previous: str, messages: Sequence[BaseMessage]) -> Generator[Ask, Any, Summary]:
        yield from ()
        if isinstance(self.said, Exception):
            raise self.said
        return Summary(self.said, "saying/1") if isinstance(self.said, str) else cast(Summary, self.said)


class Losing:
    """A tracker that raises."""

    def track(self, previous: TaskState | None, messages: Sequence[BaseMessage]) -> Generator[Ask, Any, TaskState]:
        yield from ()
        raise KeyError("task")


def saying(said: Any) -> Compact:
    return Compact(Saying(said), keep_tokens=4, counter=one_each)


@pytest.mark.parametrize(
    ("compact", "reason"),
    [
        (saying(" \n"), "the summary is empty"),
        (saying(Summary(cast(str, None), "saying/1")), "the summary is empty"),
        (saying(None), "the summariser gave a NoneType instead of a Summary"),
        (saying(TimeoutError("30 s")), "the summariser failed (TimeoutError: 30 s)"),
        (
            Compact(Saying("long " * 5_000), keep_tokens=40),
            "the summary takes 5304 tokens, and what it stands for 44",
        ),
        (Compact(tracker=Losing(), keep_tokens=4, counter=one_each), "the tracker failed (KeyError: 'task')"),
        (
            Compact(ModelSummariser(FakeModel(replies=["Sorry."])), keep_tokens=4, counter=one_each),
            f"the model's summary cannot be used: missing {', '.join(HEADINGS)}",
        ),
        (
            Compact(ModelSummariser(FakeModel(replies=[ConnectionError("no route")])), keep_tokens=4, counter=one_each),
            "the model could not be asked (ConnectionError: no route)",
        ),
        (
            Compact(tracker=ModelTracker(FakeModel(replies=["Sorry."])), keep_tokens=4, counter=one_each),
            "the model's task state cannot be used: prose instead of the state",
        ),
    ],
    ids=["empty", "no text", "none", "raised", "too long", "tracker raised", "malformed", "failed", "no task state"],
)
def test_an_unusable_summary_changes_nothing_and_is_announced(stage: Stage, compact: Compact, reason: str) -> None:
    assert stage.run(compact, {"messages": thread(4)}) == {}
    assert stage.events == [{"node": "compact", "event": "failed", "reason": reason}]


def test_a_summariser_may_be_a_plain_function(stage: Stage) -> None:
    class Plain:
        def summarise(self, previous: str, messages: Sequence[BaseMessage]) -> Summary:
            return Summary("Options were decided on.", "plain/1")

    compact = Compact(cast(Any, Plain()), keep_tokens=4, counter=one_each)
    assert stage.text(stage.run(compact, {"messages": thread(4)})["window"]["summary"]) == "Options were decided on."


def test_of_the_users_turns_so_many_stay_whatever_their_length(stage: Stage) -> None:
    compact = Compact(keep_turns=3)
    assert stage.run(compact, {"messages": thread(3)}) == {}
    assert stage.run(compact, {"messages": thread(8)})["window"]["cut"] == "u5"
    by_tokens = Compact(keep_turns=3, keep_tokens=2, counter=one_each)
    assert stage.run(by_tokens, {"messages": thread(8)})["window"]["cut"] == "u7"


def test_so_many_turns_stay_and_what_is_not_read_yet_as_well(stage: Stage) -> None:
    waiting = [HumanMessage(f"And {n}?", id=f"w{n}") for n in range(3)]
    assert stage.run(Compact(keep_turns=1), {"messages": [*thread(4), *waiting]})["window"]["cut"] == "w0"


def test_less_than_a_turn_cannot_be_kept() -> None:
    with pytest.raises(UsageError, match="keep_turns must be at least 1 turn"):
        Compact(keep_turns=0)


def test_a_summary_that_cannot_be_kept_raises_and_moves_nothing(stage: Stage) -> None:
    fill_disk(stage.store)
    compact = Compact(Saying("too long for the disk " * 10_000), keep_tokens=4, counter=one_each)
    with pytest.raises(StoreError, match="the disk is full"):
        stage.run(compact, {"messages": thread(4)})


def test_a_message_without_id_is_the_callers_to_repair(stage: Stage) -> None:
    messages = [message.model_copy(update={"id": None}) for message in thread(4)]
    with pytest.raises(UsageError, match="has no id"):
        stage.run(by_rules(), {"messages": messages})


def test_a_run_without_identity_is_refused(store: MemoryStore) -> None:
    runtime: Runtime[Any] = Runtime(context=None, store=store)
    with pytest.raises(AccessDenied):
        by_rules()({"messages": thread(4)}, runtime)


def graph_of(compact: Compact, store: MemoryStore) -> Any:
    builder = StateGraph(MemoryState, context_schema=MemoryContext)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    return builder.compile(checkpointer=InMemorySaver(), store=store)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_every_message_stays_in_the_thread(how: str, ana: Identity, store: MemoryStore) -> None:
    model = FakeModel(replies=[GOOD])
    graph = graph_of(Compact(ModelSummariser(model), keep_tokens=4, counter=one_each), store)
    config = {"configurable": {"thread_id": "t1"}}
    messages = thread(4)
    if how == "sync":
        state = graph.invoke({"messages": messages}, config, context=ana)
    else:
        state = await graph.ainvoke({"messages": messages}, config, context=ana)
    assert state["messages"] == messages
    assert (state["window"]["cut"], state["window"]["generator"]) == ("u2", "fake/summary-1")
    kept = store.artifacts.get(ana, state["window"]["summary"])
    assert kept is not None and kept.text == GOOD
    assert graph.get_state(config).values["messages"] == messages


def test_the_stream_shows_what_it_did(ana: Identity, store: MemoryStore) -> None:
    config = {"configurable": {"thread_id": "t1"}}
    graph = graph_of(by_rules(), store)
    events = list(graph.stream({"messages": thread(4)}, config, context=ana, stream_mode="custom"))
    assert [(each["node"], each["event"], each["cut"]) for each in events] == [("compact", "compacted", "u2")]


def test_an_old_checkpoint_keeps_its_own_view(ana: Identity, store: MemoryStore) -> None:
    graph, config = graph_of(by_rules(), store), {"configurable": {"thread_id": "t1"}}
    graph.invoke({"messages": thread(4)}, config, context=ana)
    graph.invoke({"messages": thread(6, start=4)}, config, context=ana)
    cuts = [each.values.get("window", {}).get("cut") for each in graph.get_state_history(config)]
    assert cuts == ["u4", "u2", "u2", "u2", None, None]
