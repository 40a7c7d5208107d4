"""`everthread threads`: the conversations of a user, and whether each uses memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import clean, print_json, print_table, say, when
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore

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
        typer.Option(
            "--memory", metavar="on|read|off", help="Learn and recall (on), only recall (read), or neither (off)."
        ),
    ] = None,
    summaries: Annotated[
        bool, typer.Option("--summaries", help="Its summaries, and which messages each stands for.")
    ] = False,
    message: Annotated[
        str | None, typer.Option("--message", metavar="ID", help="Only the summaries that stand for this message.")
    ] = None,
) -> None:
    """List your conversations, the most recent first. With a NAME, choose whether it uses memory, or see its summaries.

    \b
    Examples:
      everthread threads
      everthread threads planning --memory off
      everthread threads planning --summaries
      everthread threads planning --summaries --message 7c9e...
      everthread threads --user ana --json
    """
    chosen = next((each for each in CHOICES if each == memory), None)
    if memory is not None and (chosen is None or name is None):
        raise UsageError(f"--memory is on, read or off, and goes with a conversation's name; not {memory!r} for {name}")
    if (summaries or message) and name is None:
        raise UsageError("--summaries goes with a conversation's name, and --message with both")
    with here.open_store() as store:
        if name and (summaries or message):
            _print_summaries(here, store, here.known_thread(store, name), message)
            return
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


def _print_summaries(here: Here, store: MemoryStore, thread_id: str, message: str | None) -> None:
    """Each summary with the messages that it stands for, or those that stand for one message."""
    from everthread.nodes.compact import summaries_of

    found = summaries_of(store, here.identity, thread_id, message_id=message)
    if here.json:
        print_json(found)
    elif not found:
        say(f"no summary stands for {f'message {message}' if message else 'a part of it'}: all is shown as it was said")
    for each in () if here.json else found:
        say(f"{when(each.made_at)} {each.id}")
        say(clean(f"by {each.generator}, for {len(each.messages)} messages: {', '.join(each.messages)}"))
        say(clean(each.text))
        say("")
