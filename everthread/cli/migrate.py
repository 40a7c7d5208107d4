"""`everthread import`: an export of our own, or LangGraph's stores, langmem and mem0, by file or from PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from everthread.cli.export import bring_back
from everthread.cli.home import Here, with_home
from everthread.cli.output import on_terminal, print_json, print_table, say
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.migrate import Item, Layout, MigrationReport, Skipped
    from everthread.stores.identity import Identity, Scope

__all__ = ["import_memory"]

_SHOWN = 50
"""Rows of namespaces and scopes that a terminal shows; a pipe and `--json` have all."""


@with_home
def import_memory(
    here: Here,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A file: an export of everthread, a SQLite store, mem0's JSON; or postgresql://..."
        ),
    ],
    layout: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="LAYOUT",
            help="Read as langgraph, langmem or mem0.",
            show_default="an export of everthread's own",
        ),
    ] = None,
    map_file: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="TOML or JSON that says which namespace becomes whose memory.",
            show_default="the layout's own; langgraph has none",
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="NAME", help="mem0's table in PostgreSQL.", show_default="mem0"),
    ] = None,
    as_is: Annotated[
        bool,
        typer.Option("--as-is", help="An export of another store of yours: keep all as it is, as its operator."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count and show examples; write nothing.")] = False,
) -> None:
    """Bring back an export, or import another system's memory by the same rules as anything that is learnt.

    Only what becomes this user's, or this project's, is written: run it once for each user. Secrets, personal numbers,
    orders and sensitive facts are refused and counted. What was imported before is not added again.

    An export of this store is kept as it was. Of any other, no record outranks what a user implied, unless --as-is.

    \b
    Examples:
      everthread import ana.jsonl --user ana --dry-run
      everthread import old.db --from langgraph --map map.toml --user ana --dry-run
      everthread import old.db --from langmem --user ana
      everthread import mem0.json --from mem0 --user ana --json
      everthread import postgresql://reader@db.example/agents --from langmem --user ana --dry-run
    """
    if _is_own(source, layout):
        if map_file or collection:
            raise UsageError("--map and --collection go with --from; an export says itself whose memory it is")
        bring_back(here, source, as_is=as_is, dry_run=dry_run)
        return
    if as_is:
        raise UsageError("--as-is is for an export of everthread's own; what another memory kept is judged")
    from everthread.migrate import load_maps, migrate

    known = _layout(str(layout))
    maps = load_maps(map_file, known)
    identity = here.identity
    with (
        _opened(source, known, collection) as (total, items),  # before our own files are opened
        here.open_store() as store,
        _progress(total) as advance,
    ):
        report = migrate(
            store,
            items,
            maps,
            layout=known,
            identity_for=lambda scope: _member(identity, scope),
            dry_run=dry_run,
            advance=advance,
        )
    if here.json:
        print_json(report)
    else:
        _print(report)


@contextmanager
def _opened(source: str, layout: Layout, collection: str | None) -> Iterator[tuple[int, Iterable[Item | Skipped]]]:
    """How many items a source has, and the items: a file's all at once, a database's as they come."""
    from everthread.migrate import read
    from everthread.migrate.items import is_url

    if is_url(source):
        from everthread.migrate import postgres_items

        with postgres_items(source, layout, collection=collection) as found:
            yield found
    elif collection is not None:
        raise UsageError("--collection names a table in PostgreSQL; leave it out for a file")
    else:
        items = read(Path(source), layout)
        yield len(items), items


def _is_own(source: str, layout: str | None) -> bool:
    """Whether to read an export of everthread's own: the file begins as one, and nothing else was asked for."""
    from everthread.migrate import is_export
    from everthread.migrate.items import is_url

    if layout is not None:
        return False
    if is_url(source):
        raise UsageError("--from is missing: say how the database is laid out")
    if not Path(source).expanduser().exists():
        raise UsageError(f"{source} does not exist; give a file, or postgresql://...")
    if not is_export(Path(source).expanduser()):
        raise UsageError(f"{source} is no export of everthread's; say with --from how it is laid out")
    return True


def _layout(name: str) -> Layout:
    from everthread.migrate import Layout

    if name not in get_args(Layout):
        raise UsageError(f"--from {name!r} is not known; choose from {', '.join(get_args(Layout))}")
    return cast("Layout", name)


def _member(identity: Identity, scope: Scope) -> Identity | None:
    """The identity of the command line when the scope is its own: it grants no roles and speaks for nobody else."""
    from everthread.stores.identity import owners_of

    return identity if (scope.owner, scope.owner_id) in owners_of(identity) else None


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("items"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("items", total=total)
        yield lambda count: progress.advance(task, count)


def _print(report: MigrationReport) -> None:
    refused = sum(each.count for each in report.refused)
    skipped = sum(report.skipped.values())
    say(
        f"{'would import' if report.dry_run else 'imported'} from {report.read} items: {report.created} new, "
        f"{report.pending} to review, {report.revised} changed, {report.confirmed} confirmed, "
        f"{report.already_there} already there; {refused} refused, {skipped} skipped"
    )
    for statement in report.examples:
        say(f"for example: {statement}")
    if report.refused:
        print_table(
            ("refused by", "items", "because"), [(each.rule, str(each.count), each.reason) for each in report.refused]
        )
    if report.skipped:
        print_table(("skipped because", "items"), [(why, str(count)) for why, count in report.skipped.items()])
    _print_some("namespace without a map", report.unmapped)
    _print_some("not this user's", report.others)


def _print_some(title: str, counts: dict[str, int]) -> None:
    if not counts:
        return
    rows = [(name, str(count)) for name, count in counts.items()]
    shown = rows[:_SHOWN] if on_terminal() else rows
    print_table((title, "items"), shown)
    if len(shown) < len(rows):
        say(f"and {len(rows) - len(shown)} more; --json lists them all")
