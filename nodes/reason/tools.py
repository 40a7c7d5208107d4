"""The tools node: LangGraph's ToolNode, which keeps oversized results out of the thread and tells the model why a
memory tool did nothing."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command

from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.nodes.arrivals import arrived_meanwhile
from everthread.nodes.eviction import LIMIT, PREVIEW, evict
from everthread.nodes.extract.external import save_refused
from everthread.nodes.node import announce, identity_of, store_of, thread_of
from everthread.stores.aside import aside

__all__ = ["akept", "artifact_read", "kept", "tool_node"]

PAGE = 20_000
"""Characters of an evicted result that one call reads back."""

Result = ToolMessage | Command[Any]


@tool
def artifact_read(path: str, runtime: ToolRuntime[Any, Any], line: int = 0, lines: int = 0, offset: int = 0) -> str:
    """Read the whole of a tool result that was shortened, by the path (sha256:...) that stands in its place.

    `line` is the line to start from, counted from 1, and `lines` how many to read; without them `offset` is the
    character to start from.
    """
    artifact = store_of(runtime).artifacts.get(identity_of(runtime), path)
    if artifact is None or artifact.kind != "tool_result":
        return f"There is no kept tool result {path}."
    return _page(artifact.text, max(0, line), max(0, lines), max(0, offset))


def _page(text: str, line: int, lines: int, offset: int) -> str:
    """At most a page of the text from where it was asked for (R218), and how to read on."""
    end = len(text)
    if line or lines:
        starts = [0, *(found.end() for found in re.finditer("\n", text))]
        first = max(line, 1) - 1
        if first >= len(starts):
            return f"The result has {len(starts)} lines."
        offset = starts[first]
        end = starts[first + lines] if lines and first + lines < len(starts) else end
    page = text[offset : min(offset + PAGE, end)]
    rest = len(text) - offset - len(page)
    return page + (f"\n\n[{rest} characters follow; read on with offset={offset + len(page)}]" if rest > 0 else "")


def tool_node(
    tools: Sequence[BaseTool],
    evict_over: int = LIMIT,
    preview: int = PREVIEW,
    own_words: frozenset[str] | None = None,
) -> ToolNode:
    """A ToolNode over `tools`. Of a result over `evict_over` characters the thread keeps head, tail (`preview`
    characters each) and the path of the whole (R64 to R69). Our errors and wrong arguments go back to the model as
    text; a tool's own error raises. `own_words`: see `kept`.
    """
    limits: Any = {"evict_over": evict_over, "preview": preview, "own_words": own_words}
    return ToolNode(
        tools,
        handle_tool_errors=_told,
        wrap_tool_call=partial(kept, **limits),
        awrap_tool_call=partial(akept, **limits),
    )


# ToolNode reads from this annotation which errors it handles, and cannot read one that is a string: hence no
# `from __future__ import annotations` in this file.
def _told(error: ToolInvocationError | AccessDenied | UsageError | Conflict) -> str:
    # what a wrapper such as `kept` lets through, ToolNode hands over whatever it is
    if not isinstance(error, ToolInvocationError | AccessDenied | UsageError | Conflict):
        raise error
    return f"Not done: {error}"


def kept(
    request: ToolCallRequest,
    execute: Callable[[ToolCallRequest], Result],
    *,
    deliver: bool = True,
    evict_over: int = LIMIT,
    preview: int = PREVIEW,
    own_words: frozenset[str] | None = None,
) -> Result:
    """Runs a tool; the middle of an oversized result goes to the artifacts, and the rest is returned. What arrived
    meanwhile (notices, steers) stands behind it, before the model is asked again; with `deliver=False` it waits.
    `own_words` names the trusted tools where external content keeps a thread from learning: nothing is saved then, once
    another tool's result is in the turn."""
    refused = None if own_words is None else save_refused(request, own_words)
    return refused or _with_news(request, _evicted(execute(request), request.runtime, evict_over, preview), deliver)


async def akept(
    request: ToolCallRequest,
    execute: Callable[[ToolCallRequest], Awaitable[Result]],
    *,
    deliver: bool = True,
    evict_over: int = LIMIT,
    preview: int = PREVIEW,
    own_words: frozenset[str] | None = None,
) -> Result:
    """`kept` for asyncio."""
    refused = None if own_words is None else save_refused(request, own_words)
    if refused:
        return refused
    result = await execute(request)
    return await aside(lambda: _with_news(request, _evicted(result, request.runtime, evict_over, preview), deliver))


def _with_news(request: ToolCallRequest, result: Result, deliver: bool) -> Result:
    """A tool's own Command is left as it is: what arrived comes with the next result, or the next turn."""
    if not deliver or not isinstance(result, ToolMessage):
        return result
    state = request.state
    if isinstance(state, list):  # a graph of messages alone
        return Command(update=[result, *news]) if (news := arrived_meanwhile(request.runtime, state)) else result
    messages = state.get("messages", []) if isinstance(state, dict) else getattr(state, "messages", [])
    news = arrived_meanwhile(request.runtime, messages)
    return Command(update={"messages": [result, *news]}) if news else result


def _evicted(result: Result, runtime: ToolRuntime[Any, Any], limit: int, preview: int) -> Result:
    if not isinstance(result, ToolMessage):
        return result
    eviction = evict(
        result, identity_of(runtime), store_of(runtime), thread_id=thread_of(runtime), limit=limit, preview=preview
    )
    if eviction.artifact or eviction.failed:
        announce(
            runtime,
            "tools",
            "evicted" if eviction.artifact else "eviction-failed",
            tool=result.name,
            artifact=eviction.artifact,
            reason=eviction.failed,
        )
    return eviction.message
