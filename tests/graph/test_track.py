"""The task state is kept without any compaction, stands in each request, and is enough to begin a new thread with."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from support.models import FakeModel

from everthread import Identity
from everthread.errors import AccessDenied, ModelReplyError, UsageError
from everthread.graphs import create_memory_agent
from everthread.nodes import Track, resume_task, runtime_for
from everthread.nodes.compact import TaskState
from everthread.nodes.node import Ask
from everthread.nodes.state import MemoryState
from everthread.stores import MemoryStore, open_store
from everthread.stores.identity import MemoryContext
from everthread.stores.threads import thread_config

STATE = TaskState(
    task="迁移到 PostgreSQL", done=("schema is written",), next_step="Load it", user_prefs=(), awaiting=""
)


class Told:
    """A tracker that notes what it was asked and gives one state."""

    def __init__(self, state: TaskState | None = STATE) -> None:
        self.state = state
        self.asked: list[tuple[TaskState | None, list[str | None]]] = []

    def track(self, previous: TaskState | None, messages: Sequence[BaseMessage]) -> Generator[Ask, Any, TaskState]:
        yield from ()
        self.asked.append((previous, [message.id for message in messages]))
        if self.state is None:
            raise ModelReplyError("prose instead of the state")
        return self.state


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened


def turns(count: int, start: int = 0) -> list[AnyMessage]:
    return [
        message
        for n in range(start, start + count)
        for message in (HumanMessage(f"Step {n}", id=f"u{n}"), AIMessage(f"Did {n}", id=f"a{n}"))
    ]


def run(track: Track, state: MemoryState, identity: Identity, store: MemoryStore) -> MemoryState:
    """The state after the node."""
    return cast(MemoryState, {**state, **cast(dict[str, Any], track(state, runtime_for(identity, store, "t1")))})


def test_it_is_due_every_few_turns_of_the_user(ana: Identity, store: MemoryStore) -> None:
    track = Track(Told(), every=3)
    assert [track.due({"messages": turns(n)}) for n in range(5)] == [False, False, False, True, True]
    state = run(track, {"messages": turns(3)}, ana, store)
    assert [track.due({**state, "messages": turns(n)}) for n in (3, 5, 6)] == [False, False, True]


def test_only_what_it_does_not_know_is_read(ana: Identity, store: MemoryStore) -> None:
    told = Told()
    state = run(Track(told), {"messages": turns(2)}, ana, store)
    run(Track(told), {**state, "messages": turns(4)}, ana, store)
    assert told.asked == [(None, ["u0", "a0", "u1", "a1"]), (STATE, ["u2", "a2", "u3", "a3"])]


def test_after_the_state_was_erased_the_whole_thread_is_read_again(ana: Identity, store: MemoryStore) -> None:
    told = Told()
    state = run(Track(told), {"messages": turns(2)}, ana, store)
    store.artifacts.erase(ana, [state["window"]["task_state"]])
    run(Track(told), {**state, "messages": turns(3)}, ana, store)
    assert told.asked[-1] == (None, ["u0", "a0", "u1", "a1", "u2", "a2"])


def test_a_reply_that_cannot_be_used_changes_nothing(ana: Identity, store: MemoryStore) -> None:
    state: MemoryState = {"messages": turns(2), "window": {"cut": "u1"}}
    assert run(Track(Told(None)), state, ana, store) == state


def test_every_counts_turns() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Track(every=0)


def test_the_state_stands_in_each_request_without_a_compaction(ana: Identity, store: MemoryStore) -> None:
    model = FakeModel(replies=["好的"])
    agent: Any = create_memory_agent(model, tracker=Told(), recall="automatic").compile(
        checkpointer=InMemorySaver(), store=store
    )
    config = thread_config(ana, "long")
    for n in range(6):
        agent.invoke({"messages": [("user", f"Step {n}")]}, config, context=MemoryContext(identity=ana))
    shown = ["<task_state>" in str(prompt[0].content) for prompt in model.prompts]
    assert shown == [False] * 5 + [True]
    assert "迁移到 PostgreSQL" in str(model.prompts[-1][0].content)
    assert [message.text for message in model.prompts[-1][1:]] == [
        text for n in range(5) for text in (f"Step {n}", "好的")
    ] + ["Step 5"]


def test_a_new_thread_begins_from_the_state_alone(ana: Identity, store: MemoryStore) -> None:
    model = FakeModel(replies=["on it"])
    agent: Any = create_memory_agent(model, recall="automatic").compile(checkpointer=InMemorySaver(), store=store)
    run(Track(Told()), {"messages": turns(2)}, ana, store)
    into = thread_config(ana, "later")
    agent.invoke(resume_task(store, ana, "t1", into=into["configurable"]["thread_id"]), into, context=ana)
    history, request = model.prompts[-1]
    assert "迁移到 PostgreSQL" in history.text and "Step 0" not in history.text
    assert request.text == "Go on with the task. Next step: Load it"
    assert [said.text for said in store.transcripts.read(ana, into["configurable"]["thread_id"])] == ["on it"]


def test_the_users_own_words_can_begin_it(ana: Identity, store: MemoryStore) -> None:
    run(Track(Told()), {"messages": turns(2)}, ana, store)
    begun = resume_task(store, ana, "t1", into="t2", request="Use port 5433 this time.")
    (message,) = begun["messages"]
    assert (message.text, message.additional_kwargs) == ("Use port 5433 this time.", {})


def test_a_thread_without_a_state_or_of_somebody_else_cannot_be_resumed(
    ana: Identity, ben: Identity, store: MemoryStore
) -> None:
    store.transcripts.bind(ana, "t1")
    with pytest.raises(UsageError, match="has no task state"):
        resume_task(store, ana, "t1", into="t2")
    with pytest.raises(UsageError, match="name a new one"):
        resume_task(store, ana, "t1", into="t1")
    run(Track(Told()), {"messages": turns(2)}, ana, store)
    with pytest.raises(AccessDenied):
        resume_task(store, ben, "t1", into="t3")
