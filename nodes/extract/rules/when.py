"""When something is due, from what was said, against the time of the message and never the clock of the machine."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

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
_MONTHS = "january february march april may june july august september october november december".split()
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "half an": 0.5}
_NUMBERS_ZH = {
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
    "半": 0.5,
}
_UNITS = {
    "minute": 1,
    "hour": 60,
    "day": 1440,
    "week": 10080,
    "分钟": 1,
    "小时": 60,
    "天": 1440,
    "周": 10080,
    "个星期": 10080,
}

_AFTER = re.compile(
    r"\bin (?P<n>\d+|half an|an?|one|two|three|four|five|six) (?P<unit>minute|hour|day|week)s?\b", re.IGNORECASE
)
_AFTER_ZH = re.compile(r"(?P<n>\d+|[一二两三四五六七八九十半])个?(?P<unit>分钟|小时|天|周|星期)(?:之?后|以后)")
_DAY = re.compile(
    rf"\b(?:(?P<tonight>tonight)|(?P<today>today)|(?P<after>the day after tomorrow)|(?P<tomorrow>tomorrow)"
    rf"|(?:on |this |next )?(?P<weekday>{'|'.join(_DAYS)})"
    rf"|(?:on )?(?:the )?(?P<month>{'|'.join(_MONTHS)}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
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
        return Due(said_at + timedelta(minutes=_minutes(after)), _without(text, after))
    chinese = bool(re.search(r"[\u4e00-\u9fff]", text))
    day = (_DAY_ZH if chinese else _DAY).search(text)
    if day is None or _EACH.search(text[: day.start()]):
        return None
    rest = _without(text, day)
    clock = (_CLOCK_ZH if chinese else _CLOCK).search(rest)
    moment = _midnight(day, said_at, chinese=chinese) + _time_of_day(day, clock, chinese=chinese)
    return Due(moment, _without(rest, clock) if clock else rest)


def _minutes(match: re.Match[str]) -> float:
    count, unit = match["n"].lower(), match["unit"].lower()
    number = float(count) if count.isdigit() else _NUMBERS.get(count) or _NUMBERS_ZH[count]
    return number * _UNITS.get(unit, 10080)


def _without(text: str, match: re.Match[str]) -> str:
    return re.sub(r"\s{2,}", " ", text[: match.start()] + " " + text[match.end() :]).strip(" ,，。.")


def _midnight(day: re.Match[str], said_at: datetime, *, chinese: bool) -> datetime:
    start = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    found = {name: value for name, value in day.groupdict().items() if value}
    if "today" in found or "tonight" in found:
        return start
    if "tomorrow" in found:
        return start + timedelta(days=1)
    if "after" in found:
        return start + timedelta(days=2)
    if "weekday" in found:
        wanted = (
            "一二三四五六日".index(found["weekday"].replace("天", "日"))
            if chinese
            else _DAYS.index(found["weekday"].lower())
        )
        ahead = (wanted - start.weekday() - 1) % 7 + 1
        if "next" in found and start.weekday() + ahead < 7:
            ahead += 7  # 下周五 said on a Monday is not this week's
        return start + timedelta(days=ahead)
    if "which" in found:
        first = start.replace(day=1)
        first = (first + timedelta(days=31)).replace(day=1) if found["which"].startswith("下") else first
        return first.replace(day=int(found["date"]) if found["date"].isdigit() else _spelled(found["date"]))
    if "iso" in found:
        year, month, date = map(int, found["iso"].split("-"))
        return start.replace(year=year, month=month, day=date)
    month = int(found["month"]) if chinese else _MONTHS.index(found["month"].lower()) + 1
    named = start.replace(year=int(found.get("year", start.year)), month=month, day=int(found["day"]))
    return named.replace(year=named.year + 1) if named < start and "year" not in found else named


def _time_of_day(day: re.Match[str], clock: re.Match[str] | None, *, chinese: bool) -> timedelta:
    named = day.groupdict()
    evening = bool(named.get("tonight")) or "晚" in day[0]
    if clock is None:
        return timedelta(hours=19 if evening else _PARTS.get((named.get("part") or "").lower(), MORNING))
    if not chinese and clock["noon"]:
        return timedelta(hours=12)
    hour = int(clock["hour"]) if clock["hour"].isdigit() else _spelled(clock["hour"])
    minute = 30 if clock["minute"] == "半" else int(clock["minute"] or 0)
    half = (clock["half"] or "").lower()
    if hour < 12 and (half.startswith("p") or half in ("下午", "傍晚", "晚上") or evening):
        hour += 12
    if hour > 23 or minute > 59:
        raise ValueError(f"{hour}:{minute} is no time")
    return timedelta(hours=hour, minutes=minute)


def _spelled(text: str) -> int:
    tens, _, ones = text.rpartition("十") if "十" in text else ("", "", text)
    if "十" not in text:
        return int(_NUMBERS_ZH[text])
    return int(_NUMBERS_ZH.get(tens, 1) * 10 + (_NUMBERS_ZH[ones] if ones else 0))
