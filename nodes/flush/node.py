"""The flush node: learns from the messages that `Compact` is about to replace by a summary (R53)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from everthread.errors import ModelReplyError
from everthread.nodes.compact.budget import Counter
from everthread.nodes.compact.cut import KEEP_TOKENS, checked_turns, leaving
from everthread.nodes.extract import Extractor, RuleExtractor
from everthread.nodes.extract.external import shuts_out
from everthread.nodes.extract.later import When, is_late, learn_later
from everthread.nodes.extract.node import said_before, waiting
from everthread.nodes.extract.pipeline import learn, silenced
from everthread.nodes.node import Node, Steps, announce, context_of, store_of, thread_of
from everthread.nodes.state import MemoryState, with_receipt

__all__ = ["Flush"]


class Flush(Node):
    """Writes what is about to leave the window to the transcript and learns from it, by the same door as `Extract`.

    `keep_tokens`, `keep_turns` and `counter` are those of the `Compact` behind it: both ask the same function where the
    cut will be.
    What extraction has seen already (`flushed_to`) is not read again. With an extractor that calls a model (or
    `when="job"`, as in `Extract`) the transcript and a job are enough: they have everything. When an inline extractor's
    model gives nothing usable, the transcript has the messages all the same, and `Extract` reads them again at the end
    of the turn. `exclude_external` is that of `Extract`.
    """

    reads_messages = True

    def __init__(
        self,
        extractor: Extractor | None = None,
        *,
        trusted_tools: frozenset[str] = frozenset(),
        keep_tokens: int = KEEP_TOKENS,
        keep_turns: int | None = None,
        counter: Counter | None = None,
        when: When | None = None,
        exclude_external: bool = False,
    ) -> None:
        self.extractor = extractor or RuleExtractor()
        self.late = is_late(self.extractor, when)
        self.trusted_tools = trusted_tools
        self.exclude_external = exclude_external
        self.keep_tokens, self.keep_turns = keep_tokens, checked_turns(keep_turns)
        self.counter = counter

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `flushed_to` and `receipts`; nothing when no unseen message is about to leave."""
        divided = leaving(state, self.keep_tokens, self.counter, self.keep_turns)
        unseen = waiting(state)
        unseen = unseen[: len(unseen) - len(divided.tail)] if divided and len(unseen) > len(divided.tail) else []
        if not unseen:
            announce(runtime, "flush", "skipped", reason="nothing that leaves the window is unseen")
            return {}
        if why := silenced(context_of(runtime), store_of(runtime), thread_of(runtime)):
            announce(runtime, "flush", "skipped", reason=why)
            return {}
        if self.exclude_external and shuts_out(runtime, unseen, self.trusted_tools, node="flush"):
            return {}
        if self.late:
            put_off_to = learn_later(runtime, self.extractor, unseen, before=said_before(state), node="flush")
            return {"flushed_to": put_off_to} if put_off_to else {}
        try:
            seen = yield from learn(
                runtime,
                self.extractor,
                unseen,
                before=said_before(state),
                trusted_tools=self.trusted_tools,
                node="flush",
            )
        except ModelReplyError as error:
            announce(runtime, "flush", "failed", reason=f"{error}; the end of the turn tries again")
            return {}
        announce(runtime, "flush", "flushed", messages=len(unseen), to=seen[0] if seen else None)
        if seen is None:
            return {}
        last, receipt = seen
        return {"flushed_to": last, "receipts": with_receipt(state, receipt.id if receipt else None)}
