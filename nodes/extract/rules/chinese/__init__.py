"""What Chinese sentences say that is worth keeping. The same forms as the English rules, and as conservative."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.chinese.correction import CORRECTION, retraction, swap
from everthread.nodes.extract.rules.chinese.decision import about_project
from everthread.nodes.extract.rules.chinese.fact import about_user, nickname
from everthread.nodes.extract.rules.chinese.preference import (
    IMPERATIVE,
    as_a_rule,
    preferred,
    short_lived,
    standing,
    wished,
)
from everthread.nodes.extract.rules.chinese.request import (
    REMEMBER,
    REMINDER,
    SAYS_WHOSE,
    TO_DO,
    reminders,
    told_to_keep,
)
from everthread.nodes.extract.rules.chinese.words import bare, third_person
from everthread.nodes.extract.rules.sketch import Sketch
from everthread.nodes.extract.script import as_written, simplified

__all__ = ["read", "third_person"]

ASKS_WHETHER = re.compile(r"^(?:对吧?|对不对|是吧|是不是|对吗|是吗|没错吧|不是吗)$")


GOES_ON = re.compile(
    r"在.+(?:工作|上班|做|读)|(?:就)?是一?[名个位]|(?:现在|目前)?(?:住|定居|搬|家)在?|来自|对.+过敏"
    r"|不吃|不喝|会说|主要|平时|一般|习惯|(?:更|比较|最)?(?:喜欢|偏好|爱)|不喜欢|讨厌|吃素|用的?是?"
    r"|专业|叫|养|有[一两]|(?:现在|目前)的?.{1,6}是|每[天周]|(?:还)?(?:统一|必须)|用.{1,16}(?:管理|写"
    r"|开发|部署|搭建?|构建)的?$|迁移|数据库|测试环境|staging"
)


def read(sentence: str, said_at: datetime, project: str | None, *, listed: bool = False) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations. `listed`: it
    stands in a list of preferences, so a plain imperative is meant for every time.

    Traditional characters are read as simplified ones, and what is kept has the speaker's. A sentence is read whole,
    and when that says nothing, part by part: Chinese strings what it says together by commas.
    """
    read_as = _ONESELF.sub("我", simplified(sentence))
    found = _read(read_as, said_at, project, listed=listed)
    if _SPACED.search(read_as):
        closed = _read(_SPACED.sub("", read_as), said_at, project, listed=listed)
        loose = all(sketch.subject is None and sketch.replaces for sketch in found)
        found = closed if len(closed) > len(found) or (loose and closed) else found
    return [
        sketch._replace(
            statement=as_written(sketch.statement, sentence),
            value=sketch.value and as_written(sketch.value, sentence),
            replaces=sketch.replaces and as_written(sketch.replaces, sentence),
        )
        for sketch in found
    ]


_SPACED = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])\s+(?=[\u4e00-\u9fff])")
"""The spaces that some set between Chinese and other words, and the forms do not."""


_ONESELF = re.compile(r"(?:本人|俺(?!们)|小弟(?=[在是目现平做想])|在下|鄙人|(?<![自])个人(?=比较|更|不|喜欢|习惯|偏))")


_AT_A_TIME = re.compile(
    r"^(?:今年|去年|前年|春天|夏天|秋天|冬天|年初|年底|上个?月|最近|前阵子|上周|\d{1,2}月|\d{4}年)[，,]?(?=我)"
)
"""When it happened, which the forms do not need."""


def _read(sentence: str, said_at: datetime, project: str | None, *, listed: bool) -> list[Sketch]:
    clause = _AT_A_TIME.sub("", bare(sentence))
    corrected = CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    reminder = REMINDER.match(clause) or TO_DO.match(clause)
    if reminder:
        return reminders(reminder, said_at)
    asked = REMEMBER.sub("", clause)
    weak = re.match(r"(?:请|麻烦|你|您)*(?:别忘了|别忘记|请注意|记得)", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_past(clause):
        clause = next(
            (part for part in wording.clauses(clause) if wording.is_now(part) and not wording.is_past(part)), ""
        )
        clause = clause if not clause or "我" in clause else f"我{clause}"
        return _read(clause, said_at, project, listed=False) if clause else []
    if wording.is_guess(clause) or wording.is_reported(clause):
        return []
    asks = wording.is_question(sentence) and not (wording.is_request(sentence) and wording.is_lasting(sentence))
    found = [] if asks else retraction(clause, project) or _one(clause, project, listed=listed)
    if not found or any(sketch.retracts or (sketch.replaces and not sketch.subject) for sketch in found):
        found = _by_parts(clause, project, listed=listed) or found
    if weak and not SAYS_WHOSE.search(clause):
        return found
    if not found and not asks and explicit and len(clause) > 2:
        found = [told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


def _one(clause: str, project: str | None, *, listed: bool = False) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        swap,
        nickname,
        short_lived,
        standing,
        about_project,
        preferred,
        about_user,
        as_a_rule,
    )
    for reader in readers:
        found = reader(clause, project)
        if found:
            return found
    if listed and IMPERATIVE.search(clause):
        return [wished(clause, project)]
    return []


def _by_parts(clause: str, project: str | None, *, listed: bool) -> list[Sketch]:
    """What the parts say, one by one. A part without a subject has that of the part before it."""
    parts = [bare(REMEMBER.sub("", CORRECTION.sub("", part))) for part in wording.clauses(clause)]
    if len(parts) < 2 or ASKS_WHETHER.match(wording.clauses(clause)[-1].strip(" ？?。")):
        return []
    found: list[Sketch] = []
    who = before = ""
    for before, part in zip(["", *parts], parts, strict=False):
        whose = _OTHERS.search(before) if part.startswith("叫") else None
        if who and GOES_ON.match(part):
            part = f"{who}{whose[0] if whose else ''}{part}"
        elif match := re.match(rf"我(?!们)|(?:这个|本|该|我们的?)(?:{_OURS})|我们|咱们", part):
            who = match[0]
        if wording.is_question(part) or wording.is_task_text(part):
            continue
        found += retraction(part, project) or _one(part, project, listed=listed)
    ended = {(sketch.subject, sketch.predicate) for sketch in found if not sketch.retracts}
    # "I don't live in Beijing any more, I live in Suzhou" is one correction, not an end and a beginning.
    return [
        sketch._replace(corrects=True) if (sketch.subject, sketch.predicate) in _retracted(found) else sketch
        for sketch in found
        if not (sketch.retracts and (sketch.subject, sketch.predicate) in ended) and not _is_loose(sketch, found)
    ]


_OTHERS = re.compile(r"孩子|儿子|女儿|娃|狗|猫|鹦鹉|兔子|仓鼠|店|公司|乐队")
"""Whose name comes after 叫, when they were named just before."""
_OURS = r"项目|仓库|代码库|服务|系统|工程|网站|平台"


def _retracted(found: list[Sketch]) -> set[tuple[str | None, str | None]]:
    return {(sketch.subject, sketch.predicate) for sketch in found if sketch.retracts}


def _is_loose(sketch: Sketch, found: list[Sketch]) -> bool:
    """A swap without a subject, beside something that has one."""
    return sketch.subject is None and sketch.replaces is not None and len(found) > 1
