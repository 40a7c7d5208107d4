"""The command line: `everthread COMMAND`.

A command is a function `command(here, ...)` under `with_home` in a file of this folder, and one line here.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everthread.cli.audit import audit
from everthread.cli.chat import chat
from everthread.cli.consent import consent
from everthread.cli.consolidate import consolidate
from everthread.cli.correct import archive, correct, verify
from everthread.cli.demo import demo
from everthread.cli.doctor import doctor
from everthread.cli.export import copy, export
from everthread.cli.extract import extract
from everthread.cli.ingest import ingest
from everthread.cli.init import init
from everthread.cli.jobs import jobs
from everthread.cli.memory import forget, history, list_records, recall, show
from everthread.cli.migrate import import_memory
from everthread.cli.review import review
from everthread.cli.tasks import tasks
from everthread.cli.threads import threads
from everthread.cli.why import why
from everthread.cli.worker import worker

__all__ = ["app", "main"]

app = typer.Typer(
    name="everthread",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("chat")(chat)
app.command("ingest")(ingest)
app.command("import")(import_memory)
app.command("recall")(recall)
app.command("list")(list_records)
app.command("show")(show)
app.command("history")(history)
app.command("why")(why)
app.command("review")(review)
app.command("correct")(correct)
app.command("verify")(verify)
app.command("archive")(archive)
app.command("forget")(forget)
app.command("export")(export)
app.command("copy")(copy)
app.command("consent")(consent)
app.command("audit")(audit)
app.command("threads")(threads)
app.command("tasks")(tasks)
app.command("extract")(extract)
app.command("jobs")(jobs)
app.command("worker")(worker)
app.command("consolidate")(consolidate)
app.command("init")(init)
app.command("doctor")(doctor)
app.command("demo")(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        from everthread import __version__

        typer.echo(f"everthread {__version__}")
        raise typer.Exit()


@app.callback()
def _everthread(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Memory for LangGraph agents: read conversations in, recall, inspect, correct and erase.

    Without a model everything stays on this machine; [bold]everthread doctor[/bold] says what goes where.

    \b
    Examples:
      everthread demo
      everthread chat "I prefer short reports."
      everthread ingest chat.jsonl
      everthread recall "what did we decide about the database" --sources records,evidence
      everthread list --json
    """


def main() -> None:
    """The entry point `everthread`."""
    for stream in (sys.stdout, sys.stderr):
        # Memories are in every language; a pipe with another encoding must not end in a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    app(prog_name="everthread")
