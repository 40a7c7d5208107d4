"""What the Chinese rules read, and what they leave."""

from __future__ import annotations

from datetime import datetime

import pytest
from support.extraction import AT, propose

from everthread.nodes.extract.rules.when import due


def said(text: str) -> list[tuple[str, str | None, str | None, str | None, str, str]]:
    return [(c.statement, c.subject, c.predicate, c.value, c.owner, c.reach) for c in propose(text)]


def test_a_preference_has_the_same_property_as_in_english() -> None:
    assert said("我喜欢简短的报告。") == [
        ("用户喜欢简短的报告。", "user", "prefers report length", "short", "user", "lasting")
    ]
    assert [row[2:4] for row in said("比起咖啡，我更喜欢茶")] == [("prefers among 咖啡 and 茶", "茶")]


def test_a_standing_wish_lasts() -> None:
    assert [row[1:] for row in said("以后请用中文回答。")] == [
        ("user", "prefers answer language", "Chinese", "user", "lasting")
    ]


@pytest.mark.parametrize("text", ["我们决定用 PostgreSQL，因为团队熟悉", "因为团队熟悉，我们决定用 PostgreSQL"])
def test_a_decision_keeps_its_reason_wherever_it_stands(text: str) -> None:
    assert said(f"{text}。") == [(f"项目 billing：{text}。", "billing", "database", "PostgreSQL", "project", "lasting")]


def test_facts_strung_together_by_commas_are_several() -> None:
    assert [row[:4] for row in said("我叫李雷，在字节跳动工作，住在上海。")] == [
        ("用户叫李雷。", "user", "name", "李雷"),
        ("用户在字节跳动工作。", "user", "employer", "字节跳动"),
        ("用户住在上海。", "user", "lives in", "上海"),
    ]


def test_not_this_but_that_corrects() -> None:
    [candidate] = propose("数据库不是MySQL，是PostgreSQL。")
    assert (candidate.predicate, candidate.value) == ("database", "PostgreSQL")
    [candidate] = propose("其实我搬到杭州了。")
    assert (candidate.corrects, candidate.predicate, candidate.value) == (True, "lives in", "杭州")


def test_this_time_is_a_limit_of_the_task() -> None:
    assert [row[4:] for row in said("这次报告写短一点。")] == [("session", "task")]
    assert [row[4:] for row in said("本次对话用英文回答。")] == [("session", "session")]


def test_a_nickname_belongs_to_the_conversation() -> None:
    assert [row[1:] for row in said("把这个项目叫做凤凰吧")] == [
        ("这个项目", "is called", "凤凰", "session", "session")
    ]


def test_what_no_longer_holds_is_retracted() -> None:
    [candidate] = propose("我不住在上海了。")
    assert (candidate.retracts, candidate.predicate, candidate.value) == (True, "lives in", "上海")


def test_an_explicit_remember_keeps_the_users_own_words() -> None:
    assert [row[0] for row in said("请记住：我的储物柜在楼梯旁边。")] == ["用户的储物柜在楼梯旁边。"]


def test_a_reminder_becomes_prospective() -> None:
    [candidate] = propose("周五下午3点提醒我检查迁移。")
    assert (candidate.kind, candidate.statement, candidate.due_at) == (
        "prospective",
        "检查迁移",
        AT.replace(day=6, hour=15),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("明天上午9点", AT.replace(day=5, hour=9)),
        ("后天", AT.replace(day=6, hour=9)),
        ("下周五", AT.replace(day=13, hour=9)),
        ("两小时后", AT.replace(hour=12)),
        ("半小时后", AT.replace(hour=10, minute=30)),
        ("3月20日晚上八点半", AT.replace(day=20, hour=20, minute=30)),
        ("明晚十一点", AT.replace(day=5, hour=23)),
        ("下个月1号", AT.replace(month=4, day=1, hour=9)),
        ("本月十五号晚上8点", AT.replace(day=15, hour=20)),
        ("下月31日", None),
        ("每周五下午3点", None),
        ("3月4日下午3点", AT.replace(hour=15)),
        ("2月29日", AT.replace(year=2028, month=2, day=29, hour=9)),
        ("2月31日", None),
        ("改天", None),
    ],
)
def test_times_are_reckoned_from_the_message(text: str, expected: datetime | None) -> None:
    found = due(text, AT)
    assert (found.at if found else None) == expected


@pytest.mark.parametrize("text", ["明天上午9点", "三天后", "下个月1号"])
def test_a_day_behind_the_last_one_is_none(text: str) -> None:
    assert due(text, datetime.max.replace(tzinfo=AT.tzinfo)) is None


@pytest.mark.parametrize(
    "text",
    [
        "我们应该用什么数据库？",
        "我可能会搬到大理。",
        "如果我住在北京就好了。",
        "他说他喜欢长报告。",
        "请翻译成英文：我住在上海。",
        "邮件里写着：“以后所有报告都发到这个地址。”",
        "我喜欢这个方案。",
        "不是我不想去，是真的没时间。",
        "好的，谢谢。",
    ],
)
def test_questions_guesses_quotes_and_small_talk_say_nothing(text: str) -> None:
    assert propose(text) == []
