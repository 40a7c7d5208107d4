"""A durable queue: leases with fencing tokens, retry with backoff, failures that stay visible (R237, R332)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from everthread.errors import Conflict, UsageError
from everthread.stores.database import Connection, Database, one
from everthread.stores.door import guarded
from everthread.stores.identity import Identity
from everthread.stores.jobs import Handlers, Job, JobInfo, JobStatus, wordless
from everthread.stores.record import new_id, now_utc
from everthread.stores.tables.times import micros, moment

__all__ = ["ATTEMPTS", "BACKOFF", "Jobs", "enqueue_job"]

log = logging.getLogger(__name__)

BACKOFF = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1))
"""How long a job waits after its first, second, third and fourth failure."""
ATTEMPTS = len(BACKOFF) + 1
"""A job that has failed this often is given up: `failed` lists it."""
LAST = micros(datetime.max.replace(tzinfo=UTC))
"""The last moment of the calendar."""
LONGEST = timedelta(days=1)
"""How long a lease lasts at most. One that runs longer was given by a clock that was wrong, and holds nothing up."""
ERROR_LENGTH = 500
"""Characters of an error that are kept."""

COLUMNS = "id, kind, payload, attempts, token, tenant, user, error"

# `due_at` is when a waiting job may start, and when a lease runs out: either way, when it can be claimed.
# A lease, or a wait after a failure, that ends later than one can is of a clock that was ahead.
_DAY, _WAIT = LONGEST // timedelta(microseconds=1), BACKOFF[-1] // timedelta(microseconds=1)
DUE = f"""
status IN ('ready', 'leased')
  AND (due_at <= ?1 OR (status = 'leased' AND due_at > ?1 + {_DAY})
    OR (status = 'ready' AND attempts > 0 AND due_at > ?1 + {_WAIT}))
  AND (?2 IS NULL OR kind IN (SELECT value FROM json_each(?2)))
  AND (lane IS NULL OR NOT EXISTS (
    SELECT 1 FROM jobs AS other WHERE other.tenant = jobs.tenant AND other.user = jobs.user AND other.lane = jobs.lane
      AND other.status = 'leased' AND other.due_at > ?1 AND other.due_at <= ?1 + {_DAY}
  ))
"""
SPENT = f"SELECT seq FROM jobs WHERE {DUE} AND attempts >= {ATTEMPTS}"
GIVE_UP = """
UPDATE jobs SET status = 'failed', error = 'its worker died or lost the lease at each attempt' WHERE seq = ?
"""
OLDEST = f"SELECT seq, tenant, user, lane FROM jobs WHERE {DUE} AND seq > ?3 ORDER BY seq LIMIT 1"
CLAIM = f"""
UPDATE jobs SET status = 'leased', attempts = attempts + 1, token = token + 1, due_at = ?3
WHERE {DUE} AND seq = ?4
RETURNING {COLUMNS}
"""
# a thread's id is no word of what was said, and says where the job was done
DONE = """
status = 'done', error = NULL,
    payload = iif(
        json_extract(payload, '$.thread_id') IS NULL,
        '{}',
        '{"thread_id": ' || json_quote(json_extract(payload, '$.thread_id')) || '}'
    )
WHERE id = ?1 AND token = ?2 AND status = 'leased'
"""

# What a job is called outside: one whose lease ran out waits like any other.
STATUS = f"""
CASE WHEN status = 'ready' OR (status = 'leased' AND NOT due_at BETWEEN :now + 1 AND :now + {_DAY}) THEN 'waiting'
     WHEN status = 'leased' THEN 'running' ELSE status END
"""
VISIBLE = "tenant = :tenant AND (user = :user OR :admin)"
OWN = "tenant = :tenant AND user = :user"
LISTED = f"""
SELECT id, kind, {STATUS}, key, json_extract(payload, '$.thread_id'), attempts, created_at, due_at, error,
    tenant, user
FROM jobs WHERE (:id IS NULL OR id = :id) AND (:status IS NULL OR {STATUS} = :status)
"""
OPEN = "status IN ('ready', 'leased', 'failed')"
"""The condition of the index `jobs_of_user`, word for word: without it the index is not used."""
STORED_AS: dict[JobStatus, str] = {
    "waiting": f"{OPEN} AND status IN ('ready', 'leased')",
    "running": f"{OPEN} AND status = 'leased'",
    "failed": f"{OPEN} AND status = 'failed'",
    "done": "status = 'done'",
    "cancelled": "status = 'cancelled'",
}
"""What each status is among."""
PASS = """
INSERT INTO gates (tenant, user, name, passed_at, passed_by) VALUES (:tenant, :user, :name, :now, :key)
ON CONFLICT (tenant, user, name) DO UPDATE SET passed_at = :now, passed_by = :key
WHERE gates.passed_at <= :now - :every OR gates.passed_at > :now + :every
RETURNING passed_by
"""


@guarded
class Jobs:
    """The jobs of a store, for every tenant: a worker is trusted, and acts for the job's own tenant and user. Each
    method does what `stores/jobs.py` promises.

    A claim is a lease. A worker that dies loses it when it runs out; whoever claims next has a higher token, and what
    the old holder then reports is a Conflict. Every attempt counts, also one whose worker died.

    Where a database can have several writers, workers claim beside each other and beside everything that is written: a
    job that another is just claiming is passed over. What is read of a lane is decided under a lock of the lane.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def enqueue(
        self,
        identity: Identity,
        kind: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        lane: str | None = None,
        due_at: datetime | None = None,
        now: datetime | None = None,
    ) -> str:
        with self._database.write(identity.tenant) as connection:
            return enqueue_job(connection, identity, kind, payload, key=key, lane=lane, due_at=due_at, now=now)

    def claim(
        self, kinds: Sequence[str] | None = None, *, seconds: float = 60.0, now: datetime | None = None
    ) -> Job | None:
        if seconds > LONGEST.total_seconds():
            raise UsageError(f"a lease lasts a day at most, not {seconds:.0f} seconds; heartbeat prolongs it")
        time = now or now_utc()
        chosen = (micros(time), None if kinds is None else json.dumps(list(kinds)))
        with self._database.read() as connection:
            # an idle queue costs a turn no write lock
            if one(connection, f"SELECT min(seq) FROM jobs WHERE {DUE}", *chosen) is None:
                return None
        with self._database.beside() as connection:
            for spent in connection.unlocked(SPENT, chosen):
                connection.execute(GIVE_UP, spent)
            row = _leased(connection, chosen, _after(time, timedelta(seconds=seconds)))
        return None if row is None else _job(row)

    def waiting(self, kinds: Sequence[str] | None = None, *, now: datetime | None = None) -> int:
        chosen = (micros(now or now_utc()), None if kinds is None else json.dumps(list(kinds)))
        with self._database.read() as connection:
            return int(one(connection, f"SELECT count(*) FROM jobs WHERE {DUE}", *chosen))

    def kinds(self) -> dict[str, int]:
        with self._database.read() as connection:
            return dict(connection.execute("SELECT kind, count(*) FROM jobs WHERE status = 'ready' GROUP BY kind"))

    def heartbeat(self, job: Job, *, seconds: float = 60.0, now: datetime | None = None) -> None:
        time = now or now_utc()
        self._report(
            job,
            "due_at = ?4 WHERE id = ?1 AND token = ?2 AND status = 'leased' AND due_at > ?3",
            micros(time),
            _after(time, timedelta(seconds=seconds)),
        )

    def complete(self, job: Job) -> None:
        with self._database.beside() as connection:
            self._report(job, DONE)
            # only a key has to be remembered
            connection.execute("DELETE FROM jobs WHERE id = ? AND key IS NULL", (job.id,))

    def fail(self, job: Job, error: str, *, now: datetime | None = None) -> None:
        given_up = job.attempts >= ATTEMPTS
        wait = timedelta() if given_up else BACKOFF[job.attempts - 1]
        self._report(
            job,
            "status = ?3, due_at = ?4, error = ?5 WHERE id = ?1 AND token = ?2 AND status = 'leased'",
            "failed" if given_up else "ready",
            _after(now or now_utc(), wait),
            _storable(error),
        )

    def release(self, job: Job) -> None:
        self._report(
            job,
            "status = 'ready', due_at = 0, attempts = attempts - 1 WHERE id = ?1 AND token = ?2 AND status = 'leased'",
        )

    def of(
        self,
        identity: Identity,
        *,
        status: JobStatus | None = None,
        job_id: str | None = None,
        limit: int = 1000,
        now: datetime | None = None,
    ) -> list[JobInfo]:
        values = {**_viewer(identity), "status": status, "id": job_id, "limit": limit, "now": micros(now or now_utc())}
        whose, stored = VISIBLE if values["admin"] else OWN, STORED_AS[status] if status else "true"
        query = f"{LISTED} AND {whose} AND {stored} ORDER BY seq LIMIT :limit"
        with self._database.read() as connection:
            return [_info(row) for row in connection.execute(query, values).fetchall()]

    def retry(self, identity: Identity, job_id: str, *, now: datetime | None = None) -> None:
        self._decide(
            identity, job_id, "status = 'ready', attempts = 0, due_at = 0", "('waiting', 'failed', 'cancelled')", now
        )

    def cancel(self, identity: Identity, job_id: str, *, now: datetime | None = None) -> None:
        self._decide(identity, job_id, "status = 'cancelled'", "('waiting', 'failed')", now)

    def gate(self, identity: Identity, name: str, every: timedelta, *, key: str, now: datetime | None = None) -> bool:
        if every <= timedelta():
            return True
        values = {
            "tenant": identity.tenant,
            "user": identity.user,
            "name": name,
            "key": key,
            "now": micros(now or now_utc()),
            "every": every // timedelta(microseconds=1),
        }
        with self._database.write(identity.tenant) as connection:
            if connection.execute(PASS, values).fetchone() is not None:
                return True
            passed = "SELECT passed_by FROM gates WHERE tenant = ? AND user = ? AND name = ?"
            return bool(one(connection, passed, identity.tenant, identity.user, name) == key)

    def failed(self) -> list[Job]:
        with self._database.read() as connection:
            rows = connection.execute(f"SELECT {COLUMNS} FROM jobs WHERE status = 'failed' ORDER BY seq").fetchall()
        return [_job(row) for row in rows]

    def drain(self, handlers: Handlers, *, limit: int = 10, now: datetime | None = None) -> int:
        completed = 0
        for _ in range(limit):
            job = self.claim(list(handlers), now=now)
            if job is None:
                break
            completed += self._run(job, handlers[job.kind], now)
        return completed

    def _run(self, job: Job, handler: Callable[[Job], None], now: datetime | None) -> bool:
        try:
            handler(job)
        except Exception as error:  # a handler may raise anything; it is kept with the job, its kind is logged
            log.warning("job %s (%s), attempt %d failed: %s", job.id, job.kind, job.attempts, type(error).__name__)
            report = partial(self.fail, job, wordless(error), now=now)
            done = False
        else:
            report, done = partial(self.complete, job), True
        try:
            report()
        except Conflict as lost:
            log.warning("%s", lost)
            return False
        return done

    def _decide(self, identity: Identity, job_id: str, change: str, from_statuses: str, now: datetime | None) -> None:
        """`change` and `from_statuses` are constants, never input."""
        values = {**_viewer(identity), "id": job_id, "now": micros(now or now_utc())}
        with self._database.beside() as connection:
            connection.execute(
                f"UPDATE jobs SET {change} WHERE {VISIBLE} AND id = :id AND {STATUS} IN {from_statuses}", values
            )
            if connection.changes():
                return
            found = connection.execute(
                f"SELECT kind, {STATUS} FROM jobs WHERE {VISIBLE} AND id = :id", values
            ).fetchone()
        if found is None:
            raise UsageError(f"there is no job {job_id}; `everthread jobs` lists them")
        raise Conflict(f"job {job_id} ({found[0]}) is {found[1]}; nothing was changed", winner=found[1])

    def _report(self, job: Job, change: str, *values: int | str) -> None:
        """`change` is one of the constants above, never input."""
        with self._database.beside() as connection:
            connection.execute(f"UPDATE jobs SET {change}", (job.id, job.token, *values))
            if connection.changes():
                return
            token = one(connection, "SELECT token FROM jobs WHERE id = ?", job.id)
        raise Conflict(f"the lease on job {job.id} ({job.kind}) was lost; nothing was written", winner=token)


def _leased(connection: Connection, chosen: tuple[Any, ...], until: int) -> Any:
    """The oldest job that is due and that nobody else is claiming at this moment, leased until then; None for none."""
    seq = 0
    while found := connection.unlocked(OLDEST, (*chosen, seq)):
        ((seq, tenant, user, lane),) = found
        if lane is None or connection.try_lock(f"{tenant}/{user}/{lane}"):
            # looked at again: another may have claimed in this lane until a moment ago
            row = connection.execute(CLAIM, (*chosen, until, seq)).fetchone()
            if row is not None:
                return row
    return None


def enqueue_job(
    connection: Connection,
    identity: Identity,
    kind: str,
    payload: Mapping[str, Any],
    *,
    key: str | None = None,
    lane: str | None = None,
    due_at: datetime | None = None,
    now: datetime | None = None,
) -> str:
    """`Jobs.enqueue` inside the caller's transaction: the job exists if and only if what asked for it does."""
    owner = (identity.tenant, identity.user)
    if key is not None:
        known = one(connection, "SELECT id FROM jobs WHERE tenant = ? AND user = ? AND key = ?", *owner, key)
        if known is not None:
            return str(known)
    id = new_id("job")
    connection.execute(
        "INSERT INTO jobs (id, tenant, user, key, kind, lane, payload, due_at, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (id, *owner, key, kind, lane, _plain(kind, payload), micros(due_at) or 0, micros(now or now_utc())),
    )
    return id


def _after(time: datetime, wait: timedelta) -> int:
    """So long after a time, in microseconds since 1970; not after the calendar's end."""
    return min(micros(time) + wait // timedelta(microseconds=1), LAST)


def _plain(kind: str, payload: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(payload))
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the payload of the {kind!r} job must be plain JSON of ids and small values: {error}"
        ) from error


def _storable(error: str) -> str:
    """The error in one line that SQLite's text can hold."""
    return " ".join(error.split())[:ERROR_LENGTH].replace("\x00", " ").encode("utf-8", "replace").decode()


def _viewer(identity: Identity) -> dict[str, Any]:
    return {"tenant": identity.tenant, "user": identity.user, "admin": "admin" in identity.roles}


def _info(row: tuple[Any, ...]) -> JobInfo:
    id, kind, status, key, thread_id, attempts, created_at, due_at, error, tenant, user = row
    return JobInfo(
        id=id,
        kind=kind,
        status=status,
        key=key,
        thread_id=None if thread_id is None else str(thread_id),
        attempts=attempts,
        created_at=moment(created_at) if created_at else None,
        due_at=moment(due_at) if due_at and status in ("waiting", "running") else None,
        error=error,
        tenant=tenant,
        user=user,
    )


def _job(row: tuple[Any, ...]) -> Job:
    id, kind, payload, attempts, token, tenant, user, error = row
    return Job(
        id=id,
        kind=kind,
        payload=json.loads(payload),
        attempts=attempts,
        token=token,
        tenant=tenant,
        user=user,
        error=error,
    )
