"""`everthread threads`: the conversations of a user."""

from __future__ import annotations

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, print_table, say, when

__all__ = ["threads"]


@with_home
def threads(here: Here) -> None:
    """List your conversations, the most recent first.

    \b
    Examples:
      everthread threads
      everthread threads --user ana --json
    """
    with here.open_store() as store:
        found = store.transcripts.threads(here.identity)
    if here.json:
        print_json(found)
    elif not found:
        say("no threads yet; `everthread ingest PATH` brings some in")
    else:
        rows = [
            (info.name or "", str(info.messages), when(info.first_at), when(info.last_at), info.memory, info.thread_id)
            for info in found
        ]
        print_table(("name", "messages", "first", "last", "memory", "id"), rows, under=("id",))
