"""What Chinese sentences ask to remember, or to be reminded of."""

from __future__ import annotations

import re
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.chinese.words import PROJECT, STOP, WE, project_name, third_person
from everthread.nodes.extract.rules.sketch import Sketch
from everthread.nodes.extract.rules.when import due

__all__ = ["REMEMBER", "REMINDER", "SAYS_WHOSE", "TO_DO", "reminders", "told_to_keep"]

_KEEP = (
    r"(?:记住|记一下|记下来?|记着|备注(?:一下|：|:)|保存一下|帮我存一下|存一下"
    r"|记得(?=[喔哦啊呀哈，,：:]|我|我们|项目|咱)|别忘了(?=[，,：:]|我|我们|项目|咱)|别忘记(?=[，,：:]"
    r"|我|我们)|请注意(?=[，,：:]))"
)


REMEMBER = re.compile(
    rf"^(?:请|麻烦|帮我|帮忙|你|您|要|一定要|务必|把这个|可以|能不能|能)*{_KEEP}(?:[哈喔哦啊呀吧了]|一下|下)*{STOP}"
)


REMINDER = re.compile(
    rf"^(?:请|麻烦|帮我|你|您|要|记得)*(?P<before>.{{0,20}}?)(?:提醒(?:我|一下我)|别让我忘了){STOP}(?P<what>.+)$"
)


TO_DO = re.compile(rf"^(?:请|帮我|你)*记得{STOP}(?P<what>(?![喔哦啊呀哈]?[，,]?\s*(?:我|咱|项目)).+)$")


SAYS_WHOSE = re.compile(r"我|咱|项目|团队|公司|客户|必须|都要|一律|每[天周月次]|\d")
"""What makes "don't forget" more than a saying."""


def reminders(match: re.Match[str], said_at: datetime) -> list[Sketch]:
    said = f"{match.groupdict().get('before') or ''}{match['what']}"
    when = due(said, said_at)
    what = (when.rest if when else said).replace(" ", "") if wording.is_chinese(said) else said
    what = re.sub(r"^(?:去|要|的时候)", "", what.strip(" ，,"))
    if not what:
        return []
    if when is None and "提醒" not in match[0]:
        return []
    return [Sketch(what, "the user asked to be reminded", kind="prospective", due_at=when.at if when else None)]


def told_to_keep(clause: str, project: str | None) -> Sketch:
    """What the user asked to remember and that fits no form: their own words."""
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{WE}|{PROJECT})", clause))
    statement = f"{project_name(project)}：{clause}。" if about_project else f"{third_person(clause)}。"
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)
