"""What was done with memory, and by whom? `everthread audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, print_table, say, when
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores.contract import AuditEntry

__all__ = ["audit"]


@with_home
def audit(
    here: Here,
    record: Annotated[
        str | None, typer.Option("--record", metavar="ID", help="Only what concerns this record; erased ones too.")
    ] = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="NAME", help="Only what was done there.")] = None,
    action: Annotated[
        str | None,
        typer.Option("--action", metavar="NAME", help="Only write, recall, inject, act, erase, consent, ..."),
    ] = None,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", min=0, help="Only entries after this one.")] = 0,
    limit: Annotated[int, typer.Option("--limit", metavar="NUMBER", min=1, help="How many to show at most.")] = 1_000,
) -> None:
    """Print the audit log: who did what to memory, by id, and whether its chain of hashes is intact.

    Shows what you did, and what others did to your memory. Ends with 1 when an entry was changed or is gone.

    \b
    Examples:
      everthread audit
      everthread audit --record mem_1f0c...
      everthread audit --thread planning --action inject --json
    """
    from everthread.cli.reports import AuditReport
    from everthread.stores.tables.audit import Action

    if action is not None and action not in get_args(Action):
        raise UsageError(f"--action {action!r} is not known; choose from {', '.join(get_args(Action))}")
    with here.open_store() as store:
        entries = store.audit(
            here.identity,
            record_id=record,
            thread_id=here.thread_id(store, thread) if thread else None,
            action=action,
            after=after,
            limit=limit,
        )
        chain = store.verify_audit(here.identity.tenant)
    if here.json:
        print_json(AuditReport(entries=entries, chain=chain))
    else:
        _print(entries, record, more=len(entries) == limit)
        say(chain.detail if chain.ok else f"NOT verified: {chain.detail}; {chain.remedy}")
    if not chain.ok:
        raise typer.Exit(1)


def _print(entries: list[AuditEntry], record: str | None, *, more: bool) -> None:
    if not entries:
        say("no entries")
        return
    rows = [
        (str(entry.seq), when(entry.at), entry.user, entry.action, _told(entry, record), entry.thread_id or "")
        for entry in entries
    ]
    columns = ("entry", "time", "user", "action", "what", "thread")
    print_table(columns, rows, under=columns[4:], named=("thread",))
    if more:
        say(f"there may be more; go on with --after {entries[-1].seq}")


def _told(entry: AuditEntry, record: str | None) -> str:
    """What an entry says, in one line of ids; of a write only what concerns this record, if one was asked for."""
    detail = entry.detail
    match entry.action:
        case "write" if "decisions" in detail:
            return "; ".join(_decided(each) for each in detail["decisions"] if record in (None, each[2], each[4]))
        case "recall" | "inject" if "records" in detail:
            said = [f"message {message}" for _, message in detail.get("messages", [])]
            return ", ".join([*(f"{id} revision {revision}" for id, revision, *_ in detail["records"]), *said])
        case "act" if "calls" in detail:
            return ", ".join(name for _, name in detail["calls"])
        case "cite" if "records" in detail:
            cited = [f"{id} revision {revision}" for id, revision in detail["records"]]
            return ", ".join([*cited, *(f"{id} did not apply" for id, _ in detail.get("not_applicable", []))])
        case "consent":
            return f"{detail['before']} -> {detail['memory']}"
    return ", ".join(f"{name} {_listed(value)}" for name, value in detail.items() if value not in (None, [], {}))


def _decided(decision: list[Any]) -> str:
    outcome, rule, record_id, _, target = decision
    about = [part for part in (record_id, f"over {target}" if target else None) if part]
    return " ".join([outcome, *about, f"by rule {rule}"])


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
