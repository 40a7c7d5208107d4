"""`everthread threads`: the conversations of a user, and whether each uses memory."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, print_table, say, when
from everthread.errors import UsageError

__all__ = ["threads"]

CHOICES: tuple[Literal["on", "read", "off"], ...] = ("on", "read", "off")


@with_home
def threads(
    here: Here,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="A conversation's name or id.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="on|read|off", help="Whether it uses memory: learn and recall, recall, no."),
    ] = None,
) -> None:
    """List your conversations, the most recent first; with a name and --memory choose whether one uses memory.

    \b
    Examples:
      everthread threads
      everthread threads planning --memory off
      everthread threads --user ana --json
    """
    chosen = next((each for each in CHOICES if each == memory), None)
    if memory is not None and (chosen is None or name is None):
        raise UsageError(f"--memory is on, read or off, and goes with a conversation's name; not {memory!r} for {name}")
    with here.open_store() as store:
        thread_id = None
        if name and chosen:  # it may be chosen before the first word is said
            thread_id = here.thread_id(store, name)
            if thread_id != name:
                store.transcripts.bind(here.identity, thread_id, name=name)
            store.transcripts.set_memory(here.identity, thread_id, chosen)
        elif name:
            thread_id = here.known_thread(store, name)
        found = [info for info in store.transcripts.threads(here.identity) if thread_id in (None, info.thread_id)]
    if here.json:
        print_json(found)
    elif not found:
        say("no threads yet; `everthread ingest PATH` brings some in")
    else:
        rows = [
            (
                info.name or "",
                str(info.messages),
                when(info.first_at),
                when(info.last_at),
                f"{info.memory}: {info.memory_because}" if info.memory_because else info.memory,
                info.thread_id,
            )
            for info in found
        ]
        columns = ("name", "messages", "first", "last", "memory", "id")
        print_table(columns, rows, under=("first", "last", "id"), named=("first", "last"))
