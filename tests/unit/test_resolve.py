"""What a draft does to what is known: the decision table, one row at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.extraction import AT

from everthread import Authority, Record, Scope
from everthread.nodes.extract.resolve import fingerprint, is_same_fact, resolve
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Change, Provenance

ANA = Scope(owner="user", owner_id="ana")
BILLING = Scope(owner="project", owner_id="billing")
SESSION = Scope(owner="session", owner_id="t1")
SOURCES = {Authority.TOOL: "tool", Authority.INFERRED: "assistant", Authority.EXTERNAL: "web"}


def record(
    value: str | None,
    *,
    scope: Scope = ANA,
    predicate: str | None = "prefers report length",
    subject: str | None = "user",
    at: datetime = AT,
    message: str = "m1",
    thread: str = "t1",
    actor: str = "ana",
    authority: Authority = Authority.USER_EXPLICIT,
    statement: str | None = None,
    **fields: Any,
) -> Record:
    return Record(
        statement=statement or f"{subject} {predicate} {value}.",
        subject=subject,
        predicate=predicate,
        value=value,
        scope=scope,
        temporal_scope="session" if scope.owner == "session" else "long_term",
        provenance=Provenance.model_validate(
            {
                "source": SOURCES.get(authority, "user"),
                "thread_id": thread,
                "message_ids": (message,),
                "actor": actor,
                "extracted_by": "test/1",
                "observed_at": at,
            }
        ),
        write_reason="test",
        authority=authority,
        **fields,
    )


def decide(new: Record, *known: Record, **flags: Any) -> Change:
    return resolve(Draft(new, "accepted", "test", **flags), known)


def outcome(new: Record, *known: Record, **flags: Any) -> tuple[str, str]:
    change = decide(new, *known, **flags)
    return change.action, change.rule


LATER = AT + timedelta(hours=1)


def test_what_is_new_is_created() -> None:
    new = record("short")
    change = decide(new)
    assert (change.action, change.record, change.evidence) == ("create", new, ("m1",))


def test_the_same_from_another_message_confirms() -> None:
    old, new = record("short"), record("Short", message="m2")
    change = decide(new, old)
    assert (change.action, change.target, change.expected, change.source) == ("confirm", old.id, 1, new.provenance)


def test_the_same_message_is_no_second_source() -> None:
    old = record("short")
    assert outcome(record("short"), old) == ("refuse", "already-known")
    confirmed = old.model_copy(update={"confirmed_by": (record("short", message="m2").provenance,)})
    assert outcome(record("short", message="m2"), confirmed) == ("refuse", "already-known")


def test_the_same_words_without_a_property_confirm() -> None:
    old = record(None, predicate=None, subject=None, statement="The locker is near the stairs.")
    new = record(None, predicate=None, subject=None, statement="the locker is near the stairs", message="m2")
    assert outcome(new, old) == ("confirm", "same-fact")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana has worked here for 5 years", "Ana has worked here for 6 years"),
        ("The server is in Oslo", "The server is not in Oslo"),
        ("The server isn't in Oslo", "The server is in Oslo"),
        ("The limit is 5 MB", "The limit is 5 GB"),
        ("The limit is -5", "The limit is 5"),
        ("Release on 2026-03-04", "Release on 2026-03-05"),
        ("用户住在北京", "用户不住在北京"),
        ("合同三年", "合同五年"),
        ("It costs $5", "It costs €5"),
    ],
)
def test_numbers_dates_units_and_negations_are_part_of_sameness(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_case_width_and_punctuation_are_not() -> None:
    assert fingerprint("The Limit is ５ MB!") == fingerprint("limit is 5 mb.")
    assert fingerprint("isn't") == fingerprint("is not") == fingerprint("isn’t")


def test_a_newer_value_supersedes_with_the_relation_and_its_evidence() -> None:
    old, new = record("short"), record("long", at=LATER, message="m2")
    change = decide(new, old)
    assert (change.action, change.rule, change.target, change.expected) == ("supersede", "newer", old.id, 1)
    assert change.record is not None
    [relation] = change.record.relations
    assert (relation.kind, relation.target, relation.evidence) == ("supersedes", old.id, ("m2",))


def test_later_in_one_thread_is_newer_when_the_times_are_equal() -> None:
    assert outcome(record("long", message="m2"), record("short")) == ("supersede", "newer")


def test_an_older_value_changes_nothing() -> None:
    assert outcome(record("long", thread="t0"), record("short", at=LATER)) == ("refuse", "older")


def test_neither_time_nor_authority_decides_means_contested() -> None:
    assert outcome(record("long", thread="t2"), record("short")) == ("contest", "undecided")


def test_a_stronger_source_supersedes_and_a_weaker_one_waits() -> None:
    weak = record("long", authority=Authority.TOOL, at=LATER)
    assert outcome(record("short"), weak) == ("supersede", "stronger-source")
    change = decide(weak, record("short"))
    assert (change.action, change.rule) == ("supersede", "weaker-source")
    assert change.record is not None
    assert change.record.status == "pending"


def test_the_fresher_authoritative_observation_settles_a_fact_of_the_environment() -> None:
    said = record("MySQL", subject="production", predicate="database", scope=BILLING)
    seen = record(
        "PostgreSQL",
        subject="production",
        predicate="database",
        scope=BILLING,
        authority=Authority.TOOL,
        at=LATER,
        actor="ana",
    )
    assert outcome(seen, said) == ("supersede", "newer")
    assert outcome(said, seen) == ("refuse", "older")


def test_many_valued_properties_do_not_conflict() -> None:
    old = record("nuts", predicate="allergic to")
    assert outcome(record("milk", predicate="allergic to", at=LATER), old) == ("create", "accepted")
    assert outcome(record("milk", predicate="allergic to", at=LATER), old, corrects=True, touches=(old.id,)) == (
        "supersede",
        "newer",
    )


def test_another_property_is_out_of_reach() -> None:
    old = record("short")
    assert outcome(record("Oslo", predicate="lives in", at=LATER), old) == ("create", "accepted")
    assert outcome(record("Oslo", predicate="lives in", at=LATER), old, corrects=True) == ("create", "accepted")


def test_a_narrower_scope_narrows_and_a_wider_one_stands_beside() -> None:
    wide, narrow = record("short"), record("long", scope=SESSION, at=LATER)
    assert outcome(narrow, wide) == ("narrow", "narrower-scope")
    assert outcome(record("short", at=LATER), narrow) == ("create", "other-scope")
    within = Scope.model_validate({"owner": "user", "owner_id": "ana", "within": {"project": "billing"}})
    assert outcome(record("long", scope=within, at=LATER), wide) == ("narrow", "narrower-scope")


def test_another_time_of_validity_does_not_conflict() -> None:
    old = record("Oslo", predicate="lives in", valid_to=AT)
    assert outcome(record("Rome", predicate="lives in", valid_from=AT, at=LATER), old) == ("create", "accepted")


def test_members_of_a_project_contest_unless_one_corrects() -> None:
    old = record("MySQL", subject="billing", predicate="database", scope=BILLING, actor="ben")
    new = record("PostgreSQL", subject="billing", predicate="database", scope=BILLING, at=LATER)
    assert outcome(new, old) == ("contest", "members-disagree")
    assert outcome(new, old, corrects=True) == ("supersede", "newer")


def test_a_retraction_ends_what_it_means_and_nothing_else() -> None:
    old, other = record("Acme", predicate="employer"), record("Oslo", predicate="lives in")
    change = decide(record("Acme", predicate="employer", at=LATER), other, old, retracts=True)
    assert (change.action, change.target, change.status, change.rule) == ("end", old.id, "archived", "retracted")
    assert outcome(record("Globex", predicate="employer"), old, other, retracts=True) == ("refuse", "nothing-to-end")


def test_a_weaker_source_and_another_member_end_nothing() -> None:
    old = record("MySQL", subject="billing", predicate="database", scope=BILLING, actor="ben")
    new = record("MySQL", subject="billing", predicate="database", scope=BILLING)
    assert outcome(new, old, retracts=True) == ("refuse", "others-record")
    weak = record("MySQL", subject="billing", predicate="database", scope=BILLING, authority=Authority.TOOL)
    assert outcome(weak, old, retracts=True) == ("refuse", "weaker-source")


def test_what_waits_or_was_rejected_is_not_asked_again() -> None:
    new = record("short", status="pending", authority=Authority.EXTERNAL, message="m2")
    waiting = record("short", status="pending", authority=Authority.EXTERNAL)
    rejected = record("short", status="rejected", authority=Authority.EXTERNAL)
    assert outcome(new, waiting) == ("refuse", "already-pending")
    assert outcome(new, rejected) == ("refuse", "rejected-before")


def test_what_waits_supersedes_only_once_it_is_approved() -> None:
    old = record("short")
    change = decide(record("long", status="pending", authority=Authority.EXTERNAL, at=LATER), old)
    assert (change.action, change.target) == ("supersede", old.id)
    assert change.record is not None
    assert change.record.status == "pending"


def test_a_confirmation_never_raises_authority() -> None:
    weak = record("short", authority=Authority.TOOL, subject="server", predicate="report length")
    strong = record("short", message="m2", subject="server", predicate="report length")
    change = decide(strong, weak)
    assert (change.action, change.record) == ("confirm", None)


def test_same_value_is_the_same_fact_whatever_the_words() -> None:
    assert is_same_fact(record("short", statement="Short reports, please."), record("short"))


def played(drafts: list[Record]) -> str | None:
    """The value that stands after these arrived in this order."""
    standing: list[Record] = []
    for draft in drafts:
        change = decide(draft, *standing)
        if change.action in ("create", "supersede") and change.record and change.record.status == "active":
            standing = [known for known in standing if known.id != change.target] + [change.record]
        assert change.action != "contest"
    [last] = standing
    return last.value


@given(
    st.lists(
        st.tuples(
            st.sampled_from([Authority.TOOL, Authority.USER_IMPLIED, Authority.USER_EXPLICIT]), st.integers(0, 99)
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: pair[1],
    ),
    st.sampled_from(["user", "production"]),
)
def test_the_order_of_arrival_does_not_matter_when_authority_and_time_decide(
    sources: list[tuple[Authority, int]], subject: str
) -> None:
    drafts = [
        record(
            f"v{hour}",
            subject=subject,
            predicate="state",
            thread=f"t{hour}",
            message=f"m{hour}",
            authority=authority,
            at=AT + timedelta(hours=hour),
        )
        for authority, hour in sources
    ]
    assert len({played(list(order)) for order in permutations(drafts)}) == 1


@given(st.text(max_size=200))
def test_a_fingerprint_is_the_same_for_itself_in_capitals(text: str) -> None:
    assert fingerprint(text.casefold()) == fingerprint(text)
