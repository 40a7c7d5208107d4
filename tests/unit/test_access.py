"""Who may read, write and erase what: the rules alone, without a store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON, learnt, said_by

from everthread import Identity, Record, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.stores.access import (
    check_change,
    check_write,
    grants,
    may_erase,
    may_read,
    narrows,
    searched_owners,
    unfit,
)
from everthread.stores.identity import Within
from everthread.stores.record import Change, Governance

ANA = Identity(
    tenant="acme", user="ana", agent="ops", project="billing", team="core", organization="acme", application="shop"
)
CURATOR = ANA.model_copy(update={"user": "cleo", "roles": frozenset({"curator"})})
ADMIN = Identity(tenant="acme", user="root", roles=frozenset({"admin"}))
OWNED = {
    "user": "ana",
    "agent": "ops",
    "project": "billing",
    "team": "core",
    "organization": "acme",
}


def writes(identity: Identity, record: Record, thread_id: str | None = None) -> bool:
    try:
        check_write(identity, record, thread_id=thread_id)
    except AccessDenied:
        return False
    return True


def changes(identity: Identity, target: Record, change: Change, author: str = "ben", **options: Any) -> bool:
    try:
        check_change(identity, target, change, author=author, **({"thread_id": None, "now": NOON} | options))
    except AccessDenied:
        return False
    return True


def ending(status: Any = "archived") -> Change:
    return Change(action="end", target="mem_1", expected=1, status=status, rule="r", reason="x")


def superseding(authority: str) -> Change:
    record = learnt("new", "project", "billing", authority=authority)
    return Change(action="supersede", target="mem_1", expected=1, record=record, rule="r", reason="x")


CONFIRMING = Change(action="confirm", target="mem_1", expected=1, source=said_by(), rule="r", reason="x")


def test_grants_name_the_user_and_its_roles() -> None:
    both = Identity(tenant="acme", user="cleo", roles=frozenset({"curator", "admin"}))
    assert grants(both) == ("cleo", "role:admin", "role:curator")


def test_a_role_is_not_a_user_of_that_name() -> None:
    record = learnt("x", "project", "billing", governance=Governance(readable_by=("role:curator",)))
    assert may_read(CURATOR, record, author="ana")
    assert not may_read(ANA.model_copy(update={"user": "curator"}), record, author="ana")


@pytest.mark.parametrize(("owner", "owner_id"), OWNED.items())
def test_each_owner_reads_its_own(owner: str, owner_id: str) -> None:
    assert may_read(ANA, learnt("x", owner, owner_id), author="ben")
    assert not may_read(ANA, learnt("x", owner, "another"), author="ben")
    assert may_read(Identity(tenant="acme", user="zoe"), learnt("x", owner, owner_id), author="ben") is False


def test_a_session_is_read_by_its_user_in_its_thread() -> None:
    record = learnt("x", "session", "t1")
    assert may_read(ANA, record, author="ana", thread_id="t1")
    assert may_read(ANA, record, author="ana")
    assert not may_read(ANA, record, author="ana", thread_id="t2")
    assert not may_read(ANA, record, author="ben", thread_id="t1")
    assert not may_read(ANA, record, author="ben")


def test_a_narrowed_scope_is_read_where_it_holds() -> None:
    def within(**fields: str) -> Record:
        return learnt("x", scope=Scope(owner="user", owner_id="ana", within=Within(**fields)))

    assert may_read(ANA, within(application="shop", project="billing", agent="ops"), author="ana")
    assert not may_read(ANA, within(application="shop", project="crm"), author="ana")
    assert may_read(ANA, within(thread="t1"), author="ana", thread_id="t1")
    assert may_read(ANA, within(thread="t1"), author="ana")
    assert not may_read(ANA, within(thread="t1"), author="ana", thread_id="t2")
    assert not may_read(ANA, within(thread="t1"), author="ana", thread_id="")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None),
        ({"status": "pending"}, "it is pending"),
        ({"valid_from": NOON + timedelta(days=1)}, "it is not valid before 2026-05-09"),
        ({"valid_to": NOON}, "it was valid until 2026-05-08"),
        ({"expires_at": NOON}, "it expired on 2026-05-08"),
        ({"environment": "prod"}, "it holds for the environment prod"),
        ({"agent_family": "ops", "agent_versions": ">=2"}, "it holds for the agent ops >=2"),
        ({"agent_family": "chat"}, "it holds for the agent chat"),
        ({"agent_family": "ops"}, None),
    ],
)
def test_what_does_not_fit_has_a_reason(fields: dict[str, Any], reason: str | None) -> None:
    assert unfit(learnt("x", **fields), ANA, NOON) == reason


def test_a_search_covers_what_is_readable_or_named() -> None:
    readable = (("user", "ana"), ("agent", "ops"), ("project", "billing"), ("team", "core"), ("organization", "acme"))
    assert searched_owners(ANA, None, None) == readable
    assert searched_owners(ANA, None, "t1") == (("session", "t1"), *readable)
    team, user = Scope(owner="team", owner_id="core"), Scope(owner="user", owner_id="ana")
    assert searched_owners(ANA, [team, user, user], None) == (("user", "ana"), ("team", "core"))
    with pytest.raises(UsageError, match="empty"):
        searched_owners(ANA, [], None)
    with pytest.raises(AccessDenied, match="session:t1"):
        searched_owners(ANA, [Scope(owner="session", owner_id="t1")], None)


def test_a_scope_is_meant_with_all_that_narrows_it() -> None:
    plain = Scope(owner="user", owner_id="ana")
    shop = Scope(owner="user", owner_id="ana", within=Within(application="shop"))
    assert narrows(None, shop)
    assert narrows([plain], shop)
    assert narrows([shop], shop)
    assert not narrows([shop], plain)
    assert not narrows([Scope(owner="project", owner_id="ana")], plain)


def test_who_writes_without_review() -> None:
    assert writes(ANA, learnt("x"))
    assert writes(ANA, learnt("x", authority="inferred"))
    assert not writes(ANA, learnt("x", owner_id="ben"))
    assert writes(ANA, learnt("x", "session", "t1"), thread_id="t1")
    assert not writes(ANA, learnt("x", "session", "t1"), thread_id="t2")
    assert not writes(ANA, learnt("x", "session", "t1"))
    assert writes(ANA, learnt("x", "project", "billing"))
    assert not writes(ANA, learnt("x", "project", "billing", authority="user_implied"))
    assert writes(CURATOR, learnt("x", "project", "billing", authority="inferred"))
    assert not writes(CURATOR, learnt("x", "project", "crm"))


@pytest.mark.parametrize("owner", ["agent", "team", "organization"])
def test_wide_memory_is_written_by_review(owner: str) -> None:
    record = learnt("x", owner, OWNED[owner])
    assert not writes(ANA, record)
    assert writes(ANA, record.model_copy(update={"status": "pending"}))
    assert writes(CURATOR, record)
    assert not writes(CURATOR, learnt("x", owner, "another"))


def test_named_writers_are_the_only_ones() -> None:
    record = learnt("x", "project", "billing", governance=Governance(writable_by=("ben", "role:curator")))
    assert not writes(ANA, record)
    assert writes(CURATOR, record)
    assert not changes(ANA, record, CONFIRMING)
    assert changes(CURATOR, record, CONFIRMING)


def test_who_changes_what_stands() -> None:
    project, team = learnt("x", "project", "billing"), learnt("x", "team", "core")
    assert changes(ANA, learnt("x"), ending())
    assert not changes(ANA, learnt("x", owner_id="ben"), ending())
    assert changes(ANA, project, ending(), author="ana")
    assert not changes(ANA, project, ending())
    assert changes(ANA, project, superseding("user_explicit"))
    assert not changes(ANA, project, superseding("inferred"))
    assert not changes(ANA, team, ending(), author="ana")
    assert changes(CURATOR, team, ending())


def test_every_member_may_add_a_source_or_note_an_expiry() -> None:
    team = learnt("x", "team", "core", expires_at=NOON)
    assert changes(ANA, team, CONFIRMING)
    assert changes(ANA, team, ending("expired"))
    assert not changes(ANA, team, ending("expired"), now=NOON - timedelta(seconds=1))
    assert not changes(ANA, team, ending("rejected"))
    assert not changes(Identity(tenant="acme", user="zoe"), team, CONFIRMING)


def test_what_waits_is_changed_by_who_proposed_it_and_by_a_curator() -> None:
    waits = learnt("x", "team", "core", status="pending", expires_at=NOON)
    assert changes(ANA, waits, ending("rejected"), author="ana")
    assert changes(CURATOR, waits, ending("rejected"))
    assert not changes(ANA, waits, ending("rejected"))
    assert changes(ANA, waits, CONFIRMING)
    assert changes(ANA, waits, ending("expired"))
    assert not changes(ANA, learnt("x", "project", "billing", status="pending"), superseding("user_explicit"))


def test_a_session_is_changed_by_its_user_in_its_thread() -> None:
    session = learnt("x", "session", "t1")
    assert changes(ANA, session, ending(), author="ana", thread_id="t1")
    assert not changes(ANA, session, ending(), author="ana")
    assert not changes(ANA, session, ending(), author="ben", thread_id="t1")


def test_who_erases() -> None:
    project, session = learnt("x", "project", "billing"), learnt("x", "session", "t1")
    assert may_erase(ANA, learnt("x"), author="ana")
    assert not may_erase(ANA, learnt("x", owner_id="ben"), author="ben")
    assert may_erase(ANA, session, author="ana")
    assert not may_erase(ANA, session, author="ben")
    assert may_erase(ANA, project, author="ana")
    assert not may_erase(ANA, project, author="ben")
    assert may_erase(CURATOR, project, author="ben")
    assert not may_erase(CURATOR, learnt("x", "project", "crm"), author="ben")
    assert may_erase(ADMIN, learnt("x", owner_id="ben"), author="ben")
