"""The chain from memory to an answer: what stood in the request, and what the reply did (R296).

One entry of the audit log for each link, all in one transaction once the reply is there. An answer that cannot be
traced is not given: when the store cannot note it, the call of the model has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from everthread.nodes.node import context_of, memory_of, named_thread, store_of
from everthread.nodes.reason.citing import Cited, cited_in, without_markers
from everthread.nodes.reason.request import Assembled, assemble, recalled_of, references_of
from everthread.nodes.state import MemoryState, last_request, mark_of
from everthread.stores.contract import Noted, ToolCall, Used
from everthread.stores.record import new_id

__all__ = ["memory_block", "note_answer"]

_PLAIN = re.compile(r"[!-~]+")
"""A name of a tool, and the id of a call, as model services make them. Anything else could be a sentence."""


def memory_block(state: Mapping[str, Any], runtime: Runtime[Any], *, markers: bool = False) -> str:
    """What this turn recalled, as the text of a block; empty when nothing was. For a host's own reasoning node, whose
    state needs the key `recalled`.

    That it stood in a request is noted in the audit log, once for each message of the user's; which reply came of it
    and what that did, `note_answer` adds. Raises StoreError when it cannot be noted. In an async node:
    `await asyncio.to_thread(memory_block, state, runtime)`.

    `markers` asks the model to cite by [m1], [m2]; the reply then goes through `note_answer(..., markers=True)`, which
    takes them out.
    """
    if memory_of(runtime) == "off":
        return ""
    recalled = recalled_of(state, runtime)
    used = tuple(Used(record_id=record.id, revision=record.revision) for record in recalled.records)
    said = tuple((each.thread_id, each.message_id) for each in recalled.said)
    if used or said:
        store_of(runtime).note(
            context_of(runtime).identity,
            named_thread(runtime),
            [Noted(action="inject", records=used, messages=said)],
            answers=_asked(state) or new_id("msg"),
        )
    numbers = {record.id: n for n, record in enumerate(recalled.records, start=1)}
    return recalled.render(numbers if markers else None)


def _asked(state: Mapping[str, Any]) -> str | None:
    """Id of the user's message that is being answered; None when there is none, or it has no id yet."""
    message = last_request(state.get("messages", []))
    return message.id if message else None


def note_answer(
    state: MemoryState,
    runtime: Runtime[Any],
    reply: AIMessage,
    request: Assembled | None = None,
    *,
    markers: bool = False,
) -> Cited:
    """Note in the audit log what `reply` was made from, and return what it cites of that; nothing when no memory stood
    in the request.

    For a host's own reasoning node, which calls it with the model's reply before returning it; `Reason` and the
    middleware do so themselves. `request` is what the model was given; None is what `request(state, runtime)` holds,
    with its `markers`. Markers are taken out of the reply, in place, and what it cites counts as used: each record once
    for a message of the user's (R208), and only where memory is on.

    A reply without an id gets one, by which it is noted and kept. Raises StoreError when it cannot be noted.
    """
    request = request or assemble(state, runtime, markers=markers)
    if not (request.records or request.said):
        return Cited()
    if reply.id is None:
        reply.id = new_id("msg")
    cited = cited_in(str(reply.text), request.numbers, marked=request.marked)
    if request.marked:
        reply.content = without_markers(reply.content)
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
    if memory_of(runtime) == "on":
        revisions = dict(request.records)
        used, not_now = ([Used(record_id=id, revision=revisions[id]) for id in ids] for ids in cited)
        events.append(Noted(action="cite", records=tuple(used), not_applicable=tuple(not_now)))
    store_of(runtime).note(
        context_of(runtime).identity, named_thread(runtime), events, reply_id=reply.id, answers=_asked(state)
    )
    return cited


def _recalled(state: MemoryState, fresh: Sequence[AnyMessage], request: Assembled) -> Noted:
    """What was found for this reply: by the turn's search when it is the first of the turn, and by the tools that were
    called just before. What an earlier search of the thread found, and still stands there, is not found again."""
    began = any(isinstance(message, HumanMessage) for message in fresh)
    recalled = references_of(state) if began else []
    scores = {(ref["id"], ref["revision"]): ref["score"] for ref in recalled}
    found = {tuple(each) for message in fresh for each in _marked(message, "records")}
    said = {tuple(each) for message in fresh for each in _marked(message, "evidence")}
    said |= {(ref["thread_id"], ref["id"]) for ref in recalled if ref.get("source") == "evidence"}
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
