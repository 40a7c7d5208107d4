"""Which days a question names."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.stores.when import Days, days_named

WEDNESDAY = date(2023, 3, 29)


def days(first: str, last: str | None = None) -> list[Days]:
    return [Days(date.fromisoformat(first), date.fromisoformat(last or first))]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did I sign four weeks ago?", days("2023-02-26", "2023-03-04")),
        ("a couple of days ago", days("2023-03-26", "2023-03-28")),
        ("two months ago", days("2023-01-19", "2023-02-08")),
        ("Whom did I call last Friday?", days("2023-03-24")),
        ("Which bike did I fix the past weekend?", days("2023-03-25", "2023-03-26")),
        ("last week", days("2023-03-20", "2023-03-26")),
        ("this month", days("2023-03-01", "2023-03-31")),
        ("last month", days("2023-02-01", "2023-02-28")),
        ("last year", days("2022-01-01", "2022-12-31")),
        ("in the last 3 months", days("2022-12-29", "2023-03-29")),
        ("What did I do in May?", days("2022-05-01", "2022-05-31")),
        ("in February", days("2023-02-01", "2023-02-28")),
        ("last March", days("2022-03-01", "2022-03-31")),
        ("on 8 May 2022", days("2022-05-08")),
        ("the 3rd of June", days("2022-06-03")),
        ("June 3rd, 2021", days("2021-06-03")),
        ("March 2021", days("2021-03-01", "2021-03-31")),
        ("yesterday", days("2023-03-28")),
        ("this morning", days("2023-03-29")),
        ("上周五吃了什么", days("2023-03-24")),
        ("这周三", days("2023-03-29")),
        ("上周", days("2023-03-20", "2023-03-26")),
        ("上周末", days("2023-03-25", "2023-03-26")),
        ("上个月", days("2023-02-01", "2023-02-28")),
        ("三个月前", days("2022-12-19", "2023-01-08")),
        ("10天前", days("2023-03-18", "2023-03-20")),
        ("最近两周", days("2023-03-15", "2023-03-29")),
        ("昨晚", days("2023-03-28")),
        ("前天", days("2023-03-27")),
        ("今天", days("2023-03-29")),
        ("去年", days("2022-01-01", "2022-12-31")),
        ("去年五月", days("2022-05-01", "2022-05-31")),
        ("2022年12月", days("2022-12-01", "2022-12-31")),
        ("2022年3月5号", days("2022-03-05")),
        ("三月份", days("2023-03-01", "2023-03-31")),
        ("十一月3日", days("2022-11-03")),
    ],
)
def test_days_are_resolved_against_the_day_of_the_question(question: str, named: list[Days]) -> None:
    assert days_named(question, WEDNESDAY) == named


JULY = date(2024, 7, 17)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Whom did I meet the day before yesterday?", days("2024-07-15")),
        ("What did we decide the week before last?", days("2024-07-01", "2024-07-07")),
        ("Where did I travel in summer 2023?", days("2023-06-01", "2023-08-31")),
        ("Where did I travel last summer?", days("2023-06-01", "2023-08-31")),
        ("Where did I ski last winter?", days("2023-12-01", "2024-02-29")),
        ("What have I read since 2021?", days("2021-01-01", "2024-07-17")),
        ("What have I done since last March?", days("2024-03-01", "2024-07-17")),
        ("What have I done since May?", days("2024-05-01", "2024-07-17")),
        ("What have I done since the 3rd of June?", days("2024-06-03", "2024-07-17")),
        ("Which books did I read between May and July?", days("2024-05-01", "2024-07-31")),
        ("What did I do from June 3 to June 10?", days("2024-06-03", "2024-06-10")),
        ("yesterday and last week", [*days("2024-07-16"), *days("2024-07-08", "2024-07-14")]),
        ("What did I do last March?", days("2024-03-01", "2024-03-31")),
        ("What was decided on 2024-02-05?", days("2024-02-05")),
        ("What did I plan in early March of 2021?", days("2021-03-01", "2021-03-31")),
        ("Who visited at Christmas 2023?", days("2023-12-25", "2023-12-31")),
        ("What did I say last night?", days("2024-07-16")),
        ("What did I buy in 2022?", days("2022-01-01", "2022-12-31")),
        ("Which trips did I take in the 1990s?", days("1990-01-01", "1999-12-31")),
        ("What did I do on Monday?", days("2024-07-15")),
        ("What did I do before 2020?", days("0001-01-01", "2019-12-31")),
        ("On the Sunday before May 5, 2024", days("2024-05-05")),
        ("上上周去了哪里", days("2024-07-01", "2024-07-07")),
        ("上个星期二见了谁", days("2024-07-09")),
        ("大前天吃了什么", days("2024-07-14")),
        ("今早说了什么", days("2024-07-17")),
        ("前年做了什么", days("2022-01-01", "2022-12-31")),
        ("2023年夏天去了哪里", days("2023-06-01", "2023-08-31")),
        ("去年冬天去了哪里", days("2023-12-01", "2024-02-29")),
        ("五一期间做了什么", days("2024-05-01", "2024-05-07")),
        ("去年国庆去了哪里", days("2023-10-01", "2023-10-07")),
        ("从2021年起读了什么书", days("2021-01-01", "2024-07-17")),
        ("五月以来读了什么书", days("2024-05-01", "2024-07-17")),
        ("2020年以前住在哪里", days("0001-01-01", "2019-12-31")),
        ("五月到七月读了什么书", days("2024-05-01", "2024-07-31")),
        ("六月三号到六月二十三号做了什么", days("2024-06-03", "2024-06-23")),
        ("上个月三号", days("2024-06-01", "2024-06-30")),
    ],
)
def test_ranges_seasons_and_what_is_further_back(question: str, named: list[Days]) -> None:
    assert days_named(question, JULY) == named


@pytest.mark.parametrize(
    "question",
    [
        "May I ask what my dog is called?",
        "Did they march on the capital?",
        "Which was the second one?",
        "Which tea do I like?",
        "What is my favourite season?",
        "Who won 5 to 3?",
        "I have a sun room; what colour is it?",
        "Who is April's mother?",
        "How do I fix error 2021?",
        "What time do I usually get up?",
        "What do I like to eat every day?",
        "What was the last book I read?",
        "Is the mon account mine?",
        "How old is the cat of three months?",
        "等一下，我的狗叫什么",
        "三个月大的猫叫什么",
        "以前天气怎么样",
        "我喜欢吃月饼吗",
        "第二个是什么",
        "一月饼",
        "我每天吃什么",
        "星期几开会",
    ],
)
def test_other_words_name_no_day(question: str) -> None:
    assert days_named(question, JULY) == []


@pytest.mark.parametrize(
    "question",
    [
        "",
        "May I march on?",
        "Which tea?",
        "31 February",
        "以前天气怎么样",
        "2023",
        "999 years ago, 999 years",
        "一月饼",
    ],
)
def test_what_names_no_day_names_none(question: str) -> None:
    found = days_named(question, date(300, 1, 1))
    assert found == []


def test_a_leap_day_a_year_before_is_the_last_of_february() -> None:
    assert days_named("in the last 12 months", date(2024, 2, 29)) == days("2023-02-28", "2024-02-29")


@given(st.text(), st.dates())
def test_any_text_on_any_day_gives_ranges_that_are_in_order(text: str, today: date) -> None:
    assert all(first <= last for first, last in days_named(text, today))
