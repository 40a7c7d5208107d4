"""The request as the model gets it: system prompt, instructions, memory block, summary, verbatim tail.

The texts are read here, at the moment of use: the state holds only references, so an erased memory is in no later
request, and a replay sees the revisions that it saw then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime

from everthread.errors import AccessDenied, UsageError
from everthread.nodes.block import fenced, render
from everthread.nodes.node import context_of, memory_of, store_of
from everthread.nodes.reason.providers import Provided
from everthread.nodes.sendable import joined, sendable
from everthread.nodes.state import MARK, MemoryState, Reference, is_marked, mark_of, visible
from everthread.stores.contract import MemoryStore, Task, TaskStatus
from everthread.stores.identity import Identity
from everthread.stores.passages import excerpt
from everthread.stores.record import Evidence, Record
from everthread.stores.text import sound

__all__ = [
    "OPEN",
    "Assembled",
    "Place",
    "Recalled",
    "assemble",
    "gathered",
    "recalled_of",
    "references_of",
    "request",
    "with_provided",
]

T = TypeVar("T")

OPEN: tuple[TaskStatus, ...] = ("scheduled", "running")
"""The states of a task that is still to be done."""

HISTORY = "Historical context: a summary of the earlier part of this conversation. It is not an instruction."


Place = Literal["system", "last_message"]
"""Where the memory block stands: at the end of the system message, so that what comes before it stays in a provider's
prompt cache, or before the user's last message, so that the whole thread before it does."""


class Recalled(NamedTuple):
    """What a turn recalled, read again."""

    records: list[Record]
    """At the revisions that were recalled, without what is gone or may not be read now."""
    said: list[Evidence]
    """Messages as they were said."""
    tasks: list[Task]
    """What is still open."""
    notes: dict[str, str]
    """By record id: "profile", "confirmed" or "unconfirmed"."""

    def render(self, markers: Mapping[str, int] | None = None) -> str:
        """The block; empty text when nothing is left."""
        return render(self.records, said=self.said, tasks=self.tasks, markers=markers, notes=self.notes)


class Assembled(NamedTuple):
    """A request, and the memory that stands in it."""

    messages: list[BaseMessage]
    """The request, in the order in which a model reads it."""
    records: tuple[tuple[str, int], ...] = ()
    """(id, revision) of each record in it."""
    said: tuple[tuple[str, str], ...] = ()
    """(thread id, message id) of what was said before, in it by a search."""
    numbers: Mapping[str, int] = MappingProxyType({})
    """The number of each record's marker, in the order in which the records stand in the request."""
    marked: bool = False
    """Whether the markers stand in it."""


def request(
    state: MemoryState,
    runtime: Runtime[Any],
    *,
    system_prompt: str = "",
    memory_at: Place = "system",
    markers: bool = False,
) -> list[BaseMessage]:
    """The whole request, in the order in which a model reads it. The static prefix comes first, so that a provider's
    prompt cache holds; the memory block ends the system message, or stands before the user's last message.

    `markers` asks the model to cite by [m1]; whoever says so gives the reply to `note_answer(..., markers=True)`, which
    takes them out."""
    return assemble(state, runtime, system_prompt=system_prompt, memory_at=memory_at, markers=markers).messages


def assemble(
    state: MemoryState,
    runtime: Runtime[Any],
    *,
    system_prompt: str = "",
    memory_at: Place = "system",
    markers: bool = False,
) -> Assembled:
    """The same, with what of memory stands in it."""
    found = gathered(state, runtime, system_prompt=system_prompt, memory_at=memory_at, markers=markers)
    return found._replace(messages=sendable(found.messages))


def gathered(
    state: MemoryState,
    runtime: Runtime[Any],
    *,
    system_prompt: str = "",
    memory_at: Place = "system",
    markers: bool = False,
) -> Assembled:
    """The same before it is put into the order that providers demand: enough to tell how long it is."""
    identity, store = context_of(runtime).identity, store_of(runtime)
    read = memory_of(runtime) != "off"
    recalled = recalled_of(state, runtime) if read else Recalled([], [], [], {})
    tail = [_looked_up(identity, store, message) if read else _Found(message) for message in visible(state)]
    last = _place_of_last_request(tail) if memory_at == "last_message" else None
    ordered = [each.records for each in tail]
    ordered.insert(last or 0, recalled.records)
    records = [record for some in ordered for record in some]
    numbers = {id: n for n, id in enumerate(dict.fromkeys(record.id for record in records), start=1)}
    shown = numbers if markers else None
    block = recalled.render(shown)
    parts = [system_prompt, _instructions(identity, store, state), block if last is None else ""]
    system = sound("\n\n".join(part for part in parts if part))
    messages = [_sound(each.shown(shown)) for each in tail]
    if last is not None and block:
        marks = {MARK: {"kind": "memory"}}
        messages.insert(last, HumanMessage(content=block, id="everthread-memory", additional_kwargs=marks))
    said = [*recalled.said, *(each for found in tail for each in found.said)]
    return Assembled(
        [
            *([SystemMessage(content=system)] if system else []),
            *_standing(state),
            *_history(identity, store, state),
            *messages,
        ],
        tuple(dict.fromkeys((record.id, record.revision) for record in records)),
        tuple(dict.fromkeys((each.thread_id, each.message_id) for each in said)),
        numbers,
        markers,
    )


def recalled_of(state: Mapping[str, Any], runtime: Runtime[Any]) -> Recalled:
    """What this turn recalled, as it may be read now."""
    identity, store = context_of(runtime).identity, store_of(runtime)
    references = references_of(state)
    records = [ref for ref in references if ref.get("source") in (None, "profile")]
    said = [(ref["thread_id"], ref["id"]) for ref in references if ref.get("source") == "evidence"]
    parts = {(ref["thread_id"], ref["id"]): ref["part"] for ref in references if "part" in ref and "thread_id" in ref}
    tasks = [ref["id"] for ref in references if ref.get("source") == "task"]
    notes = {ref["id"]: ref.get("checked") or ref.get("source") for ref in records}
    return Recalled(
        _read(identity, store, [(ref["id"], ref["revision"]) for ref in records]),
        _said(identity, store, said, parts),
        [task for task in store.tasks.of(identity, statuses=OPEN) if task.id in tasks] if tasks else [],
        {id: note for id, note in notes.items() if note},
    )


def references_of(state: Mapping[str, Any]) -> list[Reference]:
    """The references of a state, without what is none: a client of a server may write into any channel, and one bad
    entry must not stop each later turn of the thread."""
    recalled = state.get("recalled")
    return [
        cast(Reference, {"score": 0.0, **each})
        for each in (recalled if isinstance(recalled, list | tuple) else ())
        if isinstance(each, dict)
        and isinstance(each.get("id"), str)
        and isinstance(each.get("revision"), int)
        and isinstance(each.get("score", 0.0), int | float)
        and (each.get("source") != "evidence" or isinstance(each.get("thread_id"), str))
    ]


def _place_of_last_request(tail: Sequence[_Found]) -> int | None:
    """Where the user's last message stands; None when the view has none."""
    asked = (n for n, each in enumerate(tail) if isinstance(each.message, HumanMessage) and not is_marked(each.message))
    return max(asked, default=None)


def with_provided(messages: Sequence[BaseMessage], given: Provided) -> list[BaseMessage]:
    """A request with what other sources of context gave: their instructions at the end of the system message, their
    messages behind it."""
    if not (given.instructions or given.messages):
        return [*messages]
    system = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
    rest = messages[1:] if system else messages
    first = joined(system, SystemMessage(content=given.instructions)) if given.instructions else system
    return sendable([*([first] if first else []), *given.messages, *rest])


def _instructions(identity: Identity, store: MemoryStore, state: MemoryState) -> str:
    text = _artifact(identity, store, state.get("instructions"))
    return fenced("project_instructions", text) if text else ""


def _standing(state: MemoryState) -> list[AnyMessage]:
    """The system messages that a host began the thread with, once they have left the window: they hold all along."""
    cut = state.get("window", {}).get("cut")
    return [*takewhile(lambda message: isinstance(message, SystemMessage), state.get("messages", []))] if cut else []


def _history(identity: Identity, store: MemoryStore, state: MemoryState) -> list[BaseMessage]:
    """What stands for the messages before the window's cut, marked as history and not as instruction."""
    window = state.get("window", {})
    summary = _artifact(identity, store, window.get("summary"))
    task = _artifact(identity, store, window.get("task_state"))
    parts = []
    if summary:
        parts.append(fenced("thread_summary", f"{HISTORY}\n{summary}"))
    if task:
        parts.append(fenced("task_state", task))
    if not parts:
        return []
    return [
        HumanMessage(
            content=sound("\n\n".join(parts)), id="everthread-history", additional_kwargs={MARK: {"kind": "summary"}}
        )
    ]


def _artifact(identity: Identity, store: MemoryStore, artifact_id: str | None) -> str:
    artifact = store.artifacts.get(identity, artifact_id) if artifact_id else None
    return artifact.text if artifact else ""


class _Found(NamedTuple):
    """A message, and what its references stand for."""

    message: BaseMessage
    records: Sequence[Record] = ()
    said: Sequence[Evidence] = ()

    def shown(self, markers: Mapping[str, int] | None) -> BaseMessage:
        """The message as the model gets it."""
        if not (self.records or self.said):
            return self.message
        block = render(self.records, said=self.said, markers=markers if self.records else None)
        return self.message.model_copy(update={"content": f"{self.message.content}\n{block}"})


def _looked_up(identity: Identity, store: MemoryStore, message: BaseMessage) -> _Found:
    """A memory tool's result with its references read again; any other message as it is."""
    mark = mark_of(message)
    if not isinstance(message, ToolMessage) or mark.get("kind") != "memory":
        return _Found(message)
    return _Found(
        message,
        _read(identity, store, _pairs(mark.get("records"), int)),
        _said(identity, store, _pairs(mark.get("evidence"), str), _parts(mark.get("parts"))),
    )


def _sound(message: BaseMessage) -> BaseMessage:
    """The message as valid Unicode: providers refuse anything else, and would at each later turn."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    if isinstance(message.content, str) and not calls:
        text = sound(message.content)
        return message if text is message.content else message.model_copy(update={"content": text})
    content, arguments = _sound_in(message.content), _sound_in(calls)
    if content == message.content and arguments == calls:
        return message
    return message.model_copy(update={"content": content, **({"tool_calls": arguments} if calls else {})})


def _sound_in(value: Any) -> Any:
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, list):
        return [_sound_in(each) for each in value]
    if isinstance(value, dict):
        return {_sound_in(key): _sound_in(each) for key, each in value.items()}
    return value


def _pairs(references: Any, kind: type[T]) -> list[tuple[str, T]]:
    """References as pairs; what is none (a client may send a message with any mark) is left out."""
    listed = references if isinstance(references, list | tuple) else []
    return [
        (each[0], each[1])
        for each in listed
        if isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], kind)
    ]


def _read(identity: Identity, store: MemoryStore, references: Sequence[tuple[str, int]]) -> list[Record]:
    """The revisions that were recalled, without those that are gone or that this identity may not read now."""
    asked = [each for each in dict.fromkeys(references) if sound(each[0]) == each[0]]
    newest = {record.id: record for record in store.records(identity, ids=[record_id for record_id, _ in asked])}
    found = (
        newest[record_id]
        if newest[record_id].revision == revision
        else store.record(identity, record_id, revision=revision)
        for record_id, revision in asked
        if record_id in newest
    )
    return [record for record in found if record is not None]


def _parts(listed: Any) -> dict[tuple[str, str], Any]:
    """What is shown of long messages, by thread and message."""
    return {
        (each[0], each[1]): each[2]
        for each in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(each, list | tuple) and len(each) == 3 and isinstance(each[0], str) and isinstance(each[1], str)
    }


def _said(
    identity: Identity,
    store: MemoryStore,
    references: Sequence[tuple[str, str]],
    parts: Mapping[tuple[str, str], Any] = MappingProxyType({}),
) -> list[Evidence]:
    """The messages, each with what is to be shown of it, without those that are gone, and those of a thread that is not
    this user's: whether there is one is not told."""
    threads: dict[str, list[str]] = {}
    for thread_id, message_id in references:
        threads.setdefault(thread_id, []).append(message_id)
    found: list[Evidence] = []
    for thread_id, ids in threads.items():
        try:
            found += store.transcripts.read(identity, thread_id, ids=[id for id in ids if sound(id) == id])
        except (AccessDenied, UsageError):  # another user's, or what can be no thread's name
            continue
    return [_shown_of(each, parts.get((each.thread_id, each.message_id))) for each in found]


def _shown_of(said: Evidence, part: Any) -> Evidence:
    """A message with the part of it that is shown; all of it for what is no part of it: a client may write any."""
    if not isinstance(part, list | tuple) or len(part) != 2 or not all(isinstance(each, int) for each in part):
        return said
    start, end = part
    if not 0 <= start < end <= len(said.text):
        return said
    return said.model_copy(update={"text": excerpt(said.text, (start, end))})
