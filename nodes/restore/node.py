"""The restore node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from everthread.errors import UsageError
from everthread.nodes.arrivals import inputs, is_told_here, notice, notices
from everthread.nodes.node import Node, Steps, announce, context_of, store_of, thread_of
from everthread.nodes.restore.instructions import ProjectInstructions
from everthread.nodes.state import MemoryState, MemoryUpdate, place_of
from everthread.nodes.tool_calls import unanswered
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity

__all__ = ["Restore"]


SHOWN = 20
"""Failed jobs that are named in the stream at most."""


class Restore(Node):
    """Checks that the thread is this identity's (fail closed), promotes admitted inputs, answers dangling tool calls,
    notices changed project instructions and gives notice of finished and due tasks (R22, R34, R74, R305).

    Background jobs of this user that failed for good are named in the stream, so that no failure stays unseen.

    What it delivers is marked as delivered only on the next turn, when it is seen in the thread: a crash in between
    delivers it again instead of losing it, and message ids keep it from appearing twice. No other thread gives the same
    notice meanwhile. A run from an old checkpoint is given nothing that came later.

    A sub-agent (`as_agent`) gets neither inputs nor notices: they belong to the outermost graph (R305).
    `deliver=False` says the same for a graph whose context does not.
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

        added: list[AnyMessage] = []
        deliver = self.deliver and is_told_here(context)
        added += inputs(identity, store, thread_id, messages) if deliver else []
        repairs = unanswered(messages[place_of(messages, state.get("window", {}).get("cut")) or 0 :])
        added += repairs
        told = notices(identity, store, thread_id, messages) if deliver else []
        added += told
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
            notices=len(told),
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


def _text_of(instructions: ProjectInstructions | Callable[[], str] | str) -> str:
    if isinstance(instructions, str):
        return instructions
    text: object = instructions.load() if isinstance(instructions, ProjectInstructions) else instructions()
    if text is None:
        return ""
    if not isinstance(text, str):
        raise UsageError(f"the instructions are a {type(text).__name__}; give a function that returns a str")
    return text
