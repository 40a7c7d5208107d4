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
