"""Whether two statements say the same. Numbers, dates, units and negations decide as much as the words (R186). Pure."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache, partial

from everthread.stores.record import Record

__all__ = ["denies", "fingerprint", "is_same_fact", "is_same_property", "is_same_value", "numbers", "same"]

_LITTLE = frozenset({"a", "an", "the", "please", "really", "very", "also", "just"})
_WORD = re.compile(r"[+\-]?\d[\d.,:/%-]*\d|\d|[^\W\d_]+|[+#$€£¥%°<>=≤≥≠≈±-]")

_SHORT = {"can't": "can not", "won't": "will not", "cannot": "can not", "per cent": "%", "percent": "%"}
_SHORT_FORM = re.compile(rf"\b(?:{'|'.join(_SHORT)})\b")

_DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_CHINESE = "".join(_DIGITS)
_NUMERAL = re.compile(rf"(?:\d+(?:\.\d+)?(?=[百千万亿])|[{_CHINESE}十])(?:\d+(?:\.\d+)?|[{_CHINESE}十百千万亿])*")
_LONGEST = 30
"""Characters of a numeral that is read; nobody writes a longer one, and its digits could fill the memory."""
_PART = re.compile(r"\d+(?:\.\d+)?|.")
_PERCENT = re.compile(r"百分之(\d+(?:\.\d+)?)")

_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS = {word: number for number, word in enumerate(_SMALL.split())} | {
    word: number * 10 for number, word in enumerate(_TENS.split(), start=2)
}
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})(?:-({'|'.join(list(_NUMBER_WORDS)[1:10])}))?\b")
_SCALES = {"hundred": 100, "thousand": 1_000, "k": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SCALED = re.compile(r"\b(\d{1,18}(?:\.\d{1,9})?)(?:(k)\b| (hundred|thousand|million|billion)\b)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

_MONTHS = {
    name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)
}
_ENDINGS = "uary|ruary|ch|il|e|y|ust|tember|t|ober|ember"
_MONTH = rf"({'|'.join(_MONTHS)})(?:{_ENDINGS})?\.?"
_DATES = (
    (re.compile(r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b"), (1, 2, 3)),
    (re.compile(r"(\d{4}) ?年 ?(\d{1,2}) ?月 ?(\d{1,2}) ?[日号]"), (1, 2, 3)),
    (re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b"), (3, 1, 2)),
    (re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? {_MONTH},? (\d{{4}})\b"), (3, 2, 1)),
)
"""How a date is written, and which groups are year, month and day. One that may be either of two days is left alone."""

_NOT = frozenset(
    "not no never without neither nor none nobody nothing hardly barely scarcely rarely seldom unable "
    "fail fails failed refuse refuses refused avoid avoids avoided avoiding stop stops stopped hate hates dislike "
    "dislikes disliked lack lacks except excluding forbid forbids forbidden prohibit prohibited".split()
)
"""Words that deny, alone or by what they mean."""
_DENIES_NOTHING = re.compile(
    r"\b(?:(?:do not|don't|never) forget|no (?:problem|worries|doubt|matter)|not only|why not|of course not)\b"
    r"|不要忘[记了]?|[别別]忘[记了]?"
)
_CHINESE_NOT = re.compile(
    r"不(?![错仅但过同断久管少锈])|没(?!问题)|[無沒勿莫]|无(?!论)|未(?!来)|(?<![特区级性类分个])[别別](?!人)|(?<!除)非(?![常洲])"
    r"|拒[绝絕]|避免|停止|[讨討][厌厭]|禁止|反[对對]|很少|[几幾]乎(?!都|所有|全)|[难難]以|缺乏|缺少"
)


@lru_cache(maxsize=2_048)
def fingerprint(text: str) -> tuple[str, ...]:
    """The text as a key of sameness: words in order, without case, width, punctuation and little words.

    Numbers, dates, units, signs and negations are part of it, however they are written: "5 years" and "six years", "is"
    and "is not" differ, 五年 and 5年, 20万 and 200,000, "March 4, 2026" and 2026-03-04 do not.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    folded = _SHORT_FORM.sub(lambda found: _SHORT[found[0]], folded).replace("n't", " not")
    words = tuple(word.strip(".,:") for word in _WORD.findall(_in_digits(folded)))
    return tuple(word for word in words if word not in _LITTLE) or words or (folded.strip(),)


def is_same_fact(one: Record, other: Record) -> bool:
    """Whether two records say the same: the same words, or the same value of the same property.

    With the same value, their statements still have to agree in numbers and negations: "has worked at Acme for 5 years"
    and "for 6 years" are two facts.
    """
    mine, theirs = fingerprint(one.statement), fingerprint(other.statement)
    return mine == theirs or (is_same_value(one, other) and _decisive(mine) == _decisive(theirs))


def is_same_value(one: Record, other: Record) -> bool:
    """Whether two records name the same value of the same property, whatever else they say."""
    return one.value is not None and is_same_property(one, other) and same(one.value, other.value)


def is_same_property(one: Record, other: Record) -> bool:
    """Whether two records speak of the same property of the same subject."""
    return bool(one.predicate) and same(one.subject, other.subject) and same(one.predicate, other.predicate)


def same(one: str | None, other: str | None) -> bool:
    """Whether two short texts are the same but for case, width and punctuation; a missing one is the same as none."""
    if one is None or other is None:
        return one is other
    return one == other or fingerprint(one) == fingerprint(other)


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, in one notation, dates in their parts too; a word that is a number only in form is none:
    the "one" of "the one", the 一 of 一律."""
    written = frozenset(word for word in fingerprint(text) if any(letter.isdigit() for letter in word))
    parts = frozenset(part.lstrip("0") or "0" for word in written for part in re.split(r"[^\d.]+", word) if part)
    return parts if "1" in text else parts - {"1"}


def denies(text: str) -> int:
    """How often a text denies something: "not", "no longer", "refuses", 不, 拒绝. "Don't forget" denies nothing."""
    return _denials(fingerprint(_DENIES_NOTHING.sub(" ", text.casefold().replace("’", "'"))))


def _decisive(words: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """The numbers among the words, and how often they deny."""
    return frozenset(word for word in words if any(letter.isdigit() for letter in word)), _denials(words)


def _denials(words: tuple[str, ...]) -> int:
    return sum(1 if word in _NOT else len(_CHINESE_NOT.findall(word)) for word in words)


def _in_digits(text: str) -> str:
    """The folded text with its numbers and dates in one notation."""
    text = _NUMBER_WORD.sub(lambda found: str(sum(_NUMBER_WORDS[word] for word in found.groups() if word)), text)
    text = _NUMERAL.sub(lambda found: _value(found[0]), _GROUPED.sub("", text))
    if not any(letter.isdigit() for letter in text):
        return text
    while scaled := _SCALED.search(text):
        product = _plain(Fraction(scaled[1]) * _SCALES[scaled[2] or scaled[3]])
        text = text[: scaled.start()] + product + text[scaled.end() :]
    text = _PERCENT.sub(r"\1%", text)
    for written, order in _DATES:
        text = written.sub(partial(_dated, order), text)
    return text


def _dated(order: tuple[int, int, int], found: re.Match[str]) -> str:
    year, month, day = (found[group] for group in order)
    return f"{year}-{_MONTHS.get(month, month):0>2}-{day:0>2} "


def _value(numeral: str) -> str:
    """A numeral in Chinese or mixed notation (三千五百, 20万, 二〇二六) in digits. 一百五 is 150, 一百零五 is 105."""
    if len(numeral) > _LONGEST:
        return numeral
    parts = _PART.findall(numeral)
    if not any(part in _UNITS or part in _MYRIADS for part in parts):
        return "".join(str(_DIGITS.get(part, part)) for part in parts)
    total, section, number = Fraction(0), Fraction(0), None
    unit, myriad, skipped = 1, 0, False
    for part in parts:
        if part in _UNITS:
            section += (1 if number is None else number) * _UNITS[part]
            number, unit, skipped = None, _UNITS[part], False
        elif part in _MYRIADS:
            whole = section + (number or 0)
            total = (total + whole) * _MYRIADS[part] if _MYRIADS[part] > myriad else total + whole * _MYRIADS[part]
            section, number, unit, myriad, skipped = Fraction(0), None, _MYRIADS[part], _MYRIADS[part], False
        elif part in "零〇":
            skipped = True
        else:
            digit = Fraction(_DIGITS.get(part, part))
            number = digit if number is None else number * 10 + digit
    if number is not None and unit > 10 and number < 10 and not skipped:
        number *= unit // 10
    return _plain(total + section + (number or 0))


def _plain(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else str(float(number))
