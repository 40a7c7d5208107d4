"""Secrets, personal numbers, sensitive classes. The recognisers are libraries', not our own patterns (R103, R284)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from everthread.nodes.extract.script import simplified

__all__ = ["Sensitivity", "class_of", "has_personal_number", "has_secret", "retention_of"]

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
    r"\b(?:pass(?:word|phrase|code)|pwd|pin(?: code| number)?|api[ _-]?key|secret(?: key)?"
    r"|(?:access |auth |bearer )?token"
    r"|private key|recovery (?:code|phrase)|seed phrase|cvv|cvc|security code)\b\s*(?:for \S+ |to \S+ |of \S+ )?"
    r"(?:is|are|was|=|:|：)\s*\S"
    r"|(?:密码|口令|密钥|令牌|验证码|助记词|私钥|安全码)(?:是|为|=|:|：)\s*\S",
    re.IGNORECASE,
)


_LOGIN_IN_URL = re.compile(r"\w://[^\s/:@]+:[^\s/@]{3,}@[\w\[]")
"""A user and a password in an address. detect-secrets knows it too, but not with a "!" or "&" in the password."""


def has_secret(text: str) -> bool:
    """Whether it holds a key, token, password or private key, as detect-secrets knows them or as people say them."""
    known, entropy = _detectors()
    if any(any(detector.analyze_string(text)) for detector in known):
        return True
    if _SAID_SECRET.search(simplified(text)) or _LOGIN_IN_URL.search(text):
        return True
    return any(
        _is_mixed(token) and entropy.calculate_shannon_entropy(token) > entropy.entropy_limit
        for token in _TOKEN.findall(text)
    )


def _is_mixed(token: str) -> bool:
    """Letters of both cases and digits: a token, not a long word, a commit hash or a file name."""
    return bool(re.search(r"[a-z]", token) and re.search(r"[A-Z]", token) and re.search(r"\d", token))


_NUMBER = re.compile(r"(?<![\w.])[A-Z]{0,2}\d(?:[ -]?[0-9A-Z]){7,33}(?!\w|\.\d)", re.IGNORECASE)


_SAID_NUMBER = re.compile(
    r"\b(?:passport|social security|ssn|national id|id card|identity card|driver'?s? licen[cs]e"
    r"|credit card|debit card|card|iban"
    r"|(?:bank )?account|insurance|tax(?: id)?|phone|mobile|cell|licen[cs]e plate)(?: number| no\.?"
    r"| #)?\b(?: is|'s|:|=|,)? (?:now )?"
    r"(?=[A-Z0-9 -]{0,4}\d)[A-Z]{0,3}[ -]?\d[\dA-Z -]{5,}"
    r"|(?:身份证|身分证|护照|银行卡|信用卡|储蓄卡|卡号|账号|账户|社保|医保|驾照|驾驶证|手机|电话|税号|居留证|通行证)(?:字号|号码|卡号|号)?"
    r"(?:是|为|:|：|,|，|\s)*[A-Za-z]{0,3}\d[\dA-Za-z -]{5,}",
    re.IGNORECASE,
)
"""A number that is called so, whatever its check digits: most are mistyped or foreign to the libraries."""


def has_personal_number(text: str) -> bool:
    """Whether it holds a payment card, bank account, identity or telephone number: one that passes its own check, or
    is called so."""
    return bool(_SAID_NUMBER.search(simplified(text))) or any(map(_is_registered, _runs(text))) or _has_phone(text)


def _runs(text: str) -> Iterator[str]:
    for match in _NUMBER.finditer(text):
        yield re.sub(r"[ -]", "", match[0]).upper()
    # Han characters count as word characters for \b, so a number glued to them is looked for separately.
    yield from (run.upper() for run in re.findall(r"(?<!\d)\d{15,19}[Xx]?(?![\dA-Za-z])", text))


def _is_registered(number: str) -> bool:
    from stdnum import iban, luhn
    from stdnum.cn import ric
    from stdnum.es import dni, nie
    from stdnum.fr import nir

    if number.isdigit() and 13 <= len(number) <= 19 and luhn.is_valid(number):
        return True
    if any(module.is_valid(number) for module in (iban, ric, dni, nie, nir)):
        return True
    # The shape of an account number, even when its check digits are mistyped.
    return bool(re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", number))


_SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")


def _has_phone(text: str) -> bool:
    import phonenumbers
    from stdnum.us import ssn

    if any(ssn.is_valid(found) for found in _SSN.findall(text)):
        return True
    undated = _TIMESTAMP.sub(" ", text)
    if sum(character.isdigit() for character in undated) < 7:
        return False
    return any(any(phonenumbers.PhoneNumberMatcher(undated, region)) for region in ("US", "CN", "GB", "DE"))


class _Class(NamedTuple):
    name: Sensitivity
    words: re.Pattern[str]


_CLASSES = (
    _Class(
        "health",
        re.compile(
            r"\b(?:allerg\w+|diabet\w+|asthma\w*|cancer|depress(?:ion|ed)|anxiety|pregnan\w+|hiv"
            r"|medication|diagnos\w+|therap(?:y|ist)"
            r"|surgery|disease|illness|disabilit\w+|prescri\w+|blood (?:type|pressure)|coeliac|celiac"
            r"|intoleran\w+|epilep\w+)\b"
            r"|过敏|糖尿病|哮喘|癌|抑郁|焦虑症|怀孕|确诊|手术|疾病|处方|血压|血型|残疾|病史|吃药|服药",
            re.IGNORECASE,
        ),
    ),
    _Class(
        "finance",
        re.compile(
            r"\b(?:salary|income|earns?|debt|mortgage|loan|net worth|credit score|bank account"
            r"|tax(?:es| return)|savings)\b"
            r"|工资|薪水|年薪|月薪|收入|负债|贷款|房贷|存款|银行账户|信用分",
            re.IGNORECASE,
        ),
    ),
    _Class(
        "identity",
        re.compile(
            r"\b(?:passport|birthday|date of birth|born (?:on|in)|social security|national id"
            r"|ethnicity|religio\w+|sexual"
            r" orientation|nationality|citizen\w*|political)\b|护照|身份证|生日|出生|民族|宗教|性取向|国籍|政治面貌",
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
    found = next((entry.name for entry in _CLASSES if entry.words.search(text)), None)
    return found or proposed


def retention_of(sensitivity: Sensitivity) -> int | None:
    """Days that a record of this class is kept; None when nothing shortens its life."""
    return _RETENTION.get(sensitivity)
