"""The compact node: moves the start of the model's view, and leaves every message where it is."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from everthread.errors import ModelReplyError, StoreError
from everthread.nodes.compact.asking import given_by
from everthread.nodes.compact.budget import Counter, count_tokens
from everthread.nodes.compact.coverage import Coverage
from everthread.nodes.compact.cut import KEEP_TOKENS, Leaving, checked_turns, leaving
from everthread.nodes.compact.summary import RuleSummariser, Summariser, Summary
from everthread.nodes.compact.task_state import RuleTracker, Tracker
from everthread.nodes.compact.track import identified, keep, kept, tracked
from everthread.nodes.eviction import whole_id
from everthread.nodes.node import Ask, Node, Steps, announce
from everthread.nodes.state import MemoryState, MemoryUpdate, Window, visible
from everthread.stores.messages import text_of

__all__ = ["Compact"]

FRAME = 200
"""Tokens that the headings of a summary may add to what it says."""


class Compact(Node):
    """Puts a summary and a TaskState in place of the older messages.

    `summariser`, `tracker`: who writes them; rules without a model by default. `keep_tokens`: how much of the newest
    part stays verbatim, in tokens; `keep_turns`: how many turns of the user at most, any number when None. `counter`: a
    model's own token counter; an estimate by default.

    `messages` is never touched: `window` says where the view starts and what stands for the rest (R46, R72). Results
    that the model has read shrink first, to their beginning and the path of the whole (R66); when that is enough,
    nothing leaves. A summary that fails, is empty, malformed or longer than what it stands for changes nothing, and the
    turn goes on, whatever the summariser raised. StoreError when the texts cannot be kept.
    """

    reads_messages = True

    def __init__(
        self,
        summariser: Summariser | None = None,
        *,
        tracker: Tracker | None = None,
        keep_tokens: int = KEEP_TOKENS,
        keep_turns: int | None = None,
        counter: Counter | None = None,
    ) -> None:
        self.summariser = summariser or RuleSummariser()
        self.tracker = tracker or RuleTracker()
        self.keep_tokens, self.keep_turns = keep_tokens, checked_turns(keep_turns)
        self.counter = counter

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `window` with its new cut, or nothing when there is nothing to compact or no usable summary."""
        divided = leaving(state, self.keep_tokens, self.counter, self.keep_turns)
        if divided is None:
            announce(runtime, "compact", "skipped", reason="nothing can leave the window")
            return {}
        if not divided.prefix:
            return self._shrunk(state, divided, runtime)
        before = _before(state, divided, runtime)
        try:
            summary = yield from self._summary(before)
            task_state = yield from tracked(state, runtime, self.tracker)
        except ModelReplyError as error:
            announce(runtime, "compact", "failed", reason=str(error))
            return {}
        kept_as = keep(runtime, "summary", summary.text)
        coverage = Coverage(
            summary=kept_as,
            generator=summary.generator,
            messages=tuple(map(identified, before.messages)),
            previous=before.coverage,
        )
        window: Window = {
            **state.get("window", {}),
            **task_state,
            "cut": identified(divided.tail[0]),
            "summary": kept_as,
            "coverage": keep(runtime, "coverage", coverage.model_dump_json()),
            "covers": [before.first, identified(divided.prefix[-1])],
            "generator": summary.generator,
            "compacted_at": identified(divided.tail[-1]),
        }
        window = _with_shrunk(window, divided, runtime)
        announce(
            runtime,
            "compact",
            "compacted",
            messages=len(divided.prefix),
            tokens=self._tokens(state, window),
            **{key: window[key] for key in ("cut", "covers", "generator", "summary", "task_state")},
        )
        return {"window": window}

    def _summary(self, before: _Before) -> Generator[Ask, Any, Summary]:
        """The summary. ModelReplyError when it is none, or would make the request longer."""
        make = partial(self.summariser.summarise, before.summary, before.messages)
        summary = yield from given_by(make, "the summariser", Summary)
        if not (isinstance(summary.text, str) and summary.text.strip()):
            raise ModelReplyError("the summary is empty")
        size = count_tokens([HumanMessage(summary.text)], self.counter)
        replaced = count_tokens([HumanMessage(before.summary), *before.messages], self.counter)
        if size > max(replaced, self.keep_tokens) + FRAME:
            raise ModelReplyError(f"the summary takes {size} tokens, and what it stands for {replaced}")
        return summary

    def _shrunk(self, state: MemoryState, divided: Leaving, runtime: Runtime[Any]) -> MemoryUpdate:
        """The update when nothing has to leave."""
        before = state.get("window", {})
        window = _with_shrunk({**before, "compacted_at": identified(divided.tail[-1])}, divided, runtime)
        if window.get("shrunk", {}) == before.get("shrunk", {}):
            return {}
        announce(runtime, "compact", "shrunk", results=len(divided.shrinking), tokens=self._tokens(state, window))
        return {"window": window}

    def _tokens(self, state: MemoryState, window: Window) -> list[int]:
        """What the model sees verbatim, in tokens: before and now."""
        after: MemoryState = {**state, "window": window}
        return [count_tokens(visible(each), self.counter) for each in (state, after)]


def _with_shrunk(window: Window, divided: Leaving, runtime: Runtime[Any]) -> Window:
    """The window with the results that shrink, and without those that have left. One whose text cannot be kept stays as
    it was."""
    staying = {message.id for message in divided.tail}
    shrunk = {id: artifact for id, artifact in window.get("shrunk", {}).items() if id in staying}
    for result in divided.shrinking:
        try:
            artifact = whole_id(result) or keep(runtime, "tool_result", text_of(result.content))
        except StoreError as error:
            announce(runtime, "compact", "shrink-failed", reason=str(error))
            break
        shrunk[identified(result)] = artifact
    return {**window, "shrunk": shrunk} if shrunk or "shrunk" in window else window


class _Before(NamedTuple):
    """What the new summary is made of."""

    summary: str
    messages: list[AnyMessage]
    """What the earlier summary does not cover, up to the new cut."""
    first: str
    """Id of the first message that the new summary covers."""
    coverage: str | None = None
    """Artifact id of what the earlier summary covers."""


def _before(state: MemoryState, divided: Leaving, runtime: Runtime[Any]) -> _Before:
    """The earlier summary and what follows it. When that summary is gone (erased with its source), the messages that
    it stood for are read again: what was erased is no longer in them."""
    window = state.get("window", {})
    summary = kept(runtime, window.get("summary"))
    if summary and window.get("covers"):
        return _Before(summary, divided.prefix, window["covers"][0], window.get("coverage"))
    messages = state.get("messages", [])
    messages = messages[: len(messages) - len(divided.tail)]
    return _Before("", messages, identified(messages[0]))
