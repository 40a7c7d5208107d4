"""The extract node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from everthread.errors import ModelReplyError
from everthread.nodes.arrivals import shown
from everthread.nodes.extract.candidate import Extractor
from everthread.nodes.extract.external import shuts_out
from everthread.nodes.extract.later import When, is_late, learn_later
from everthread.nodes.extract.pipeline import begin, learn, silenced
from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.node import Node, Steps, announce, context_of, store_of, thread_of
from everthread.nodes.state import MemoryState, is_marked, place_of, with_receipt
from everthread.stores.record import now_utc

__all__ = ["Extract", "new_window", "said_before", "waiting"]

Mode = Literal["always", "throttled", "never"]


class Extract(Node):
    """Learns from what was said since `flushed_to`: transcript first, then candidates through the one door.

    `when`: `inline` learns at once; `job` leaves a job for a worker, so that no model delays the reply (R117). None is
    `job` for an extractor that calls a model, else `inline`. What an inline extractor's model gives nothing usable for
    becomes a job, too: it is tried again, and `everthread jobs` shows it.

    `mode`: `always` at each turn's end; `throttled` at most once in `every` for a user, whatever the thread or process,
    so that several turns are read at once; `never` writes the transcript and leaves learning to the flush before
    compaction (R116). What the last turns of a thread left waiting is learnt by `everthread extract`.
    `trusted_tools` names the tools whose results may settle something (R291). `exclude_external`: a thread that takes
    in content of the web, of a file or of another tool learns nothing from then on, until its user says otherwise.

    With memory `read` or `off`, nothing is learnt and no transcript is kept, and what was said meanwhile is passed over
    for good.
    """

    reads_messages = True

    def __init__(
        self,
        extractor: Extractor | None = None,
        *,
        trusted_tools: frozenset[str] = frozenset(),
        mode: Mode = "always",
        every: timedelta = timedelta(0),
        when: When | None = None,
        exclude_external: bool = False,
        clock: Callable[[], datetime] = now_utc,
    ) -> None:
        self.extractor = extractor or RuleExtractor()
        self.late = is_late(self.extractor, when)
        self.trusted_tools = trusted_tools
        self.exclude_external = exclude_external
        self.mode: Mode = mode
        self.every = every
        self.clock = clock

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `flushed_to` and `receipts`; nothing when no message waits or learning is put off."""
        context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
        messages = waiting(state)
        if not messages:
            return {}
        shown(runtime, messages)
        if why := silenced(context, store, thread_id):
            announce(runtime, "extract", "skipped", reason=why)
            return {"flushed_to": messages[-1].id} if messages[-1].id else {}
        if self.exclude_external and shuts_out(runtime, messages, self.trusted_tools, node="extract"):
            return {"flushed_to": messages[-1].id} if messages[-1].id else {}
        if _is_unanswered(state, messages):
            begin(context.identity, store, thread_id, messages)
            announce(runtime, "extract", "put-off", reason="the turn has no answer yet")
            return {}
        if self.mode != "always":
            work = begin(context.identity, store, thread_id, messages)
            if work is None:
                return {}
            if self.mode == "never" or not store.jobs.gate(
                context.identity, "extract", self.every, key=work.key, now=self.clock()
            ):
                announce(runtime, "extract", "put-off", reason=f"extraction is {self.mode}")
                return {}
        before = said_before(state)
        if self.late:
            last, receipt = learn_later(runtime, self.extractor, messages, before=before), None
        else:
            try:
                seen = yield from learn(
                    runtime, self.extractor, messages, before=before, trusted_tools=self.trusted_tools
                )
            except ModelReplyError as error:
                last, receipt = learn_later(runtime, self.extractor, messages, before=before, error=error), None
            else:
                last, receipt = seen or (None, None)
        if last is None:
            return {}
        return {"flushed_to": last, "receipts": with_receipt(state, receipt.id if receipt else None)}


def waiting(state: MemoryState) -> Sequence[AnyMessage]:
    """The messages that extraction has not seen, in order."""
    messages = state.get("messages", [])
    return messages[_start(state) :]


def _is_unanswered(state: MemoryState, messages: Sequence[AnyMessage]) -> bool:
    """Whether all that waits is a turn without an answer, in a thread that has answers (R102)."""
    return not _has_answer(messages) and _has_answer(state.get("messages", []))


def _has_answer(messages: Sequence[AnyMessage]) -> bool:
    return any(isinstance(message, AIMessage) for message in messages)


def said_before(state: MemoryState) -> str | None:
    """Id of the user's last message that extraction has seen; None when there is none."""
    seen = state.get("messages", [])[: _start(state)]
    return next(
        (message.id for message in reversed(seen) if isinstance(message, HumanMessage) and not is_marked(message)), None
    )


def new_window(state: Any) -> Any:
    """A state, or an input, with no more of its messages than extraction needs: those that it has not seen, and the end
    of what it has seen, from the user's last message on. What is no state (a resume) comes back as it is."""
    flushed = state.get("flushed_to") if isinstance(state, dict) else None
    messages = state.get("messages") if flushed else None
    if not isinstance(messages, list) or not all(isinstance(message, BaseMessage) for message in messages):
        return state
    seen = _start(state)
    asked = (n for n in range(seen - 1, -1, -1) if isinstance(messages[n], HumanMessage) and not is_marked(messages[n]))
    return {**state, "messages": messages[next(asked, max(seen - 1, 0)) :]}


def _start(state: MemoryState) -> int:
    place = place_of(state.get("messages", []), state.get("flushed_to"))
    return 0 if place is None else place + 1
