"""What is to be done, and reminders: what a task is, and what the repository of tasks promises."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import AwareDatetime

from everthread.stores.identity import Frozen, Identity

__all__ = ["Task", "TaskStatus", "Tasks"]


TaskStatus = Literal["scheduled", "running", "completed", "failed", "cancelled"]


class Task(Frozen):
    """Something to do or to be reminded of, with explicit states (R8, R316). Found by key, never by similarity."""

    id: str
    """The task's id."""
    text: str
    """What is to be done."""
    thread_id: str | None
    """Where its notice goes; None means the user's next turn in any thread."""
    due_at: AwareDatetime | None
    """When it is due, with the offset it was given with; None for what has no time."""
    status: TaskStatus
    """Where it is: scheduled -> running -> completed | failed, or cancelled. Nothing leaves the last three."""
    result: str | None = None
    """What it ended with."""
    created_at: AwareDatetime
    """When it was made."""
    after: tuple[str, ...] = ()
    """Ids of the tasks that must be completed before it can start."""
    blocked_by: tuple[str, ...] = ()
    """Those of `after` that are not completed yet; one that failed or was cancelled holds it up until `after` is
    changed."""
    told_at: AwareDatetime | None = None
    """When notice of it was given; None before that, and again once it is rescheduled or has a result."""
    said_in: str | None = None
    """The thread in which the user asked for it; it is erased with that thread."""
    message_ids: tuple[str, ...] = ()
    """The messages in which the user asked for it; it is erased with any of them."""


class Tasks(Protocol):
    """The task repository: states change only by the transitions named at `Task.status`.

    Each method that takes a task's id raises UsageError when this user has no such task.
    """

    def create(
        self,
        identity: Identity,
        text: str,
        *,
        thread_id: str | None = None,
        due_at: datetime | None = None,
        after: Sequence[str] = (),
        key: str | None = None,
        said_in: str | None = None,
        message_ids: Sequence[str] = (),
    ) -> Task:
        """A new task, scheduled; the same key (of this user) returns the task that exists, as it is now.

        Raises UsageError when there is no text, `due_at` has no time zone, or one of `after` is no task of this
        user's; AccessDenied when the thread is another user's.
        """

    def start(self, identity: Identity, task_id: str) -> Task:
        """Work on it has begun. Conflict if it is not scheduled, or waits for others."""

    def finish(self, identity: Identity, task_id: str, result: str | None = None, *, failed: bool = False) -> Task:
        """Record how it ended. A notice follows when there is a result to tell, and none without. Conflict if it has
        ended already, or would be completed while it waits for others."""

    def cancel(self, identity: Identity, task_id: str) -> Task:
        """Give it up; no notice follows. Conflict if it has already ended."""

    def reschedule(self, identity: Identity, task_id: str, due_at: datetime | None) -> Task:
        """Make it due at another time, at which it rings (again); None: at none. Conflict if it has ended, UsageError
        when the time has no zone."""

    def depend(self, identity: Identity, task_id: str, after: Sequence[str]) -> Task:
        """Let it wait for these tasks, and for no others. Conflict if it is not scheduled; UsageError when one is no
        task of this user's, or it would wait for itself."""

    def due(self, identity: Identity, thread_id: str | None, now: datetime) -> list[Task]:
        """What notice is to be given of in this thread, what belongs to no thread included: tasks that are past due or
        have a result to tell, oldest first. Those that another thread is giving notice of are left out."""

    def claim(self, identity: Identity, thread_id: str, now: datetime) -> list[Task]:
        """`due`, and from now on no other thread gives notice of them: for ten minutes, or for good once `confirm`
        says that the turn is over."""

    def confirm(self, identity: Identity, thread_id: str, task_ids: Sequence[str]) -> None:
        """Say that the thread has shown these notices. They stay due in this thread alone, until it was seen to have
        them; ids that it does not hold are passed over."""

    def deliver(self, identity: Identity, task_ids: Sequence[str]) -> None:
        """Mark notice of them as given, all or none. Those that were delivered before are passed over.

        Raises Conflict when one was cancelled, UsageError when one has neither ended nor a due time.
        """

    def ring(self, now: datetime, *, limit: int = 100) -> int:
        """Write `task.due` into the feed of events for tasks of all users that are past due, each once, at most `limit`
        of them; returns how many. A `Worker` does this."""

    def of(
        self, identity: Identity, *, thread_id: str | None = None, statuses: Sequence[TaskStatus] | None = None
    ) -> list[Task]:
        """This user's tasks, the newest first: all, or those of a thread (made there, or told there), or with one of
        these statuses. UsageError for a status that there is none."""
