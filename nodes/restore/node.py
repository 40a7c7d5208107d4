"""The restore node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from everthread.nodes.block import inert
from everthread.nodes.node import Node, Steps, announce, context_of, store_of, thread_of
from everthread.nodes.restore.instructions import ProjectInstructions
from everthread.nodes.state import MARK, MemoryState, MemoryUpdate
from everthread.nodes.tool_calls import unanswered
from everthread.stores.contract import MemoryStore, Task
from everthread.stores.identity import Identity
from everthread.stores.record import now_utc

__all__ = ["Restore"]


SHOWN = 20
"""Failed jobs that are named in the stream at most."""


class Restore(Node):
    """Checks that the thread is this identity's (fail closed), promotes admitted inputs, answers dangling tool calls,
    notices changed project instructions and gives notice of finished and due tasks (R22, R34, R74, R305).

    Background jobs of this user that failed for good are named in the stream, so that no failure stays unseen.

    What it delivers is marked as delivered only on the next turn, when it is seen in the thread: a crash in between
    delivers it again instead of losing it, and message ids keep it from appearing twice.

    `deliver=False` is for a sub-agent: admitted inputs and notices belong to the outermost graph (R305).
    """

    reads_messages = True

    def __init__(
        self, instructions: ProjectInstructions | Callable[[], str] | str | None = None, *, deliver: bool = True
    ) -> None:
        self.instructions = instructions
        self.deliver = deliver

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `messages` that are new in the thread, `instructions` when they changed, and empty `receipts` for the
        new turn; AccessDenied when the thread is another user's."""
        yield from ()
        context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
        identity = context.identity
        store.transcripts.bind(identity, thread_id)
        failed = store.jobs.of(identity, status="failed", limit=SHOWN)
        if failed:
            kinds = sorted({job.kind for job in failed})
            announce(runtime, "restore", "jobs-failed", jobs=[job.id for job in failed], kinds=kinds)
        messages = state.get("messages", [])
        present = {message.id for message in messages if message.id}

        added: list[AnyMessage] = []
        added += _promoted(identity, store, thread_id, present) if self.deliver else []
        repairs = unanswered(messages)
        added += repairs
        notices = _notices(identity, store, thread_id, present) if self.deliver else []
        added += notices
        update: MemoryUpdate = self._noticed_instructions(state, runtime, identity, store, thread_id)
        added += update.pop("messages", [])
        if added:
            update["messages"] = added
        if state.get("receipts"):
            update["receipts"] = []  # of the turn before
        announce(
            runtime,
            "restore",
            "restored",
            messages=len(messages),
            repaired=len(repairs),
            notices=len(notices),
            memory=context.memory,
        )
        return update

    def _noticed_instructions(
        self, state: MemoryState, runtime: Runtime[Any], identity: Identity, store: MemoryStore, thread_id: str
    ) -> MemoryUpdate:
        if self.instructions is None:
            return {}
        try:
            text = _text_of(self.instructions)
        except OSError as error:
            # The baseline in force stays: an unreadable file must not silently drop the rules (S18).
            announce(runtime, "restore", "instructions-unavailable", reason=str(error))
            return {}
        before = state.get("instructions")
        now = store.artifacts.put(identity, "instructions", text, thread_id=thread_id) if text else ""
        if now == (before or ""):
            return {}
        announce(runtime, "restore", "instructions-changed", artifact=now)
        if before is None:
            return {"instructions": now}
        said = (
            "The project instructions changed. What the system prompt says now replaces all earlier ones."
            if now
            else "The project instructions loaded earlier no longer apply."
        )
        return {"instructions": now, "messages": [notice(said, f"instructions-{now or 'none'}-{before}")]}


def notice(text: str, key: str) -> HumanMessage:
    """A marked message that tells the model something between turns; `key` makes its id, so it appears once."""
    return HumanMessage(
        content=f"<notice>{inert(text)}</notice>", id=f"notice-{key}", additional_kwargs={MARK: {"kind": "notice"}}
    )


def _text_of(instructions: ProjectInstructions | Callable[[], str] | str) -> str:
    if isinstance(instructions, str):
        return instructions
    return instructions.load() if isinstance(instructions, ProjectInstructions) else instructions()


def _promoted(identity: Identity, store: MemoryStore, thread_id: str, present: set[str]) -> list[HumanMessage]:
    waiting = store.inbox.pending(identity, thread_id)
    arrived = [message_id for message_id, _ in waiting if message_id in present]
    if arrived:
        store.inbox.promote(identity, thread_id, arrived)
        waiting = store.inbox.pending(identity, thread_id)
    return [HumanMessage(content=text, id=message_id) for message_id, text in waiting if message_id not in present]


def _notices(identity: Identity, store: MemoryStore, thread_id: str, present: set[str]) -> list[HumanMessage]:
    due = store.tasks.due(identity, thread_id, now_utc())
    arrived = [task.id for task in due if f"notice-{task.id}" in present]
    if arrived:
        store.tasks.deliver(identity, arrived)
    return [notice(_said(task), task.id) for task in due if task.id not in arrived]


def _said(task: Task) -> str:
    match task.status:
        case "completed":
            return f"Background task finished: {task.text}. Result: {task.result}"
        case "failed":
            return f"Background task failed: {task.text}. Reason: {task.result}"
        case _:
            return f"Reminder, due {task.due_at:%Y-%m-%d %H:%M %Z}: {task.text}"
