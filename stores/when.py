"""Days that a question names: "last Friday", "four weeks ago", "since May", 上周, 三个月前, 去年五月.

Resolved against the day on which it is asked (R191). Which words of a text name a time, the patterns here say; what
they name, `dateparser` reads, and Chinese is put into English words for it. A range helps what lies in it and hides
nothing, so an expression that is not understood, or is not about the past, costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

__all__ = ["MONTHS", "Days", "counted", "days_named", "read"]

MONTHS = (
    "January February March April May June July August September October November December"  # as people ask
).split()


MOST_NAMED = 16
"""How many expressions of a text are read, at half a millisecond each."""


class Days(NamedTuple):
    """A range of days, both ends included."""

    first: date
    last: date


def days_named(text: str, today: date) -> list[Days]:
    """The ranges that a question asked on `today` names, in its order; empty for one that names none.

    "Four weeks ago" is a guess of whoever asks: some days on either side belong to it. "Since" ends today, "before"
    begins with the first day of all, and what "to" or "between ... and" connects is one range. Summer begins in June.
    """
    matches = [(match, reader) for pattern, reader in _compiled() for match in pattern.finditer(text)]
    found: list[Named] = []
    for match, reader in sorted(matches, key=lambda it: (it[0].start(), -it[0].end()))[:MOST_NAMED]:
        try:
            found += [Named(*match.span(), days) for days in reader(match, Calendar(today))]
        except (ValueError, OverflowError):  # 31 February, or before the year 1: names no day
            continue
    return [named.days for named in _connected(text, found, today)]


# ----------------------------------------------------------------------------------------------- what the library reads


def read(phrase: str, base: datetime, *, ahead: bool = False) -> tuple[datetime, str]:
    """The time that an English phrase names when it is said at `base`, in its time zone, and how long that is: day,
    week, month or year. What has no year or week is the newest that is not to come, or with `ahead` the next.
    ValueError when it names none."""
    from dateparser.date import DateDataParser  # 0.1 s, that only texts about a time are to pay

    settings = {
        "RELATIVE_BASE": base.replace(tzinfo=None),
        "PREFER_DATES_FROM": "future" if ahead else "past",
        "TIMEZONE": "UTC",  # what zone the machine is in makes no difference
    }
    found = DateDataParser(languages=["en"], settings=settings).get_date_data(phrase)
    if found.date_obj is None or found.period is None:
        raise ValueError(f"{phrase!r} names no time")
    return found.date_obj.replace(tzinfo=base.tzinfo), found.period


class Calendar(NamedTuple):
    """Reads English phrases as they are meant on a day; what has no year is the newest that is not to come."""

    today: date

    def moment(self, phrase: str) -> tuple[date, str]:
        """A day of the time that a phrase names, and how long that time is, as `read` says it."""
        found, period = read(phrase, datetime.combine(self.today, time()))
        return found.date(), period

    def whole(self, phrase: str) -> Days:
        """The whole time that a phrase names; a week begins on Monday."""
        day, period = self.moment(phrase)
        match period:
            case "week":
                monday = day - timedelta(day.weekday())
                return Days(monday, monday + timedelta(6))
            case "month":
                return Days(day.replace(day=1), (day.replace(day=28) + timedelta(4)).replace(day=1) - timedelta(1))
            case "year":
                return Days(date(day.year, 1, 1), date(day.year, 12, 31))
            case _:
                return Days(day, day)

    def in_year(self, year: int | None, month: int, day: str | None = None) -> Days:
        """A month, or a day of it; without a year the newest that has begun."""
        return self.whole(f"{day or ''} {MONTHS[month - 1]} {year or ''}".strip())


# ------------------------------------------------------------------------------------------------------ what names them


class Named(NamedTuple):
    """Days, and where a text names them."""

    start: int
    end: int
    days: Days


Reader = Callable[[re.Match[str], Calendar], Iterable[Days]]

SLACK = {"day": 1, "week": 3, "month": 10, "year": 60}
"""Days on either side of "n of these ago"."""
_COUNTS = {"couple of": 2, "few": 3, "several": 4, "几": 3, "两": 2}
_COUNTS |= {said: n for n, said in enumerate("一二三四五六七八九", 1)}
_WORDS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
_WORDS |= {"周末": "weekend", "past": "last", "previous": "last", "上": "last", "这": "this", "本": "this"}
_WORDS |= {"今": "today", "昨": "yesterday", "前": "day before yesterday", "大前": "3 days ago"}
_WORDS |= {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter", "fall": "autumn"}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_YEARS_BACK = {"今年": 0, "去年": 1, "前年": 2}
_FEASTS = {"christmas": (12, 25), "圣诞": (12, 25), "元旦": (1, 1), "五一": (5, 1), "国庆": (10, 1)}
_BEFORE_A_MONTH = "in since of during early mid late before until".split()
_BEFORE_A_YEAR = "in since of during before until from to between and".split()


def _english(said: str) -> str:
    return _WORDS.get(said.lower(), said.lower())


def counted(said: str) -> str:
    """What the library reads as a number: 二十三 is 23, "a few" are 3; its own words stay."""
    tens, ten, ones = said.partition("十")
    return str(_COUNTS.get(tens, 1) * 10 + _COUNTS.get(ones, 0)) if ten else str(_COUNTS.get(said.lower(), said))


def _ago(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """Four weeks ago; 三天前."""
    unit = _english(match["unit"])
    middle, _ = calendar.moment(f"{counted(match['n'])} {unit} ago")
    yield Days(middle - timedelta(SLACK[unit]), middle + timedelta(SLACK[unit]))


def _lately(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """The last three months; 最近两周."""
    start, _ = calendar.moment(f"{counted(match['n'])} {_english(match['unit'])} ago")
    yield Days(start, calendar.today)


def _this_or_last(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """Last week, the past weekend, this month, the week before last; 上周末, 这个月, 上上周, 上周五."""
    said = match.groupdict()
    unit = "week" if _english(match["unit"]) == "weekend" else _english(match["unit"])
    which = _english(said.get("which") or "")
    days = calendar.whole(f"{which} {unit}" if which in ("last", "this") else f"2 {unit}s ago")
    if weekday := said.get("weekday"):
        days = Days(*[days.first + timedelta("一二三四五六日".index(weekday.replace("天", "日")))] * 2)
    elif unit != _english(match["unit"]):
        days = Days(days.last - timedelta(1), days.last)
    yield days


def _day(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """Yesterday, last night, last Friday, on Monday, 2024-02-05; 昨晚, 前天."""
    yield calendar.whole(_english(match["day"]))


def _month(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """8 May 2023, May 8, March 2024, in March. "May" and "march" alone are words."""
    month, day, year = match["month"], match["before"] or match["after"], match["year"]
    lead = _lead(match.string, match.start())
    inside = month[0].isupper() and lead  # not where a sentence begins
    if month.lower() in ("may", "march") and not (day or year or match["last"] or inside or lead in _BEFORE_A_MONTH):
        return
    number = [name.lower() for name in MONTHS].index(month.lower()) + 1
    if year is None and match["last"] and number == calendar.today.month:
        year = str(calendar.today.year - 1)
    yield calendar.in_year(int(year) if year else None, number, day)


def _year(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """In 2022, since 2021, the 1990s."""
    year = int(match["year"])
    if match["decade"]:
        yield Days(date(year, 1, 1), date(year + 9, 12, 31))
    elif _lead(match.string, match.start()) in _BEFORE_A_YEAR:
        yield Days(date(year, 1, 1), date(year, 12, 31))


def _chinese(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """2024年3月, 去年五月, 三月五号, 今年, 2023年夏天, 去年国庆."""
    said = match.groupdict()
    year = None
    if said.get("year"):
        year = calendar.today.year - _YEARS_BACK[said["year"]] if said["year"] in _YEARS_BACK else int(said["year"][:4])
    if month := said.get("month"):
        yield calendar.in_year(year, int(counted(month)), said["day"] and counted(said["day"]))
    elif said.get("season"):
        yield _season(calendar, _english(said["season"]), year)
    elif said.get("feast"):
        yield _feast(calendar, said["feast"], year)
    elif year:
        yield Days(date(year, 1, 1), date(year, 12, 31))


def _named_season(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """Summer 2023, last winter."""
    if match["year"] or match["which"]:
        days = _season(calendar, _english(match["season"]), int(match["year"]) if match["year"] else None)
        if (match["which"] or "").lower() == "last" and days.last >= calendar.today:
            days = _season(calendar, _english(match["season"]), days.first.year - 1)
        yield days


def _season(calendar: Calendar, season: str, year: int | None) -> Days:
    first = calendar.in_year(year, _SEASONS[season]).first
    return Days(first, calendar.whole(f"{MONTHS[(first.month + 1) % 12]} {first.year + first.month // 12}").last)


def _named_feast(match: re.Match[str], calendar: Calendar) -> Iterator[Days]:
    """Christmas 2023."""
    yield _feast(calendar, match["feast"].lower(), int(match["year"]) if match["year"] else None)


def _feast(calendar: Calendar, feast: str, year: int | None) -> Days:
    """The day and what may be free about it."""
    month, day = _FEASTS[feast]
    first = calendar.in_year(year, month, str(day)).first
    return Days(first, first + timedelta(6))


# ------------------------------------------------------------------------------------------------- what connects them

_CONNECT = re.compile(r"\s*(?:(?:to|till|until|through|-|–|到|至)|(?P<and>and|和))\s*(?:the )?", re.IGNORECASE)
_LEAD = re.compile(r"(\w+|\w*[从自在])\s*(?:the )?$", re.IGNORECASE)
_SINCE = re.compile("起|以来|开始")
_BEFORE = re.compile("以前|之前")
_JUST_BEFORE = re.compile(r"(?:day|week|weekend|month|year|night) before (?:the )?$", re.IGNORECASE)
"""The Sunday before 25 October is near it."""


def _lead(text: str, start: int) -> str:
    """The word before, in lower case; "" at the start of a sentence."""
    found = _LEAD.search(text[max(0, start - 20) : start])
    return found[1].lower() if found else ""


def _connected(text: str, found: Iterable[Named], today: date) -> list[Named]:
    """In order and none within another: "since" and "before" as far as they go, from one to the other as one."""
    kept: list[Named] = []
    for named in found:
        if kept and named.start < kept[-1].end:
            continue
        lead, (first, last) = _lead(text, named.start), named.days
        link = _CONNECT.fullmatch(text, kept[-1].end, named.start) if kept else None
        if link and kept[-1].days.first <= last and (not link["and"] or _lead(text, kept[-1].start) == "between"):
            kept[-1] = Named(kept[-1].start, named.end, Days(kept[-1].days.first, last))
            continue
        if (lead == "since" or _SINCE.match(text, named.end)) and first <= today:
            last = today
        elif (
            (lead == "before" or _BEFORE.match(text, named.end))
            and first > date.min
            and not _JUST_BEFORE.search(text, 0, named.start)
        ):
            first, last = date.min, first - timedelta(1)
        kept.append(named._replace(days=Days(first, last)))
    return kept


# --------------------------------------------------------------------------------------------------------- the patterns

_N = r"(?:a )?(?P<n>\d{1,3}|an?|couple of|few|several|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_N_ZH = "(?P<n>[0-9]{1,3}|十[一二]?|[一二两三四五六七八九几])"
_UNIT = "(?P<unit>day|week|month|year)s?"
_UNIT_ZH = "个?(?P<unit>天|日|周|星期|礼拜|月|年)"
_MONTH_ZH = "(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY_ZH = "(?P<day>[0-9]{1,2}|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_FEAST_ZH = "(?P<feast>圣诞|元旦|五一|国庆)"
_PATTERNS: list[tuple[str, Reader]] = [
    (rf"\b{_N} {_UNIT} ago\b", _ago),
    (f"{_N_ZH}{_UNIT_ZH}(?:之前|以前|前)", _ago),
    (rf"\b(?:last|past|previous) {_N} {_UNIT}\b", _lately),
    (f"(?:最近|过去|近){_N_ZH}{_UNIT_ZH}", _lately),
    (r"\b(?P<which>last|past|this|previous) (?P<unit>weekend|week|month|year)\b", _this_or_last),
    (r"\b(?P<unit>weekend|week|month|year) before last\b", _this_or_last),
    ("(?P<which>上上|上|这|本)个?(?P<unit>周末|周|星期|礼拜|月)(?P<weekday>(?<!月)[一二三四五六日天])?", _this_or_last),
    (r"\b(?P<day>(?:day before )?yesterday|last night|today|tonight|this (?:morning|afternoon|evening))\b", _day),
    ("(?P<day>今|昨|(?<![以之])前|大前)[天晚日早]", _day),
    (rf"\b(?:last|past|on) (?P<day>{'|'.join(_WEEKDAYS)})\b", _day),
    (r"(?<![\d-])(?P<day>\d{4}-\d\d-\d\d)(?![\d-])", _day),
    (
        r"\b(?P<last>last )?(?:(?P<before>\d{1,2})(?:st|nd|rd|th)? (?:of )?)?"
        rf"(?P<month>{'|'.join(MONTHS)})\b(?!['’]s)"
        rf"(?: (?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,? (?:of )?{_YEAR}\b)?",
        _month,
    ),
    (rf"\b{_YEAR}(?P<decade>(?<=0)s)?\b(?![-/.:]\d)", _year),
    (
        r"\b(?:(?P<which>last|this) )?(?P<season>spring|summer|autumn|fall|winter)\b"
        rf"(?: (?:of |in )?{_YEAR}\b)?",
        _named_season,
    ),
    (rf"\b(?P<feast>christmas)\b(?: (?:of |in )?{_YEAR}\b)?", _named_feast),
    (
        "(?P<year>[12][0-9]{3}年|去年|前年|今年)的?"
        f"(?:{_MONTH_ZH}(?:{_DAY_ZH}[日号])?|(?P<season>[春夏秋冬])[天季]|{_FEAST_ZH})?",
        _chinese,
    ),
    (
        f"(?<![0-9一二三四五六七八九十年的个]){_MONTH_ZH}"
        f"(?:份|{_DAY_ZH}[日号]|(?=[到至里中初底起]|以来|以前|之前)|(?<=[到至].月)|(?<=[到至]..月))",
        _chinese,
    ),
    (f"{_FEAST_ZH}(?:节|期间|假期|长假)", _chinese),
]


@lru_cache(maxsize=1)
def _compiled() -> list[tuple[re.Pattern[str], Reader]]:
    return [(re.compile(pattern, re.IGNORECASE), reader) for pattern, reader in _PATTERNS]
