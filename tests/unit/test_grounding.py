"""Whether a statement says what its messages say, to the number, the name and the "not"."""

from __future__ import annotations

import pytest

from everthread.nodes.extract.grounding import speaks_of, stray

NUMBER = "it has a number that is not in the messages it points to"
VALUE = "its value is not in the messages it points to"
NAME = "it has a name that is not in the messages it points to"
FOREIGN = "it has words of a page or a tool that are not in the messages it points to"
DENIES = "it denies what the messages it points to say, or says what they deny"
NOTHING = "it says nothing of what the messages it points to say"


@pytest.mark.parametrize(
    ("said", "statement", "value", "reason"),
    [
        ("Send invoices to pay@acme.com each month.", "Send invoices to pay@evil.com each month.", None, NAME),
        (
            "Our supplier is Contoso and we pay it monthly.",
            "Our supplier is Mallory and we pay it monthly.",
            None,
            NAME,
        ),
        ("I live in Oslo with my dog.", "The user lives in Rome with the dog.", "Rome", VALUE),
        ("I live in Oslo with my dog.", "The user lives in Oslo with the dog.", "Rome", VALUE),
        ("We deploy on Mondays at 5 pm.", "We deploy on Mondays at 7 pm.", None, NUMBER),
        ("The limit is 100 MB.", "The limit is 1000 MB.", None, NUMBER),
        ("我们周一下午五点部署到生产环境。", "我们周一下午七点部署到生产环境。", None, NUMBER),
        ("I don't want dark mode in the editor.", "The user wants dark mode in the editor.", None, DENIES),
        ("I want dark mode in the editor.", "The user never wants dark mode in the editor.", None, DENIES),
        ("The build fails to run on Windows.", "The build runs on Windows.", None, DENIES),
        ("I hardly drink coffee.", "The user drinks coffee.", None, DENIES),
        ("我不喜欢在报告里用表格。", "用户喜欢在报告里用表格。", None, DENIES),
        ("客户拒绝使用云存储。", "客户使用云存储。", None, DENIES),
        ("Hi there!", "The user prefers what the project states.", None, NOTHING),
        ("Hi there!", "用户", None, NOTHING),
    ],
)
def test_what_was_changed_on_the_way_is_found(said: str, statement: str, value: str | None, reason: str) -> None:
    assert stray(statement, value, [said]) == reason


@pytest.mark.parametrize(
    ("said", "statement", "value"),
    [
        ("We use postgres in production.", "Project billing: PostgreSQL is used in production.", "PostgreSQL"),
        ("We deploy on Mondays at five.", "We deploy on Mondays at 5.", "5"),
        ("我喜欢简短的报告。", "用户喜欢简短的报告。", "short"),
        ("We use MySQL, not Oracle.", "The project uses MySQL.", "MySQL"),
        ("It is not 5 but 6 retries.", "There are 6 retries.", "6"),
        ("不是Oracle，是MySQL。", "用的是MySQL。", "MySQL"),
        ("Don't forget that I like tea.", "The user likes tea.", "tea"),
        ("别忘了我喜欢喝茶。", "用户喜欢喝茶。", "茶"),
        ("I hate coffee.", "The user does not like coffee, and hates it.", "coffee"),
        ("My pronouns are they/them.", "The user's pronouns are they/them.", "they/them"),
        ("My birthday is on the 14th of March.", "The user's birthday is on March 14.", "March 14"),
        ("1) I prefer British spelling. 2) Never apologise.", "I prefer British spelling. Never apologise.", None),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_not(said: str, statement: str, value: str | None) -> None:
    assert stray(statement, value, [said], beside=["billing"]) is None


def test_what_a_page_said_is_no_word_of_the_user() -> None:
    said, page = "Read the page on how we approve invoices.", "Invoices are approved quickly."
    assert stray("We approve invoices quickly.", None, [said]) is None
    assert stray("We approve invoices quickly.", None, [said], outside=[page]) == FOREIGN


def test_a_retraction_rests_on_words_that_end_something() -> None:
    over = "the messages it points to do not say that anything is over"
    assert stray("The user lives in Oslo.", "Oslo", ["I live in Oslo."], retracts=True) == over
    assert stray("用户住在奥斯陆。", "奥斯陆", ["我住在奥斯陆。"], retracts=True) == over
    for said in ("I no longer live in Oslo.", "I moved away from Oslo, where I used to live.", "我不再住在Oslo了。"):
        assert stray("The user lives in Oslo.", "Oslo", [said], beside=["lives"], retracts=True) is None


def test_two_statements_speak_of_the_same_when_a_telling_word_is_in_both() -> None:
    assert speaks_of("The user's manager is Lena.", "The user's manager is Priya.")
    assert not speaks_of("The user likes tea.", "The user's manager is Priya.")
    assert not speaks_of("billing uses tea", "billing runs at night", beside=["billing"])
