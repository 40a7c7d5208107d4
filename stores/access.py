"""Who may read, write and erase what. Pure rules: every backend asks here, and filters in its queries by the same.

Permission (`may_read`) is about whose a record is; applicability (`unfit`) is about whether it holds here and now. What
an identity may not read does not exist for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everthread.errors import AccessDenied, UsageError
from everthread.stores.identity import Identity, Memory, Owner, Scope, Within, owners_of, within_holds
from everthread.stores.record import Authority, Change, Record

__all__ = [
    "check_change",
    "check_consent",
    "check_write",
    "grants",
    "may_erase",
    "may_export",
    "may_mark",
    "may_read",
    "narrows",
    "searched_owners",
    "unfit",
]

WIDE: tuple[Owner, ...] = ("agent", "team", "organization")
"""Owners whose memory changes by review only."""
SHARED: tuple[Owner, ...] = ("project", *WIDE)
"""Owners whose memory several users read."""


def grants(identity: Identity) -> tuple[str, ...]:
    """The names under which `governance` lists may admit this identity: its user id, and `role:...` for each role."""
    return (identity.user, *sorted(f"role:{role}" for role in identity.roles))


def _admitted(names: Sequence[str], identity: Identity) -> bool:
    return not names or any(name in grants(identity) for name in names)


def may_read(identity: Identity, record: Record, *, author: str, thread_id: str | None = None) -> bool:
    """Whether this identity may see the record at all; the record is of the identity's tenant.

    `author` is the user whose turn created it: a session belongs to one user. Without `thread_id`, what is bound to a
    thread is readable when it is this user's own (to list, explain and erase it); a search always names its thread.
    What waits for review to be others' too is not theirs yet: who proposed it reads it, and who decides (R303, R304).
    """
    scope = record.scope
    if not _admitted(record.governance.readable_by, identity):
        return False
    if record.status == "pending" and scope.owner in SHARED and not _sees_proposals(identity, author):
        return False
    if scope.owner == "session":
        if author != identity.user or thread_id not in (None, scope.owner_id):
            return False
    elif (scope.owner, scope.owner_id) not in owners_of(identity):
        return False
    thread = scope.within.thread if thread_id is None and author == identity.user else thread_id
    return within_holds(scope.within, identity, thread)


def _sees_proposals(identity: Identity, author: str) -> bool:
    """Whether what this author proposed to others can be seen before it is decided."""
    return author == identity.user or "curator" in identity.roles


def may_export(identity: Identity, record: Record, *, author: str) -> bool:
    """Whether the record is in this identity's export of its own memory: what is its own, wherever that holds, and what
    it may read of what it has written for others. An admin's has all that was written."""
    if "admin" in identity.roles or may_read(identity, record, author=author):
        return True
    scope = record.scope
    own = (
        author == identity.user
        if scope.owner == "session"
        else (scope.owner, scope.owner_id) == ("user", identity.user)
    )
    return own and _admitted(record.governance.readable_by, identity)


def unfit(record: Record, identity: Identity, now: datetime) -> str | None:
    """Why a record that may be read is not to be used here and now, in a sentence; None when it is."""
    if record.status not in ("active", "contested"):
        return f"it is {record.status}"
    if record.valid_from and now < record.valid_from:
        return f"it is not valid before {record.valid_from:%Y-%m-%d}"
    if record.valid_to and now >= record.valid_to:
        return f"it was valid until {record.valid_to:%Y-%m-%d}"
    if record.expires_at and now >= record.expires_at:
        return f"it expired on {record.expires_at:%Y-%m-%d}"
    if record.environment not in (None, identity.environment):
        return f"it holds for the environment {record.environment}"
    if not record.holds_for(identity.agent, identity.agent_version):
        return f"it holds for the agent {record.agent_family} {record.agent_versions or ''}".rstrip()
    return None


def searched_owners(
    identity: Identity, scopes: Sequence[Scope] | None, thread_id: str | None
) -> tuple[tuple[Owner, str], ...]:
    """The owners to search, narrowest first: all that the identity reads, or those that `scopes` names.

    Raises UsageError for an empty `scopes` (R162) and AccessDenied for one that is not the identity's (R165).
    """
    readable = owners_of(identity, thread_id)
    if scopes is None:
        return readable
    if not scopes:
        raise UsageError("scopes is empty; name at least one scope, or leave it out to search all that may be read")
    for scope in scopes:
        if (scope.owner, scope.owner_id) not in readable:
            raise AccessDenied(
                f"scope {scope.owner}:{scope.owner_id} is not open to user {identity.user}; "
                "the identity must carry it, and a session's scope goes with its thread_id"
            )
    named = {(scope.owner, scope.owner_id) for scope in scopes}
    return tuple(owner for owner in readable if owner in named)


def narrows(scopes: Sequence[Scope] | None, scope: Scope) -> bool:
    """Whether a record of `scope` is meant by `scopes`: fields of `within` that are set there must be equal (R161)."""
    return scopes is None or any(
        (scope.owner, scope.owner_id) == (asked.owner, asked.owner_id) and _covers(asked.within, scope.within)
        for asked in scopes
    )


def _covers(asked: Within, found: Within) -> bool:
    return all(getattr(found, field) == value for field, value in asked.model_dump(exclude_none=True).items())


def check_write(identity: Identity, record: Record, *, thread_id: str | None) -> None:
    """Raises AccessDenied unless this identity's turn may write the record as it is.

    | owner                     | without review                                 | otherwise        |
    | session, user             | the thread's and the user's own turns          | never            |
    | project                   | a member's explicit statement, or a curator    | pending          |
    | agent, team, organization | a curator                                      | pending          |
    """
    scope = record.scope
    _check_membership(identity, scope, thread_id)
    if not _admitted(record.governance.writable_by, identity):
        raise AccessDenied(f"record {record.id} may be written only by: {', '.join(record.governance.writable_by)}")
    if record.status == "pending" or "curator" in identity.roles:
        return
    if scope.owner in WIDE or (scope.owner == "project" and record.authority < Authority.USER_EXPLICIT):
        raise AccessDenied(
            f"{scope.owner}:{scope.owner_id} changes by review; write the record with status 'pending', "
            "or as an identity with the role curator"
        )


def _check_membership(identity: Identity, scope: Scope, thread_id: str | None) -> None:
    if scope.owner == "session" and thread_id != scope.owner_id:
        raise AccessDenied(f"session {scope.owner_id} can be written only by a turn of that thread")
    if (scope.owner, scope.owner_id) not in owners_of(identity, thread_id):
        raise AccessDenied(f"user {identity.user} has no part in {scope.owner}:{scope.owner_id}")


def check_change(
    identity: Identity, target: Record, change: Change, *, author: str, thread_id: str | None, now: datetime
) -> None:
    """Raises AccessDenied unless this identity may change `target` in this way; what is new is checked separately.

    A source may be added by every member, since it changes nothing that is said, and what has run out may be marked so
    by every member. What waits for review is changed or taken back by who proposed it (it goes on waiting, or passes
    `check_write`) and by a curator: nobody else puts words into a proposal, or drops it.
    """
    scope = target.scope
    _check_membership(identity, scope, thread_id)
    if scope.owner == "session" and author != identity.user:
        raise AccessDenied(f"session {scope.owner_id} belongs to another user")
    if not _admitted(target.governance.writable_by, identity):
        raise AccessDenied(f"record {target.id} may be changed only by: {', '.join(target.governance.writable_by)}")
    if scope.owner in ("session", "user") or "curator" in identity.roles:
        return
    if change.action == "confirm":
        return
    if change.action == "end" and change.status == "expired" and _has_run_out(target, now):
        return
    if target.status == "pending":
        if author == identity.user:
            return
        raise AccessDenied(f"record {target.id} waits for review: who proposed it may change it, and a curator")
    if scope.owner == "project" and (
        author == identity.user or (change.record is not None and change.record.authority >= Authority.USER_EXPLICIT)
    ):
        return
    raise AccessDenied(f"record {target.id} of {scope.owner}:{scope.owner_id} changes by review; ask a curator")


def check_consent(identity: Identity, consent: Memory, changes: Sequence[Change]) -> None:
    """Raises AccessDenied when one of the changes would learn in the name of a user who has not agreed to it (R289).
    What ends a record or refuses one is always open."""
    if consent == "on":
        return
    for change in changes:
        if change.action not in ("end", "refuse"):
            raise AccessDenied(
                f"{change.action}: user {identity.user} has set consent to '{consent}', so nothing is learnt in their "
                'name; `everthread consent on`, or store.set_consent(identity, "on") when they agree'
            )


def _has_run_out(record: Record, now: datetime) -> bool:
    ends = [moment for moment in (record.expires_at, record.valid_to) if moment is not None]
    return any(now >= moment for moment in ends)


def may_mark(identity: Identity, record: Record) -> bool:
    """Whether this identity may say of a record that it reads, whose time is over, that it has expired."""
    return _admitted(record.governance.writable_by, identity)


def may_erase(identity: Identity, record: Record, *, author: str) -> bool:
    """Whether this identity may erase the record: its own, what it wrote for a project, all as a scope's curator or as
    the tenant's admin."""
    scope = record.scope
    if "admin" in identity.roles:
        return True
    if scope.owner == "session":
        return author == identity.user
    if (scope.owner, scope.owner_id) not in owners_of(identity):
        return False
    return scope.owner == "user" or author == identity.user or "curator" in identity.roles
