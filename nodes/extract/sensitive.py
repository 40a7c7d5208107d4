"""Secrets, personal numbers, sensitive classes. The recognisers are libraries', not our own patterns (R103, R284)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from everthread.nodes.extract.rules.topics import technology
from everthread.nodes.extract.script import simplified

__all__ = ["Sensitivity", "class_of", "has_personal_number", "has_secret", "retention_of", "without_numbers"]

Sensitivity = Literal["normal", "personal", "health", "finance", "identity", "location"]


@cache
def _detectors() -> tuple[tuple[Any, ...], Any]:
    """detect-secrets' recognisers of known tokens, and its entropy measure. Loaded when the first text is checked."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString
    from detect_secrets.plugins.ip_public import IPPublicDetector

    kinds: list[Any] = list(get_mapping_from_secret_type_to_class().values())
    known = tuple(
        kind() for kind in kinds if issubclass(kind, RegexBasedDetector) and not issubclass(kind, IPPublicDetector)
    )
    return known, Base64HighEntropyString(limit=4.3)


_TOKEN = re.compile(r"[A-Za-z0-9+_=-]{20,}")
_SAID_SECRET = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pwd|pin(?: code| number)?|api[ _-]?key|secret(?: key)?|(?:access "
    r"|auth |bearer )?token|private key|recovery (?:code|phrase)|seed phrase|cvv|cvc"
    r"|security code)\b\s*(?:for \S+ |to \S+ |of \S+ )?(?:is|are|was|=|:|：)\s*\S|(?:密码|口令|密钥"
    r"|令牌|验证码|助记词|私钥|安全码)(?:是|为|=|:|：)\s*\S",
    re.IGNORECASE,
)


_ASSIGNED = re.compile(
    r"(?:secret|token|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?)[\w-]*\s*=\s*[\"']?[^\s\"'，。]{6,}",
    re.IGNORECASE,
)
"""A name that means a secret, and a value: detect-secrets wants quotes around it, and people leave them out."""
_SLASHED = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{36,}={0,2}(?![A-Za-z0-9+/])")
_LOGIN_IN_URL = re.compile(r"\w://[^\s/:@]+:[^\s/@]{3,}@[\w\[]")
"""A user and a password in an address. detect-secrets knows it too, but not with a "!" or "&" in the password."""


def has_secret(text: str) -> bool:
    """Whether it holds a key, token, password or private key, as detect-secrets knows them or as people say them."""
    known, entropy = _detectors()
    if any(any(detector.analyze_string(text)) for detector in known):
        return True
    if _SAID_SECRET.search(simplified(text)) or _LOGIN_IN_URL.search(text) or _ASSIGNED.search(text):
        return True
    return any(
        _is_mixed(token) and entropy.calculate_shannon_entropy(token) > entropy.entropy_limit
        for token in (*_TOKEN.findall(text), *_SLASHED.findall(text))
    )


def _is_mixed(token: str) -> bool:
    """Letters of both cases and digits: a token, not a long word, a commit hash or a file name."""
    return bool(re.search(r"[a-z]", token) and re.search(r"[A-Z]", token) and re.search(r"\d", token))


_NUMBER = re.compile(r"(?<![\w.])[A-Z]{0,2}\d(?:[ -]?[0-9A-Z]){7,33}(?!\w|\.\d)", re.IGNORECASE)


_SAID_NUMBER = re.compile(
    r"(?:\b(?:passport|social security|ssn|national id|id card|identity card|driver'?s? licen[cs]e"
    r"|credit card|debit card|card|iban|(?:bank )?account|insurance|tax(?: id)?|phone|mobile|cell"
    r"|licen[cs]e plate)(?: number| no\.?| #)?\b(?: is|'s|:|=|,)? (?:now )?|(?:身份证|身分证|护照"
    r"|银行卡|信用卡|储蓄卡|卡号|账号|账户|社保|医保|驾照|驾驶证|手机|电话|税号|居留证|通行证)(?:字号"
    r"|号码|卡号|号)?(?:是|为|:|：|,|，"
    r"|\s)*)(?P<digits>(?:[A-Za-z]{1,3}(?=\d))?\d(?:[ -]?[\dA-Za-z]*\d){5,}[A-Za-z]?(?![A-Za-z]))",
    re.IGNORECASE,
)
"""A number that is called so, whatever its check digits: most are mistyped or foreign to the libraries."""


def has_personal_number(text: str) -> bool:
    """Whether it holds a payment card, bank account, identity or telephone number: one that passes its own check, or
    is called so."""
    return bool(_SAID_NUMBER.search(simplified(text))) or any(map(_is_registered, _runs(text))) or _has_phone(text)


def _runs(text: str) -> Iterator[str]:
    for match in _NUMBER.finditer(text):
        yield match[0]
    yield from (match[0] for match in _GLUED.finditer(text))


_GLUED = re.compile(r"(?<!\d)\d{15,19}[Xx]?(?![\dA-Za-z])")
"""Han characters count as word characters for a word's end, so a number glued to them is looked for separately."""


def _is_registered(written: str) -> bool:
    from stdnum import iban, luhn
    from stdnum.cn import ric
    from stdnum.es import dni, nie
    from stdnum.fr import nir

    number = _bare(written)
    if number.isdigit() and 13 <= len(number) <= 19 and luhn.is_valid(number):
        return True
    if any(module.is_valid(number) for module in (iban, ric, dni, nie, nir)):
        return True
    # The shape of an account number, even when its check digits are mistyped: in capitals, whole or in groups of four.
    return bool(
        re.fullmatch(r"[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,3})?)", written)
    )


_SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")


def _has_phone(text: str) -> bool:
    from stdnum.us import ssn

    if any(ssn.is_valid(found) for found in _SSN.findall(text)):
        return True
    return any(True for _ in _phones(text))


def _phones(text: str) -> Iterator[tuple[int, int]]:
    """Where the telephone numbers stand that phonenumbers finds. A bare run of digits is one only where the text says
    so, or when it is a Chinese mobile number: otherwise it is an order, an id or a time."""
    import phonenumbers

    undated = _TIMESTAMP.sub(lambda found: " " * len(found[0]), text)
    if sum(character.isdigit() for character in undated) < 7:
        return
    for region in ("US", "CN", "GB", "DE"):
        for match in phonenumbers.PhoneNumberMatcher(undated, region):
            near = undated[max(0, match.start - 40) : match.start]
            spelled = match.raw_string.lstrip("+(").replace(")", " ")
            if (
                match.raw_string.startswith(("+", "(", "00"))
                or (re.fullmatch(r"1[3-9]\d{9}", match.raw_string) and _HAN.search(text))
                or _grouped(spelled)
                or _SAYS_PHONE.search(simplified(near))
            ):
                yield match.start, match.end


def _grouped(number: str) -> bool:
    """Whether it is written in groups, as telephone numbers are: a first one of at most five digits, then others."""
    groups = re.split(r"[ -]+", number.strip())
    pair = len(groups) == 2 and 2 <= len(groups[0]) <= 5 and len(groups[1]) >= 6
    return all(map(str.isdigit, groups)) and (pair or len(groups) >= 3)


_HAN = re.compile(r"[\u4e00-\u9fff]")
_SAYS_PHONE = re.compile(
    r"\b(?:phone|tele(?:phone)?|tel|mobile|cell|call|ring|text|sms|whats ?app|signal|fax|reach|contact"
    r"|dial|hotline)\b|电话|手机|致电|拨打|联系|短信|热线|传真|微信",
    re.IGNORECASE,
)


class _Class(NamedTuple):
    name: Sensitivity
    words: re.Pattern[str]


_CLASSES = (
    _Class(
        "health",
        re.compile(
            r"\b(?:allerg\w+|diabet\w+|asthma\w*|cancer|depress(?:ion|ed)|anxiety|pregnan\w+|hiv|medication"
            r"|diagnos\w+|therap(?:y|ist)|surgery|disease|illness|disabilit\w+|prescri\w+|blood (?:type"
            r"|pressure)|coeliac|celiac|intoleran\w+|epilep\w+)\b|过敏|糖尿病|哮喘|癌|抑郁|焦虑症|怀孕|确诊"
            r"|手术|疾病|处方|血压|血型|残疾|病史|吃药|服药",
            re.IGNORECASE,
        ),
    ),
    _Class(
        "finance",
        re.compile(
            r"\b(?:salary|income|earns?|debt|mortgage|loan|net worth|credit score|bank account|tax(?:es"
            r"| return)|savings)\b|工资|薪水|年薪|月薪|收入|负债|贷款|房贷|存款|银行账户|信用分",
            re.IGNORECASE,
        ),
    ),
    _Class(
        "identity",
        re.compile(
            r"\b(?:passport|birthday|date of birth|born (?:on|in)|social security|national id|ethnicity"
            r"|religio\w+|sexual orientation|nationality|citizen\w*|political)\b|护照|身份证|生日|出生|民族"
            r"|宗教|性取向|国籍|政治面貌",
            re.IGNORECASE,
        ),
    ),
    _Class(
        "location",
        re.compile(
            r"\b(?:home address|(?:lives?|living|based|moved) (?:in|at|to|near)|street|postcode|zip code)\b"
            r"|住在|住址|家在|地址|搬[到去]|定居",
            re.IGNORECASE,
        ),
    ),
)
_RETENTION = {"health": 365, "finance": 180, "identity": 365, "location": 365}


def class_of(text: str, proposed: Sensitivity = "normal") -> Sensitivity:
    """The sensitive class of a statement. What was proposed may be made stricter here, never milder."""
    text = simplified(text)
    found = next((entry.name for entry in _CLASSES if entry.words.search(text)), None)
    if found == "location" and _MOVED.search(text) and (_OF_THINGS.match(text) or technology(text)):
        found = None  # "Billing moved to PostgreSQL": a thing, not a person
    return found or proposed


_MOVED = re.compile(r"\b(?:lives?|living|based|moved) (?:in|at|to|near)\b|搬[到去]", re.IGNORECASE)
_OF_THINGS = re.compile(r"(?:project|the project|our|项目|我们的?项目)\b", re.IGNORECASE)


MARK = "[…]"
"""Stands where a number was."""


def without_numbers(text: str) -> str:
    """The text with each personal number replaced by a mark. What is left may still hold one that could not be told
    from its surroundings: ask `has_personal_number` again."""
    spans = [(match.start(), match.end()) for match in _NUMBER.finditer(text) if _is_registered(match[0])]
    spans += [match.span() for match in _GLUED.finditer(text) if _is_registered(match[0])]
    spans += [match.span("digits") for match in _SAID_NUMBER.finditer(simplified(text))]
    spans += [match.span() for match in _SSN.finditer(text)]
    spans += _phones(text)
    kept, end = [], 0
    for start, stop in sorted(spans):
        if start >= end:
            kept += [text[end:start], MARK]
        end = max(end, stop)
    return "".join([*kept, text[end:]])


def _bare(number: str) -> str:
    return re.sub(r"[ -]", "", number).upper()


def retention_of(sensitivity: Sensitivity) -> int | None:
    """Days that a record of this class is kept; None when nothing shortens its life."""
    return _RETENTION.get(sensitivity)
