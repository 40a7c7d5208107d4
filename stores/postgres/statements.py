"""The store's SQL as psycopg and PostgreSQL read it: marks for values, a reserved word, hints to SQLite's planner, and
the tenant by which tables are keyed here."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count

__all__ = ["BELONGING", "KEYED", "THIS_TENANT", "of_tenant", "translate"]

BELONGING = frozenset({"revisions", "relations", "search", "search_versions", "messages", "inbox"})
"""Tables whose rows have a tenant here alone: the shared SQL knows it by what they belong to."""
KEYED = BELONGING | {
    "records", "receipts", "audit", "audit_records", "outbox", "consents", "artifacts", "artifact_uses", "tasks",
    "gates",
}  # fmt: skip
"""Tables that are keyed by tenant first, and partitioned by its hash."""
THIS_TENANT = "this_tenant"
"""The value of this name is the tenant of a statement that `of_tenant` has made."""

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
    | (?:(?<=\bAND\s)|(?<=\bWHERE\s))(?P<among>(?:\w+\.)?(?:id|target))
        \s+IN\s+\(SELECT\s+value\s+FROM\s+json_each\(:(?P<listed>\w+)\)\)(?!\s+OR\b)
    | (?P<cross>\bCROSS\s+JOIN\b(?=\s+(?:\w+|\(SELECT[^()]*\))(?:\s+AS\s+\w+)?\s+ON\b))
    """,
    re.VERBOSE,
)


_NAMES = "|".join(sorted(KEYED))
_CHANGES = re.compile(rf"\s*(UPDATE|DELETE\s+FROM)\s+({_NAMES})\b")
_ADDS = re.compile(rf"\s*INSERT\s+INTO\s+({_NAMES})\s*\(")
_READS = re.compile(rf"\b(FROM|JOIN)\s+({_NAMES})\b(?:\s+AS\s+(\w+))?")
_TARGET = re.compile(r"\bON\s+CONFLICT\s*\((?!\s*tenant\b)")
_SAME = re.compile(r"\b(revisions|later)\.id = (records|revisions)\.id\b")
_CLAUSE = re.compile(r"'(?:[^']|'')*'|[()]|\bWHERE\b|\bRETURNING\b")


@lru_cache(maxsize=2_000)
def of_tenant(sql: str) -> str:
    """The same statement on the rows of one tenant, which is the value `:this_tenant`: what it reads and changes of
    keyed tables is that tenant's, and what it adds to those that belong to others becomes it. Each table is asked for
    in one partition, whatever else the statement says. A statement on no keyed table stays as it is."""
    if changes := _CHANGES.match(sql):
        head, rest = sql[: changes.end()], _limited(sql[changes.end() :], changes[2])
    elif (adds := _ADDS.match(sql)) and adds[1] in BELONGING:
        head = f"{sql[: adds.end()]}tenant, "
        rest = re.sub(
            r"\bVALUES\s*\(|\bSELECT\s+(?:DISTINCT\s+)?", rf"\g<0>:{THIS_TENANT}, ", sql[adds.end() :], count=1
        )
    else:
        head, rest = "", sql
    return head + _READS.sub(_of_tenant, rest)


def _of_tenant(found: re.Match[str]) -> str:
    how, table, alias = found.groups()
    return f"{how} (SELECT * FROM {table} WHERE {table}.tenant = :{THIS_TENANT}) AS {alias or table}"


def _limited(rest: str, table: str) -> str:
    """What follows the table of an UPDATE or DELETE, with the tenant in its condition."""
    where, end, depth = None, len(rest), 0
    for clause in _CLAUSE.finditer(rest):
        depth += {"(": 1, ")": -1}.get(clause[0], 0)
        if depth == 0 and clause[0] == "WHERE" and where is None:
            where = clause
        elif depth == 0 and clause[0] == "RETURNING":
            end = clause.start()
    own = f"{table}.tenant = :{THIS_TENANT}"
    if where is None:
        return f"{rest[:end].rstrip()} WHERE {own} {rest[end:]}"
    return f"{rest[: where.end()]} {own} AND ({rest[where.end() : end].strip()}) {rest[end:]}"


@lru_cache(maxsize=2_000)
def translate(sql: str) -> str:
    """`?` becomes `%s`, `?1` becomes `%(p1)s` and `:name` becomes `%(name)s`; where there are names, each `?` is
    numbered too. `user`, which PostgreSQL would read as the name of its own user, is quoted. A unary plus and CROSS
    JOIN ... ON, which keep SQLite from an index or an order of tables, are taken away; a conflict in a keyed table is
    one within a tenant, and a revision belongs to a record of its tenant. What stands in quotes stays as it is."""
    if _ADDS.match(sql):
        sql = _TARGET.sub(r"\g<0>tenant, ", sql)
    sql = _SAME.sub(r"\1.tenant = \2.tenant AND \g<0>", sql)
    numbers = count(1)
    numbered = f":{THIS_TENANT}" in sql
    return TOKEN.sub(lambda found: f"%(p{next(numbers)})s" if numbered and found["mark"] else _translated(found), sql)


def _translated(found: re.Match[str]) -> str:
    token = found[0]
    if among := found["among"]:
        # as a list of values these are looked up one by one; as a subquery the planner may read all of a tenant
        return f"{among} = ANY (ARRAY(SELECT value FROM json_each(%({found['listed']})s)))"
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
