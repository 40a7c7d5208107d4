"""Show it all: `everthread demo`."""

from __future__ import annotations

import typer

__all__ = ["demo"]


def demo() -> None:
    """Show what it does, offline, in a temporary home: one story of eight steps that checks itself.

    \b
    Examples:
      everthread demo
    """
    from rich.console import Console

    from everthread.cli.story import NotShown, run

    console = Console()
    try:
        run(console)
    except NotShown as error:
        console.print(f"[bold red]Not shown:[/bold red] {error}")
        raise typer.Exit(1) from None
