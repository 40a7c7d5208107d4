"""Threads that took in content from outside can be kept out of learning: a page, a file or a tool may say anything, and
what the agent makes of it sounds like the user (S1, R102)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from everthread.nodes.extract.pipeline import begin
from everthread.nodes.node import announce, context_of, identity_of, store_of, thread_of
from everthread.nodes.state import is_marked, place_of
from everthread.stores.messages import from_messages
from everthread.stores.record import Evidence

__all__ = ["external_in", "save_refused", "shut_out", "shuts_out"]

OWN_TOOLS = frozenset(
    {
        "artifact_read",
        "memory_correct",
        "memory_forget",
        "memory_get",
        "memory_save",
        "memory_search",
        "session_search",
    }
)
"""Tools of ours bring nothing new from outside: what they give was in the store, or in the thread."""
WRITING = frozenset({"memory_correct", "memory_save"})
"""Those that learn. Forgetting is always open."""


def external_in(lines: Iterable[Evidence], trusted_tools: frozenset[str] = frozenset()) -> Evidence | None:
    """The first line that came from outside: of the web, of a file, or a result of a tool that is not trusted."""
    known = trusted_tools | OWN_TOOLS
    return next(
        (
            line
            for line in lines
            if line.source in ("web", "file") or (line.source == "tool" and line.speaker not in known)
        ),
        None,
    )


def shuts_out(
    runtime: Runtime[Any], messages: Sequence[AnyMessage], trusted_tools: frozenset[str], *, node: str
) -> bool:
    """Whether these messages took in external content. The thread then only reads memory from now on, which its user
    may change; the messages are in the transcript all the same."""
    identity, store, thread_id = context_of(runtime).identity, store_of(runtime), thread_of(runtime)
    said = [message for message in messages if not is_marked(message)]
    line = external_in(from_messages(thread_id, said, identity=identity), trusted_tools)
    if line is None:
        return False
    begin(identity, store, thread_id, messages)
    shut_out(runtime, line, node=node)
    return True


def save_refused(request: ToolCallRequest, trusted_tools: frozenset[str]) -> ToolMessage | None:
    """What a memory tool that would write answers in the turn in which the thread has just taken in external content:
    the thread is shut out only as the turn ends, and the model has read the page by now. None for all else."""
    call, state = request.tool_call, request.state
    if call["name"] not in WRITING:
        return None
    known = state if isinstance(state, dict) else {"messages": getattr(state, "messages", state)}
    said = known.get("messages", [])
    seen = place_of(said, known.get("flushed_to"))
    new = [message for message in said[0 if seen is None else seen + 1 :] if not is_marked(message)]
    line = external_in(from_messages("turn", new, identity=identity_of(request.runtime)), trusted_tools)
    if line is None:
        return None
    reason = f"Not done: the conversation has just taken in external content ({line.source}); nothing is saved from it."
    return ToolMessage(reason, tool_call_id=str(call["id"]), name=call["name"], status="error")


def shut_out(runtime: Runtime[Any], line: Evidence, *, node: str) -> None:
    """Let the thread only read memory from now on, because of this line, and say so."""
    reason = f"the thread took in external content ({line.source}, message {line.message_id})"
    store_of(runtime).transcripts.set_memory(identity_of(runtime), thread_of(runtime), "read", because=reason)
    announce(runtime, node, "skipped", reason=f"{reason}; nothing is learnt from it")
