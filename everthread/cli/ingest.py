"""`everthread ingest`: conversations from elsewhere into the transcript."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import counted, on_terminal, print_json, print_table, say

if TYPE_CHECKING:
    from everthread.cli.formats import Found, Item, Message, Problem, Skipped
    from everthread.cli.reports import FileProblem, FileSkipped, IngestReport
    from everthread.stores.contract import MemoryStore
    from everthread.stores.identity import Identity

__all__ = ["ingest"]

_BATCH = 500
"""Messages that are kept in one transaction."""
_BATCH_CHARACTERS = 4_000_000
_SHOWN = 50
"""Rows of problems that a terminal shows; a pipe and `--json` have all."""

Advance = Callable[[int], None]


@with_home
def ingest(
    here: Here,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files or folders of conversations.")],
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Read as jsonl, locomo, longmemeval, codex, claude-code, opencode, chatgpt or evermemos.",
            show_default="by content",
        ),
    ] = None,
) -> None:
    """Read conversations into the transcript, where recall finds them as evidence.

    What was read before is not added again, and one bad line costs nothing but itself. Nothing leaves this machine.
    Ends with 1 when nothing could be read. To learn from what was read in, `everthread extract`.

    A line of jsonl is {"role": "user", "content": "..."}, and may have "time", "thread", "speaker" and "id".

    \b
    Examples:
      everthread ingest ~/.codex/sessions ~/.claude/projects
      everthread ingest conversations.json --format chatgpt
      everthread ingest chat.jsonl --home ./data --json
    """
    from everthread.cli.formats import Found, sources

    listed = [source for path in paths for source in sources(path, format)]
    run = _Ingest(here)
    run.skipped_files = [source for source in listed if not isinstance(source, Found)]
    found = [source for source in listed if isinstance(source, Found)]
    with here.open_store() as store, _progress(found) as advance:
        run.all_of(found, store, advance)
    report = run.report()
    if here.json:
        print_json(report)
    else:
        _print(report)
    if not report.read and (report.skipped_files or report.problems):
        raise typer.Exit(1)


class _Ingest:
    """Counts and batches while messages go by."""

    def __init__(self, here: Here) -> None:
        self.identity: Identity = here.identity
        self.began = time.monotonic()
        self.files, self.read, self.added = Counter[str](), Counter[str](), 0
        self.skipped: dict[str, Counter[str]] = {}
        self.skipped_files: list[Skipped] = []
        self.problems: list[Problem] = []
        self.ids: dict[str, str] = {}
        self.named: set[str] = set()
        self.batch: list[Message] = []

    def all_of(self, found: list[Found], store: MemoryStore, advance: Advance) -> None:
        """Read every source and keep its messages, a batch at a time."""
        self.named = {info.thread_id for info in store.transcripts.threads(self.identity) if info.name}
        size = 0
        for format, item in _items(found, self.files):
            message = self._count(format, item)
            if message is None:
                continue
            self.batch.append(message)
            size += len(message.text)
            if len(self.batch) >= _BATCH or size >= _BATCH_CHARACTERS:
                self._keep(store, advance)
                size = 0
        self._keep(store, advance)

    def _count(self, format: str, item: Item) -> Message | None:
        from everthread.cli.formats import Problem, Skipped

        if isinstance(item, Problem):
            self.problems.append(item)
        elif isinstance(item, Skipped):
            self.skipped.setdefault(format, Counter())[item.why] += 1
        else:
            self.read[format] += 1
            return item
        return None

    def _keep(self, store: MemoryStore, advance: Advance) -> None:
        from everthread.stores.record import Evidence
        from everthread.stores.threads import thread_id_for

        for message in self.batch:
            if message.thread not in self.ids:
                self.ids[message.thread] = thread_id_for(self.identity, message.thread)
        added = store.transcripts.append(
            self.identity,
            [
                Evidence(
                    thread_id=self.ids[message.thread],
                    message_id=message.id,
                    role=message.role,
                    speaker=message.speaker,
                    text=message.text,
                    at=message.at,
                    source=message.source,
                    payload=message.payload,
                )
                for message in self.batch
            ],
        )
        if added:  # a thread that was erased gets no name again
            for name in dict.fromkeys(message.thread for message in self.batch):
                if self.ids[name] not in self.named:
                    store.transcripts.bind(self.identity, self.ids[name], name=name)
                    self.named.add(self.ids[name])
        self.added += added
        advance(len(self.batch))
        self.batch.clear()

    def report(self) -> IngestReport:
        """What was done."""
        from everthread.cli.reports import FileProblem, FileSkipped, FormatCount, IngestReport

        total, read = Counter[str](), self.read.total()
        for skipped in self.skipped.values():
            total.update(skipped)
        return IngestReport(
            read=read,
            added=self.added,
            already_there=read - self.added,
            threads=len(self.ids),
            skipped=dict(total.most_common()),
            formats={
                name: FormatCount(files=files, read=self.read[name], skipped=dict(self.skipped.get(name, Counter())))
                for name, files in self.files.items()
            },
            skipped_files=tuple(
                FileSkipped(path=str(file.path), line=file.line, why=file.why) for file in self.skipped_files
            ),
            problems=tuple(FileProblem(path=str(p.path), line=p.line, why=p.why) for p in self.problems),
            seconds=round(time.monotonic() - self.began, 3),
        )


def _items(found: list[Found], files: Counter[str]) -> Iterator[tuple[str, Item]]:
    from everthread.cli.formats import read

    for source in found:
        files[source.format] += 1
        for item in read(source):
            yield source.format, item


@contextmanager
def _progress(found: list[Found]) -> Iterator[Advance]:
    """A progress bar on standard error, when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from everthread.cli.formats import Message

    columns = (TextColumn("messages"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        # Reading is some fifty times faster than keeping, so the total may be known first.
        task = progress.add_task("messages", total=None)
        total = sum(isinstance(item, Message) for _, item in _items(found, Counter()))
        progress.update(task, total=total)
        yield lambda count: progress.advance(task, count)


def _print(report: IngestReport) -> None:
    rate = f", {report.read / report.seconds:.0f} messages a second" if report.read and report.seconds > 0.1 else ""
    say(
        f"read {counted(report.read, 'message')} of {counted(report.threads, 'thread')} "
        f"in {report.seconds:.1f} s{rate}: "
        f"{report.added} added, {report.already_there} already there"
    )
    for name, count in report.formats.items():
        reasons = "; ".join(f"{number} {why}" for why, number in sorted(count.skipped.items()))
        say(
            f"{name}: {counted(count.files, 'file')}, {counted(count.read, 'message')}"
            + (f"; skipped: {reasons}" if reasons else "")
        )
    if report.skipped_files:
        _print_some(("file", "not read because"), [(_place(file), file.why) for file in report.skipped_files])
    if report.problems:
        _print_some(("place", "problem"), [(_place(problem), problem.why) for problem in report.problems])


def _place(what: FileSkipped | FileProblem) -> str:
    return f"{what.path}:{what.line}" if what.line else what.path


def _print_some(columns: tuple[str, str], rows: list[tuple[str, str]]) -> None:
    shown = rows[:_SHOWN] if on_terminal() else rows
    print_table(columns, shown)
    if len(shown) < len(rows):
        say(f"and {len(rows) - len(shown)} more; --json lists them all")
