"""The steps of the one door as nodes of their own, for the remember graph.

What passes between them is in an untracked channel: no candidate is ever written into a checkpoint. A run that is
resumed after a crash therefore starts again with `propose`, from the durable transcript, and the key of the window
keeps it from writing twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from everthread.errors import UsageError
from everthread.nodes.extract.candidate import Extractor
from everthread.nodes.extract.external import external_in, shut_out, shuts_out
from everthread.nodes.extract.later import When, is_late, job_kind, put_off
from everthread.nodes.extract.node import said_before, waiting
from everthread.nodes.extract.pipeline import (
    Work,
    begin,
    commit,
    propose,
    resolve_all,
    silenced,
    tell_receipt,
    tell_verdicts,
    validate_all,
    work_of,
)
from everthread.nodes.extract.review import decide, standing_beside
from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.node import Node, Outcome, Steps, announce, context_of, store_of, thread_of
from everthread.nodes.state import MemoryUpdate
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity
from everthread.stores.record import Change, Receipt, Record

__all__ = [
    "Commit",
    "Propose",
    "RememberOutput",
    "RememberState",
    "Resolve",
    "Review",
    "Validate",
    "is_reviewed",
    "unless_lost",
]

WIDER = "wider-scope"
"""The rule whose records a person decides on (R159)."""


class RememberState(TypedDict, total=False):
    """The state of the remember graph: small, and without a word of what is learnt."""

    messages: Annotated[list[AnyMessage], UntrackedValue]
    """The new window, as the host passes it; the transcript keeps it."""
    work: Annotated[Work | None, UntrackedValue]
    """What the steps pass on."""
    flushed_to: str
    """Id of the last message that extraction has seen."""
    receipts: list[str]
    """Ids of the receipts of this run."""


class RememberOutput(TypedDict, total=False):
    """What remembering gives its host."""

    flushed_to: str
    """Id of the last message that extraction has seen."""
    receipts: list[str]
    """Ids of the receipts of this run: what was written, refused or reviewed."""


class Step(Node):
    """A step of the remember graph."""

    def __call__(self, state: Any, runtime: Runtime[Any]) -> Outcome:
        """As any node's; the state is a `RememberState` (LangGraph takes a node's input schema from this signature)."""
        return super().__call__(state, runtime)


class Decides(Step):
    """A step that takes the `work` one step further."""

    def steps(self, state: Any, runtime: Runtime[Any]) -> Steps:
        """Returns the `work` with this step's decisions; nothing when a crash has lost it (see `unless_lost`)."""
        yield from ()
        work = state.get("work")
        return {} if work is None else self.advance(work, runtime)

    @abstractmethod
    def advance(self, work: Work, runtime: Runtime[Any]) -> MemoryUpdate:
        """This step's part."""


class Propose(Step):
    """Writes the window to the transcript and asks the extractor."""

    def __init__(
        self,
        extractor: Extractor | None = None,
        when: When | None = None,
        *,
        trusted_tools: frozenset[str] = frozenset(),
        exclude_external: bool = False,
    ) -> None:
        self.extractor = extractor or RuleExtractor()
        self.late = is_late(self.extractor, when)
        self.trusted_tools = trusted_tools
        self.exclude_external = exclude_external

    def steps(self, state: Any, runtime: Runtime[Any]) -> Steps:
        """Returns the `work` with its candidates and goes on to `validate`; ends at once when there is nothing to
        learn, memory is not on, or a job does it. Raises ModelReplyError as the extractor does."""
        context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
        if why := silenced(context, store, thread_id):
            announce(runtime, "propose", "skipped", reason=why)
            return Command(goto="__end__")
        messages = waiting(state)
        if self.exclude_external and shuts_out(runtime, messages, self.trusted_tools, node="propose"):
            return Command(goto="__end__", update={"flushed_to": messages[-1].id, "receipts": []})
        if state.get("messages"):
            work = begin(context.identity, store, thread_id, messages, before=said_before(state))
        else:
            lines = store.transcripts.read(context.identity, thread_id, after=state.get("flushed_to"))
            outside = external_in(lines, self.trusted_tools) if self.exclude_external else None
            if outside is not None:
                shut_out(runtime, outside, node="propose")
                return Command(goto="__end__", update={"flushed_to": lines[-1].message_id, "receipts": []})
            work = work_of(context.identity, thread_id, lines)
        if work is None:
            return Command(goto="__end__", update={"receipts": []})
        if self.late:
            job, kind = put_off(work, store, self.extractor), job_kind(self.extractor)
            announce(runtime, "propose", "put-off", reason="a job learns from it", job=job, kind=kind)
            return Command(goto="__end__", update={"flushed_to": work.last, "receipts": []})
        work = yield from propose(work, self.extractor, store)
        return Command(goto="validate", update={"work": work, "receipts": []})


class Validate(Decides):
    """Judges each candidate by itself: scope, authority, secrets, reach."""

    def __init__(self, trusted_tools: frozenset[str] = frozenset()) -> None:
        self.trusted_tools = trusted_tools

    def advance(self, work: Work, runtime: Runtime[Any]) -> MemoryUpdate:
        """Returns the `work` with a verdict for each candidate."""
        judged = validate_all(work, self.trusted_tools)
        tell_verdicts(runtime, "validate", judged)
        return {"work": judged}


class Resolve(Decides):
    """Decides what each draft does to what is known."""

    def advance(self, work: Work, runtime: Runtime[Any]) -> MemoryUpdate:
        """Returns the `work` with its changes."""
        return {"work": resolve_all(work, store_of(runtime))}


class Commit(Decides):
    """Writes everything in one transaction; what waits for review is in the store, pending, before anybody is asked."""

    def advance(self, work: Work, runtime: Runtime[Any]) -> MemoryUpdate:
        """Returns `flushed_to` and `receipts`."""
        receipt = commit(work, store_of(runtime))
        if receipt:
            tell_receipt(runtime, "commit", receipt)
        return {"flushed_to": work.last, "receipts": [receipt.id] if receipt else []}


class Review(Step):
    """Asks a person about candidates for a wider scope, by `interrupt()`, and does what they say.

    The interrupt names records, not their words: those are read from the store. Resume as an identity that may decide,
    with `Command(resume={record_id: verdict})`; a verdict is `"approve"`, `"reject"`, or
    `{"verdict": "edit", "statement": ..., "reason": ...}`. What is not named stays pending.
    """

    def steps(self, state: Any, runtime: Runtime[Any]) -> Steps:
        """Returns `receipts` with those of the decisions added; AccessDenied when the identity may not decide."""
        yield from ()
        store, identity = store_of(runtime), context_of(runtime).identity
        pending = _pending(state, store, identity)
        if not pending:
            return {}
        verdicts = interrupt({"review": [_shown(record) for record in pending]})
        changes = _decided(verdicts, pending, identity, store)
        if not changes:
            return {}
        receipt = store.commit(
            identity, changes, key=f"review:{'+'.join(state['receipts'])}", thread_id=thread_of(runtime)
        )
        tell_receipt(runtime, "review", receipt)
        return {"receipts": [*state["receipts"], receipt.id]}


def unless_lost(following: str) -> Callable[[RememberState], str]:
    """The edge to the step that follows, or back to `propose` when a resumed run has no `work` any more."""

    def next_step(state: RememberState) -> str:
        return following if state.get("work") else "propose"

    return next_step


def is_reviewed(state: RememberState, runtime: Runtime[Any]) -> Literal["propose", "review", "__end__"]:
    """To the review when this run wrote something that a person must decide on; back to `propose` as `unless_lost`."""
    if not state.get("work"):
        return "propose"
    return "review" if _pending(state, store_of(runtime), context_of(runtime).identity) else "__end__"


def _pending(state: Any, store: MemoryStore, identity: Identity) -> list[Record]:
    """The records of this run that wait for a decision about their wider scope, in the order they were written."""
    receipts: list[Receipt | None] = [store.receipt(identity, each) for each in state.get("receipts", [])]
    ids = [
        decision.record_id
        for receipt in receipts
        if receipt
        for decision in receipt.decisions
        if decision.outcome == "pending" and decision.rule == WIDER and decision.record_id
    ]
    return [record for record in store.records(identity, ids=ids) if record.status == "pending"] if ids else []


def _shown(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "revision": record.revision,
        "scope": str(record.scope),
        "authority": record.authority.value,
        "reason": record.write_reason,
    }


def _decided(verdicts: Any, pending: list[Record], identity: Identity, store: MemoryStore) -> list[Change]:
    if not isinstance(verdicts, Mapping):
        raise UsageError('resume a review with Command(resume={record_id: "approve" or "reject"})')
    unknown = set(verdicts) - {record.id for record in pending}
    if unknown:
        raise UsageError(f"nothing to review under {', '.join(sorted(unknown))}; the interrupt names the ids")
    return [
        decide(record, verdicts[record.id], identity, standing=standing_beside(store, identity, record))
        for record in pending
        if record.id in verdicts
    ]
