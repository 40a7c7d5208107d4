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
        "I like x and " * 1_500,
        "我学学了" * 5_000,
        "i've been a " * 1_600 + "nurse",
    ],
)
def test_a_pattern_comes_to_an_end_on_any_text(text: str) -> None:
    """Repeats within repeats would take longer than anybody lives."""
    assert said(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm looking for a bike route this weekend. I prefer paved roads.",
        "Can you suggest a bag? I prefer a bag with many pockets.",
        "I prefer routes with little traffic.",
        "I like a rustic feel.",
        "I need some help with a logo. I prefer rounded letters.",
        "帮我选一台电脑，我更喜欢轻薄的机身。",
        "我更喜欢带院子的。",
    ],
)
def test_a_plain_preference_beside_something_looked_for_is_meant_for_that(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("offer", "text", "learnt"),
    [
        ("We could use red, blue or green.", "I prefer green", []),
        ("pytest or unittest?", "I always prefer pytest", [("user", "preference", "pytest")]),
        ("Anything else?", "I prefer window seats", [("user", "preference", "window seats")]),
        ("红色、蓝色还是绿色？", "我更喜欢绿色", []),
        ("还有别的吗？", "我更喜欢靠窗的座位", [("user", "preference", "靠窗的座位")]),
    ],
)
def test_a_plain_preference_for_what_was_just_offered_is_a_choice(
    offer: str, text: str, learnt: list[tuple[str, str, str]]
) -> None:
    assert [(each.owner, each.content_type, each.value) for each in propose(("assistant", offer), text)] == learnt


def test_a_habit_keeps_the_condition_that_was_said_before_it() -> None:
    (candidate,) = propose("By the way, on weekends, I usually wake up late, around ten.")
    assert candidate.statement == "On weekends, the user usually wakes up late."


@pytest.mark.parametrize(
    ("text", "learnt"),
    [
        ("I use Facebook, Instagram, and WhatsApp", []),
        ("I usually play chess, go, and shogi.", [("user", "fact", "play chess, go, and shogi")]),
        ("I mostly play classical and jazz, so I need weighted keys.", []),
    ],
)
def test_a_list_is_kept_whole_or_not_at_all(text: str, learnt: list[tuple[str, str, str]]) -> None:
    assert said(text) == learnt


@pytest.mark.parametrize(
    ("text", "learnt"),
    [
        ("I used to be a chef, now I work as a driver.", [("user", "fact", "driver")]),
        ("我原来住大连，现在住在青岛。", [("user", "fact", "青岛")]),
        ("I used to be a chef.", []),
        ("这几天我每天走两万步", []),
    ],
)
def test_beside_what_was_once_the_present_is_read(text: str, learnt: list[tuple[str, str, str]]) -> None:
    assert said(text) == learnt


@pytest.mark.parametrize(
    "text",
    [
        "I'm preparing for a presentation.",
        "I'm preparing for the holiday market.",
        "I'm comfortable with a challenge.",
        "I'm familiar with some of those authors.",
        "I'm a member of their loyalty program.",
        "I'm the artist.",
        "I'm located in downtown.",
        "We're a group of friends.",
        "We meet every Thursday at lunch.",
        "And don't forget, I got a great deal on a handbag.",
        "Note: two parts are still missing.",
        "I want you to act like a coach. When I ask you to do something, ask back first.",
        "My sister lives in Vienna.",
        "我爱人在医院上班。",
        "我姐姐住在大连。",
    ],
)
def test_what_passes_says_little_or_is_somebody_elses_is_not_learnt(text: str) -> None:
    assert said(text) == []


def test_of_a_long_text_only_the_rims_are_the_users_own() -> None:
    filler = "The report goes on about the market and its many parts. " * 40
    assert said(f"I live in Oslo. {filler}I also love Farfetch. {filler}") == [("user", "fact", "Oslo")]


@pytest.mark.parametrize(
    ("text", "owner", "value"),
    [
        ("I work in logistics.", "user", "logistics"),
        ("I've been a nurse for twelve years.", "user", "nurse"),
        ("I turned 40 last week.", "user", "40"),
        ("I collect fountain pens.", "user", "fountain pens"),
        ("We have a cat named Minou.", "user", "a cat named Minou"),
        ("I study law in Bologna.", "user", "law"),
        ("I live alone.", "user", "alone"),
        ("Whenever you write SQL, use lower case keywords.", "user", "use lower case keywords"),
        ("Starting today, keep it under 100 words.", "user", "keep it under 100 words"),
        ("The deadline for the release is May 5.", "project", "May 5"),
        ("Our tests run on GitHub Actions.", "project", "GitHub Actions"),
        ("We dropped support for Python 3.8.", "project", None),
        ("Tests must pass before merging.", "project", None),
        ("我当护士十二年了。", "user", "护士"),
        ("我在成都住了八年了。", "user", "成都"),
        ("我是做外贸的。", "user", "外贸"),
        ("我今年三十四岁。", "user", "三十四岁"),
        ("我会拉大提琴。", "user", "大提琴"),
        ("我养了只猫，叫团子。", "user", "只猫"),
        ("我骑车上班。", "user", "骑车上班"),
        ("写SQL的时候关键字用小写。", "user", "写SQL的时候关键字用小写"),
        ("发布截止日期是五月五号。", "project", "五月五号"),
        ("我们这边不许直接推main。", "project", None),
        ("我们节假日不上线。", "project", None),
    ],
)
def test_what_people_say_of_their_life_and_work_is_read(text: str, owner: str, value: str | None) -> None:
    first = propose(text)[0]
    assert (first.owner, first.value) == (owner, value)


def test_whose_name_it_is_stands_before_it() -> None:
    assert [each.predicate for each in propose("我养了只猫，叫团子。")] == ["has", "cat"]


def test_a_version_at_the_end_of_a_sentence_is_no_list_mark() -> None:
    assert propose("Our API is written in Go 1.22. Why does it not compile?")[0].statement.endswith("Go 1.22.")


def test_what_is_thanked_for_is_no_condition() -> None:
    (candidate,) = propose("Thanks for the recommendations, but I don't really like Japanese cuisine.")
    assert candidate.statement == "The user doesn't really like Japanese cuisine."
