"""What a turn searches memory for."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from everthread.nodes.retrieve.query import queries_of
from everthread.nodes.state import MARK

BEFORE = "We decided to use PostgreSQL for the billing database."


def after(text: str) -> list[AnyMessage]:
    return [HumanMessage(BEFORE), AIMessage("Noted."), HumanMessage(text)]


def test_a_request_that_says_enough_is_searched_for_alone() -> None:
    for text in ("Which colour scheme does the quarterly report have?", "季度报告应该采用什么样的配色方案？"):
        assert queries_of(after(text)) == [text]


def test_a_short_request_is_searched_for_alone_first() -> None:
    assert queries_of(after("How do I like my reports?")) == [
        "How do I like my reports?",
        f"{BEFORE}\nHow do I like my reports?",
    ]


@pytest.mark.parametrize("text", ["And in German?", "Why is that?", "Which one?", "那呢？", "那周末的呢？"])
def test_a_request_that_points_back_is_searched_for_with_the_one_before(text: str) -> None:
    assert queries_of(after(text)) == [f"{BEFORE}\n{text}"]


def test_the_first_request_of_a_thread_stands_alone() -> None:
    assert queries_of([HumanMessage("And in German?")]) == ["And in German?"]


def test_without_a_word_of_the_user_there_is_nothing_to_search_for() -> None:
    notice = HumanMessage("A task is due.", additional_kwargs={MARK: {"kind": "notice"}})
    assert queries_of([]) == queries_of([AIMessage("Hello.")]) == queries_of([notice]) == []


def test_a_short_request_after_a_pasted_book_is_not_lost_behind_it() -> None:
    (together,) = queries_of([HumanMessage("0 " * 500_000), HumanMessage("And is it tea?")])
    assert together.endswith("\nAnd is it tea?") and len(together) < 4_100


def test_what_a_huge_request_quotes_at_its_end_is_a_phrase() -> None:
    huge = "「" * 1_000_000 + 'What of "grey hounds"?'
    assert queries_of([HumanMessage(huge)]) == [huge, "grey hounds"]
