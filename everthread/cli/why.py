"""Why is this remembered, and why is it recalled or not? `everthread why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import clean, print_json, say, when

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore, Touch
    from everthread.stores.record import Decision, Evidence, Hit, Recall, Receipt, Record

__all__ = ["why"]


@with_home
def why(
    here: Here,
    id: Annotated[str, typer.Argument(metavar="ID", help="A record's id, such as mem_1f0c...")],
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="TEXT", help="Explain how it ranks for this question, and whether a turn would show it."
        ),
    ] = None,
) -> None:
    """Explain one memory: who said it, which rule decided, which answers it was part of, and with --query how it is
    recalled.

    \b
    Examples:
      everthread why mem_1f0c...
      everthread why mem_1f0c... --query "which database"
    """
    from everthread.cli.reports import Explanation

    with here.open_store() as store:
        record = here.known_record(store, here.identity, id)
        source = record.provenance
        said = (
            store.transcripts.read(here.identity, source.thread_id, ids=source.message_ids) if source.thread_id else []
        )
        receipts = store.receipts(here.identity, id)
        answers = store.trace(here.identity, id)
        found = _rank(store.recall(here.identity, query, limit=50, explain=True), id) if query else None
        shown = _in_a_turn(store, here, query, id) if query else None
    if here.json:
        print_json(
            Explanation(record=record, said=said, receipts=receipts, recall=found, in_a_turn=shown, answers=answers)
        )
    else:
        _print(record, said, _decisions(receipts, id))
        _print_answers(answers)
        if query:
            _print_rank(query, found)
            say(clean(f"in a turn: {shown}"))


def _rank(recall: Recall, id: str) -> Hit | None:
    return next((hit for hit in (*recall.hits, *recall.dropped) if hit.record_id == id), None)


def _in_a_turn(store: MemoryStore, here: Here, query: str, id: str) -> str:
    """What becomes of the record in a turn that asks this, and by which rule."""
    from everthread.nodes import Retrieve
    from everthread.stores.identity import MemoryContext

    turn = Retrieve().look(store, MemoryContext(identity=here.identity), [query], explain=True)
    for left in turn.left_out:
        if left.candidate.id == id:
            return f"left out by the rule {left.rule}: {left.why}"
    for kept in turn.kept:
        if kept.id == id:
            return f"shown: {kept.why or 'found by the search'}"
    dropped = _rank(turn.recall, id) if turn.recall else None
    return f"not shown: {dropped.why.removeprefix('dropped: ')}" if dropped else "not shown: it is no candidate"


def _decisions(receipts: list[Receipt], id: str) -> list[tuple[Receipt, Decision]]:
    return [
        (receipt, each) for receipt in receipts for each in receipt.decisions if id in (each.record_id, each.target)
    ]


def _print(record: Record, said: list[Evidence], decisions: list[tuple[Receipt, Decision]]) -> None:
    source = record.provenance
    say(clean(f"{record.statement}"))
    say(f"is {record.status}, revision {record.revision}, of {record.scope}, authority {record.authority.value}")
    say(clean(f"written because: {record.write_reason}"))
    say(clean(f"source: {source.source} {source.actor or ''}, {when(source.observed_at)}, by {source.extracted_by}"))
    for message in said:
        say(clean(f'  {message.speaker or message.role} said: "{message.text}"'))
    for other in record.confirmed_by:
        say(clean(f"confirmed by {other.source} {other.actor or ''}, {when(other.observed_at)}"))
    for relation in record.relations:
        say(clean(f"{relation.kind} {relation.target}: {relation.reason}"))
    for receipt, decision in decisions:
        say(f"{when(receipt.at)} {_outcome(decision, record.id)}: {decision.reason} ({receipt.id})")


def _print_answers(answers: list[Touch]) -> None:
    """Where it stood in a request, and what the reply did then (R296)."""
    say("Answers it was part of:" if answers else "Answers it was part of: none")
    for touch in answers:
        did = ", ".join(call.name for call in touch.calls)
        derived = f", by {touch.record_id}, derived from it or in its place," if touch.derived else ""
        place = f"thread {touch.thread_id}, " if touch.thread_id else ""
        called = f"; it called {did}" if did else ""
        answer = f"reply {touch.reply_id}" if touch.reply_id else f"the answer to {touch.answers}"
        say(f"  {when(touch.at)} {place}{answer}, revision {touch.revision}{derived}{called}")


def _outcome(decision: Decision, id: str) -> str:
    """What a decision did to this record: it may be the one that was written, or the one that had to give way."""
    by = f", by rule {decision.rule}"
    if decision.target is None or decision.record_id == decision.target:
        return f"{decision.outcome}{by}"
    if decision.target == id:
        return f"{decision.outcome} by {decision.record_id or 'nothing'}{by}"
    return f"{decision.outcome} {decision.target}{by}"


def _print_rank(query: str, found: Hit | None) -> None:
    if found is None:
        say(clean(f"for {query!r} it is no candidate: it may not be read now, or shares nothing with the question"))
        return
    if found.why.startswith("dropped: "):
        say(f"for {query!r} it is left out: {found.why.removeprefix('dropped: ')}")
        return
    signals = ", ".join(f"{name} {value:.2f}" for name, value in found.signals.model_dump().items() if value)
    ranks = "".join(f", {arm} #{rank}" for arm, rank in found.ranks.items())
    say(clean(f"for {query!r} it scores {found.score:.3f} ({signals}{ranks}): {found.why}"))
