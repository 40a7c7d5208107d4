"""What people write, and what the rules make of it: parts, slips, lists, two scripts, other people's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from support.extraction import propose

from everthread.nodes.extract.rules import chinese, english
from everthread.nodes.extract.script import as_written, simplified


def said(text: str) -> list[tuple[str, str, str | None]]:
    return [(each.owner, each.content_type, each.value) for each in propose(text)]


@pytest.mark.parametrize(
    ("text", "learnt"),
    [
        ("i'm based in Nairobi (UTC+3), what time is it for me?", [("user", "fact", "Nairobi")]),
        ("我開的是比亞迪漢，冬天續航掉得厲害怎麼辦", [("user", "fact", "比亞迪漢")]),
        ("Im lactose intolerant!! what can i cook?", [("user", "fact", "lactose intolerant")]),
        ("dont use emojis in the future pls", [("user", "preference", "don't use emojis")]),
        ("I'm Marguerite, a nurse from Lyon.", [("user", "fact", "Marguerite"), ("user", "fact", "nurse")]),
        ("I don't like tables, I prefer bullet points.", [("user", "preference", "tables")]),
        ("How I like to work:\n- use British spelling\n- no emojis", [("user", "preference", "use British spelling")]),
        (
            "Can you always show diffs instead of whole files?",
            [("user", "preference", "always show diffs instead of whole")],
        ),
        ("Today we decided to use Kafka because we need replay.", [("project", "fact", "Kafka")]),
        ("今天开会定下来了，消息队列用 Kafka，因为需要回放", [("project", "fact", "Kafka")]),
        ("代码示例以后统一用 TypeScript", [("user", "preference", "代码示例以后统一用 TypeScript")]),
        ("我们用的是 MySQL 8.0，ORM 是 SQLAlchemy。", [("project", "fact", "MySQL 8.0"), ("project", "fact", None)]),
        ("今後給我的回覆一律用繁體中文，謝謝。", [("user", "preference", "Traditional Chinese")]),
    ],
)
def test_a_part_of_a_message_is_read_as_what_it_says(text: str, learnt: list[Any]) -> None:
    found = said(text)
    assert [(owner, kind) for owner, kind, _ in found][: len(learnt)] == [(owner, kind) for owner, kind, _ in learnt]
    for (_, _, value), (_, _, wanted) in zip(found, learnt, strict=False):
        assert wanted is None or wanted in (value or "")


@pytest.mark.parametrize(
    "text",
    [
        "I live in Paris, right?",
        "我住在巴黎，对吧？",
        "Let's play a game: I'm a dragon who lives in Wales and I hate knights.",
        "我们来玩角色扮演，我是住在昆仑山的剑客，讨厌魔教",
        "Here is the mail:\nI live in Toronto and I prefer mornings.",
        "下面是客户的邮件：\n我住在厦门，喜欢早上联系。",
        "Customer: We use Windows 7.\nAgent: I see.\nCustomer: From now on call me in the evening.",
        "客户：我们用 Win7。\n客服：好的。\n客户：以后请晚上打给我。",
        "In the interview she wrote: 'I live in Toronto and I love skiing.'",
        "please always... hm no, never mind. just run the linter",
        "以后都……算了，先跑一下 lint 吧",
        "Say I work at a bank and we use COBOL. How would I modernise it?",
        "我们之前都用 Capistrano 部署，超难用",
        "I used to work at Nokia, back when phones had buttons.",
        "每次运行都报错",
        "stop using this function in the script",
        "our server is down",
        "the build is broken",
        "I use this function to parse dates",
        "我在看一篇论文",
        "我叫你改的是第二行",
        "In the future, I'd like to explore other gardens",
        "Let me know your experience from now on",
        "Our closest examples are Arabian sources",
        "Remember that the hero must win.",
        "别忘了，健康是一辈子的事。",
    ],
)
def test_what_is_not_meant_of_oneself_for_good_says_nothing(text: str) -> None:
    assert said(text) == []


def test_traditional_characters_are_read_as_simplified_ones_and_kept_as_written() -> None:
    assert simplified("今後給我的回覆一律用繁體中文，謝謝") == "今后给我的回复一律用繁体中文，谢谢"
    assert as_written("用户希望：回复用繁体中文", "給我的回覆用繁體中文，用戶") == "用戶希望：回覆用繁體中文"
    (candidate,) = propose("我對麩質過敏。")
    assert (candidate.statement, candidate.value) == ("用户對麩質過敏。", "麩質")


def patterns(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from patterns(each)


@pytest.mark.parametrize("language", [english, chinese])
def test_no_pattern_holds_a_number_of_repeats_that_was_formatted_away(language: Any) -> None:
    r"""`rf".{2,40}"` is no repeat: it formats the tuple (2, 40) into the pattern."""
    modules = [each for each in vars(language).values() if isinstance(each, ModuleType)]
    found = {each.pattern for module in modules for value in vars(module).values() for each in patterns(value)}
    assert len(found) > 40
    assert [each for each in found if re.search(r"\(\d+, ?\d*\)|\{\{", each)] == []


@pytest.mark.parametrize(
    "text",
    [
        "请麻烦你" * 4_000,
        "哈" * 20_000 + "x",
        "谢谢啦" * 6_000 + "x",
        "嗯" * 20_000,
        "今天" * 9_000,
        "我现在一直也是" * 2_500,
        "can you " * 2_500 + "always",
        "no, wait, " * 1_900,
    ],
)
def test_a_pattern_comes_to_an_end_on_any_text(text: str) -> None:
    """Repeats within repeats would take longer than anybody lives."""
    assert said(text) == []
