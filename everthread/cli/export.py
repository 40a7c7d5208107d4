"""`everthread export`, `everthread copy`, and the part of `everthread import` that brings an export back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from everthread.cli.home import Here, parse_scope, with_home
from everthread.cli.output import clean, counted, print_json, print_table, say
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.cli.reports import ExportReport
    from everthread.migrate import RestoreReport
    from everthread.stores.transfer import CopyReport

__all__ = ["bring_back", "copy", "export"]

FORMATS = ("jsonl", "markdown")


@with_home
def export(
    here: Here,
    format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="jsonl to bring back, markdown to read.")
    ] = "jsonl",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; - is standard output.")
    ] = "-",
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="OWNER:ID", help="Only the records of this scope, such as project:billing."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
) -> None:
    """Export everything that is kept for you: records with all revisions, threads, tasks, receipts, the log.

    The file can be read by you alone, and is there whole or not at all. `everthread import FILE` brings it back. It is
    a copy: what is erased later is still in it. --project adds what you wrote for that project.

    \b
    Examples:
      everthread export --output ana.jsonl --user ana
      everthread export --format markdown --output ana.md
      everthread export --scope project:billing --project billing | wc -l
    """
    if format not in FORMATS:
        raise UsageError(f"--format {format!r} is not known; choose from {', '.join(FORMATS)}")
    chosen = cast('Literal["jsonl", "markdown"]', format)
    with here.open_store() as store:
        count = _Counted(store.export(here.identity, scope=parse_scope(scope) if scope else None, format=chosen))
        if output == "-":
            _print_lines(count)
            return
        from everthread.stores.files import write_private

        path = Path(output).expanduser()
        write_private(path, count, force=force)
    report = count.report(path, chosen)
    if here.json:
        print_json(report)
    else:
        say(f"exported {counted(report.lines, 'line')}, {report.bytes} bytes, to {report.path}; only you can read it")
        for left, number in report.left_out.items():
            said = f"left out: {counted(number, 'record')} in {left}, which this identity does not belong to here"
            say(f"{said}{'; add --' + left.replace(':', ' ') if left.startswith('project:') else ''}", err=True)


class _Counted:
    """Lines on their way, counted; the first is kept, since it says what is in it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._first = ""
        self._count = self._bytes = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._first = self._first or line
            self._count += line.count("\n")
            self._bytes += len(line.encode("utf-8", "replace"))
            yield line

    def report(self, path: Path, format: Literal["jsonl", "markdown"]) -> ExportReport:
        """What was written."""
        import json

        from everthread.cli.reports import ExportReport

        header = json.loads(self._first) if format == "jsonl" else {}
        return ExportReport(
            path=str(path),
            format=format,
            lines=self._count,
            bytes=self._bytes,
            export=header.get("id"),
            counts=header.get("counts", {}),
            left_out=header.get("left_out", {}),
        )


def _print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output as they are; on a terminal, without what steers it."""
    shown = clean if sys.stdout.isatty() else str
    for line in lines:
        typer.echo(shown(line), nl=False)


@with_home
def copy(
    here: Here,
    source: Annotated[str, typer.Argument(metavar="SRC", help="URL or folder of the store to copy.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="URL or folder of an empty store.")],
) -> None:
    """Copy a whole store into an empty one: all tenants and users, with their history and the audit log.

    Run it again when it was interrupted: it goes on. Both are compared at the end. The threads' checkpoints are not
    part of it; docs/moving.md says how they come along.

    \b
    Examples:
      everthread copy ~/.everthread sqlite:/srv/memory
      everthread copy sqlite:./data postgresql://memory@db.example/agents --json
    """
    from everthread.stores import open_store
    from everthread.stores.transfer import copy as copy_store

    _check_places(source, target)
    with open_store(source) as old, open_store(target) as new, _progress("rows") as advance:
        report = copy_store(old, new, advance=advance)
    if here.json:
        print_json(report)
    else:
        _print_copy(report)


def _check_places(source: str, target: str) -> None:
    """Refuse to make a store where the source should be, and to copy one into itself."""
    from everthread.stores.open import located

    (old, there), (new, _) = located(source), located(target)
    if not there:
        raise UsageError(f"there is no store at {old}")
    if old == new:
        raise UsageError(f"source and target are the same store, {old}; name another place")


def _print_copy(report: CopyReport) -> None:
    total = sum(report.rows.values())
    if report.already:
        say(f"both stores have the same {total} rows already")
        return
    resumed = f", {report.resumed_at} of them by an earlier run" if report.resumed_at else ""
    say(f"copied {total} rows{resumed}; both stores were compared, the audit log is whole")
    print_table(("table", "rows"), [(table, str(count)) for table, count in report.rows.items()])
    say(f"{report.searchable} texts can be searched")


def bring_back(here: Here, source: str, *, as_is: bool, dry_run: bool) -> None:
    """`everthread import` of an export of everthread's own."""
    from everthread.migrate import restore
    from everthread.stores.identity import Identity

    identity = here.identity
    if as_is:
        # who has the store's files and says so is its operator
        identity = Identity.model_validate(identity.model_dump() | {"roles": {"admin"}})
    with here.open_store() as store, _progress("entries") as advance:
        report = restore(store, Path(source).expanduser(), identity, as_is=as_is, dry_run=dry_run, advance=advance)
    if here.json:
        print_json(report)
    else:
        _print_restored(report)


PROOF = {
    "sealed": "this store wrote it: all is kept as it was",
    "as-is": "taken as it is, as you say",
    "none": "nothing proves that this store wrote it: no record outranks what a user implied; "
    "--as-is keeps all, if both stores are yours",
}


def _print_restored(report: RestoreReport) -> None:
    changed = ", and it was edited since" if report.changed else ""
    refused = sum(each.count for each in report.refused)
    counts = [sum(each.values()) for each in (report.new, report.there, report.erased, report.other)]
    say(f"an export of {report.user}, {report.exported_at:%Y-%m-%d %H:%M}; {PROOF[report.proof]}{changed}")
    say(
        f"{'would bring' if report.dry_run else 'brought'} back {counts[0]} of {report.read} entries; "
        f"{counts[1]} are here already, {counts[2]} were erased here and stay away, {counts[3]} are other things here, "
        f"{refused} refused"
    )
    if report.lowered or report.pending:
        say(f"settle less than before: {counted(report.lowered, 'record')}; wait for review: {report.pending}")
    names = dict.fromkeys(name for each in (report.new, report.there, report.erased, report.other) for name in each)
    rows = [
        (name, *(str(each.get(name, 0)) for each in (report.new, report.there, report.erased, report.other)))
        for name in names
    ]
    if rows:
        print_table(("type", "new", "already here", "erased here", "left alone"), rows)
    if report.refused:
        print_table(
            ("refused by", "entries", "because"), [(each.rule, str(each.count), each.reason) for each in report.refused]
        )
    for conflict in report.conflicts[:20]:
        say(f"left alone, something else has this id: {conflict}", err=True)
    if len(report.conflicts) > 20:
        say(f"and {len(report.conflicts) - 20} more; --json lists them", err=True)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int], None]]:
    """How far it has come, on standard error, when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(what), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.advance(task, count)
