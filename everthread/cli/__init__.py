"""The command line: `everthread COMMAND`.

A command is a function `command(here, ...)` under `with_home` in a file of this folder, and one line here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

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


class _Plain:
    """Help that shows no type beside a switch, `--help` among them: a switch takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False) and each.metavar is None:
                each.metavar = ""
        return params


class _Command(_Plain, TyperCommand):
    pass


class _Group(_Plain, TyperGroup):
    pass


app = typer.Typer(
    name="everthread",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_TALK, _LOOK = "Talk and read in", "See what is remembered"
_DECIDE, _BACKGROUND, _CARE = "Decide about it", "Threads and background work", "Move it and keep it sound"


def _command(panel: str, name: str, function: Callable[..., None]) -> None:
    app.command(name, cls=_Command, help=_prose(function.__doc__ or ""), rich_help_panel=panel)(function)


def _prose(doc: str) -> str:
    """A docstring with each paragraph on one line, so that it folds to the width of the terminal. Typer does so for
    the first one only. A paragraph that begins with \\b keeps its lines."""
    paragraphs = inspect.cleandoc(doc).split("\n\n")
    return "\n\n".join(each if each.startswith("\b") else " ".join(each.split()) for each in paragraphs)


_command(_TALK, "chat", chat)
_command(_TALK, "ingest", ingest)
_command(_TALK, "import", import_memory)
_command(_TALK, "init", init)
_command(_TALK, "demo", demo)
_command(_LOOK, "recall", recall)
_command(_LOOK, "list", list_records)
_command(_LOOK, "show", show)
_command(_LOOK, "history", history)
_command(_LOOK, "why", why)
_command(_LOOK, "audit", audit)
_command(_DECIDE, "review", review)
_command(_DECIDE, "correct", correct)
_command(_DECIDE, "verify", verify)
_command(_DECIDE, "archive", archive)
_command(_DECIDE, "forget", forget)
_command(_DECIDE, "consent", consent)
_command(_BACKGROUND, "threads", threads)
_command(_BACKGROUND, "tasks", tasks)
_command(_BACKGROUND, "extract", extract)
_command(_BACKGROUND, "jobs", jobs)
_command(_BACKGROUND, "worker", worker)
_command(_BACKGROUND, "consolidate", consolidate)
_command(_CARE, "export", export)
_command(_CARE, "copy", copy)
_command(_CARE, "doctor", doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        from everthread import __version__

        typer.echo(f"everthread {__version__}")
        raise typer.Exit()


@app.callback()
def _everthread(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Memory for LangGraph agents: recall it, see where it came from, correct it, erase it.

    Without a model everything stays on this machine; [bold]everthread doctor[/bold] says what is sent where.

    \b
    Examples:
      everthread demo
      everthread chat "I prefer short reports."
      everthread ingest chat.jsonl
      everthread recall "which database did we choose" --sources evidence
      everthread list --json
    """


def main() -> None:
    """The entry point `everthread`."""
    for stream in (sys.stdout, sys.stderr):
        # Memories are in every language; a pipe with another encoding must not end in a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    app(prog_name="everthread")
