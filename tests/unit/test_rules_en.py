"""What the English rules read, and what they leave."""

from __future__ import annotations

from datetime import datetime

import pytest
from support.extraction import AT, lines, propose

from everthread.nodes.extract.rules import RuleExtractor
from everthread.nodes.extract.rules.english import third_person
from everthread.nodes.extract.rules.when import due
from everthread.stores.identity import Scope
from everthread.stores.record import Authority, Provenance, Record


def said(text: str) -> list[tuple[str, str | None, str | None, str | None, str, str]]:
    return [(c.statement, c.subject, c.predicate, c.value, c.owner, c.reach) for c in propose(text)]


def test_a_preference_is_stated_of_the_user_with_its_property() -> None:
    assert said("I prefer short reports.") == [
        ("The user prefers short reports.", "user", "prefers report length", "short", "user", "lasting")
    ]


def test_a_choice_between_two_is_one_property_whichever_comes_first() -> None:
    assert [row[2:4] for row in said("I prefer tea over coffee")] == [("prefers among coffee and tea", "tea")]
    assert [row[2:4] for row in said("I prefer coffee over tea")] == [("prefers among coffee and tea", "coffee")]


def test_a_standing_wish_lasts_and_concerns_expression() -> None:
    [candidate] = propose("From now on, answer in German.")
    assert (candidate.content_type, candidate.concerns, candidate.predicate, candidate.value, candidate.reach) == (
        "preference",
        "expression",
        "prefers answer language",
        "German",
        "lasting",
    )


def test_a_decision_keeps_its_reason_and_names_its_project() -> None:
    assert said("We decided to use PostgreSQL 16 because the team knows it.") == [
        (
            "Project billing: We decided to use PostgreSQL 16 because the team knows it.",
            "billing",
            "database",
            "PostgreSQL 16",
            "project",
            "lasting",
        )
    ]


def test_what_is_used_for_one_purpose_is_another_property() -> None:
    assert [row[2:4] for row in said("We use SQLite for the unit tests")] == [("database for unit tests", "SQLite")]


def test_two_statements_in_one_sentence_are_two_candidates() -> None:
    assert said("My name is Ana Lopez and I work at Acme.") == [
        ("The user's name is Ana Lopez.", "user", "name", "Ana Lopez", "user", "lasting"),
        ("The user works at Acme.", "user", "employer", "Acme", "user", "lasting"),
    ]


def test_this_time_is_a_limit_of_the_task_and_from_now_on_is_not() -> None:
    assert [row[4:] for row in said("This time, keep the report short.")] == [("session", "task")]
    assert [row[4:] for row in said("In this chat, answer in German")] == [("session", "session")]
    assert [row[4:] for row in said("Keep reports short from now on.")] == [("user", "lasting")]


def test_a_nickname_belongs_to_the_conversation() -> None:
    assert said("Let's call this migration Phoenix.") == [
        (
            "In this conversation, this migration is called Phoenix.",
            "this migration",
            "is called",
            "Phoenix",
            "session",
            "session",
        )
    ]


def test_an_explicit_remember_keeps_the_users_own_words() -> None:
    assert said("Please remember that my locker is next to the stairs.") == [
        ("The user's locker is next to the stairs.", None, None, None, "user", "lasting")
    ]


def test_what_no_longer_holds_is_retracted_not_learnt() -> None:
    [candidate] = propose("I no longer work at Acme.")
    assert (candidate.retracts, candidate.predicate, candidate.value) == (True, "employer", "Acme")


def test_a_correction_points_to_what_it_corrects() -> None:
    old = Record(
        statement="The user lives in Paris.",
        subject="user",
        predicate="lives in",
        value="Paris",
        scope=Scope(owner="user", owner_id="ana"),
        provenance=Provenance(source="user", extracted_by="rules/1", observed_at=AT),
        write_reason="test",
        authority=Authority.USER_EXPLICIT,
    )
    [candidate] = propose("Actually, it's Lyon, not Paris.", known=[old])
    assert (candidate.statement, candidate.predicate, candidate.value, candidate.records, candidate.corrects) == (
        "The user lives in Lyon.",
        "lives in",
        "Lyon",
        (1,),
        True,
    )
    assert propose("Actually, it's Lyon, not Paris.") == []


def test_a_reminder_has_the_time_that_was_meant_when_it_was_said() -> None:
    [candidate] = propose("Remind me to check the migration on Friday at 3pm.")
    assert (candidate.kind, candidate.statement, candidate.due_at) == (
        "prospective",
        "Check the migration",
        AT.replace(day=6, hour=15),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow at 9", AT.replace(day=5, hour=9)),
        ("on Wednesday", AT.replace(day=11, hour=9)),
        ("in two hours", AT.replace(hour=12)),
        ("March 20", AT.replace(day=20, hour=9)),
        ("on January 2", AT.replace(year=2027, month=1, day=2, hour=9)),
        ("2026-04-01 at noon", AT.replace(month=4, day=1, hour=12)),
        ("tonight at 8", AT.replace(hour=20)),
        ("on March 4 at 3pm", AT.replace(hour=15)),
        ("on February 29", AT.replace(year=2028, month=2, day=29, hour=9)),
        ("on February 30", None),
        ("on February 31", None),
        ("every Monday at 9", None),
        ("on each other Friday", None),
        ("someday", None),
    ],
)
def test_times_are_reckoned_from_the_message(text: str, expected: datetime | None) -> None:
    found = due(text, AT)
    assert (found.at if found else None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Do I prefer short reports?",
        "Maybe I prefer short reports.",
        "If I lived in Oslo, I would ski.",
        "She said I live in Oslo.",
        'The mail reads "I live in Oslo and work at Acme".',
        "```\nI live in Oslo.\n```",
        "> I live in Oslo.",
        "Translate: I live in Oslo.",
        "I like this plan.",
        "Never give up!",
        "Remember, you can do it.",
        "The page says from now on always use tabs.",
        "",
    ],
)
def test_questions_guesses_quotes_and_sayings_say_nothing(text: str) -> None:
    assert propose(text) == []


def test_only_the_user_is_read() -> None:
    assert (
        propose(("assistant", "I prefer short reports."), ("web", "I live in Oslo."), ("tool", "We use MySQL.")) == []
    )


@pytest.mark.parametrize(
    ("first", "third"),
    [
        ("I'm tall", "The user is tall"),
        ("I don't eat my greens", "The user doesn't eat the user's greens"),
        ("I usually fly with Iron Man", "The user usually flies with Iron Man"),
        ("I've moved and I worked there", "The user has moved and the user worked there"),
        ("ask me", "Ask the user"),
    ],
)
def test_first_person_becomes_third(first: str, third: str) -> None:
    assert third_person(first) == third


def test_reading_megabytes_of_one_message_ends() -> None:
    assert propose("I live " * 200_000) == []


def test_the_extractor_names_itself_and_its_version() -> None:
    assert RuleExtractor().id == "rules/1"
    assert len(lines("a", ("assistant", "b"))) == 2
