"""Ids of threads."""

import re

import pytest

from everthread import Identity
from everthread.errors import UsageError
from everthread.stores.threads import below, thread_config, thread_id_for


def test_a_thread_id_reads_as_its_name(ana: Identity) -> None:
    assert re.fullmatch(r"quarterly-report-2026-[0-9a-f]{32}", thread_id_for(ana, "Quarterly  report / 2026!"))
    assert re.fullmatch(r"季度报告-[0-9a-f]{32}", thread_id_for(ana, "季度报告"))
    assert re.fullmatch(r"[0-9a-f]{32}", thread_id_for(ana, "🙂"))
    assert len(thread_id_for(ana, "x" * 500)) == 40 + 1 + 32


def test_the_same_name_is_the_same_thread_whatever_else_the_identity_says(ana: Identity) -> None:
    elsewhere = Identity(tenant="acme", user="ana", project="other", agent="helper")
    assert thread_id_for(ana, "t1") == thread_id_for(elsewhere, "t1")


def test_two_users_threads_never_meet() -> None:
    owners = [("acme", "ana"), ("acme", "ben"), ("other", "ana"), ("acm", "eana"), ("acmea", "na")]
    names = ["t1", "T1", "t1 ", "1", "nat1"]
    found = {thread_id_for(Identity(tenant=tenant, user=user), name) for tenant, user in owners for name in names}
    assert len(found) == len(owners) * len(names)


def test_the_config_names_the_thread_and_nothing_else(ana: Identity) -> None:
    assert thread_config(ana, "t1") == {"configurable": {"thread_id": thread_id_for(ana, "t1")}}


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "\ud800"])
def test_a_name_that_cannot_be_one_is_refused(ana: Identity, name: str) -> None:
    with pytest.raises(UsageError, match="thread name"):
        thread_config(ana, name)


def test_a_sub_agents_thread_is_known_by_each_thread_above_it(ana: Identity) -> None:
    child = f"{below('t1')}{thread_id_for(ana, 'x of t1')}"
    grandchild = f"{below(child)}{thread_id_for(ana, 'y of x')}"
    assert grandchild.startswith(below("t1")) and grandchild.startswith(below(child))
    assert not child.startswith((below(child), below("t2"), below("t11")))
    assert not thread_id_for(ana, child).startswith(below("t1")), "no name of a user's choice is one"
