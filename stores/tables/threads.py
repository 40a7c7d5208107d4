"""Whose a thread is. Every table that belongs to a thread asks here, inside its own transaction."""

from __future__ import annotations

from typing import Literal

from everthread.errors import AccessDenied
from everthread.stores.database import Connection
from everthread.stores.identity import Identity, thread_name_check
from everthread.stores.record import now_utc
from everthread.stores.tables.times import micros
from everthread.stores.threads import below

__all__ = ["Memory", "bind_thread", "family_of", "owns_thread"]

FAMILY = """
SELECT thread_id FROM threads
WHERE tenant = ?1 AND user = ?2 AND (thread_id = ?3 OR substr(thread_id, 1, ?5) = ?4) ORDER BY thread_id
"""

Memory = Literal["on", "read", "off"]


def owns_thread(connection: Connection, identity: Identity, thread_id: str) -> bool:
    """True for a thread of this user, False for one that nobody has used yet.

    Raises AccessDenied for anyone else's, in the same words for another user and another tenant (R294), and UsageError
    for an id that cannot be one (empty, a NUL character, a lone surrogate).
    """
    row = connection.execute(
        "SELECT tenant, user FROM threads WHERE thread_id = ?", (thread_name_check(thread_id),)
    ).fetchone()
    if row is not None and row != (identity.tenant, identity.user):
        raise AccessDenied(
            f"thread {thread_id!r} is not this user's; thread_config(identity, name) makes an id that is"
        )
    return row is not None


def family_of(connection: Connection, identity: Identity, thread_id: str) -> list[str]:
    """This thread and those of its sub-agents, and of theirs, as far as they are this user's; sorted."""
    prefix = below(thread_id)
    rows = connection.execute(FAMILY, (identity.tenant, identity.user, thread_id, prefix, len(prefix))).fetchall()
    return [str(each) for (each,) in rows]


def bind_thread(connection: Connection, identity: Identity, thread_id: str, name: str | None = None) -> None:
    """Make the thread this user's if nobody has it, and give it `name` if there is one; raises as above."""
    if not owns_thread(connection, identity, thread_id):
        connection.execute(
            "INSERT INTO threads (thread_id, tenant, user, bound_at) VALUES (?, ?, ?, ?)",
            (thread_id, identity.tenant, identity.user, micros(now_utc())),
        )
    if name is not None:
        connection.execute("UPDATE threads SET name = ? WHERE thread_id = ?", (thread_name_check(name), thread_id))
