"""What a draft does to what is known: the decision table, one row at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.extraction import AT

from everthread import Authority, Record, Scope
from everthread.nodes.extract.resolve import EXPLICIT_SAVE, resolve, settled
from everthread.nodes.extract.sameness import fingerprint, is_same_fact
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
    source = new.provenance.model_copy(update={"authority": Authority.USER_EXPLICIT})
    assert (change.action, change.target, change.expected, change.source) == ("confirm", old.id, 1, source)


def test_the_same_message_is_no_second_source() -> None:
    old = record("short")
    assert outcome(record("short"), old) == ("refuse", "already-known")
    confirmed = old.model_copy(update={"confirmed_by": (record("short", message="m2").provenance,)})
    assert outcome(record("short", message="m2"), confirmed) == ("refuse", "already-known")


def test_a_stronger_source_of_the_same_speaks_for_itself_and_keeps_what_was_said_for_it() -> None:
    old = record("short", authority=Authority.TOOL)
    change = decide(record("short", message="m2"), old)
    assert (change.action, change.rule, change.target) == ("supersede", "stronger-source", old.id)
    assert change.record is not None
    assert change.record.authority == Authority.USER_EXPLICIT
    assert change.record.confirmed_by == (old.provenance.model_copy(update={"authority": Authority.TOOL}),)


def test_what_was_confirmed_later_is_as_new_as_that() -> None:
    again = record("short", at=AT + timedelta(hours=3), thread="t3", message="m3").provenance
    old = record("short", confirmed_by=(again.model_copy(update={"authority": Authority.USER_EXPLICIT}),))
    between = record("long", at=LATER, thread="t2", message="m2")
    assert outcome(between, old) == ("refuse", "older")
    weaker = record("short", confirmed_by=(again.model_copy(update={"authority": Authority.USER_IMPLIED}),))
    assert outcome(between, weaker) == ("supersede", "newer")


def test_one_message_read_twice_in_other_words_is_known() -> None:
    old = record("PostgreSQL", predicate="database", statement="We use PostgreSQL because 3 teams know it.")
    new = record("PostgreSQL", predicate="database", statement="The database is PostgreSQL.")
    assert outcome(new, old) == ("refuse", "already-known")


def test_an_import_without_messages_confirms_once() -> None:
    bare = record("short").provenance.model_copy(update={"thread_id": None, "message_ids": ()})
    old, new = record("short"), record("short").model_copy(update={"provenance": bare})
    change = decide(new, old)
    assert change.action == "confirm"
    assert outcome(new, old.model_copy(update={"confirmed_by": (change.source,)})) == ("refuse", "already-known")


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
        ("The limit is ≤5", "The limit is ≥5"),
        ("在这里工作了五年", "在这里工作了6年"),
        ("预算20万", "预算200万"),
        ("预算一百五", "预算一百零五"),
        ("他没去北京", "他去北京"),
        ("他不吃鱼", "他吃鱼"),
        ("二〇二六年三月四日发布", "二〇二六年三月五日发布"),
        ("Python 3.1", "Python 3.10"),
        ("🎉", "🚀"),
    ],
)
def test_numbers_dates_units_and_negations_are_part_of_sameness(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_case_width_and_punctuation_are_not() -> None:
    assert fingerprint("The Limit is ５ MB!") == fingerprint("limit is 5 mb.")
    assert fingerprint("isn't") == fingerprint("is not") == fingerprint("isn’t")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("在这里工作了五年", "在这里工作了 5 年"),
        ("预算20万", "预算200,000"),
        ("预算二十万", "预算200000"),
        ("十二个人", "12个人"),
        ("一亿二千万", "120,000,000"),
        ("1.5万", "15000"),
        ("二〇二六年三月四日发布", "2026-03-04发布"),
        ("Released on March 4, 2026.", "Released on 2026-03-04"),
        ("released on 4 Mar 2026", "Released on 2026/3/4"),
        ("It took twenty-five years", "It took 25 years"),
        ("It costs two hundred thousand", "It costs 200k"),
        ("5 percent", "5%"),
        ("百分之五", "5%"),
        ("I can't", "I cannot"),
    ],
)
def test_one_number_or_date_in_two_notations_is_the_same(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    "hostile", ["9" * 4000 + "亿", "亿" * 4000, "一" + "亿" * 3999, "5 billion" + " billion" * 400]
)
def test_a_numeral_without_end_is_read_in_no_time(hostile: str) -> None:
    assert len("".join(fingerprint(hostile))) <= len(hostile)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user has worked at Acme for 5 years.", "The user has worked at Acme for six years."),
        ("The user works at Acme.", "The user does not work at Acme."),
        ("用户在 Acme 工作了五年。", "用户在 Acme 工作了六年。"),
        ("用户在 Acme 工作。", "用户没在 Acme 工作。"),
    ],
)
def test_the_same_value_with_other_numbers_or_a_negation_is_another_fact(one: str, other: str) -> None:
    old = record("Acme", predicate="works at", statement=one)
    new = record("Acme", predicate="works at", statement=other, at=LATER, message="m2")
    assert not is_same_fact(old, new)
    assert outcome(new, old) == ("supersede", "newer")


def test_a_word_that_only_looks_like_a_negation_changes_nothing() -> None:
    old = record("Acme", predicate="works at", statement="用户在 Acme 工作。")
    assert is_same_fact(old, record("Acme", predicate="works at", statement="用户特别喜欢在 Acme 工作，未来也是。"))


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


@pytest.mark.parametrize("predicate", ["likes", "Likes", "喜欢"])
def test_a_retraction_without_a_value_ends_none_of_many_values(predicate: str) -> None:
    old = record("tea", predicate=predicate)
    assert outcome(record(None, predicate=predicate, at=LATER), old, retracts=True) == ("refuse", "nothing-to-end")


def test_a_model_that_points_at_another_subject_and_predicate_is_mistaken() -> None:
    old = record("short")
    new = record("PostgreSQL", subject="billing", predicate="database", at=LATER)
    assert outcome(new, old, corrects=True, touches=(old.id,)) == ("create", "accepted")
    assert outcome(new, old, retracts=True, touches=(old.id,)) == ("refuse", "nothing-to-end")


def test_a_correction_holds_as_far_as_what_it_corrects() -> None:
    within = Scope.model_validate({"owner": "user", "owner_id": "ana", "within": {"project": "billing"}})
    old = record("short", scope=within)
    change = decide(record("long", at=LATER), old, corrects=True, touches=(old.id,))
    assert (change.action, change.target) == ("supersede", old.id)
    assert change.record is not None
    assert change.record.scope == within


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


def test_scopes_that_merely_differ_are_not_narrower() -> None:
    def within(**fields: str) -> Scope:
        return Scope.model_validate({"owner": "user", "owner_id": "ana", "within": fields})

    one, other = record("short", scope=within(project="a")), within(application="b", agent="c")
    assert outcome(record("long", scope=other, at=LATER), one) == ("create", "other-scope")


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


def test_the_same_from_another_thread_is_noted_at_what_waits_a_few_times() -> None:
    waiting = record("short", status="pending", authority=Authority.EXTERNAL, thread="t0")
    for number in range(1, 9):
        new = record("short", status="pending", authority=Authority.EXTERNAL, thread=f"t{number}")
        change = decide(new, waiting)
        if change.action == "confirm":
            waiting = waiting.model_copy(update={"confirmed_by": (*waiting.confirmed_by, change.source)})
    assert [source.thread_id for source in waiting.confirmed_by] == ["t1", "t2", "t3", "t4"]
    assert waiting.authority == Authority.EXTERNAL


def test_what_was_rejected_is_found_behind_what_stands_elsewhere() -> None:
    elsewhere = record("short", scope=BILLING)
    rejected = record("short", status="rejected", authority=Authority.EXTERNAL)
    new = record("short", status="pending", authority=Authority.EXTERNAL, message="m2")
    assert outcome(new, elsewhere, rejected) == ("refuse", "rejected-before")


def test_what_a_page_said_does_not_hold_up_what_the_user_says() -> None:
    waiting = record("short", status="pending", authority=Authority.EXTERNAL)
    assert outcome(record("short", message="m2"), waiting) == ("create", "accepted")


def test_a_draft_that_must_wait_ends_nothing() -> None:
    approved = record("short", authority=Authority.EXTERNAL)
    page = record("short", status="pending", authority=Authority.EXTERNAL, at=LATER, message="m2")
    assert outcome(page, approved, retracts=True) == ("refuse", "needs-review")


def test_a_late_retraction_does_not_end_what_was_said_since() -> None:
    old = record("Acme", predicate="works at", at=LATER)
    late = record("Acme", predicate="works at", thread="t0", statement="The user no longer works at Acme.")
    assert outcome(late, old, retracts=True) == ("refuse", "older")


def test_what_is_weaker_and_older_asks_nobody() -> None:
    assert outcome(record("long", authority=Authority.TOOL, thread="t0"), record("short", at=LATER)) == (
        "refuse",
        "older",
    )


def test_what_settles_a_contest_ends_its_other_side_too() -> None:
    one = record("short", thread="t1", status="contested")
    other = record("long", thread="t2", status="contested")
    draft = Draft(record("middle", at=LATER, thread="t3", message="m3"), "accepted", "test")
    change = resolve(draft, [one, other])
    assert (change.action, change.target) == ("supersede", one.id)
    assert [(each.action, each.target, each.rule) for each in settled(draft, change, [one, other])] == [
        ("end", other.id, "settled")
    ]
    again = Draft(record("long", at=LATER, thread="t3", message="m3"), "accepted", "test")
    change = resolve(again, [one, other])
    assert (change.action, change.target, change.rule) == ("supersede", other.id, "newer")
    assert [each.target for each in settled(again, change, [one, other])] == [one.id]


def test_a_correction_leaves_nothing_beside_it_that_it_contradicts() -> None:
    meant, home = record("short"), record("Oslo", predicate="lives in")
    right = record("Porto", predicate="lives in", at=LATER, message="m2")
    by_id = right.provenance.model_copy(update={"extracted_by": EXPLICIT_SAVE})
    right = right.model_copy(update={"provenance": by_id})
    draft = Draft(right, "accepted", "test", corrects=True, touches=(meant.id,))
    change = resolve(draft, [meant, home])
    assert (change.action, change.target) == ("supersede", meant.id)
    assert [each.target for each in settled(draft, change, [meant, home])] == [home.id]


def test_a_model_retires_nothing_that_its_statement_does_not_speak_of() -> None:
    manager = record("Priya", predicate="manager", statement="The user's manager is Priya.")
    tea = record(None, predicate=None, statement="The user likes tea.", at=LATER, message="m2")
    for draft in (
        Draft(tea, "accepted", "x", corrects=True, touches=(manager.id,)),
        Draft(
            tea.model_copy(update={"predicate": "likes", "value": "tea"}),
            "accepted",
            "x",
            corrects=True,
            touches=(manager.id,),
        ),
    ):
        assert resolve(draft, [manager]).action == "create"
    over = Draft(tea, "accepted", "x", retracts=True, touches=(manager.id,))
    assert resolve(over, [manager]).rule == "nothing-to-end"
    lena = record(None, predicate=None, statement="The manager is Lena now.", at=LATER, message="m2")
    change = resolve(Draft(lena, "accepted", "x", corrects=True, touches=(manager.id,)), [manager])
    assert (change.action, change.target) == ("supersede", manager.id)


def test_a_correction_by_what_is_known_ends_what_it_corrects() -> None:
    wrong, home = record("Rome", predicate="lives in", thread="t0"), record("Oslo", predicate="lives in")
    other = record("tea", predicate="drinks")
    draft = Draft(
        record("Oslo", predicate="lives in", at=LATER, message="m2"),
        "accepted",
        "x",
        corrects=True,
        touches=(wrong.id,),
    )
    change = resolve(draft, [wrong, home, other])
    assert (change.action, change.target) == ("confirm", home.id)
    assert [(each.target, each.rule) for each in settled(draft, change, [wrong, home, other])] == [
        (wrong.id, "settled")
    ]
    older = draft._replace(record=record("Oslo", predicate="lives in", at=AT - timedelta(days=1), message="m3"))
    assert settled(older, resolve(older, [wrong, home]), [wrong, home]) == []


def test_a_contest_of_members_is_not_settled_by_a_third() -> None:
    fields: dict[str, Any] = {"subject": "billing", "predicate": "database", "scope": BILLING, "status": "contested"}
    one, other = record("MySQL", actor="ben", **fields), record("Oracle", actor="cleo", thread="t2", **fields)
    third = record("Oracle", subject="billing", predicate="database", scope=BILLING, at=LATER, thread="t3")
    assert outcome(third, one, other) == ("confirm", "same-fact")


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


@given(st.text(max_size=200))
def test_a_fingerprint_is_the_same_for_itself_in_capitals(text: str) -> None:
    assert fingerprint(text.casefold()) == fingerprint(text)
