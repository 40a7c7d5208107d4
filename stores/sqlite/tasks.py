"""Tasks and reminders: explicit states, found by key (R8, R316-R318)."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from everthread.errors import Conflict, UsageError
from everthread.stores.contract import Task
from everthread.stores.identity import Identity, aware
from everthread.stores.record import new_id, now_utc
from everthread.stores.sqlite.database import Database
from everthread.stores.sqlite.threads import bind_thread
from everthread.stores.sqlite.times import micros, moment
from everthread.stores.sqlite.values import as_blob, as_text, offset_of, zoned

__all__ = ["TRANSITIONS", "Tasks", "erase_tasks_of"]

TRANSITIONS: dict[str, frozenset[str]] = {
    "scheduled": frozenset({"running", "completed", "failed", "delivered", "cancelled"}),
    "running": frozenset({"completed", "failed", "delivered", "cancelled"}),
    "completed": frozenset({"delivered"}),
    "failed": frozenset({"delivered"}),
    "delivered": frozenset(),
    "cancelled": frozenset(),
}
"""Where a task can go from each state. Nothing leaves `delivered` and `cancelled`."""

COLUMNS = "id, text, thread_id, due_at, due_offset, status, result, created_at"

DUE = f"""
SELECT {COLUMNS} FROM tasks
WHERE tenant = ?1 AND user = ?2 AND status NOT IN ('delivered', 'cancelled')
  AND (thread_id IS NULL OR thread_id = ?3)
  AND (status IN ('completed', 'failed') OR due_at <= ?4)
ORDER BY seq
"""


class Tasks:
    """The task repository of a store. A user sees that user's tasks, and no others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        identity: Identity,
        text: str,
        *,
        thread_id: str | None = None,
        due_at: datetime | None = None,
        key: str | None = None,
    ) -> Task:
        """A new task, scheduled; the same key (of this user) returns the task that exists, as it is now.

        Raises UsageError when there is no text or `due_at` has no time zone, AccessDenied when the thread is another
        user's.
        """
        if not text.strip():
            raise UsageError("a task needs a text that says what is to be done")
        owner = (identity.tenant, identity.user)
        due = (None, None) if due_at is None else (micros(aware(due_at, "due_at")), offset_of(due_at))
        with self._database.write() as connection:
            if thread_id is not None:
                bind_thread(connection, identity, thread_id)
            if key is not None:
                known = _find(connection, "tenant = ? AND user = ? AND key = ?", *owner, key)
                if known is not None:
                    return known
            id = new_id("task")
            connection.execute(
                "INSERT INTO tasks (id, tenant, user, key, text, thread_id, due_at, due_offset, status, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'scheduled', ?)",
                (id, *owner, key, as_blob(text), thread_id, *due, micros(now_utc())),
            )
            return _existing(connection, identity, id)

    def start(self, identity: Identity, task_id: str) -> Task:
        """Work on it has begun. Conflict if it is not scheduled, UsageError if this user has no such task."""
        return self._move(identity, task_id, "running")

    def finish(self, identity: Identity, task_id: str, result: str, *, failed: bool = False) -> Task:
        """Record how it ended. Conflict if it has already ended, UsageError if this user has no such task."""
        return self._move(identity, task_id, "failed" if failed else "completed", result)

    def cancel(self, identity: Identity, task_id: str) -> Task:
        """Give it up; no notice follows. Conflict if it has already ended, UsageError if this user has no such task."""
        return self._move(identity, task_id, "cancelled")

    def due(self, identity: Identity, thread_id: str | None, now: datetime) -> builtins.list[Task]:
        """Tasks to give notice of in this thread, those of no thread included: ended or past due, not delivered yet,
        oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                DUE, (identity.tenant, identity.user, thread_id, micros(aware(now, "now")))
            ).fetchall()
        return [_task(row) for row in rows]

    def deliver(self, identity: Identity, task_ids: Sequence[str]) -> None:
        """Mark them as delivered, all or none: notice is given once. Those that were delivered before are passed over.

        Raises Conflict when one was cancelled, UsageError when one has neither ended nor a due time, or is not this
        user's.
        """
        with self._database.write() as connection:
            for id in task_ids:
                task = _existing(connection, identity, id)
                if task.due_at is None and task.status in ("scheduled", "running"):
                    raise UsageError(f"task {id} has not ended and has no due time; there is nothing to deliver")
                if task.status != "delivered":
                    _set_status(connection, task, "delivered", None)

    def list(self, identity: Identity) -> builtins.list[Task]:
        """This user's tasks, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM tasks WHERE tenant = ? AND user = ? ORDER BY seq DESC",
                (identity.tenant, identity.user),
            ).fetchall()
        return [_task(row) for row in rows]

    def _move(self, identity: Identity, task_id: str, status: str, result: str | None = None) -> Task:
        with self._database.write() as connection:
            _set_status(connection, _existing(connection, identity, task_id), status, result)
            return _existing(connection, identity, task_id)


def erase_tasks_of(connection: apsw.Connection, identity: Identity, thread_id: str) -> int:
    """Erase the tasks that were made in this thread; returns how many are gone."""
    connection.execute(
        "DELETE FROM tasks WHERE tenant = ? AND user = ? AND thread_id = ?",
        (identity.tenant, identity.user, thread_id),
    )
    return int(connection.changes())


def _set_status(connection: apsw.Connection, task: Task, status: str, result: str | None) -> None:
    if status not in TRANSITIONS[task.status]:
        raise Conflict(f"task {task.id} is {task.status} and cannot become {status}", winner=task.status)
    connection.execute(
        "UPDATE tasks SET status = ?, result = coalesce(?, result) WHERE id = ?",
        (status, None if result is None else as_blob(result), task.id),
    )


def _existing(connection: apsw.Connection, identity: Identity, task_id: str) -> Task:
    task = _find(connection, "tenant = ? AND user = ? AND id = ?", identity.tenant, identity.user, task_id)
    if task is None:
        raise UsageError(f"there is no task {task_id!r} of this user; tasks.list(identity) shows those that exist")
    return task


def _find(connection: apsw.Connection, condition: str, *values: str) -> Task | None:
    """`condition` is one of the constants above, never input."""
    row = connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE {condition}", values).fetchone()
    return None if row is None else _task(row)


def _task(row: tuple[Any, ...]) -> Task:
    id, text, thread_id, due_at, due_offset, status, result, created_at = row
    return Task(
        id=id,
        text=as_text(text),
        thread_id=thread_id,
        due_at=None if due_at is None else zoned(due_at, due_offset),
        status=status,
        result=None if result is None else as_text(result),
        created_at=moment(created_at),
    )
