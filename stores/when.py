"""Days that a question names: "last Friday", "four weeks ago", "in March", 上周, 三个月前, 去年五月.

Resolved against the day on which it is asked (R191). A range helps what lies in it and hides nothing, so an expression
that is not understood, or is not about the past, costs nothing.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

__all__ = ["MONTHS", "Days", "days_named"]

MONTHS = (
    "January February March April May June July August September October November December"  # as people ask
).split()


class Days(NamedTuple):
    """A range of days, both ends included."""

    first: date
    last: date


def days_named(text: str, today: date) -> list[Days]:
    """The ranges that a question asked on `today` names, in no order; empty for one that names none.

    "Four weeks ago" is a guess of whoever asks: some days on either side belong to it.
    """
    lowered = text.lower()
    found: list[Days] = []
    for pattern, read in _compiled():
        for match in pattern.finditer(lowered):
            try:
                found.extend(read(match, today))
            except (ValueError, OverflowError):  # 31 February, or before the year 1: names no day
                continue
    return found


SLACK = {"day": 1, "week": 3, "month": 10, "year": 60}
"""Days on either side of "n of these ago"."""

_TO_TWELVE = "one two three four five six seven eight nine ten eleven twelve".split()
_NUMBERS = {word: n for n, word in enumerate(_TO_TWELVE, 1)}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "few": 3, "several": 4}
_NUMBERS |= dict(zip("一二三四五六七八九十", range(1, 11), strict=True)) | {"十一": 11, "十二": 12, "两": 2, "几": 3}
_N = r"(?:a )?(\d{1,3}|an?|couple of|few|several|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_N_ZH = "([0-9]{1,3}|十[一二]?|[一二两三四五六七八九几])"
_UNIT_ZH = {"天": "day", "日": "day", "周末": "weekend", "周": "week", "星期": "week", "礼拜": "week"}
_UNIT_ZH |= {"月": "month", "年": "year"}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAYS_ZH = {**{day: n for n, day in enumerate("一二三四五六日")}, "天": 6}


def _number(said: str) -> int:
    return int(said) if said.isdigit() else _NUMBERS[said]


def _months_back(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _back(today: date, count: int, unit: str) -> date:
    if unit in ("month", "year"):
        return _months_back(today, count * (12 if unit == "year" else 1))
    return today - timedelta(count * (7 if unit == "week" else 1))


def _ago(today: date, count: int, unit: str) -> Days:
    middle, slack = _back(today, count, unit), timedelta(SLACK[unit])
    return Days(middle - slack, middle + slack)


def _month(year: int, month: int, day: int | None = None) -> Days:
    if day is not None:
        return Days(date(year, month, day), date(year, month, day))
    return Days(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _latest(today: date, month: int) -> int:
    """The year of the newest such month that has begun."""
    return today.year if month <= today.month else today.year - 1


def _calendar(today: date, unit: str, before: bool) -> Days:
    """This week, weekend, month or year, or the one before it."""
    monday = today - timedelta(today.weekday())
    match unit:
        case "weekend":
            saturday = monday + timedelta(5 - 7 * before)
            return Days(saturday, saturday + timedelta(1))
        case "week":
            monday -= timedelta(7 * before)
            return Days(monday, monday + timedelta(6))
        case "month":
            first = _months_back(today.replace(day=1), int(before))
            return _month(first.year, first.month)
        case _:
            return Days(date(today.year - before, 1, 1), date(today.year - before, 12, 31))


def _weekday(today: date, weekday: int) -> Days:
    """The last such day before today."""
    day = today - timedelta((today.weekday() - weekday) % 7 or 7)
    return Days(day, day)


def _named_month(match: re.Match[str], today: date) -> Iterator[Days]:
    """8 May 2023, May 8, March 2024, in March. "May" and "march" alone are words."""
    before, month, after, year = match["before"], match["month"], match["after"], match["year"]
    if month in ("may", "march") and not (before or after or year or match["in"]):
        return
    number = [name.lower() for name in MONTHS].index(month) + 1
    day = before or after
    asked = int(year) if year else _latest(today, number) - (match["in"] == "last " and number == today.month)
    yield _month(asked, number, int(day) if day else None)


def _chinese_month(match: re.Match[str], today: date) -> Iterator[Days]:
    """2024年3月, 去年五月, 三月五号, 今年."""
    year = {"去年": today.year - 1, "前年": today.year - 2, "今年": today.year}.get(match["year"] or "")
    if year is None and match["year"]:
        year = int(match["year"][:4])
    if match["month"]:
        month = _number(match["month"])
        yield _month(year or _latest(today, month), month, int(match["day"]) if match["day"] else None)
    elif year:
        yield Days(date(year, 1, 1), date(year, 12, 31))


def _this_or_last(match: re.Match[str], today: date) -> Iterator[Days]:
    """Last week, the past weekend, this month; 上周末, 这个月."""
    unit = _UNIT_ZH.get(match["unit"], match["unit"])
    yield _calendar(today, unit, before=match["which"] not in ("this", "这", "本"))


def _weekday_zh(match: re.Match[str], today: date) -> Iterator[Days]:
    """上周五, 这周三."""
    day = _calendar(today, "week", before=match[1] == "上").first + timedelta(_WEEKDAYS_ZH[match[2]])
    yield Days(day, day)


Reader = Callable[[re.Match[str], date], Iterable[Days]]


def _days_back(count: int) -> Reader:
    return lambda match, today: [Days(today - timedelta(count), today - timedelta(count))]


def _since(match: re.Match[str], today: date) -> Iterator[Days]:
    """The last three months; 最近两周."""
    yield Days(_back(today, _number(match[1]), _UNIT_ZH.get(match[2], match[2])), today)


def _some_ago(match: re.Match[str], today: date) -> Iterator[Days]:
    """Four weeks ago; 三天前."""
    yield _ago(today, _number(match[1]), _UNIT_ZH.get(match[2], match[2]))


def _last_weekday(match: re.Match[str], today: date) -> Iterator[Days]:
    yield _weekday(today, _WEEKDAYS.index(match[1]))


_UNITS = "(day|week|month|year)s?"
_UNITS_ZH = "个?(天|日|周|星期|礼拜|月|年)"
_PATTERNS: dict[str, Reader] = {
    rf"\b{_N} {_UNITS} ago\b": _some_ago,
    rf"\b(?:last|past|previous) {_N} {_UNITS}\b": _since,
    r"\b(?P<which>last|past|this|previous) (?P<unit>weekend|week|month|year)\b": _this_or_last,
    rf"\b(?:last|past|on) ({'|'.join(_WEEKDAYS)})\b": _last_weekday,
    r"\b(?:today|tonight|this morning|this afternoon)\b": _days_back(0),
    r"\byesterday\b": _days_back(1),
    r"(?P<in>\b(?:in|last|since|of|during|early|mid|late) )?"
    r"\b(?:(?P<before>\d{1,2})(?:st|nd|rd|th)? (?:of )?)?"
    rf"(?P<month>{'|'.join(MONTHS).lower()})\b(?: (?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?"
    r"(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b)?": _named_month,
    f"{_N_ZH}{_UNITS_ZH}(?:之前|以前|前)": _some_ago,
    f"(?:最近|过去|近){_N_ZH}{_UNITS_ZH}": _since,
    "(?P<which>上|这|本)个?(?P<unit>周末|周|星期|礼拜|月)(?![一二三四五六日天末])": _this_or_last,
    "(上|这|本)个?(?:周|星期|礼拜)([一二三四五六日天])": _weekday_zh,
    "今[天早晚日]": _days_back(0),
    "昨[天晚日]": _days_back(1),
    "(?<!以)前[天晚日]": _days_back(2),
    "(?P<year>[12][0-9]{3}年|去年|前年|今年)的?"
    "(?:(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月(?:(?P<day>[0-9]{1,2})[日号])?)?": _chinese_month,
    "(?<![0-9一二三四五六七八九十年的个])(?P<year>)(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月"
    "(?:份|(?P<day>[0-9]{1,2})[日号])": _chinese_month,
}


@lru_cache(maxsize=1)
def _compiled() -> list[tuple[re.Pattern[str], Reader]]:
    return [(re.compile(pattern), read) for pattern, read in _PATTERNS.items()]
