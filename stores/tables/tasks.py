"""Tasks and reminders: explicit states, found by key (R8, R316-R318)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from everthread.errors import Conflict, UsageError
from everthread.stores.database import Connection, Database, one
from everthread.stores.door import guarded
from everthread.stores.identity import Identity
from everthread.stores.record import new_id, now_utc
from everthread.stores.tables import outbox
from everthread.stores.tables.threads import bind_thread
from everthread.stores.tables.times import micros, moment
from everthread.stores.tables.values import as_blob, as_text, offset_of, zoned
from everthread.stores.tasks import Task, TaskStatus

__all__ = ["TRANSITIONS", "Tasks", "erase_tasks_of", "erase_tasks_said"]

TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    "scheduled": frozenset({"running", "completed", "failed", "cancelled"}),
    "running": frozenset({"completed", "failed", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
"""Where a task can go from each state. Nothing leaves `completed`, `failed` and `cancelled`."""
OPEN: frozenset[TaskStatus] = frozenset({"scheduled", "running"})

CLAIM = timedelta(minutes=10)
"""How long a thread has for giving a notice, unless it says that it has: a run that died does not keep it for ever."""

COLUMNS = """
id, text, thread_id, due_at, due_offset, status, result, created_at, told_at, said_in, message_ids, after, (
    SELECT json_group_array(other.id) FROM json_each(tasks.after) AS each
    JOIN tasks AS other ON other.id = each.value AND other.tenant = tasks.tenant AND other.user = tasks.user
    WHERE other.status <> 'completed'
)
"""
"""The last one: those of `after` that are not completed. One that was erased holds up nothing."""

TO_TELL = """
told_at IS NULL AND status <> 'cancelled' AND (
    (status IN ('completed', 'failed') AND result IS NOT NULL)
    OR (status IN ('scheduled', 'running') AND due_at <= :now)
)
"""
DUE = f"""
SELECT {COLUMNS} FROM tasks
WHERE tenant = :tenant AND user = :user AND (thread_id IS NULL OR thread_id = :thread) AND {TO_TELL}
  AND (told_in IS NULL OR told_in = :thread OR told_until <= :now)
ORDER BY seq
"""
TAKE = """
UPDATE tasks SET told_in = ?1, told_until = ?2
WHERE id = ?3 AND (told_in IS DISTINCT FROM ?1 OR told_until IS NOT NULL)
"""
CONFIRM = """
UPDATE tasks SET told_until = NULL
WHERE tenant = ?1 AND user = ?2 AND told_in = ?3 AND told_until IS NOT NULL AND id IN (SELECT value FROM json_each(?4))
"""
UNTOLD = "told_at = NULL, told_in = NULL, told_until = NULL, rung_at = NULL"
NOT_RUNG = """
rung_at IS NULL AND told_at IS NULL AND due_at IS NOT NULL AND due_at <= ?1 AND status IN ('scheduled', 'running')
"""
TO_RING = f"SELECT id, tenant, user FROM tasks WHERE {NOT_RUNG} ORDER BY due_at LIMIT ?2"
RING = f"UPDATE tasks SET rung_at = ?1 WHERE {NOT_RUNG} AND id = ?2"
OF = f"""
SELECT {COLUMNS} FROM tasks
WHERE tenant = :tenant AND user = :user
  AND (:thread IS NULL OR thread_id = :thread OR said_in = :thread)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
ORDER BY seq DESC
"""
BEFORE = """
WITH RECURSIVE before (id) AS (
    SELECT value FROM json_each(?)
    UNION
    SELECT each.value FROM before JOIN tasks ON tasks.id = before.id CROSS JOIN json_each(tasks.after) AS each
)
SELECT 1 FROM before WHERE id = ?
"""
"""Whether a task is among those that must come before itself."""


@guarded
class Tasks:
    """The task repository of a store. A user sees that user's tasks, and no others. Each method does what
    `stores/tasks.py` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        if not text.strip():
            raise UsageError("a task needs a text that says what is to be done")
        owner = (identity.tenant, identity.user)
        with self._database.write(identity.tenant) as connection:
            if thread_id is not None:
                bind_thread(connection, identity, thread_id)
            if key is not None:
                known = _find(connection, "tenant = ? AND user = ? AND key = ?", *owner, key)
                if known is not None:
                    return known
            id, first = new_id("task"), _existing_ids(connection, identity, after)
            connection.execute(
                "INSERT INTO tasks (id, tenant, user, key, text, thread_id, due_at, due_offset, status, created_at, "
                "after, said_in, message_ids) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'scheduled', ?, ?, ?, ?)",
                (
                    *(id, *owner, key, as_blob(text), thread_id, *_due(due_at), micros(now_utc())),
                    *(first, said_in, json.dumps(list(message_ids))),
                ),
            )
            return _existing(connection, identity, id)

    def start(self, identity: Identity, task_id: str) -> Task:
        return self._move(identity, task_id, "running")

    def finish(self, identity: Identity, task_id: str, result: str | None = None, *, failed: bool = False) -> Task:
        return self._move(identity, task_id, "failed" if failed else "completed", result)

    def cancel(self, identity: Identity, task_id: str) -> Task:
        return self._move(identity, task_id, "cancelled")

    def reschedule(self, identity: Identity, task_id: str, due_at: datetime | None) -> Task:
        due = _due(due_at)
        with self._database.write(identity.tenant) as connection:
            _still_open(_existing(connection, identity, task_id), "be rescheduled")
            connection.execute(f"UPDATE tasks SET due_at = ?, due_offset = ?, {UNTOLD} WHERE id = ?", (*due, task_id))
            return _existing(connection, identity, task_id)

    def depend(self, identity: Identity, task_id: str, after: Sequence[str]) -> Task:
        with self._database.write(identity.tenant) as connection:
            task = _existing(connection, identity, task_id)
            if task.status != "scheduled":
                raise Conflict(f"task {task.id} is {task.status} and cannot wait for others", winner=task.status)
            first = _existing_ids(connection, identity, after)
            if one(connection, BEFORE, first, task.id):
                raise UsageError(f"task {task.id} would wait for itself; leave out one of {', '.join(after)}")
            connection.execute("UPDATE tasks SET after = ? WHERE id = ?", (first, task.id))
            return _existing(connection, identity, task_id)

    def due(self, identity: Identity, thread_id: str | None, now: datetime) -> list[Task]:
        with self._database.read(identity.tenant) as connection:
            return _due_in(connection, identity, thread_id, now)

    def claim(self, identity: Identity, thread_id: str, now: datetime) -> list[Task]:
        if not self.due(identity, thread_id, now):  # a quiet turn writes nothing
            return []
        with self._database.write(identity.tenant) as connection:
            found = _due_in(connection, identity, thread_id, now)
            until = micros(now + CLAIM)
            for task in found:
                connection.execute(TAKE, (thread_id, until, task.id))
            return found

    def confirm(self, identity: Identity, thread_id: str, task_ids: Sequence[str]) -> None:
        with self._database.write(identity.tenant) as connection:
            connection.execute(CONFIRM, (identity.tenant, identity.user, thread_id, json.dumps(list(task_ids))))

    def deliver(self, identity: Identity, task_ids: Sequence[str]) -> None:
        with self._database.write(identity.tenant) as connection:
            for id in task_ids:
                task = _existing(connection, identity, id)
                if task.told_at is not None:
                    continue
                if task.status == "cancelled":
                    raise Conflict(f"task {id} is cancelled; no notice of it is to be given", winner=task.status)
                if task.due_at is None and task.status in OPEN:
                    raise UsageError(f"task {id} has not ended and has no due time; there is nothing to deliver")
                connection.execute("UPDATE tasks SET told_at = ? WHERE id = ?", (micros(now_utc()), id))

    def ring(self, now: datetime, *, limit: int = 100) -> int:
        values = (micros(now), limit)
        with self._database.read() as connection:
            waiting = connection.execute(TO_RING, values).fetchall()
        rung = 0
        for tenant, of_tenant in groupby(sorted(waiting, key=itemgetter(1)), key=itemgetter(1)):
            with self._database.write(str(tenant)) as connection:
                for id, _, user in of_tenant:
                    connection.execute(RING, (values[0], id))
                    if connection.changes():  # another worker may have been first
                        outbox.append_task(connection, str(tenant), str(user), "task.due", str(id), at=now)
                        rung += 1
        return rung

    def of(
        self, identity: Identity, *, thread_id: str | None = None, statuses: Sequence[TaskStatus] | None = None
    ) -> list[Task]:
        values = {
            "tenant": identity.tenant,
            "user": identity.user,
            "thread": thread_id,
            "statuses": None if statuses is None else json.dumps(list(statuses)),
        }
        with self._database.read(identity.tenant) as connection:
            return [_task(row) for row in connection.execute(OF, values)]

    def _move(self, identity: Identity, task_id: str, status: TaskStatus, result: str | None = None) -> Task:
        with self._database.write(identity.tenant) as connection:
            task = _existing(connection, identity, task_id)
            if status not in TRANSITIONS[task.status]:
                raise Conflict(f"task {task.id} is {task.status} and cannot become {status}", winner=task.status)
            if task.blocked_by and status in ("running", "completed"):
                waits = f"task {task.id} waits for {', '.join(task.blocked_by)} and cannot become {status}"
                raise Conflict(f"{waits}; complete those first, or change what it waits for", winner="blocked")
            connection.execute("UPDATE tasks SET status = ? WHERE id = ?", (status, task.id))
            if result is not None:
                connection.execute(f"UPDATE tasks SET result = ?, {UNTOLD} WHERE id = ?", (as_blob(result), task.id))
                outbox.append_task(connection, identity.tenant, identity.user, "task.ended", task.id, at=now_utc())
            return _existing(connection, identity, task_id)


def erase_tasks_of(connection: Connection, identity: Identity, thread_id: str) -> int:
    """Erase the tasks that were made in this thread, or whose notice was to go there; returns how many are gone."""
    connection.execute(
        "DELETE FROM tasks WHERE tenant = ?1 AND user = ?2 AND (thread_id = ?3 OR said_in = ?3)",
        (identity.tenant, identity.user, thread_id),
    )
    return int(connection.changes())


def erase_tasks_said(connection: Connection, identity: Identity, thread_id: str, message_ids: Sequence[str]) -> int:
    """Erase the tasks that one of these messages asked for; returns how many are gone."""
    connection.execute(
        "DELETE FROM tasks WHERE tenant = ?1 AND user = ?2 AND said_in = ?3 AND EXISTS ("
        "SELECT 1 FROM json_each(tasks.message_ids) WHERE value IN (SELECT value FROM json_each(?4)))",
        (identity.tenant, identity.user, thread_id, json.dumps(list(message_ids))),
    )
    return int(connection.changes())


def _due(due_at: datetime | None) -> tuple[int | None, int | None]:
    """A due time as it is kept: microseconds, and the offset it was given with."""
    return (None, None) if due_at is None else (micros(due_at), offset_of(due_at))


def _due_in(connection: Connection, identity: Identity, thread_id: str | None, now: datetime) -> list[Task]:
    values = {"tenant": identity.tenant, "user": identity.user, "thread": thread_id, "now": micros(now)}
    return [_task(row) for row in connection.execute(DUE, values).fetchall()]


def _still_open(task: Task, what: str) -> None:
    if task.status not in OPEN:
        raise Conflict(f"task {task.id} is {task.status} and cannot {what}", winner=task.status)


def _existing_ids(connection: Connection, identity: Identity, ids: Sequence[str]) -> str:
    """The ids as a JSON array, each once; UsageError when one is no task of this user's."""
    known = [_existing(connection, identity, id).id for id in dict.fromkeys(ids)]
    return json.dumps(known)


def _existing(connection: Connection, identity: Identity, task_id: str) -> Task:
    task = _find(connection, "tenant = ? AND user = ? AND id = ?", identity.tenant, identity.user, task_id)
    if task is None:
        raise UsageError(f"there is no task {task_id!r} of this user; `everthread tasks`, or tasks.of, lists them")
    return task


def _find(connection: Connection, condition: str, *values: str) -> Task | None:
    """`condition` is one of the constants above, never input."""
    row = connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE {condition}", values).fetchone()
    return None if row is None else _task(row)


def _task(row: tuple[Any, ...]) -> Task:
    id, text, thread_id, due_at, due_offset, status, result, created_at, told_at, said_in, said, after, blocked_by = row
    return Task(
        id=id,
        text=as_text(text),
        thread_id=thread_id,
        due_at=None if due_at is None else zoned(due_at, due_offset),
        status=status,
        result=None if result is None else as_text(result),
        created_at=moment(created_at),
        told_at=None if told_at is None else moment(told_at),
        after=tuple(json.loads(after)),
        blocked_by=tuple(json.loads(blocked_by)),
        said_in=said_in,
        message_ids=tuple(json.loads(said)),
    )
