"""What each user has agreed to (R289): the second wall, which holds whatever a node thought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import get_args

from everthread.errors import UsageError
from everthread.stores.access import check_consent
from everthread.stores.database import Connection, Database, one
from everthread.stores.identity import Identity, Memory
from everthread.stores.record import Change
from everthread.stores.tables import audit
from everthread.stores.tables.times import micros

__all__ = ["Consents"]

CHOSEN = "SELECT memory FROM consents WHERE tenant = ? AND user = ?"
CHOOSE = """
INSERT INTO consents (tenant, user, memory, at) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, user) DO UPDATE SET memory = excluded.memory, at = excluded.at
"""


class Consents:
    """Answers `MemoryStore.consent` and `set_consent`. `default` holds for who has not said anything."""

    def __init__(self, database: Database, clock: Callable[[], datetime], *, default: Memory) -> None:
        self._database = database
        self._clock = clock
        if default not in get_args(Memory):
            raise UsageError(f'default_consent must be "on", "read" or "off", not {default!r}')
        self._default = default

    def of(self, identity: Identity) -> Memory:
        """See `MemoryStore.consent`."""
        with self._database.read(identity.tenant) as connection:
            return self._chosen(connection, identity)

    def set(self, identity: Identity, memory: Memory) -> None:
        """See `MemoryStore.set_consent`."""
        now = self._clock()
        with self._database.write(identity.tenant) as connection:
            before = self._chosen(connection, identity)
            connection.execute(CHOOSE, (identity.tenant, identity.user, memory, micros(now)))
            audit.append(connection, identity, "consent", {"memory": memory, "before": before}, at=now)

    def check(self, connection: Connection, identity: Identity, changes: Sequence[Change]) -> None:
        """Raises AccessDenied as `access.check_consent` does; in the transaction that would write the changes."""
        check_consent(identity, self._chosen(connection, identity), changes)

    def _chosen(self, connection: Connection, identity: Identity) -> Memory:
        chosen: Memory | None = one(connection, CHOSEN, identity.tenant, identity.user)
        return chosen or self._default
