"""The chain from memory to an answer: what stood in the request, and what the reply did (R296).

One entry of the audit log for each link, all in one transaction once the reply is there. An answer that cannot be
traced is not given: when the store cannot note it, the call of the model has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from everthread.nodes.node import context_of, named_thread, store_of
from everthread.nodes.reason.request import Assembled, assemble
from everthread.nodes.state import MemoryState, mark_of
from everthread.stores.contract import Noted, ToolCall, Used
from everthread.stores.record import new_id

__all__ = ["note_answer"]

_PLAIN = re.compile(r"[!-~]+")
"""A name of a tool, and the id of a call, as model services make them. Anything else could be a sentence."""


def note_answer(state: MemoryState, runtime: Runtime[Any], reply: AIMessage, request: Assembled | None = None) -> None:
    """Note in the audit log what `reply` was made from; nothing when no memory stood in the request.

    For a host's own reasoning node, which calls it with the model's reply before returning it; `Reason` and the
    middleware do so themselves. `request` is what was asked; None takes what `request(state, runtime)` would hold.

    A reply without an id gets one, by which it is noted and kept. Raises StoreError when it cannot be noted.
    """
    request = request or assemble(state, runtime)
    if not (request.records or request.said):
        return
    if reply.id is None:
        reply.id = new_id("msg")
    fresh = _since_the_last_reply(state.get("messages", []))
    events = [
        _recalled(state, fresh, request),
        Noted(
            action="inject",
            records=tuple(Used(record_id=id, revision=revision) for id, revision in request.records),
            messages=request.said,
        ),
        Noted(action="act", calls=tuple(_call(call["id"], call["name"]) for call in reply.tool_calls)),
    ]
    store_of(runtime).note(context_of(runtime).identity, named_thread(runtime), events, reply_id=reply.id)


def _recalled(state: MemoryState, fresh: Sequence[AnyMessage], request: Assembled) -> Noted:
    """What was found for this reply: by the turn's search when it is the first of the turn, and by the tools that were
    called just before. What an earlier search of the thread found, and still stands there, is not found again."""
    scores = {}
    if any(isinstance(message, HumanMessage) for message in fresh):
        scores = {(ref["id"], ref["revision"]): ref["score"] for ref in state.get("recalled", [])}
    found = {tuple(each) for message in fresh for each in _marked(message, "records")}
    said = {tuple(each) for message in fresh for each in _marked(message, "evidence")}
    return Noted(
        action="recall",
        records=tuple(
            Used(record_id=each[0], revision=each[1], score=scores.get(each))
            for each in request.records
            if each in scores or each in found
        ),
        messages=tuple(each for each in request.said if each in said),
    )


def _since_the_last_reply(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    start = next((n for n in range(len(messages), 0, -1) if isinstance(messages[n - 1], AIMessage)), 0)
    return list(messages[start:])


def _marked(message: AnyMessage, kind: str) -> Iterator[list[Any]]:
    """The references of a memory tool's result."""
    listed = mark_of(message).get(kind) if isinstance(message, ToolMessage) else None
    for each in listed if isinstance(listed, list | tuple) else []:
        if isinstance(each, list | tuple) and all(isinstance(part, str | int) for part in each):
            yield list(each)


def _call(id: str | None, name: str) -> ToolCall:
    return ToolCall(id=_plain(id or "", 512), name=_plain(name, 128) or "?")


def _plain(text: str, longest: int) -> str:
    return text if len(text) <= longest and _PLAIN.fullmatch(text) else ""
