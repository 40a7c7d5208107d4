"""What a command prints: tables and colours on a terminal, tab-separated lines in a pipe, models with `--json`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from everthread.errors import EverthreadError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["clean", "counted", "fail", "on_terminal", "print_json", "print_table", "say", "when"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Stored text may hold anything. Escape sequences and direction overrides would let it write over the
screen, and half a surrogate pair has no encoding."""


def on_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


def clean(text: str) -> str:
    """`text` without the characters that steer a terminal."""
    return _CONTROL.sub("\ufffd", text)


def counted(number: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line: cleaned, no markup; on standard error with `err`."""
    typer.echo(clean(text), err=err)


def when(moment: datetime | None) -> str:
    """A time for people, to the minute, in UTC; empty for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


def print_json(value: BaseModel | Sequence[BaseModel] | Mapping[str, Any]) -> None:
    """Print a model or a mapping as one JSON object, models as one array."""
    from json import dumps

    from pydantic_core import to_jsonable_python

    # Stored text may have a lone surrogate, which pydantic's own JSON cannot: it is printed as U+FFFD.
    text = dumps(to_jsonable_python(value), indent=2, ensure_ascii=False)
    typer.echo(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    under: Sequence[str] = (),
    named: Sequence[str] = (),
    stacked: bool = False,
) -> None:
    """Print rows under their columns. Nothing is cut off: a terminal folds, a pipe gets one line a row with tabs.

    On a terminal the columns named in `under` stand small below the first column, so that it has room; those in
    `named` with their name, where the value alone does not say what it is; `stacked`: each on a line of its own.
    """
    if not on_terminal():
        for row in (columns, *rows):
            typer.echo("\t".join(" ".join(clean(cell).split()) for cell in row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left")
    beside = [number for number, column in enumerate(columns) if number and column not in under]
    table.add_column(columns[0], overflow="fold", ratio=1 if under else None)
    for number in beside:
        table.add_column(columns[number], overflow="fold")
    for row in rows:
        small = ("\n" if stacked else " · ").join(
            f"{column} {clean(cell)}" if column in named else clean(cell)
            for column, cell in zip(columns, row, strict=True)
            if column in under and cell
        )
        first = Text(clean(row[0])).append(f"\n{small}" if small else "", style="dim")
        table.add_row(first, *(Text(clean(row[number])) for number in beside))
    Console().print(table)


def fail(error: EverthreadError) -> NoReturn:
    """Print the error as one line on standard error and end: 2 when the call was wrong, else 1."""
    say(f"error: {' '.join(str(error).split())}", err=True)
    raise typer.Exit(2 if isinstance(error, UsageError) else 1)
