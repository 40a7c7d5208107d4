"""Secrets, personal numbers, sensitive classes: what is one, what only looks like one."""

from __future__ import annotations

import pytest
from support.extraction import lines

from everthread.nodes.extract import Redacted, RuleExtractor
from everthread.nodes.extract.candidate import Candidate, Window
from everthread.nodes.extract.redacted import redacted
from everthread.nodes.extract.sensitive import class_of, has_personal_number, has_secret, without_numbers
from everthread.nodes.node import drive


@pytest.mark.parametrize(
    "text",
    [
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "以后都用这个：wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY。",
        "DB_PASSWORD = hunter22x",
        "我们的连接一直是 mysql://root:Qwe123!x@10.0.0.5/prod",
        "our url is postgres://app:S3cr3tPw@db.internal:5432/app",
        "token 是 ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "我的密碼是abc12345",
    ],
)
def test_a_secret_is_one_with_or_without_quotes(text: str) -> None:
    assert has_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "The file is in /usr/local/lib/python3/site/packages/Foo2/Bar.",
        "Commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is good.",
        "The API key rotates every month.",
    ],
)
def test_a_path_a_hash_and_a_word_are_no_secrets(text: str) -> None:
    assert not has_secret(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("My card 4111 1111 1111 1111 is for travel", "My card […] is for travel"),
        ("我的身份证号是11010519491231002X，用来报销", "我的身份证号是[…]，用来报销"),
        ("我的身份證字號是 A123456789，之後填表用", "我的身份證字號是 […]，之後填表用"),
        ("call me at 415 555 2671", "call me at […]"),
        ("手机 13812345678", "手机 […]"),
        ("my ssn is 536-90-4399, keep it", "my ssn is […], keep it"),
        ("帮我记住银行卡号 6222021234567890128", "帮我记住银行卡号 […]"),
        ("my passport number is X1234567", "my passport number is […]"),
    ],
)
def test_a_personal_number_is_found_and_replaced_by_a_mark(text: str, left: str) -> None:
    assert has_personal_number(text)
    assert without_numbers(text) == left
    assert not has_personal_number(left)


@pytest.mark.parametrize(
    "text",
    [
        "Order 4415550123 was shipped.",
        "Run 19592648475 used 64696062 tokens.",
        "Version 05.79.50055667",
        "gene rs35049258 at chr7:9913944117",
        "From line 3040 to 1198 in file 03649420.log",
        "订单号 4415550123 已发货。",
        "my account has 1500000 rows",
        "see 05/8150/2072512593",
    ],
)
def test_an_order_a_version_and_an_id_are_no_personal_numbers(text: str) -> None:
    assert not has_personal_number(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Billing moved to PostgreSQL.", "normal"),
        ("Project billing: we moved to Kubernetes in March.", "normal"),
        ("项目搬到阿里云了", "normal"),
        ("Ana moved to Berlin.", "location"),
        ("The user lives in Porto.", "location"),
        ("用户搬到杭州了。", "location"),
        ("用户对青霉素过敏", "health"),
        ("The user's salary is high.", "finance"),
        ("用户的国籍是西班牙", "identity"),
    ],
)
def test_a_thing_that_moves_is_no_persons_location(text: str, kind: str) -> None:
    assert class_of(text) == kind


def test_a_host_may_have_numbers_redacted_instead_of_refused() -> None:
    extractor = Redacted(RuleExtractor())
    (candidate,) = drive(extractor.propose(Window(lines("Remember that my card 4111 1111 1111 1111 is for travel."))))
    assert candidate.statement == "The user's card […] is for travel."
    assert (extractor.id, extractor.calls_model) == ("rules/1+redacted", False)


def test_a_value_that_was_the_number_is_left_out() -> None:
    said = {"statement": "The user's phone is 415 555 2671.", "messages": (1,), "write_reason": "said"}
    found = redacted(Candidate(**said, subject="user", predicate="phone", value="415 555 2671"))  # type: ignore[arg-type]  # plain fields
    assert (found.statement, found.subject, found.predicate, found.value) == (
        "The user's phone is […].",
        "user",
        None,
        None,
    )
    plain = Candidate(statement="The user likes tea.", messages=(1,), write_reason="said")
    assert redacted(plain) is plain
