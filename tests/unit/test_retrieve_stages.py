"""The stages of retrieval behind the search, each by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from support.records import NOON, learnt, said_by

from everthread import Identity, Record
from everthread.errors import StoreError, UsageError
from everthread.nodes import Retrieve
from everthread.nodes.retrieve.candidate import Candidate, LeftOut
from everthread.nodes.retrieve.checks import counterparts, trust, trusted, unrepeated, verified
from everthread.nodes.retrieve.pack import pack
from everthread.nodes.retrieve.query import asked_at, phrases_of, queries_of, task_in
from everthread.stores.ranking import task_matches
from everthread.stores.record import Hit, Relation, Signals
from everthread.stores.text import estimate_tokens


def found(record: Record, score: float = 0.5) -> Candidate:
    hit = Hit(
        source="records",
        record_id=record.id,
        revision=record.revision,
        statement=record.statement,
        score=score,
        signals=Signals(semantic=0.9),
        why="close in meaning",
    )
    return Candidate("records", hit, record)


def resident(record: Record) -> Candidate:
    return Candidate("profile", record=record, why="resident")


def message(text: str, id: str = "m9", thread_id: str = "t9", passage: tuple[int, int] | None = None) -> Candidate:
    hit = Hit(
        source="evidence",
        thread_id=thread_id,
        message_ids=(id,),
        statement=text,
        passage=passage,
        score=0.4,
        why="shares words",
    )
    return Candidate("evidence", hit)


def rules(left_out: list[LeftOut]) -> list[tuple[str, str]]:
    return [(left.candidate.id, left.rule) for left in left_out]


def contest(one: str, other: str) -> tuple[Record, Record]:
    first, second = learnt(one), learnt(other)
    edges = [Relation(kind="contradicts", target=each.id, reason="another value") for each in (second, first)]
    return (
        first.model_copy(update={"status": "contested", "relations": (edges[0],)}),
        second.model_copy(update={"status": "contested", "relations": (edges[1],)}),
    )


# -------------------------------------------------------------------------------------------------------------- query


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('What did I say about "grey hound" and "the vet"?', ["grey hound", "the vet"]),
        ("我说过“灰猎犬”和《静夜思》吗？", ["灰猎犬", "静夜思"]),
        ("「東京」『大阪』「東京」", ["東京", "大阪"]),
        ("It's Ana's dog, isn't it?", []),
    ],
)
def test_what_is_quoted_is_a_phrase(text: str, phrases: list[str]) -> None:
    assert phrases_of(text) == phrases


def test_what_is_quoted_is_searched_for_alone_at_last() -> None:
    text = 'Please translate the following for the newsletter: "quarterly harvest festival"'
    assert queries_of([HumanMessage(text)]) == [text, "quarterly harvest festival"]


def test_the_days_that_a_request_names_are_counted_from_when_it_was_said() -> None:
    said = HumanMessage("What happened yesterday?", additional_kwargs={"at": "2026-03-04T23:30:00+01:00"})
    moment = asked_at([said])
    assert moment == datetime(2026, 3, 4, 22, 30, tzinfo=UTC) and moment.date().isoformat() == "2026-03-04"
    assert asked_at([HumanMessage("What happened yesterday?")]) is asked_at([]) is None


@pytest.mark.parametrize(
    ("text", "task"),
    [
        (
            '{"task": "Move billing to Oslo.", "next_step": "Ask ops.", "done": ["x"]}',
            "Move billing to Oslo.\nAsk ops.",
        ),
        ('{"task": "把账单系统迁到奥斯陆", "next_step": ""}', "把账单系统迁到奥斯陆"),
        ("not JSON", ""),
        ("[1]", ""),
        ('{"task": 7}', ""),
    ],
)
def test_the_task_in_hand_is_what_is_done_and_what_comes_next(text: str, task: str) -> None:
    assert task_in(text) == task


@pytest.mark.parametrize(
    ("task", "first", "second"),
    [
        (
            "We move the billing service to Oslo.",
            "The billing service deploys on Monday.",
            "The shop deploys on Monday.",
        ),
        ("我们把账单服务迁到奥斯陆。", "账单服务在星期一部署。", "商店在星期一部署。"),
    ],
)
def test_what_belongs_to_the_task_counts_more(task: str, first: str, second: str) -> None:
    of_task, other = task_matches(task, [learnt(first), learnt(second)])
    assert of_task > other >= 0
    assert task_matches(None, [learnt(first)]) == task_matches("", [learnt(first)]) == [0.0]


# ----------------------------------------------------------------------------------------------------------- repetition


def test_the_same_record_from_two_arms_is_one() -> None:
    record = learnt("Answers are in German.")
    sifted = unrepeated([found(record), resident(record)])
    assert (sifted.kept, sifted.left_out) == ([found(record)], [])


def test_of_records_that_say_the_same_the_first_is_kept() -> None:
    first, second, other = learnt("Ana likes the tea."), learnt("ana likes tea"), learnt("Ana likes 5 teas.")
    sifted = unrepeated([found(first), resident(second), found(other)])
    assert sifted.kept == [found(first), found(other)]
    assert rules(sifted.left_out) == [(second.id, "says-the-same")]
    assert sifted.left_out[0].why == f"it says the same as {first.id}"


def test_what_was_said_does_not_stand_beside_what_was_learnt_from_it_or_what_is_in_view() -> None:
    record = learnt("Ana has a greyhound.", provenance=said_by("ana", "t9", "m1"))
    candidates = [
        found(record),
        message("I have got a greyhound!", "m1"),
        message("Ana has a greyhound.", "m2"),
        message("It is called Momo.", "m3"),
        message("It is called Momo.", "m4"),
        message("它很快。", "m5"),
    ]
    sifted = unrepeated(candidates, in_view=["m5"])
    assert [each.id for each in sifted.kept] == [record.id, "m3"]
    assert rules(sifted.left_out) == [
        ("m1", "says-the-same"),
        ("m2", "says-the-same"),
        ("m4", "says-the-same"),
        ("m5", "already-in-view"),
    ]


@pytest.mark.parametrize(
    ("answers", "other", "wish", "told"),
    [
        (
            "My dentist is Dr. Alvarez on Mission Street. ",
            "I prefer short reports with a table at the end. ",
            "The user prefers short reports with a table at the end.",
            "The user's dentist is Dr. Alvarez on Mission Street.",
        ),
        (
            "我的牙医是里斯本的阿尔瓦雷斯。",
            "我喜欢带表格的简短报告。",
            "用户喜欢带表格的简短报告。",
            "用户的牙医是里斯本的阿尔瓦雷斯。",
        ),
    ],
)
def test_a_message_stays_beside_a_record_of_something_else_that_it_says(
    answers: str, other: str, wish: str, told: str
) -> None:
    candidate = message(other + answers, "m1", passage=(len(other), len(other + answers)))
    of_something_else = resident(learnt(wish, provenance=said_by("ana", "t9", "m1")))
    of_this = found(learnt(told, provenance=said_by("ana", "t9", "m1")))
    assert unrepeated([candidate, of_something_else]).left_out == []
    assert rules(unrepeated([candidate, of_something_else, of_this]).left_out) == [("m1", "says-the-same")]


# ---------------------------------------------------------------------------------------------------------------- trust


def test_what_is_not_trusted_is_not_used_however_well_it_answers() -> None:
    guess = learnt("Ana may like jazz.", authority="inferred", stated=False, confidence=0.2)
    sure = learnt("安娜喜欢爵士乐。")
    assert [round(trust(each), 2) for each in (guess, sure)] == [0.17, 1.0]
    sifted = trusted([found(guess, 0.95), found(sure, 0.4), message("jazz")])
    assert sifted.kept == [found(sure, 0.4), message("jazz")]
    assert sifted.left_out == [LeftOut(found(guess, 0.95), "untrusted", "its trust of 0.17 is below 0.3")]


# --------------------------------------------------------------------------------------------------------- verification


@pytest.mark.parametrize(
    ("holds", "checked", "left"),
    [(True, "confirmed", []), (None, "unconfirmed", []), (False, None, ["refuted"])],
)
def test_what_is_to_be_verified_is_looked_at_now(
    ana: Identity, holds: bool | None, checked: str | None, left: Any
) -> None:
    port, tea = learnt("The service runs on port 8443.", verify_before_use=True), learnt("Ana likes tea.")
    seen: list[Record] = []

    def observe(identity: Identity, record: Record) -> bool | None:
        seen.append(record)
        return holds

    sifted = verified([found(port), found(tea)], ana, observe)
    assert seen == [port]
    assert [(each.id, each.checked) for each in sifted.kept] == ([(port.id, checked)] if checked else []) + [
        (tea.id, None)
    ]
    assert [each.rule for each in sifted.left_out] == left


def test_what_cannot_be_looked_at_stays_uncertain(ana: Identity) -> None:
    def unreachable(identity: Identity, record: Record) -> bool | None:
        raise StoreError("the registry does not answer")

    port = found(learnt("服务在 8443 端口。", verify_before_use=True))
    assert [each.checked for each in verified([port], ana, unreachable).kept] == ["unconfirmed"]
    assert verified([port], ana, None).kept == [port]


def test_a_fault_of_the_verifier_is_seen(ana: Identity) -> None:
    def broken(identity: Identity, record: Record) -> bool | None:
        raise KeyError("port")

    with pytest.raises(KeyError):
        verified([found(learnt("The port is 8443.", verify_before_use=True))], ana, broken)


# -------------------------------------------------------------------------------------------------------------- contest


def test_one_side_of_a_contest_brings_the_other() -> None:
    mysql, postgres = contest("The database is MySQL.", "The database is PostgreSQL.")
    tea = learnt("Ana likes tea.")
    paired = counterparts([found(mysql), found(tea)], {postgres.id: postgres})
    assert [each.id for each in paired] == [mysql.id, postgres.id, tea.id]
    assert paired[1].reference() == {
        "id": postgres.id,
        "revision": 1,
        "score": 0.0,
        "why": f"stands against {mysql.id}",
    }
    assert counterparts([found(mysql), found(postgres)], {postgres.id: postgres}) == [found(mysql), found(postgres)]


def test_a_side_that_may_not_be_read_is_not_brought() -> None:
    mysql, _ = contest("数据库是 MySQL。", "数据库是 PostgreSQL。")
    assert counterparts([found(mysql)], {}) == [found(mysql)]


# -------------------------------------------------------------------------------------------------------------- budget


def test_the_budget_is_what_the_lines_take_in_any_language() -> None:
    english, chinese = found(learnt("Ana likes tea. " * 20)), found(learnt("安娜喜欢喝茶。" * 20))
    short = found(learnt("Ana likes tea."))
    assert estimate_tokens(chinese.text) > 1.5 * estimate_tokens(english.text)
    assert pack([english, chinese, short], 220).kept == [english, short]
    assert pack([chinese, english, short], 220).kept == [chinese]
    assert rules(pack([english, chinese, short], 220).left_out) == [(chinese.id, "over-budget")]


def test_a_pasted_book_takes_as_much_of_a_budget_as_is_shown_of_it() -> None:
    assert pack([message("word " * 200_000)], 1_500, 5_000).left_out == []


@pytest.mark.parametrize(
    ("walk", "answer"),
    [("We walked along the river. ", "A goose bit Momo. "), ("我们沿着河边走。", "大鹅咬了灰猎犬。")],
)
def test_of_a_long_message_the_passage_that_answers_is_kept_and_others_have_room(walk: str, answer: str) -> None:
    text, start = walk * 400 + answer + walk * 400, len(walk) * 400
    passage = (start, start + len(answer))
    long, later = message(text, "m1", passage=passage), message(text, "m2", passage=passage)
    short = message("It is called Momo.", "m3")
    sifted = pack([long, later, short], 1_200)
    assert [each.id for each in sifted.kept] == ["m1", "m2", "m3"]
    shown = [each.shown for each in sifted.kept]
    assert all(answer.strip() in each for each in shown[:2]) and shown[2] == "It is called Momo."
    assert [estimate_tokens(each) <= 600 for each in shown] == [True, True, True]
    assert estimate_tokens("".join(shown)) <= 1_200
    assert sifted.kept[0].reference()["part"] == [*(sifted.kept[0].part or ())]
    assert "part" not in sifted.kept[2].reference()
    assert rules(pack([long], 40).left_out) == [("m1", "over-budget")]


def test_characters_can_bound_it_too() -> None:
    records = [found(learnt(f"Note {n}. " + "x" * 3_900)) for n in range(6)]
    assert pack(records, 100_000, 20_000).kept == records[:4]


def test_of_a_contest_both_sides_fit_or_neither_stands() -> None:
    long, short = contest("The database is MySQL. " * 60, "The database is PostgreSQL.")
    tea = found(learnt("Ana likes tea."))
    assert pack([found(long), found(short), tea], 250).kept == [tea]
    assert pack([found(long), found(short), tea], 2_000).kept == [found(long), found(short), tea]


# -------------------------------------------------------------------------------------------------------------- presets


def test_presets_are_the_known_defaults_of_others() -> None:
    def settings(retrieve: Retrieve) -> tuple[Any, ...]:
        return (retrieve.limit, retrieve.budget_characters, retrieve.profile_tokens, retrieve.tasks)

    assert settings(Retrieve.three_hits()) == (3, None, 0, 0)
    assert settings(Retrieve.five_records()) == (5, 20_000, 300, 3)
    assert settings(Retrieve.profile_only()) == (0, None, 2_500, 0)
    assert settings(Retrieve.three_hits(profile_tokens=100)) == (3, None, 100, 0)


@pytest.mark.parametrize("sources", ["records", (), ("records", "web")])
def test_a_source_that_there_is_none_is_named_when_the_node_is_made(sources: Any) -> None:
    with pytest.raises(UsageError, match='sources are "records" and "evidence"'):
        Retrieve(sources=sources)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, value)
            for name in ("limit", "budget_tokens", "budget_characters", "profile_tokens", "tasks")
            for value in (-1, 1.5, "3", True)
        ),
        *(("floor", value) for value in (float("nan"), float("inf"), "high")),
        *(("trust", value) for value in (float("nan"), -0.1, 1.1, None)),
        ("verifier", "ask"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_when_the_node_is_made(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"Retrieve: {name} is"):
        Retrieve(**{name: value})


def test_a_reference_holds_no_word_of_what_it_stands_for() -> None:
    record = learnt("Ana likes zebras.", valid_from=NOON - timedelta(days=1))
    for candidate in (found(record), resident(record), message("zebras everywhere")):
        assert "zebra" not in str(candidate.reference())
