"""The resident profile: how a user has said that they want to be answered, read by key (R199, R210)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from threading import Lock

from everthread.stores.access import may_read, unfit
from everthread.stores.database import Connection, Database
from everthread.stores.identity import Identity, Owner, aware
from everthread.stores.record import Authority, Record
from everthread.stores.tables.rows import BODY, NO_THREAD, OF_OWNER, Rows, Stored, permission
from everthread.stores.tables.search import SearchIndex, record_space

__all__ = ["Profiles"]

ABOUT_EXPRESSION = f"""
SELECT records.id FROM records
WHERE {OF_OWNER} AND records.status IN ('active', 'contested') AND {BODY} ->> '$.concerns' = 'expression'
"""
ONCE_ABOUT_EXPRESSION = f"""
{OF_OWNER} AND EXISTS (
    SELECT 1 FROM revisions AS one WHERE one.id = records.id AND one.body ->> '$.concerns' = 'expression'
)
"""
"""In any revision; which one stood then is looked at afterwards."""
KEPT = 1_000
"""Of how many owners it is remembered which records these are, until something of the owner's changes."""


class Profiles:
    """Answers `MemoryStore.profile`."""

    def __init__(self, database: Database, rows: Rows, index: SearchIndex, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._clock = clock
        self._ids: OrderedDict[str, tuple[int, tuple[str, ...]]] = OrderedDict()
        self._lock = Lock()

    def profile(
        self, identity: Identity, *, thread_id: str | None, as_of: datetime | None, now: datetime | None, limit: int
    ) -> list[Record]:
        """See `MemoryStore.profile`."""
        moment = aware(now or as_of or self._clock(), "now")
        owners: list[tuple[Owner, str]] = [("session", thread_id)] if thread_id else []
        found: list[Record] = []
        with self._database.read(identity.tenant) as connection:
            for owner, owner_id in (*owners, ("user", identity.user)):
                stored = self._of(connection, identity, owner, owner_id, thread_id, as_of)
                fitting = [
                    each.record
                    for each in stored
                    if is_of_profile(each.record)
                    and may_read(identity, each.record, author=each.author, thread_id=thread_id or NO_THREAD)
                    and unfit(each.record, identity, moment) is None
                ]
                found += sorted(fitting, key=lambda record: (record.recorded_at, record.id), reverse=True)
        return found[:limit]

    def _of(
        self,
        connection: Connection,
        identity: Identity,
        owner: Owner,
        owner_id: str,
        thread_id: str | None,
        as_of: datetime | None,
    ) -> Iterable[Stored]:
        values = permission(identity, owner, owner_id, thread_id)
        if as_of is not None:
            return list(self._rows.standing(connection, as_of, ONCE_ABOUT_EXPRESSION, values))
        space = record_space(identity.tenant, owner, owner_id)
        version = self._index.version(connection, space)
        with self._lock:
            known = self._ids.get(space)
        if known is None or known[0] != version:
            known = version, tuple(str(id) for (id,) in connection.execute(ABOUT_EXPRESSION, values))
            with self._lock:
                self._ids[space] = known
                self._ids.move_to_end(space)
                while len(self._ids) > KEPT:
                    self._ids.popitem(last=False)
        return self._rows.several(connection, identity.tenant, known[1]).values() if known[1] else ()


def is_of_profile(record: Record) -> bool:
    """Whether it says how its user wants to be answered, and the user said so: nothing that was concluded stands
    resident in every request."""
    return record.concerns == "expression" and record.stated and record.authority >= Authority.USER_EXPLICIT
