"""One door for writes (R84, R88): propose -> validate (with the scope) -> resolve -> commit.

The steps are functions over one `Work`. `remember` runs them in a row for the nodes; the remember graph runs them one
node each; `remember_statement` is the explicit save of the memory tools. Nothing else writes records from a
conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from everthread.errors import Conflict, UsageError
from everthread.nodes.eviction import whole
from everthread.nodes.extract import wording
from everthread.nodes.extract.candidate import Candidate, Extractor, Look, Window
from everthread.nodes.extract.ground import Ground, is_injected, unfinished
from everthread.nodes.extract.resolve import EXPLICIT_SAVE, resolve, settled
from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.extract.sequence import Positions, learnt_before, overtaking, said_later
from everthread.nodes.extract.validate import Draft, Refusal, Reminder, validate
from everthread.nodes.node import Ask, announce, context_of, drive, store_of, thread_of
from everthread.nodes.state import is_marked, mark_of
from everthread.stores.access import grants
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity, MemoryContext
from everthread.stores.messages import from_messages
from everthread.stores.record import Change, Evidence, Receipt, Record, now_utc
from everthread.stores.text import sound

__all__ = [
    "Work",
    "begin",
    "commit",
    "learns",
    "propose",
    "remember",
    "remember_statement",
    "resolve_all",
    "silenced",
    "validate_all",
    "window_key",
]

TRIES = 3
"""How often a decision is made anew when another writer was first."""
NEAR = 8
"""How many known records are compared with a statement that has no property of its own."""
MAX_READ = 65_536
"""Characters of one message that are learnt from: as much as can be searched. Longer text is an artifact (R92)."""
SKEW = timedelta(days=1)
"""How far the clock or the time zone that messages are dated by may be off."""
AROUND = 50
"""How many of the last messages of a conversation are looked through for where the words of a save are from."""
REVIEWED = 200
"""How many records that wait or were rejected are compared with a new one that has to wait."""


class Work(NamedTuple):
    """One window on its way through the door."""

    identity: Identity
    """On whose behalf."""
    thread_id: str
    """The thread."""
    key: str
    """The idempotency key: the same window is learnt from once (R86)."""
    lines: tuple[Evidence, ...]
    """The messages, numbered from 1; marked ones and turns without an answer are left out."""
    now: datetime
    """The time that decisions are made at."""
    before: str | None = None
    """Id of the user's last message before the window: "do not remember that" may mean it."""
    saves: tuple[str, ...] = ()
    """Receipts of what the memory tools saved in this window."""
    later: tuple[str, ...] = ()
    """Ids of the thread's messages after the window, in order, when it is read late."""
    again: bool = False
    """The thread is read again: what was to be done by now is over."""
    extracted_by: str = "rules/1"
    """The extractor that proposed."""
    known: tuple[Record, ...] = ()
    """The records that the extractor was shown."""
    candidates: tuple[Candidate, ...] = ()
    """What it proposed."""
    verdicts: tuple[Draft | Reminder | Refusal, ...] = ()
    """What became of each candidate by itself."""
    changes: tuple[Change, ...] = ()
    """What is to be written."""

    @property
    def last(self) -> str:
        """Id of the last message of the window: the watermark once it is committed."""
        return self.lines[-1].message_id


def learns(context: MemoryContext, store: MemoryStore, thread_id: str) -> bool:
    """Whether this run may learn: memory is `on` for the run, for its thread, and for its user (R288, R289)."""
    return silenced(context, store, thread_id) is None


def silenced(context: MemoryContext, store: MemoryStore, thread_id: str) -> str | None:
    """Why this run may not learn, in a sentence; None when it may."""
    chosen = {
        "run": context.memory,
        "thread": store.transcripts.memory_of(context.identity, thread_id),
        "user, by consent": store.consent(context.identity),
    }
    return next((f"memory is {memory} for this {what}" for what, memory in chosen.items() if memory != "on"), None)


def begin(
    identity: Identity,
    store: MemoryStore,
    thread_id: str,
    messages: Sequence[AnyMessage],
    *,
    before: str | None = None,
    key: str | None = None,
) -> Work | None:
    """Write the messages to the transcript, and make a `Work` of those that can be learnt from; None without any.

    The transcript comes first: it is the durable evidence that extraction rests on, and holds evicted tool results
    whole (R42). Messages that memory put in itself are neither (R111). A turn at the end that has no answer yet stays
    for the next window.
    """
    said = [
        whole(message, identity, store) if isinstance(message, ToolMessage) else message
        for message in messages
        if not is_marked(message)
    ]
    lines = from_messages(thread_id, said, identity=identity)
    store.transcripts.append(identity, lines)
    work = work_of(identity, thread_id, lines, before=before, key=key)
    saves = (mark_of(message).get("receipt") for message in messages)
    return work and work._replace(saves=tuple(each for each in saves if isinstance(each, str)))


def work_of(
    identity: Identity, thread_id: str, lines: Sequence[Evidence], *, before: str | None = None, key: str | None = None
) -> Work | None:
    """A `Work` of transcript lines; None when nothing in them can be learnt from."""
    own = [_read(line) for line in lines if not is_injected(line)]
    open_turn = unfinished(own)
    while own and len(own) in open_turn:
        own.pop()
    if not own:
        return None
    key = key or window_key(thread_id, own[-1].message_id)
    return Work(identity, thread_id, key, tuple(own), now_utc(), before=before)


def window_key(thread_id: str, last: str) -> str:
    """The key of the window that ends with this message, for its commit and for its job."""
    return f"extract:{thread_id}:{last}"


def _read(line: Evidence) -> Evidence:
    """The line as it is learnt from: the beginning of what was said, as sound text. The transcript has all of it."""
    speaker = None if line.speaker is None else sound(line.speaker)
    return line.model_copy(update={"text": sound(line.text[:MAX_READ]), "speaker": speaker})


def propose(work: Work, extractor: Extractor, store: MemoryStore) -> Generator[Ask, Any, Work]:
    """Ask the extractor. Raises ModelReplyError as it does: nothing is written then."""
    window = Window(work.lines, look=_look(store, work.identity, work.thread_id), project=work.identity.project)
    candidates = yield from extractor.propose(window)
    distinct = {candidate.model_dump_json(): candidate for candidate in candidates}
    ordered = sorted(distinct.values(), key=lambda candidate: max(candidate.messages, default=0))
    return work._replace(candidates=tuple(ordered), known=tuple(window.shown), extracted_by=extractor.id)


def validate_all(work: Work, trusted_tools: frozenset[str] = frozenset()) -> Work:
    """Judge each candidate by itself."""
    ground = _ground(work, trusted_tools=trusted_tools)
    return work._replace(verdicts=tuple(validate(candidate, ground) for candidate in work.candidates))


def _ground(work: Work, **more: Any) -> Ground:
    identity, extracted_by = work.identity, work.extracted_by
    return Ground(
        identity, work.thread_id, work.lines, extracted_by=extracted_by, known=work.known, now=work.now, **more
    )


def resolve_all(work: Work, store: MemoryStore, *, dry_run: bool = False) -> Work:
    """Decide what each draft does to what is known. Drafts of one window see each other, in the thread's order.

    Reminders become tasks here, by a key, so that deciding again makes no second one; with `dry_run` none is made.
    """
    changes: list[Change] = _withdrawn(work, store)
    planned: dict[str, Record] = {}
    gone: set[str] = {str(change.target) for change in changes}
    learnt = _learnt_before(work, store)
    positions = {id: n for n, id in enumerate([*(line.message_id for line in work.lines), *work.later])}
    reminders = Counter[str]()
    for verdict in work.verdicts:
        match verdict:
            case Refusal():
                changes.append(
                    Change(action="refuse", rule=verdict.rule, reason=verdict.reason, evidence=verdict.evidence)
                )
            case Reminder() if work.again and verdict.due_at <= work.now:
                reason = "it was to be done by a time that is over"
                changes.append(Change(action="refuse", rule="over", reason=reason, evidence=verdict.evidence))
            case Reminder():
                key = f"task:{work.thread_id}:{','.join(verdict.evidence)}:{verdict.due_at.isoformat()}"
                reminders[key] += 1
                changes.append(_task(work, None if dry_run else store, verdict, f"{key}:{reminders[key]}"))
            case Draft():
                existing = [
                    record for record in [*planned.values(), *_known(work, store, verdict)] if record.id not in gone
                ]
                change = _permitted(_resolved(verdict, existing, learnt, positions), existing, work.identity)
                if (
                    change.target
                    and change.action in ("supersede", "end")
                    and (change.record is None or change.record.status != "pending")
                ):
                    gone.add(change.target)
                    planned.pop(change.target, None)
                if change.record:
                    planned[change.record.id] = change.record
                others = settled(verdict, change, existing)
                gone.update(str(each.target) for each in others)
                changes += [change, *others]
    return work._replace(changes=tuple(changes))


def commit(work: Work, store: MemoryStore) -> Receipt | None:
    """Write what was decided in one transaction; None when there is nothing to say. When another writer was first, the
    decision is made anew on what stands now, up to three times; then Conflict."""
    for attempt in range(1, TRIES + 1):
        if not work.changes:
            return None
        try:
            return store.commit(work.identity, work.changes, key=work.key, thread_id=work.thread_id)
        except Conflict:
            if attempt == TRIES:
                raise
            work = resolve_all(work, store)
    raise AssertionError("unreachable")


def remember(
    runtime: Runtime[Any],
    extractor: Extractor,
    messages: Sequence[AnyMessage],
    *,
    before: str | None = None,
    key: str | None = None,
    trusted_tools: frozenset[str] = frozenset(),
    node: str = "extract",
) -> Generator[Ask, Any, Receipt | None]:
    """The whole door for one window of a thread: transcript, then propose, validate, resolve, commit.

    Returns the receipt, or None when nothing was proposed or the run may not learn. `before` is the id of the user's
    last message before the window. `key` names the window; the same key again writes nothing new.
    """
    work = yield from learn(
        runtime, extractor, messages, before=before, key=key, trusted_tools=trusted_tools, node=node
    )
    return work[1] if work else None


def learn(
    runtime: Runtime[Any],
    extractor: Extractor,
    messages: Sequence[AnyMessage],
    *,
    before: str | None = None,
    key: str | None = None,
    trusted_tools: frozenset[str] = frozenset(),
    node: str = "extract",
) -> Generator[Ask, Any, tuple[str, Receipt | None] | None]:
    """As `remember`; returns the id of the last message that was seen and the receipt, or None when none was seen."""
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    if not learns(context, store, thread_id):
        return None
    work = begin(context.identity, store, thread_id, messages, before=before, key=key)
    if work is None:
        return None
    work = yield from propose(work, extractor, store)
    work = validate_all(work, trusted_tools)
    tell_verdicts(runtime, node, work)
    receipt = commit(resolve_all(work, store), store)
    if receipt:
        tell_receipt(runtime, node, receipt)
    return work.last, receipt


def tell_verdicts(runtime: Runtime[Any], node: str, work: Work) -> None:
    """Announce each candidate. Of a refused one only the rule and the reason: not its words."""
    for verdict in work.verdicts:
        match verdict:
            case Draft(record=record):
                announce(
                    runtime,
                    node,
                    "candidate",
                    statement=record.statement,
                    content_type=record.content_type,
                    scope=str(record.scope),
                    authority=record.authority.value,
                    status=record.status,
                    rule=verdict.rule,
                    evidence=list(record.provenance.message_ids),
                )
            case Reminder():
                announce(runtime, node, "reminder", due_at=verdict.due_at.isoformat(), evidence=list(verdict.evidence))
            case Refusal():
                announce(
                    runtime, node, "refused", rule=verdict.rule, reason=verdict.reason, evidence=list(verdict.evidence)
                )


def tell_receipt(runtime: Runtime[Any], node: str, receipt: Receipt) -> None:
    """Announce what was written, by ids and rules."""
    announce(
        runtime,
        node,
        "receipt",
        id=receipt.id,
        decisions=[decision.model_dump(mode="json", exclude_none=True) for decision in receipt.decisions],
    )


def remember_statement(
    context: MemoryContext,
    store: MemoryStore,
    statement: str,
    *,
    request: HumanMessage | None,
    thread_id: str,
    key: str,
    corrects: str | None = None,
    reason: str | None = None,
    around: Sequence[AnyMessage] | None = None,
) -> Receipt:
    """The explicit save (R85): through the same rules at once, and the receipt says what became of it.

    It rests on `request`, the user's own last message: without one nothing is kept, and what that message does not say
    waits for review. `corrects` is the id of the record that the statement replaces, `reason` why it is written.
    `around` is the conversation in which a model saves: what it has from a page or a tool there is not the user's.
    None when a person does.

    Raises UsageError when memory is not writable in this run or the record to correct does not exist.
    """
    identity = context.identity
    if why := silenced(context, store, thread_id):
        raise UsageError(f"memory is not writable: {why}; nothing can be saved until it is 'on'")
    said = [request] if request is not None and not is_marked(request) else []
    lines = from_messages(thread_id, said, identity=identity)
    store.transcripts.append(identity, lines)
    old = store.record(identity, corrects) if corrects else None
    if corrects and old is None:
        raise UsageError(f"there is no memory {corrects}; search for its id first")
    lines = [_read(line) for line in lines]
    work = Work(identity, thread_id, key, tuple(lines), now_utc(), extracted_by=EXPLICIT_SAVE)
    candidate = _saved(statement, lines, old, identity)
    if reason:
        candidate = candidate.model_copy(update={"write_reason": reason})
    work = work._replace(candidates=(candidate,), known=(old,) if old else ())
    seen = [message for message in (around or [])[-AROUND:] if not is_marked(message)]
    ground = _ground(work, around=from_messages(thread_id, seen, identity=identity), picked_by_model=around is not None)
    work = work._replace(verdicts=(validate(candidate, ground),))
    receipt = commit(resolve_all(work, store), store)
    assert receipt is not None  # one candidate always comes to one change
    return receipt


def _saved(statement: str, lines: Sequence[Evidence], old: Record | None, identity: Identity) -> Candidate:
    """The statement as a candidate. What the rules read in the user's message tells which property it is, so that the
    same is not learnt twice, under two names."""
    read = drive(RuleExtractor().propose(Window(lines, project=identity.project)))
    fitting = [found for found in read if found.kind != "prospective" and not found.retracts]
    fields: dict[str, Any] = {"messages": (1,), "write_reason": "the user asked to keep it"}
    if len(fitting) == 1:
        fields = fitting[0].model_dump() | fields
    if old is not None:
        same_property = {"subject": old.subject, "predicate": old.predicate} if not fields.get("predicate") else {}
        fields |= {
            **same_property,
            "content_type": old.content_type if old.content_type != "summary" else "fact",
            "concerns": old.concerns,
            "owner": old.scope.owner,
            "records": (1,),
            "corrects": True,
        }
    return Candidate.model_validate({**fields, "statement": sound(statement)})


def _look(store: MemoryStore, identity: Identity, thread_id: str) -> Look:
    def look(query: str) -> Sequence[Record]:
        hits = store.recall(identity, query, limit=NEAR, thread_id=thread_id).hits
        ids = [hit.record_id for hit in hits if hit.record_id]
        return store.records(identity, ids=ids) if ids else []

    return look


def _known(work: Work, store: MemoryStore, draft: Draft) -> list[Record]:
    """The records that a draft could meet: of its property (near ones, when it has none), those it points to, what the
    memory tools saved in this window, and what waits. A property is read by its key: a search costs much more."""
    record, identity = draft.record, work.identity
    found: list[Record] = []
    if record.subject and record.predicate:
        found += store.current(identity, record.subject, record.predicate, thread_id=work.thread_id)
    else:
        found += _look(store, identity, work.thread_id)(record.statement)
    saved = [store.receipt(identity, each) for each in work.saves]
    ids = [decision.record_id for receipt in saved if receipt for decision in receipt.decisions if decision.record_id]
    if ids:
        found += store.records(identity, ids=ids)
    if draft.touches:
        found += store.records(identity, ids=draft.touches)
    if record.status == "pending":
        found += store.records(
            identity,
            scopes=[record.scope],
            statuses=("pending", "rejected"),
            thread_id=work.thread_id,
            limit=REVIEWED,
        )
    return list({each.id: each for each in found}.values())


def _permitted(change: Change, existing: Sequence[Record], identity: Identity) -> Change:
    """The change, or a refusal when the record it would touch is reserved to others (R143)."""
    target = next((record for record in existing if record.id == change.target), None)
    reserved = target.governance.writable_by if target else ()
    if not reserved or any(name in reserved for name in grants(identity)):
        return change
    return Change(
        action="refuse",
        rule="reserved",
        reason=f"the record it touches may be changed only by others ({change.target})",
        evidence=change.evidence,
    )


def _task(work: Work, store: MemoryStore | None, reminder: Reminder, key: str) -> Change:
    """A statement about something to be done becomes a task, and the receipt says so (R317). The key names the message
    and the time, not the window: read again, in whatever window, it is the same task. Without a store none is made."""
    made = store and store.tasks.create(
        work.identity,
        reminder.text,
        due_at=reminder.due_at,
        key=key,
        said_in=work.thread_id,
        message_ids=reminder.evidence,
    )
    task = made.id if made else "(not made)"
    return Change(
        action="refuse",
        rule="became-task",
        reason=f"it is to be done, not known: task {task}, due {reminder.due_at.isoformat(timespec='minutes')}",
        evidence=reminder.evidence,
    )


def _learnt_before(work: Work, store: MemoryStore) -> list[Record]:
    """What the messages that the drafts rest on have taught before, whatever became of it."""
    drafts = [verdict.record.provenance for verdict in work.verdicts if isinstance(verdict, Draft)]
    said = list(dict.fromkeys(id for each in drafts for id in each.message_ids))
    if not said or not work.thread_id:
        return []
    since = min((line.at for line in work.lines if line.message_id in said), default=None)
    return store.learnt_from(work.identity, work.thread_id, said, since=since and since - SKEW)


def _resolved(draft: Draft, existing: Sequence[Record], learnt: Sequence[Record], positions: Positions) -> Change:
    """What the draft comes to, when what was said later, or decided before, is left as it is."""
    known, later = learnt_before(draft, learnt, existing), overtaking(draft, existing, positions)
    evidence = draft.record.provenance.message_ids
    if known:
        reason = f"it was learnt from the same message before, and is {known.status} ({known.id})"
        return Change(action="refuse", rule="already-known", reason=reason, evidence=evidence)
    if later:
        reason = f"the thread says otherwise later ({later.id})"
        return Change(action="refuse", rule="older", reason=reason, evidence=evidence)
    if draft.retracts:
        existing = [each for each in existing if not said_later(each, draft, positions)]
    return resolve(draft, existing)


def _withdrawn(work: Work, store: MemoryStore) -> list[Change]:
    """Ends what was learnt from the message before this window, when "do not remember that" means it (R104)."""
    first = next((line for line in work.lines if line.source == "user"), None)
    if work.before is None or first is None:
        return []
    if not (wording.forbids_memory(first.text) and wording.only_forbids(first.text)):
        return []
    learnt = [
        record
        for record in store.learnt_from(work.identity, work.thread_id, [work.before])
        if record.status in ("active", "contested", "pending") and record.provenance.actor == work.identity.user
    ]
    return [
        Change(
            action="end",
            target=record.id,
            expected=record.revision,
            status="rejected",
            rule="do-not-remember",
            reason="the user asked not to remember it",
            evidence=(first.message_id,),
        )
        for record in learnt
    ]
