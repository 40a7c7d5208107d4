"""The channels of a thread: all that the nodes of a turn share.

Every superstep writes each last-value channel whole into a checkpoint, so they hold ids and small values, never texts:
a summary or an instruction baseline is an artifact, a memory is a reference. `messages` is a DeltaChannel: 200 turns of
500 characters take 84 MB of checkpoints with `add_messages`, under 5 MB with it. It keeps every message; `window` says
where the model's view of them starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph.message import _messages_delta_reducer
from typing_extensions import TypedDict

from everthread.nodes.eviction import pointed
from everthread.nodes.thread import ThreadChannel

__all__ = [
    "MARK",
    "MemoryState",
    "MemoryUpdate",
    "NodeInput",
    "Reference",
    "Window",
    "in_view",
    "is_marked",
    "last_request",
    "mark_of",
    "place_of",
    "visible",
    "with_receipt",
]

MARK = "everthread"
"""Key in a message's `additional_kwargs` that says we wrote it: a notice, a summary. Never learnt from (R111)."""


class Reference(TypedDict):
    """Something recalled, by id and revision; its text is read from the store when the request is assembled."""

    id: str
    """Of a record; of a message or a task, as `source` says."""
    revision: int
    """The record's; 0 for what has none."""
    score: float
    """How well it answers; 0 for what was read by key."""
    why: str
    """Why it is here."""
    source: NotRequired[Literal["profile", "evidence", "task"]]
    """Where it comes from, when no search for records found it."""
    thread_id: NotRequired[str]
    """The thread of a message."""
    part: NotRequired[list[int]]
    """From which character, and to which, a long message is shown."""
    checked: NotRequired[Literal["confirmed", "unconfirmed"]]
    """What a verifier found of a record that is to be verified before use."""


class Window(TypedDict, total=False):
    """Where the model's view of the thread starts, and what stands for the rest."""

    cut: str
    """Id of the first message that is shown verbatim."""
    summary: str
    """Artifact id of the summary of everything before the cut."""
    task_state: str
    """Artifact id of the TaskState: task, done, next_step, user_prefs, awaiting."""
    tracked_to: str
    """Id of the last message that the TaskState knows."""
    coverage: str
    """Artifact id of what says which messages the summary stands for, each of them: see `summaries_of`."""
    covers: list[str]
    """Ids of the first and the last message that the summary covers (R59)."""
    generator: str
    """What wrote the summary, with its version."""
    compacted_at: str
    """Id of the newest message when the cut last moved: without a newer one it does not move again."""
    shrunk: dict[str, str]
    """By message id the artifact that has the whole of a result of which only the beginning is shown, since the model
    has read it (R66)."""
    overflow: str
    """Id of the last message of a request that the provider found too long: compact, then try once more."""


class Channels(TypedDict, total=False):
    """What the nodes share beside the messages."""

    window: Window
    """The model's view of it."""
    recalled: list[Reference]
    """What this turn recalled."""
    instructions: str
    """Artifact id of the project instructions in force."""
    flushed_to: str
    """Id of the last message that extraction has seen."""
    receipts: list[str]
    """Ids of the receipts of this turn: what was written, refused or sent to review."""


class MemoryState(Channels, total=False):
    """The state schema of our graphs, and the one to derive a host's from."""

    messages: Annotated[list[AnyMessage], ThreadChannel(_messages_delta_reducer, snapshot_frequency=50)]
    """The raw thread: everything said, nothing ever removed."""


class NodeInput(Channels, total=False):
    """The same without a reducer: what a node reads in any graph, so that a host's own `add_messages` stays."""

    messages: list[AnyMessage]
    """The raw thread, under the reducer of the graph's own schema."""


MemoryUpdate = dict[str, Any]
"""A partial update of the state, as a node returns it."""


KEPT_RECEIPTS = 20
"""Receipts that `receipts` holds at most, in a host's graph that does not start its turns with `Restore`."""


def with_receipt(state: MemoryState, receipt_id: str | None) -> list[str]:
    """The receipts of the turn with one more, each once, the newest last."""
    receipts = [*state.get("receipts", []), *([receipt_id] if receipt_id else [])]
    return list(dict.fromkeys(receipts))[-KEPT_RECEIPTS:]


def visible(state: MemoryState) -> list[AnyMessage]:
    """The messages from the window's cut on: what the model sees, in order; results that were shrunk as they are shown.

    A result that came after its call had left the window brings the view back to that call, until the model has read
    it."""
    shrunk = state.get("window", {}).get("shrunk", {})
    return [
        pointed(message, shrunk[message.id]) if message.id in shrunk and isinstance(message, ToolMessage) else message
        for message in in_view(state)
    ]


def in_view(state: MemoryState) -> list[AnyMessage]:
    """The same messages as the thread has them."""
    messages = state.get("messages", [])
    start = place_of(messages, state.get("window", {}).get("cut")) or 0
    start = min([start, *_calls_of_unread(messages)]) if start else 0
    return messages[start:]


def place_of(messages: Sequence[AnyMessage], message_id: str | None) -> int | None:
    """Position of a message; None when it is not there. Looked for from the end: what a window or an extraction reached
    is near it, however long the thread is."""
    if not message_id:
        return None
    return next((n for n in range(len(messages) - 1, -1, -1) if messages[n].id == message_id), None)


def _calls_of_unread(messages: Sequence[AnyMessage]) -> Iterator[int]:
    """Positions of the calls whose results came since the model spoke last."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, AIMessage):
            return
        if isinstance(message, ToolMessage):
            yield next((n for n in range(place - 1, -1, -1) if _makes(messages[n], message.tool_call_id)), place)


def _makes(message: AnyMessage, call_id: str) -> bool:
    return isinstance(message, AIMessage) and any(call["id"] == call_id for call in message.tool_calls)


def is_marked(message: BaseMessage) -> bool:
    """Whether we put this message in, so that nobody said it."""
    return MARK in message.additional_kwargs


def mark_of(message: BaseMessage) -> dict[str, Any]:
    """What we noted on a message; empty when there is nothing, or when somebody else put something else there."""
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, dict) else {}


def last_request(messages: list[AnyMessage]) -> HumanMessage | None:
    """The newest message that the user really said; None when there is none."""
    return next((m for m in reversed(messages) if isinstance(m, HumanMessage) and not is_marked(m)), None)
