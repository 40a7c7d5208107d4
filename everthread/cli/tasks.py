"""`everthread tasks`: what is to be done, and what you asked to be reminded of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, print_table, say, when
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores import MemoryStore
    from everthread.stores.contract import Task

__all__ = ["tasks"]


@with_home
def tasks(
    here: Here,
    all: Annotated[bool, typer.Option("--all", help="Show those that are over, too.")] = False,
    done: Annotated[
        list[str] | None, typer.Option("--done", metavar="ID", help="Mark this task as done; may be repeated.")
    ] = None,
    cancel: Annotated[
        list[str] | None, typer.Option("--cancel", metavar="ID", help="Cancel this task; may be repeated.")
    ] = None,
    add: Annotated[str | None, typer.Option("--add", metavar="TEXT", help="Add a task.")] = None,
    reschedule: Annotated[
        str | None, typer.Option("--reschedule", metavar="ID", help="Make it due at another time: --due.")
    ] = None,
    due: Annotated[
        str | None,
        typer.Option(
            "--due", metavar="WHEN", help='A time, or "tomorrow at 9"; in the time zone of this machine unless it says.'
        ),
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option("--after", metavar="ID", help="What the new one waits for; may be repeated.")
    ] = None,
) -> None:
    """List your tasks and reminders, the newest first. What is due is announced in the next turn of any thread.

    "Remind me to ... tomorrow at 9" in a chat makes one. That it rang is not that it is done: --done says so.

    \b
    Examples:
      everthread tasks
      everthread tasks --add "check the migration" --due "tomorrow at 9"
      everthread tasks --add "release" --after task_3f0c
      everthread tasks --done task_3f0c --cancel task_91ab
      everthread tasks --reschedule task_3f0c --due 2026-05-08T09:00+02:00
    """
    if due is not None and add is None and reschedule is None:
        raise UsageError("--due says when; add what: --add TEXT, or --reschedule ID")
    if after and add is None:
        raise UsageError("--after is for a new task; add --add TEXT")
    moment = None if due is None else _moment(due)
    with here.open_store() as store:
        if add is not None:
            store.tasks.create(here.identity, add, due_at=moment, after=after or ())
        if reschedule is not None:
            store.tasks.reschedule(here.identity, reschedule, moment)
        for task_id in done or []:
            store.tasks.finish(here.identity, task_id)
        for task_id in cancel or []:
            store.tasks.cancel(here.identity, task_id)
        found = _listed(here, store, all=all)
    if here.json:
        print_json(found)
    elif not found:
        say("no tasks" if all else "nothing is to be done")
    else:
        rows = [
            (
                task.text,
                "blocked" if task.blocked_by and task.status == "scheduled" else task.status,
                f"{task.due_at:%Y-%m-%d %H:%M %Z}" if task.due_at else "",
                when(task.told_at),
                task.result or "",
                " ".join(task.blocked_by),
                task.thread_id or task.said_in or "",
                task.id,
            )
            for task in found
        ]
        columns = ("task", "status", "due", "told", "result", "waits for", "thread", "id")
        print_table(columns, rows, under=columns[3:], named=("told", "result", "waits for", "thread"))


def _listed(here: Here, store: MemoryStore, *, all: bool) -> list[Task]:
    return store.tasks.of(here.identity, statuses=None if all else ("scheduled", "running"))


def _moment(text: str) -> datetime:
    """A time that a person wrote, aware: ISO 8601, or words as in a reminder; UsageError when it is neither."""
    from everthread.nodes.extract.rules.when import due as named

    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        found = named(text, datetime.now().astimezone())
    if found is None:
        raise UsageError(f'time {text!r} not understood; write one like "tomorrow at 9" or 2026-05-08T09:00+02:00')
    return found.at
