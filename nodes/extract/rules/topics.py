"""What a preference or a choice of technology is about, in canonical English keys, so that two of them can be compared
whatever language they were said in."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Choice", "Topic", "named", "preference", "technology"]


class Topic(NamedTuple):
    """The property that a preference sets, and to what."""

    predicate: str
    """Such as `prefers report length`."""
    value: str
    """Such as `short`."""
    expression: bool
    """Whether it is about how things are said, not about what is chosen."""


_TOPICS = (
    ("commit message", r"commit (?:messages?|logs?)|提交信息|提交说明"),
    ("report", r"reports?|报告|报表"),
    ("email", r"e-?mails?|邮件"),
    ("summary", r"summar(?:y|ies)|摘要|总结|小结"),
    ("comment", r"(?:code )?comments?|docstrings?|注释"),
    ("plan", r"plans?|itinerar(?:y|ies)|计划|行程"),
    ("answer", r"answers?|repl(?:y|ies)|respon(?:d|ses?)|explanations?|explain|messages|回答|回复|答复|解释|答案"),
)
_DIMENSIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "length",
        (
            ("short", r"short|brief(?:ly)?|concise(?:ly)?|terse|succinct|compact|简短|简洁|精简|简明|短一点|短些"),
            ("long", r"long|lengthy|长(?!度)"),
            ("detailed", r"detailed|in-depth|thorough|verbose|comprehensive|详细|详尽|具体|全面"),
        ),
    ),
    (
        "format",
        (
            ("bullet points", r"bullet(?:ed)?[- ]?(?:points?|lists?)?|列表|要点|分点|条目"),
            ("tables", r"tables?|tabular|表格"),
            ("prose", r"prose|paragraphs?|段落"),
            ("Markdown", r"markdown"),
            ("plain text", r"plain text|纯文本"),
        ),
    ),
    (
        "tone",
        (
            ("formal", r"formal|正式"),
            ("casual", r"casual|informal|friendly|口语化?|轻松|随意"),
            ("direct", r"direct|blunt|直接|直截了当"),
        ),
    ),
    (
        "language",
        (
            ("English", r"english|英文|英语"),
            ("Traditional Chinese", r"traditional chinese|繁体(?:中文|字)?|正体(?:中文|字)?"),
            ("Chinese", r"(?<!traditional )chinese|mandarin|(?<!繁体)(?<!正体)中文|汉语|普通话"),
            ("German", r"german|德语|德文"),
            ("French", r"french|法语|法文"),
            ("Spanish", r"spanish|西班牙语"),
            ("Japanese", r"japanese|日语|日文"),
        ),
    ),
    ("theme", (("dark", r"dark(?: mode| theme)?|深色|暗色|黑暗模式"), ("light", r"light (?:mode|theme)|浅色|亮色"))),
    ("units", (("metric", r"metric|公制|米制"), ("imperial", r"imperial|英制"))),
)
_ALWAYS_EXPRESSION = {"length", "format", "tone", "language", "units"}
_NEGATED = re.compile(r"\b(?:no|not|never|without|avoid|don'?t|do not|stop)\b|不要|别|不用|不喜欢|避免", re.IGNORECASE)


def _search(pattern: str, text: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", text, re.IGNORECASE))


def preference(text: str) -> Topic | None:
    """The property that a wish is about and its value; None when it is not one of those that exclude each other.

    `short reports` -> (`prefers report length`, `short`). Two at once (`short bullet-point reports`) are one style.
    """
    if _NEGATED.search(text):
        return None
    topic = next((name for name, pattern in _TOPICS if _search(pattern, text)), None)
    found = [
        (dimension, value) for dimension, values in _DIMENSIONS for value, pattern in values if _search(pattern, text)
    ]
    if not found or (topic is None and found[0][0] in ("length", "tone", "format")):
        return None
    if len({dimension for dimension, _ in found}) < len(found):
        return None  # "short, not long": left to the words
    expression = any(dimension in _ALWAYS_EXPRESSION for dimension, _ in found)
    dimension = found[0][0] if len(found) == 1 else "style"
    about = "" if dimension in ("theme", "units") else f"{topic or 'answer'} "
    return Topic(f"prefers {about}{dimension}", ", ".join(value for _, value in found), expression)


def named(text: str) -> list[str]:
    """The keys of all values that a text names, in whatever language: `short` for 简短."""
    return [value for _, values in _DIMENSIONS for value, pattern in values if _search(pattern, text)]


class Choice(NamedTuple):
    """A technology that something is built with."""

    category: str
    """Such as `database`."""
    name: str
    """As it was written, with its version."""


_CATEGORIES = (
    (
        "database",
        r"postgres(?:ql)?|mysql|mariadb|sqlite|mongodb|oracle|sql server|cockroachdb|dynamodb"
        r"|cassandra|clickhouse|tidb|达梦",
    ),
    ("cache", r"redis|memcached|valkey"),
    ("message queue", r"kafka|rabbitmq|nats|celery|rocketmq|pulsar"),
    ("web framework", r"fastapi|django|flask|spring boot|rails|express|laravel|gin"),
    ("frontend framework", r"react|vue(?:\.?js)?|svelte|angular|next\.?js|solidjs"),
    ("orchestrator", r"kubernetes|k8s|nomad|docker swarm|docker compose"),
    ("infrastructure tool", r"terraform|opentofu|pulumi|ansible|helm"),
    ("CI", r"github actions|gitlab ci|jenkins|circleci|buildkite"),
    ("cloud", r"aws|gcp|google cloud|azure|hetzner|阿里云|腾讯云|华为云"),
    ("package manager", r"poetry|uv|pipenv|pnpm|npm|yarn|conda|pdm"),
    ("linter", r"ruff|flake8|pylint|eslint|biome"),
    ("test framework", r"pytest|jest|vitest|unittest|junit"),
    ("search engine", r"elasticsearch|opensearch|solr|meilisearch"),
    ("API style", r"grpc|graphql|rest"),
    ("branching model", r"trunk[- ]based(?: development)?|git ?flow|主干开发"),
)
_VERSION = r"(?:\s?v?\d+(?:\.\d+)*)?"


def technology(text: str) -> Choice | None:
    """The one technology that a text names; None when there is none, or several between which a rule cannot tell."""
    found = [
        Choice(category, match[0].strip())
        for category, pattern in _CATEGORIES
        for match in re.finditer(rf"(?<![A-Za-z0-9])(?:{pattern}){_VERSION}(?![A-Za-z0-9])", text, re.IGNORECASE)
    ]
    return found[0] if len(found) == 1 else None
