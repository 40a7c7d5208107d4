"""When something is due, from what was said, against the time of the message and never the clock of the machine."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from everthread.stores.when import MONTHS, counted, read

__all__ = ["Due", "due"]

MORNING = 9
"""The hour that a day without a time means."""


class Due(NamedTuple):
    """A time that was named, and the text without it."""

    at: datetime
    """When; in the message's time zone."""
    rest: str
    """What is left of the text."""


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NEAR = {"today": "today", "tonight": "today", "tomorrow": "tomorrow", "after": "in 2 days"}
_UNITS = {"分钟": "minutes", "小时": "hours", "天": "days", "周": "weeks", "星期": "weeks"}

_AFTER = re.compile(
    r"\bin (?P<n>\d+|half an|an?|one|two|three|four|five|six) (?P<unit>minute|hour|day|week)s?\b", re.IGNORECASE
)
_AFTER_ZH = re.compile(r"(?P<n>\d+|[一二两三四五六七八九十半])个?(?P<unit>分钟|小时|天|周|星期)(?:之?后|以后)")
_DAY = re.compile(
    rf"\b(?:(?P<tonight>tonight)|(?P<today>today)|(?P<after>the day after tomorrow)|(?P<tomorrow>tomorrow)"
    rf"|(?:on |this |next )?(?P<weekday>{'|'.join(_DAYS)})"
    rf"|(?:on )?(?:the )?(?P<month>{'|'.join(MONTHS)}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?:on )?(?P<iso>\d{{4}}-\d{{2}}-\d{{2}}))\b(?: (?P<part>morning|afternoon|evening))?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\b(?:at|by) (?:(?P<noon>noon|midday)"
    r"|(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm|a\.m\.|p\.m\.)?)(?!\w)",
    re.IGNORECASE,
)
_DAY_ZH = re.compile(
    r"(?P<today>今天|今晚)|(?P<tomorrow>明天|明早|明晚)|(?P<after>后天)"
    r"|(?P<next>下)?(?:个)?(?:这)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"
    r"|(?P<which>这个|本|下个?)月(?P<date>\d{1,2}|[一二三四五六七八九十]{1,3})[日号]"
    r"|(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]|(?P<iso>\d{4}-\d{2}-\d{2})"
)
_EACH = re.compile(r"(?:\b(?:every|each)(?: other)?\s+(?:on )?|每个?)$", re.IGNORECASE)
"""Before a day: not this one alone."""
_CLOCK_ZH = re.compile(
    r"(?P<half>早上|上午|中午|下午|傍晚|晚上)?(?P<hour>\d{1,2}"
    r"|[一二两三四五六七八九十]{1,2})(?:点|时|[:：])(?P<minute>\d{2}|半)?分?"
)
_PARTS = {
    "morning": 9,
    "afternoon": 14,
    "evening": 19,
    "早上": 9,
    "上午": 9,
    "中午": 12,
    "下午": 14,
    "傍晚": 18,
    "晚上": 20,
}


def due(text: str, said_at: datetime) -> Due | None:
    """The time that a text names, and the rest of it; None when it names none, an impossible one, or one that comes
    again and again.

    A weekday is the next one after the day of the message; a day without a time means nine in the morning.
    """
    try:
        return _due(text, said_at)
    except (ValueError, OverflowError):  # 31 February, 25:00, or beyond the year 9999
        return None


def _due(text: str, said_at: datetime) -> Due | None:
    after = _AFTER.search(text) or _AFTER_ZH.search(text)
    if after:
        moment, _ = read(_later(after), said_at, ahead=True)
        return Due(moment, _without(text, after))
    chinese = bool(re.search(r"[\u4e00-\u9fff]", text))
    day = (_DAY_ZH if chinese else _DAY).search(text)
    if day is None or _EACH.search(text[: day.start()]):
        return None
    rest = _without(text, day)
    clock = (_CLOCK_ZH if chinese else _CLOCK).search(rest)
    moment = _midnight(day, said_at) + _time_of_day(day, clock, chinese=chinese)
    return Due(moment, _without(rest, clock) if clock else rest)


def _later(match: re.Match[str]) -> str:
    """In two hours, in half an hour; 两小时后."""
    count, unit = match["n"].lower(), _UNITS.get(match["unit"], match["unit"])
    if count in ("half an", "半"):
        return "in 30 minutes" if unit.startswith("hour") else "in 12 hours"
    return f"in {counted(count)} {unit}"


def _without(text: str, match: re.Match[str]) -> str:
    return re.sub(r"\s{2,}", " ", text[: match.start()] + " " + text[match.end() :]).strip(" ,，。.")


def _midnight(day: re.Match[str], said_at: datetime) -> datetime:
    """The day that is meant; Chinese is put into English words."""
    start = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    said = {name: value for name, value in day.groupdict().items() if value}
    if weekday := said.get("weekday"):
        n = "一二三四五六日".find(weekday.replace("天", "日"))
        found, _ = read(weekday if n < 0 else _DAYS[n], start, ahead=True)
        # 下周五 said on a Monday is not this week's
        return found + timedelta(7 * ("next" in said and found - start < timedelta(7 - start.weekday())))
    if near := [phrase for name, phrase in _NEAR.items() if name in said]:
        return read(near[0], start, ahead=True)[0]
    if which := said.get("which"):
        month = start.replace(day=1) + timedelta(31 * which.startswith("下"))
        phrase = f"{counted(said['date'])} {MONTHS[month.month - 1]} {month.year}"
    elif name := said.get("month"):
        phrase = f"{said['day']} {MONTHS[int(name) - 1] if name.isdigit() else name} {said.get('year', '')}"
    else:
        phrase = said["iso"]
    just_before = start - timedelta(microseconds=1)  # so that the day of the message itself is still ahead
    return read(phrase.strip(), just_before, ahead=True)[0]


def _time_of_day(day: re.Match[str], clock: re.Match[str] | None, *, chinese: bool) -> timedelta:
    named = day.groupdict()
    evening = bool(named.get("tonight")) or "晚" in day[0]
    if clock is None:
        return timedelta(hours=19 if evening else _PARTS.get((named.get("part") or "").lower(), MORNING))
    if not chinese and clock["noon"]:
        return timedelta(hours=12)
    hour = int(counted(clock["hour"]))
    minute = 30 if clock["minute"] == "半" else int(clock["minute"] or 0)
    half = (clock["half"] or "").lower()
    if hour < 12 and (half.startswith("p") or half in ("下午", "傍晚", "晚上") or evening):
        hour += 12
    if hour > 23 or minute > 59:
        raise ValueError(f"{hour}:{minute} is no time")
    return timedelta(hours=hour, minutes=minute)
