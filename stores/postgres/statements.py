"""The store's SQL as psycopg and PostgreSQL read it: marks for values, a reserved word, hints to SQLite's planner."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["translate"]

TOKEN = re.compile(
    r"""
    (?P<blob>\bx'(?:[0-9a-f]{2})*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<cast>::)
    | (?P<named>:[a-z_]\w*)(?P<nullable>\s+IS(?:\s+NOT)?\s+NULL\b)?
    | (?P<numbered>\?[0-9]+)(?P<absent>\s+IS(?:\s+NOT)?\s+NULL\b)?
    | (?P<mark>\?)
    | (?P<percent>%)
    | (?P<user>(?<![\w."])user(?![\w"(]))
    | (?P<hint>(?<=[\s(])\+(?=[a-z]))
    | (?P<cross>\bCROSS\s+JOIN\b(?=\s+\w+(?:\s+AS\s+\w+)?\s+ON\b))
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=2_000)
def translate(sql: str) -> str:
    """`?` becomes `%s`, `?1` becomes `%(p1)s` and `:name` becomes `%(name)s`. `user`, which PostgreSQL would read
    as the name of its own user, is quoted. A unary plus and CROSS JOIN ... ON, which keep SQLite from an index or an
    order of tables, are taken away. What stands in quotes stays as it is."""
    return TOKEN.sub(_translated, sql)


def _translated(found: re.Match[str]) -> str:
    token = found[0]
    if name := found["named"] or found["numbered"]:
        # of a value that is only looked at for being there, PostgreSQL cannot tell the type
        asked = found["nullable"] or found["absent"]
        mark = f"%({name[1:]})s" if name[0] == ":" else f"%(p{name[1:]})s"
        return f"CAST({mark} AS text){asked}" if asked else mark
    match found.lastgroup:
        case "blob":
            return f"'\\x{token[2:-1]}'::bytea"
        case "text":
            return token.replace("%", "%%")
        case "mark":
            return "%s"
        case "percent":
            return "%%"
        case "user":
            return '"user"'
        case "hint":
            return ""
        case "cross":
            return "JOIN"
    return token
