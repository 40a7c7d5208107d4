"""What waits for a decision, and the decisions. `everthread review`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.acting import AgentOption, OrganizationOption, RoleOption, TeamOption, acting
from everthread.cli.home import Here, with_home
from everthread.cli.output import on_terminal, print_json, print_table, say, when
from everthread.errors import AccessDenied, Conflict, UsageError

if TYPE_CHECKING:
    from everthread.nodes.extract.review import Verdict, Waiting
    from everthread.stores.contract import MemoryStore
    from everthread.stores.identity import Identity
    from everthread.stores.record import Decision, Receipt, Record

__all__ = ["review", "told", "walk"]

KEYS = "[a]pprove  [e]dit  [r]eject  [s]kip  [q]uit"


@with_home
def review(
    here: Here,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The record to decide about.")] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Use it as it stands.")] = False,
    edit: Annotated[
        str | None, typer.Option("--edit", metavar="TEXT", help="Use it in these words, which are yours.")
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Do not use it, and do not ask again.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the receipt.")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only list what waits, on a terminal too.")] = False,
    unverified: Annotated[bool, typer.Option("--unverified", help="List what was longest unverified instead.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="NUMBER", min=1, help="With --unverified: how many to list.")
    ] = 10,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="Also what would hold only in this thread.")
    ] = None,
    role: RoleOption = None,
    agent: AgentOption = None,
    team: TeamOption = None,
    organization: OrganizationOption = None,
) -> None:
    """Decide what waits for review: approve it, edit it, or reject it.

    On a terminal it asks about one after the other, by a key. In a pipe, and with --list, it lists them. What would
    hold for you alone, you decide; what would hold for others takes --role curator.

    \b
    Examples:
      everthread review
      everthread review --list --json
      everthread review mem_1f0c... --approve
      everthread review mem_1f0c... --edit "We deploy on Mondays." --reason "it was Tuesday until March"
      everthread review mem_1f0c... --reject --role curator --project billing
      everthread review --unverified --limit 20
    """
    from everthread.nodes.extract.correction import unverified as longest_unverified
    from everthread.nodes.extract.review import waiting

    identity = acting(here, role, agent, team, organization)
    verdict = _verdict(id, approve, edit, reject, reason)
    with here.open_store() as store:
        if unverified:
            _print_unverified(here, longest_unverified(store, identity, limit=limit))
        elif verdict is not None and id is not None:
            here.known_record(store, identity, id)
            told(here, _decided(store, identity, id, verdict))
        else:
            thread_id = here.known_thread(store, thread) if thread else None
            found = waiting(store, identity, record_id=id, thread_id=thread_id)
            if here.json:
                print_json(found)
            elif not found:
                say("nothing waits for a decision")
            elif list_only or not (on_terminal() and sys.stdin.isatty()):
                _print_waiting(found)
            else:
                walk(found, lambda each, said: _decided(store, identity, each.record.id, said))


def walk(
    found: Sequence[Waiting],
    decide: Callable[[Waiting, Verdict], Receipt],
    key: Callable[[], str] = typer.getchar,
    line: Callable[[str], str] = lambda asked: str(typer.prompt(asked, default="", show_default=False)),
) -> None:
    """Ask about one after the other by a key, and decide. What cannot be decided is said, and stays. Ctrl-C, or the end
    of what is typed, leaves the rest, like q."""
    from everthread.nodes.extract.review import Verdict

    counted = {"approved": 0, "edited": 0, "rejected": 0, "skipped": 0}
    for number, each in enumerate(found, 1):
        _show(each, f"{number} of {len(found)}")
        while True:
            say(KEYS)
            try:
                pressed = key().lower()
                verdict = _asked(pressed, line, Verdict)
            except (KeyboardInterrupt, EOFError, typer.Abort):
                pressed, verdict = "q", None
                say()
            if pressed in ("q", "\x03", "\x04", "\x1b"):
                _count(counted, left=len(found) - number + 1)
                return
            if pressed == "s":
                counted["skipped"] += 1
                break
            if verdict is None:
                continue
            try:
                decide(each, verdict)
            except (AccessDenied, Conflict, UsageError) as error:
                say(f"not done: {error}", err=True)
                continue
            done = {"approve": "approved", "edit": "edited", "reject": "rejected"}[verdict.verdict]
            counted[done] += 1
            say(done)
            break
    _count(counted, left=0)


def told(here: Here, receipt: Receipt) -> None:
    """Print what became of a decision; end with 1 when a rule refused it."""
    if here.json:
        print_json(receipt)
    for decision in receipt.decisions:
        refused = decision.outcome == "refused"
        if not here.json:
            what = f"{_done(decision)} {decision.record_id or ''}".rstrip()
            other = decision.target not in (None, decision.record_id) and not refused
            instead = f" in place of {decision.target}" if other else ""
            say(f"{what}{instead}: {decision.reason} ({decision.rule}, receipt {receipt.id})", err=refused)
        if refused:
            raise typer.Exit(1)


def _done(decision: Decision) -> str:
    """What was done, in the word of the command that did it; else the outcome, as receipts have it."""
    if decision.rule in ("approved", "edited", "rejected", "archived", "unarchived", "verified"):
        return decision.rule
    return "kept" if decision.outcome == "superseded" else decision.outcome


def _decided(store: MemoryStore, identity: Identity, id: str, verdict: Verdict) -> Receipt:
    from everthread.nodes.extract.review import review

    return review(store, identity, id, verdict)


def _verdict(id: str | None, approve: bool, edit: str | None, reject: bool, reason: str | None) -> Verdict | None:
    """The verdict that the options name; None without one."""
    from everthread.nodes.extract.review import Verdict

    named = [name for name, given in (("approve", approve), ("edit", edit is not None), ("reject", reject)) if given]
    if len(named) > 1:
        raise UsageError(f"--{' and --'.join(named)} exclude each other; give one")
    if named and id is None:
        raise UsageError(f"--{named[0]} needs the ID to decide about; `everthread review --list` shows them")
    if reason is not None and not named:
        raise UsageError("--reason goes with --approve, --edit or --reject")
    return Verdict.of({"verdict": named[0], "statement": edit, "reason": reason}) if named else None


def _asked(pressed: str, line: Callable[[str], str], verdict: type[Verdict]) -> Verdict | None:
    """The verdict of a key, having asked for words and reason; None when there is none."""
    match pressed:
        case "a":
            return verdict(verdict="approve")
        case "e":
            words = line("In your words (empty: go back)").strip()
            if not words:
                return None
            return verdict(verdict="edit", statement=words, reason=line("Why (may be empty)").strip() or None)
        case "r":
            return verdict(verdict="reject", reason=line("Why (may be empty)").strip() or None)
    return None


def _show(each: Waiting, place: str) -> None:
    """What a reviewer has to see of one. Each text is one line: none can pretend to be another."""
    record, source = each.record, each.record.provenance
    say()
    say(f"{place}: {_flat(record.statement)}")
    say(f"  for {record.scope}, authority {record.authority.value}, {record.id}")
    say(f"  waits because {_flat(each.why)} ({each.rule})")
    say(f"  source: {source.source} {_flat(source.actor or '')}, {when(source.observed_at)}")
    if source.artifact:
        say(f"  cites {_flat(source.artifact)}, revision {_flat(source.artifact_revision or 'unknown')}")
    for message in each.said:
        say(f'  {_flat(message.speaker or message.role)} said: "{_short(message.text)}"')
    if not each.said and source.thread_id:
        say("  what was said stands in a conversation that you may not read")
    for verb, others in (("replace", each.replaces), ("stand against", each.contradicts)):
        for other in others:
            said = f"{other.authority.value}, {when(other.recorded_at)}"
            say(f"  would {verb}: {_flat(other.statement)} ({said})")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _short(text: str, limit: int = 400) -> str:
    flat = _flat(text)
    return flat if len(flat) <= limit else f"{flat[:limit]}..."


def _count(counted: dict[str, int], *, left: int) -> None:
    say(", ".join(f"{number} {name}" for name, number in {**counted, "left": left}.items() if number) or "nothing done")


def _print_waiting(found: Sequence[Waiting]) -> None:
    rows = [
        (
            each.record.statement,
            str(each.record.scope),
            each.record.authority.value,
            each.why,
            "; ".join(old.statement for old in (*each.replaces, *each.contradicts)),
            when(each.record.recorded_at),
            each.record.id,
        )
        for each in found
    ]
    columns = ("statement", "for", "authority", "waits because", "would replace", "since", "id")
    print_table(columns, rows, under=columns[1:], named=("for", "waits because", "would replace", "since"))


def _print_unverified(here: Here, found: Sequence[Record]) -> None:
    if here.json:
        print_json(found)
    elif not found:
        say("nothing is remembered here yet")
    else:
        rows = [
            (
                record.statement,
                str(record.scope),
                record.authority.value,
                when(record.provenance.observed_at),
                when(record.verified_at),
                record.id,
            )
            for record in found
        ]
        columns = ("statement", "for", "authority", "said", "verified", "id")
        print_table(columns, rows, under=columns[1:], named=("said", "verified"))
