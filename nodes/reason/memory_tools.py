"""Memory on demand: tools that a model calls. Identity comes from the runtime, never from an argument (R163, R294).

Results are kept in the thread as references and read again when a request is assembled, so that an erased memory is
not in an old tool result either. A call that runs again after a crash does nothing twice: its key is the thread and
the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from hashlib import blake2b
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.prebuilt import ToolRuntime

from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.nodes.extract.pipeline import remember_statement
from everthread.nodes.node import chosen_here, context_of, memory_of, store_of, thread_of
from everthread.nodes.retrieve.node import Retrieve
from everthread.nodes.retrieve.query import asked_at
from everthread.nodes.state import MARK, last_request
from everthread.stores.identity import MemoryContext
from everthread.stores.passages import MOST_TOKENS, part_shown
from everthread.stores.ranking import ON_DEMAND_FLOOR
from everthread.stores.record import Hit, Receipt, Record, Selection

__all__ = ["memory_tools"]

SEARCH = Retrieve.five_records(floor=ON_DEMAND_FLOOR, profile_tokens=0, tasks=0)
"""What a model asks for goes through the stages that a turn's own recall goes through: nothing that is not trusted, no
contest by half."""


def told(function: Callable[..., ToolMessage]) -> Callable[..., ToolMessage]:
    """A tool that tells the model why it did nothing, in whatever agent it is. A failing backend still raises."""

    @wraps(function)
    def telling(*args: Any, **options: Any) -> ToolMessage:
        try:
            return function(*args, **options)
        except (AccessDenied, UsageError, Conflict) as error:
            raise ToolException(f"Not done: {error}") from error

    return telling


@tool
@told
def memory_search(query: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Search long-term memory: preferences, decisions and facts kept from earlier conversations.

    Use it when the request depends on something that was said before and is not in this conversation.
    """
    found = SEARCH.look(
        store_of(runtime),
        _reading(runtime),
        [query],
        thread_id=thread_of(runtime),
        said_at=asked_at(runtime.state.get("messages", [])),
    )
    records = [each.record for each in found.kept if each.record]
    if not records:
        reasons = (
            found.recall and found.recall.abstained,
            *(f"what matches is left out, since {left.why}" for left in found.left_out),
        )
        reason = next(filter(None, reasons), "no memory matches")
        return _result(runtime, "memory_search", f"Nothing found: {reason}.")
    return _result(runtime, "memory_search", f"Found {len(records)}.", records=records)


@tool
@told
def memory_get(ids: list[str], runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Read memories by id, exactly as they stand."""
    context = _reading(runtime)
    found = store_of(runtime).records(context.identity, ids=ids, as_of=context.moment)
    missing = [wanted for wanted in ids if wanted not in {record.id for record in found}]
    said = f"Found {len(found)}." + (f" No such memory: {', '.join(missing)}." if missing else "")
    return _result(runtime, "memory_get", said, records=found)


@tool
@told
def memory_save(statement: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Keep one statement in long-term memory. Use it only when the user states a clear preference or a fact about
    themselves or the project, or a decision is made (R123). Write it complete in itself, in the user's words."""
    receipt = remember_statement(
        context_of(runtime),
        store_of(runtime),
        statement,
        request=last_request(runtime.state.get("messages", [])),
        thread_id=thread_of(runtime),
        key=_key(runtime, statement),
        around=runtime.state.get("messages", []),
    )
    return _result(runtime, "memory_save", _told(receipt), receipt=receipt)


@tool
@told
def memory_correct(id: str, statement: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Replace what a memory says, because the user said that it is wrong or no longer true. The old one stays in its
    history."""
    receipt = remember_statement(
        context_of(runtime),
        store_of(runtime),
        statement,
        request=last_request(runtime.state.get("messages", [])),
        thread_id=thread_of(runtime),
        key=_key(runtime, id, statement),
        corrects=id,
        around=runtime.state.get("messages", []),
    )
    return _result(runtime, "memory_correct", _told(receipt), receipt=receipt)


@tool
@told
def memory_forget(ids: list[str], runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Erase memories for good, by id, because the user asked to forget them. Search for the ids first."""
    context = context_of(runtime)
    if not ids:
        raise UsageError("no id was given; search for the ids first")
    if chosen_here(runtime) != "on":
        raise UsageError("memory is not writable in this run or thread; set memory to 'on' to forget")
    store, identity = store_of(runtime), context.identity
    # A call that runs again after a crash finds nothing left to erase, and has forgotten it all the same.
    before = [id for id in dict.fromkeys(ids) if store.audit(identity, record_id=id, action="erase", limit=1)]
    left = tuple(id for id in dict.fromkeys(ids) if id not in before)
    gone = store.erase(identity, Selection(record_ids=left), reason="the user asked to forget it") if left else None
    forgotten = [*before, *(gone.record_ids if gone else ())]
    unknown = [id for id in ids if id not in forgotten]
    said = f"Forgotten: {len(forgotten)}" + (f" (receipt {gone.id})." if gone else ".")
    said += f" No such memory: {', '.join(unknown)}." if unknown else ""
    return _result(runtime, "memory_forget", said)


@tool
@told
def session_search(query: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
    """Search what was said, word for word, in this user's conversations. Use it when exact wording, order or evidence
    could change the answer (R207)."""
    context = _reading(runtime)
    recall = store_of(runtime).recall(
        context.identity, query, limit=5, sources=("evidence",), as_of=context.moment, floor=ON_DEMAND_FLOOR
    )
    if not recall.hits:
        return _result(runtime, "session_search", f"Nothing found: {recall.abstained or 'no message matches'}.")
    return _result(runtime, "session_search", f"Found {len(recall.hits)}.", evidence=recall.hits)


def memory_tools() -> list[BaseTool]:
    """memory_search, memory_get, memory_save, memory_correct, memory_forget and session_search, for any agent whose
    runtime carries an identity and a MemoryStore."""
    tools: list[BaseTool] = [memory_search, memory_get, memory_save, memory_correct, memory_forget, session_search]
    for each in tools:
        each.handle_tool_error = True
    return tools


def _reading(runtime: ToolRuntime[Any, Any]) -> MemoryContext:
    """The run's context, when it may read memory."""
    if memory_of(runtime) == "off":
        raise UsageError("memory is off in this run or thread, or by the user's consent; it is not searched")
    return context_of(runtime)


def _key(runtime: ToolRuntime[Any, Any], *said: str) -> str:
    """The thread and the call, which has the same arguments when it runs again. Some providers number the calls of each
    reply from 0: another call of the same id must not pass for this one."""
    digest = blake2b("\0".join(said).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"tool:{thread_of(runtime)}:{runtime.tool_call_id}:{digest}"


def _told(receipt: Receipt) -> str:
    return "; ".join(
        f"{decision.outcome}" + (f" {decision.record_id}" if decision.record_id else "") + f" ({decision.reason})"
        for decision in receipt.decisions
    )


def _result(
    runtime: ToolRuntime[Any, Any],
    name: str,
    text: str,
    *,
    records: Sequence[Record] = (),
    evidence: Sequence[Hit] = (),
    receipt: Receipt | None = None,
) -> ToolMessage:
    mark: dict[str, Any] = {"kind": "memory"}
    if records:
        mark["records"] = [[record.id, record.revision] for record in records]
    if evidence:
        mark["evidence"] = [[hit.thread_id, message_id] for hit in evidence for message_id in hit.message_ids]
        parts = [(hit, part_shown(hit.statement, hit.passage, MOST_TOKENS)) for hit in evidence]
        mark["parts"] = [[hit.thread_id, hit.message_ids[0], [*part]] for hit, part in parts if part]
    if receipt:
        mark["receipt"] = receipt.id
    return ToolMessage(content=text, tool_call_id=str(runtime.tool_call_id), name=name, additional_kwargs={MARK: mark})
