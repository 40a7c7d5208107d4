"""The track node: keeps the TaskState every few turns, whether or not the thread is ever compacted (R37, R38)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from pydantic import ValidationError

from everthread.errors import ModelReplyError, UsageError
from everthread.nodes.compact.asking import given_by
from everthread.nodes.compact.task_state import RuleTracker, TaskState, Tracker
from everthread.nodes.node import Ask, Node, Steps, announce, identity_of, store_of, thread_of
from everthread.nodes.state import MARK, MemoryState, MemoryUpdate, Window, is_marked, place_of
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity

__all__ = ["EVERY", "Track", "identified", "keep", "kept", "resume_task", "tracked"]

EVERY = 5
"""Turns of the user after which the TaskState is taken again (R37, R38)."""


class Track(Node):
    """Takes the TaskState from what was said since it was last taken. It stands in every later request.

    `tracker`: who takes it; rules without a model by default. `every`: after how many turns of the user it is due. A
    reply of the tracker's model that cannot be used changes nothing; the next turn tries again.
    """

    reads_messages = True

    def __init__(self, tracker: Tracker | None = None, *, every: int = EVERY) -> None:
        if every < 1:
            raise UsageError(f"every must be at least 1 turn, not {every}")
        self.tracker = tracker or RuleTracker()
        self.every = every

    def due(self, state: MemoryState) -> bool:
        """Whether enough was said since the last time."""
        turns = [m for m in untracked(state) if isinstance(m, HumanMessage) and not is_marked(m)]
        return len(turns) >= self.every

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `window` with the new `task_state`; nothing when there is none to take."""
        if not untracked(state):
            return {}
        try:
            window = yield from tracked(state, runtime, self.tracker)
        except ModelReplyError as error:
            announce(runtime, "track", "failed", reason=str(error))
            return {}
        announce(runtime, "track", "tracked", **window)
        return {"window": {**state.get("window", {}), **window}}


def untracked(state: MemoryState) -> Sequence[AnyMessage]:
    """The messages that the TaskState does not know, in order."""
    messages, window = state.get("messages", []), state.get("window", {})
    if not window.get("task_state"):
        return messages
    if seen := window.get("tracked_to"):
        place = place_of(messages, seen)
        return messages[0 if place is None else place + 1 :]
    # taken by a version that only took it together with a summary
    return messages[place_of(messages, window.get("cut")) or 0 :]


def tracked(state: MemoryState, runtime: Runtime[Any], tracker: Tracker) -> Generator[Ask, Any, Window]:
    """The part of a window that says where the task stands now: `task_state` and `tracked_to`. Raises ModelReplyError
    as the tracker does.

    When the earlier TaskState is gone (erased with its source), the whole thread is read again: what was erased is no
    longer in it.
    """
    before = _read(kept(runtime, state.get("window", {}).get("task_state")))
    messages = state.get("messages", [])
    make = partial(tracker.track, before, untracked(state) if before else messages)
    task_state = yield from given_by(make, "the tracker", TaskState)
    artifact = keep(runtime, "task_state", task_state.model_dump_json(indent=2))
    return {"task_state": artifact, "tracked_to": identified(messages[-1])}


def resume_task(
    store: MemoryStore, identity: Identity, thread_id: str, *, into: str, request: str | None = None
) -> MemoryUpdate:
    """The input that begins the thread `into` where the task of `thread_id` stands: state and next step, not one word
    of the old conversation (R39).

    `request`: what the user says to it; without one the thread goes on with the next step, which nothing is learnt
    from. Raises UsageError when the old thread has no TaskState, or `into` is the same thread; AccessDenied when one of
    them is another user's.
    """
    if into == thread_id:
        raise UsageError(f"{into} is the thread to resume from; name a new one, or go on in it as it is")
    store.transcripts.bind(identity, into)
    states = store.artifacts.of_thread(identity, thread_id, kinds=("task_state",))
    state = _read(states[-1].text) if states else None
    if state is None:
        raise UsageError(
            f"thread {thread_id} has no task state; it is taken every {EVERY} turns by Track, and by Compact"
        )
    artifact = store.artifacts.put(identity, "task_state", states[-1].text, thread_id=into)
    said = (
        HumanMessage(request)
        if request
        else HumanMessage(
            f"Go on with the task. Next step: {state.next_step or 'decide on it'}",
            additional_kwargs={MARK: {"kind": "resume", "from": thread_id}},
        )
    )
    return {"messages": [said], "window": {"task_state": artifact}}


def kept(runtime: Runtime[Any], artifact_id: str | None) -> str:
    """The text of an artifact; empty when there is none, or it is gone."""
    artifact = store_of(runtime).artifacts.get(identity_of(runtime), artifact_id) if artifact_id else None
    return artifact.text if artifact else ""


def keep(runtime: Runtime[Any], kind: Any, text: str) -> str:
    """Keep a text as an artifact of the run's thread; returns its id."""
    return store_of(runtime).artifacts.put(identity_of(runtime), kind, text, thread_id=thread_of(runtime))


def identified(message: BaseMessage) -> str:
    """The message's id; UsageError when it has none."""
    if not message.id:
        raise UsageError(
            f"a {message.type} message has no id; let LangGraph's reducer add messages, or give each an id"
        )
    return message.id


def _read(text: str) -> TaskState | None:
    try:
        return TaskState.model_validate_json(text) if text else None
    except ValidationError:  # written by a version that had other fields: it is taken from the messages again
        return None
