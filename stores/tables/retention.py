"""What is kept for a time only: transcripts (R47) and the feed of events. Run by the operator, or in the background."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from everthread.errors import UsageError
from everthread.stores.database import Database, Rows
from everthread.stores.identity import Identity
from everthread.stores.jobs import Job
from everthread.stores.tables import audit, outbox
from everthread.stores.tables.times import micros
from everthread.stores.tables.transcripts import Transcripts

__all__ = ["Retention"]

TOO_OLD = """
SELECT threads.user, threads.thread_id, json_group_array(messages.message_id)
FROM threads JOIN messages USING (thread_id)
WHERE threads.tenant = ? AND (? OR threads.user = ?) AND messages.erased_at IS NULL AND messages.at < ?
GROUP BY threads.thread_id ORDER BY threads.thread_id
"""


class Retention:
    """Answers `MemoryStore.expire_transcripts` and `prune_events`."""

    def __init__(self, database: Database, transcripts: Transcripts, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._transcripts = transcripts
        self._clock = clock

    def expire_transcripts(self, identity: Identity, older_than: timedelta) -> int:
        """See `MemoryStore.expire_transcripts`."""
        now, admin = self._clock(), "admin" in identity.roles
        before = now - _positive(older_than, "expire_transcripts")
        gone = 0
        with self._database.write(identity.tenant) as connection:
            rows: Rows = connection.execute(TOO_OLD, (identity.tenant, admin, identity.user, micros(before))).fetchall()
            for user, thread_id, ids in rows:
                owner = Identity(tenant=identity.tenant, user=user)
                gone += self._transcripts.erase_messages(owner, thread_id, json.loads(ids))
            if gone:
                threads = sorted({thread_id for _, thread_id, _ in rows})
                detail = {"messages": gone, "threads": threads, "before": before.isoformat()}
                audit.append(connection, identity, "expire", detail, at=now)
        return gone

    def prune_events(self, older_than: timedelta) -> int:
        """See `MemoryStore.prune_events`."""
        before = self._clock() - _positive(older_than, "prune_events")
        with self._database.write() as connection:
            return outbox.prune(connection, before=before)

    def expire_by_job(self, job: Job) -> None:
        """Does a job of the kind `expire-transcripts`, whose payload has the `days` that its user's messages stay."""
        identity = Identity(tenant=job.tenant, user=job.user)
        self.expire_transcripts(identity, timedelta(days=job.payload["days"]))


def _positive(time: timedelta, what: str) -> timedelta:
    if time <= timedelta(0):
        raise UsageError(f"{what}: older_than must be more than nothing, not {time}; timedelta(days=365) is a year")
    return time
