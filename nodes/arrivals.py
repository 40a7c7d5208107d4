"""What reaches a thread between the user's messages: admitted inputs, and notices of tasks (R34, R305, S19).

Both are kept by the store until they were seen in the thread, so that a crash in between loses nothing, and both have
message ids, so that nothing appears twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from everthread.nodes.block import inert
from everthread.nodes.eviction import LIMIT, PREVIEW
from everthread.nodes.node import RunRuntime, context_of, store_of, thread_of
from everthread.nodes.state import MARK, mark_of
from everthread.stores.contract import MemoryStore, Task
from everthread.stores.identity import Identity, MemoryContext
from everthread.stores.record import now_utc
from everthread.stores.text import cjk_share

__all__ = ["arrived_meanwhile", "inputs", "is_told_here", "notice", "notices", "shown"]


NAMED = 500
"""Characters of a task's text that a notice has."""


def is_told_here(context: MemoryContext) -> bool:
    """Whether what arrives is given to this run: a sub-agent's is the outermost graph's (R305), and a run from an old
    checkpoint gets nothing that came later."""
    return context.root and not isinstance(context.as_of, datetime)


def inputs(
    identity: Identity, store: MemoryStore, thread_id: str, thread: Sequence[BaseMessage], *, steers_only: bool = False
) -> list[HumanMessage]:
    """The admitted inputs whose turn it is, as messages: every steer that waits by now, else the oldest queued one
    (S19). Those that are in the thread are promoted for good."""
    waiting = store.inbox.pending(identity, thread_id, steers_only=steers_only)
    present = _ids_of(thread) if waiting else set()
    arrived = [message_id for message_id, _ in waiting if message_id in present]
    if arrived:
        store.inbox.promote(identity, thread_id, arrived)
        waiting = store.inbox.pending(identity, thread_id, steers_only=steers_only)
    return [HumanMessage(content=text, id=message_id) for message_id, text in waiting if message_id not in present]


def notices(
    identity: Identity, store: MemoryStore, thread_id: str, thread: Sequence[BaseMessage]
) -> list[HumanMessage]:
    """Notice of each task that is due or has a result, as marked messages. Those that are in the thread are delivered
    for good; the others are this thread's to give."""
    told = {f"notice-{_key_of(task)}": task for task in store.tasks.claim(identity, thread_id, now_utc())}
    present = _ids_of(thread) if told else set()
    arrived = [task.id for id, task in told.items() if id in present]
    if arrived:
        store.tasks.deliver(identity, arrived)
    new = [task for id, task in told.items() if id not in present]
    return [notice(_said(_shortened(task, identity, store, thread_id)), _key_of(task), task=task.id) for task in new]


def arrived_meanwhile(runtime: RunRuntime, messages: Sequence[BaseMessage]) -> list[HumanMessage]:
    """What came since the turn began, for the next call of the model: steers, and notices (R305, S19). Empty for a
    sub-agent."""
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    if not is_told_here(context):
        return []
    identity = context.identity
    return [
        *inputs(identity, store, thread_id, messages, steers_only=True),
        *notices(identity, store, thread_id, messages),
    ]


def _ids_of(messages: Sequence[BaseMessage]) -> set[str]:
    return {message.id for message in messages if message.id}


def shown(runtime: RunRuntime, messages: Sequence[AnyMessage]) -> None:
    """Say that the turn is over in which these messages came: no other thread gives their notices any more."""
    told = [str(task) for message in messages if (task := mark_of(message).get("task"))]
    if told:
        store_of(runtime).tasks.confirm(context_of(runtime).identity, thread_of(runtime), told)


def notice(text: str, key: str, **mark: Any) -> HumanMessage:
    """A marked message that tells the model something between turns; `key` makes its id, so it appears once."""
    return HumanMessage(
        content=f"<notice>{inert(text)}</notice>",
        id=f"notice-{key}",
        additional_kwargs={MARK: {"kind": "notice", **mark}},
    )


def _key_of(task: Task) -> str:
    """A task may be told of several times: when it is due, when it is due at another time, and when it has ended."""
    return f"{task.id}-{task.status if task.result is not None else f'{task.due_at:%Y%m%dT%H%M%S%z}'}"


def _shortened(task: Task, identity: Identity, store: MemoryStore, thread_id: str) -> Task:
    """The task; of an oversized result the beginning, and where the whole is, as of a tool's result (R64)."""
    result = task.result or ""
    if len(result) <= LIMIT:
        return task
    kept_as = store.artifacts.put(identity, "tool_result", result, thread_id=thread_id)
    left_out = f"[{len(result) - PREVIEW} of {len(result)} characters left out; the whole result is kept as {kept_as}]"
    return task.model_copy(update={"result": f"{result[:PREVIEW]} {left_out}"})


def _said(task: Task) -> str:
    """In the language of the task."""
    chinese = cjk_share(task.text) > 0.3
    text = task.text if len(task.text) <= NAMED else f"{task.text[:NAMED]}..."
    match task.status:
        case "completed":
            named = "后台任务“{}”已完成。结果：{}" if chinese else 'Background task "{}" finished. Result: {}'
            return named.format(text, task.result)
        case "failed":
            named = "后台任务“{}”失败。原因：{}" if chinese else 'Background task "{}" failed. Reason: {}'
            return named.format(text, task.result)
        case _:
            when = f"{task.due_at:%Y-%m-%d %H:%M %Z}"
            return f"提醒，时间 {when}：{text}" if chinese else f"Reminder, due {when}: {text}"
