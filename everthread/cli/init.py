"""`everthread init`: a first AGENTS.md from the project's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.output import fail, say
from everthread.errors import UsageError

__all__ = ["init"]


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project's top folder.")] = Path("."),
    show: Annotated[bool, typer.Option("--print", help="Print it, write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an AGENTS.md that is there.")] = False,
) -> None:
    """Draft an AGENTS.md from what a project's build files say; nothing is learnt or sent.

    \b
    Examples:
      everthread init
      everthread init ~/code/billing --print
    """
    try:
        _init(folder, show=show, force=force)
    except UsageError as error:
        fail(error)


def _init(folder: Path, *, show: bool, force: bool) -> None:
    from everthread.cli.draft import draft

    target = folder / "AGENTS.md"
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name the project's top folder")
    if target.exists() and not (force or show):
        raise UsageError(f"{target} exists and is left as it is; --force replaces it, --print only shows the draft")
    try:
        text = draft(folder)
        if text is None:
            raise UsageError(f"no build file in {folder} says anything; write AGENTS.md by hand")
        if show:
            say(text.rstrip())
            return
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror}; check the folder and its rights") from error
    say(f"wrote {target}; read it and add the rules that no file says")
