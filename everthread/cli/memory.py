"""Commands about what is remembered: recall, list, show, history, forget."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from everthread.cli.home import Here, parse_scope, parse_time, with_home
from everthread.cli.output import counted, print_json, print_table, say, when
from everthread.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everthread.nodes.retrieve.candidate import Candidate
    from everthread.nodes.retrieve.node import Looked
    from everthread.stores.contract import MemoryStore, Source
    from everthread.stores.record import ErasureReceipt, Hit, Recall, Receipt, Record, Selection, Status

__all__ = ["forget", "history", "list_records", "recall", "show"]

ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", metavar="NAME", help="Also what holds only in this thread, by its name or id."),
]
AsOfOption = Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="Memory as it was known then.")]
ScopeOption = Annotated[
    str | None, typer.Option("--scope", metavar="OWNER:ID", help="Only of this scope, such as user:ana.")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A record's id, such as mem_1f0c...")]


@with_home
def recall(
    here: Here,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in your own words.")],
    sources: Annotated[
        str,
        typer.Option(
            "--sources",
            metavar="NAMES",
            help="records (what was learnt), evidence (what was said), or both with a comma.",
        ),
    ] = "records",
    limit: Annotated[int, typer.Option("--limit", metavar="NUMBER", min=1, help="How many to show at most.")] = 10,
    floor: Annotated[
        float | None,
        typer.Option(
            "--floor",
            metavar="SCORE",
            help="Drop what scores below this; 0 shows everything.",
            show_default="what a turn asks for; half of it for evidence",
        ),
    ] = None,
    as_of: AsOfOption = None,
    thread: ThreadOption = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show every candidate: its signals, its rank in each search, and why it was dropped.",
        ),
    ] = False,
) -> None:
    """Search memory. Prints the best match first, or why nothing was found.

    \b
    Examples:
      everthread recall "which database did we choose"
      everthread recall "greyhound" --sources evidence --limit 5
      everthread recall "where do I live" --as-of 2024-03-01 --explain
    """
    from everthread.stores.ranking import FLOOR, ON_DEMAND_FLOOR

    wanted = _sources(sources)
    if floor is None:
        floor = ON_DEMAND_FLOOR if "evidence" in wanted else FLOOR
    with here.open_store() as store:
        thread_id = here.known_thread(store, thread) if thread else None
        found = store.recall(
            here.identity,
            query,
            limit=limit,
            sources=wanted,
            thread_id=thread_id,
            as_of=parse_time(as_of),
            floor=floor,
            explain=explain,
        )
        turn = _turn(store, here, query, thread_id, wanted) if explain and as_of is None else None
    if here.json:
        print_json(found)
    else:
        _print_recall(found, explain=explain)
        if turn:
            _print_turn(turn)


@with_home
def list_records(
    here: Here,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Only with this status; may be repeated.",
            show_default="active and contested",
        ),
    ] = None,
    scope: ScopeOption = None,
    thread: ThreadOption = None,
    as_of: AsOfOption = None,
    limit: Annotated[int, typer.Option("--limit", metavar="NUMBER", min=1, help="How many to show at most.")] = 100,
) -> None:
    """List what is remembered, the newest first.

    \b
    Examples:
      everthread list
      everthread list --status superseded --status archived
      everthread list --scope user:ana --json
    """
    with here.open_store() as store:
        options: dict[str, Any] = {"statuses": _statuses(status)} if status else {}
        found = store.records(
            here.identity,
            scopes=[parse_scope(scope)] if scope else None,
            thread_id=here.known_thread(store, thread) if thread else None,
            as_of=parse_time(as_of),
            limit=limit,
            **options,
        )
    if here.json:
        print_json(found)
    elif not found:
        say("nothing is remembered here yet")
    else:
        _print_records(found)


@with_home
def show(here: Here, id: Annotated[str, typer.Argument(metavar="ID", help="A record's or a receipt's id.")]) -> None:
    """Show a record, or a receipt, with everything that is known about it.

    \b
    Examples:
      everthread show mem_1f0c...
      everthread show rcp_77ab... --json
    """
    with here.open_store() as store:
        receipt = store.receipt(here.identity, id) if id.startswith("rcp_") else None
        found: Record | Receipt = receipt or here.known_record(store, here.identity, id)
    if here.json:
        print_json(found)
    else:
        _print_fields(found.model_dump(mode="json", exclude_none=True))


@with_home
def history(here: Here, id: IdArgument) -> None:
    """Show every revision of a record, the oldest first, and why each was written.

    \b
    Examples:
      everthread history mem_1f0c...
    """
    with here.open_store() as store:
        here.known_record(store, here.identity, id)
        found = store.history(here.identity, id)
        reasons = {
            receipt.at: each.reason  # a revision is recorded at the time of its receipt
            for receipt in store.receipts(here.identity, id)
            for each in receipt.decisions
            if id in (each.record_id, each.target)
        }
    if here.json:
        print_json(found)
        return
    rows = [
        (
            str(record.revision),
            when(record.recorded_at),
            record.status,
            record.statement,
            reasons.get(record.recorded_at, record.write_reason),
        )
        for record in found
    ]
    columns = ("revision", "recorded", "status", "statement", "reason")
    print_table(columns, rows, under=columns[3:], named=("reason",))


@with_home
def forget(
    here: Here,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Records to erase.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="Everything that rests on this thread.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="NAME", help="Everything about this subject.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", metavar="OWNER:ID", help="Everything of this scope, such as user:ana.")
    ] = None,
    messages: Annotated[
        list[str] | None,
        typer.Option(
            "--message", metavar="ID", help="With --thread: only what rests on this message; may be repeated."
        ),
    ] = None,
    with_source: Annotated[
        bool,
        typer.Option("--with-source", help="Erase the messages it came from too, in every checkpoint."),
    ] = False,
    with_backups: Annotated[
        bool,
        typer.Option("--with-backups", help="Delete the copies that an upgrade left beside the file."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go; change nothing.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the receipt.")
    ] = "asked for on the command line",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase memories for good, with a receipt. This cannot be undone.

    What is erased matches every option that is given, and is not learnt again from the same words. The messages it came
    from stay and can be searched, unless --with-source erases them too; if any of them is left then, it ends with 1.
    --scope user:ID with --with-source erases everything of that user, threads included.

    \b
    Examples:
      everthread forget mem_1f0c...
      everthread forget --scope user:ana --with-source --dry-run
      everthread forget --thread trip-planning --with-source
      everthread forget --subject "Ana's address" --yes
    """
    from everthread.stores import open_checkpointer

    with ExitStack() as open_files:
        store = open_files.enter_context(here.open_store())
        selection = _selection(here, store, ids, thread, messages, subject, scope)
        saver = open_files.enter_context(open_checkpointer(here.url)) if with_source else None

        def erase(dry_run: bool) -> ErasureReceipt:
            return store.erase(
                here.identity,
                selection,
                reason=reason,
                with_source=with_source,
                threads=saver,
                dry_run=dry_run,
                with_backups=with_backups,
            )

        if not (dry_run or yes):
            _confirm(selection, with_source, lambda: erase(True))
        receipt = erase(dry_run)
    if here.json:
        print_json(receipt)
    elif dry_run:
        said = "; --with-source counts what was said there" if thread and not with_source else ""
        say(f"would erase {_counted(receipt) or f'nothing: nothing matches{said}'}")
    else:
        _print_erasure(receipt)
    if with_source and not (receipt.verified or dry_run):
        raise typer.Exit(1)


def _sources(text: str) -> list[Source]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or set(names) - {"records", "evidence"}:
        raise UsageError(f"--sources {text!r} is not known; write records, evidence, or records,evidence")
    return cast("list[Source]", names)


def _statuses(given: list[str]) -> list[Status]:
    from everthread.stores.record import Status

    known = get_args(Status)
    for status in given:
        if status not in known:
            raise UsageError(f"--status {status!r} is not known; choose from {', '.join(known)}")
    return cast("list[Status]", given)


def _selection(
    here: Here,
    store: MemoryStore,
    ids: list[str] | None,
    thread: str | None,
    messages: list[str] | None,
    subject: str | None,
    scope: str | None,
) -> Selection:
    from everthread.stores.record import Selection

    if messages and not thread:
        raise UsageError("--message needs the thread that it is in; add --thread NAME")
    if not (ids or thread or subject or scope):
        raise UsageError("nothing selected; give ids, --thread, --subject or --scope")
    return Selection(
        record_ids=tuple(ids or ()),
        thread_id=here.thread_id(store, thread) if thread else None,
        message_ids=tuple(messages or ()),
        subject=subject,
        scope=parse_scope(scope) if scope else None,
    )


def _confirm(selection: Selection, with_source: bool, count: Callable[[], ErasureReceipt]) -> None:
    """Ask, having shown how much would go."""
    if not sys.stdin.isatty():
        raise UsageError("erasing cannot be undone; add --yes to do it without being asked")
    parts = [f"{name.replace('_', ' ')} {value}" for name, value in selection if value]
    what = " and ".join(parts) + (", with the messages it came from" if with_source else "")
    say(f"this erases {_counted(count()) or 'nothing: nothing matches'}", err=True)
    typer.confirm(f"Erase what is remembered of {what}? This cannot be undone.", abort=True)


def _turn(store: MemoryStore, here: Here, query: str, thread_id: str | None, sources: Sequence[Source]) -> Looked:
    """What a turn that asks this of these sources would put before the model, and what not."""
    from everthread.nodes import Retrieve
    from everthread.stores.identity import MemoryContext

    return Retrieve(sources=sources).look(store, MemoryContext(identity=here.identity), [query], thread_id=thread_id)


def _print_turn(turn: Looked) -> None:
    """What a turn adds to the search, and what it leaves out of it."""
    from everthread.stores.display import shown

    def said(candidate: Candidate) -> str:
        return shown(candidate.hit) if candidate.hit else candidate.text

    kept = [(said(each), "shown", each.why or "found by the search", each.id) for each in turn.kept]
    left = [(said(each.candidate), each.rule, each.why, each.candidate.id) for each in turn.left_out]
    if kept or left:
        print_table(("in a turn", "rule", "why", "id"), [*kept, *left], under=("why", "id"))
    else:
        say("in a turn: nothing is shown")


def _print_recall(found: Recall, *, explain: bool = False) -> None:
    from everthread.stores.display import shown

    if found.hits and explain:
        columns = ("statement", "score", "signals", "ranks", "why", "id")
        print_table(columns, _explained(found.hits), under=columns[2:], named=columns[2:4], stacked=True)
    elif found.hits:
        rows = [
            (shown(hit), f"{hit.score:.3f}", hit.speaker or "", when(hit.at), hit.source, _id_of(hit))
            for hit in found.hits
        ]
        print_table(("statement", "score", "who", "when", "source", "id"), rows, under=("who", "when", "source", "id"))
    else:
        hint = "; --floor 0 shows it" if "floor" in (found.abstained or "") else ""
        say(f"nothing found: {found.abstained or 'no candidate'}{hint}")
    for arm in found.degraded:
        say(f"degraded: {arm}", err=True)
    if found.dropped:
        columns = ("dropped", "score", "signals", "ranks", "why", "id")
        print_table(columns, _explained(found.dropped), under=columns[2:], named=columns[2:4], stacked=True)


def _explained(hits: Sequence[Hit]) -> list[tuple[str, ...]]:
    """What is shown of it, score, signals, place in each arm, why, id: what the columns of an explanation are."""
    from everthread.stores.display import shown

    return [
        (
            shown(hit),
            f"{hit.score:.3f}",
            ", ".join(f"{name} {value:.2f}" for name, value in hit.signals.model_dump().items() if value),
            ", ".join(f"{arm} #{rank}" for arm, rank in hit.ranks.items()),
            hit.why.removeprefix("dropped: "),
            _id_of(hit),
        )
        for hit in hits
    ]


def _id_of(hit: Hit) -> str:
    return hit.record_id or f"{hit.thread_id}#{','.join(hit.message_ids)}"


def _print_records(found: list[Record]) -> None:
    rows = [
        (
            record.statement,
            record.content_type,
            str(record.scope),
            record.status,
            record.authority.value,
            when(record.recorded_at),
            record.id,
        )
        for record in found
    ]
    columns = ("statement", "type", "scope", "status", "authority", "recorded", "id")
    print_table(columns, rows, under=columns[1:])


def _print_fields(fields: dict[str, Any], prefix: str = "") -> None:
    """One line a field, nested ones by their path: `provenance.source`."""
    for name, value in fields.items():
        if isinstance(value, dict):
            _print_fields(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, inner in enumerate(value, 1):
                _print_fields(inner, f"{prefix}{name}[{number}].")
        elif value not in ([], ""):
            say(f"{prefix}{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")


def _counted(receipt: ErasureReceipt) -> str:
    """How much of what: `1 record, 2 revisions, 1 index row`."""
    one = {"index": "index row", "evidence": "message", "inbox": "waiting input"}
    return ", ".join(
        counted(number, one.get(kind, kind.removesuffix("s"))) for kind, number in receipt.erased.items() if number
    )


def _print_erasure(receipt: ErasureReceipt) -> None:
    counts = _counted(receipt)
    say(f"erased {counts or 'nothing: nothing matched'}; receipt {receipt.id}")
    if not counts:
        return  # what remains is then of nothing
    for left in receipt.remains:
        for option in ("with_source", "with_backups"):
            left = left.replace(f"{option}=True", f"--{option.replace('_', '-')}")
        say(f"remains: {left}")
    if receipt.verified:
        say("what the store keeps was read again: the words are nowhere in it")
    else:
        say("what the store keeps was read again: the words are still in it, as listed above", err=True)
