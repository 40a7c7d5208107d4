"""What a URL says: where a server is, and which schema is meant. No complaint quotes a URL: where it is torn, the
password may be anywhere in it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from everthread.errors import UsageError

__all__ = ["FORM", "SCHEMA", "parts_of", "schema_named", "where", "without_ours"]

SCHEMA = "everthread"
"""The schema that holds a store when none is named."""
LONGEST_NAME = 63
"""Bytes of a name that PostgreSQL keeps."""
OURS = ("schema", "partitions")
"""What a URL says to us and not to the driver."""
FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


def parts_of(url: str) -> dict[str, Any]:
    """The parts of a URL as the driver names them. UsageError when it is none."""
    authority, *rest = re.split("[/?]", url.partition("://")[2], maxsplit=1)
    try:
        if authority.count("@") < 2 and "@" not in "".join(rest):
            return conninfo_to_dict(url)
    except psycopg.Error:
        pass  # its message quotes what it could not read
    raise UsageError(
        f"the URL cannot be read; write {FORM}, and in user and password %40 for @, %2F for /, %3F for ?, %25 for %"
    )


def without_ours(url: str) -> tuple[str, dict[str, str]]:
    """The URL as the driver takes it, and what it says to us: `?schema=NAME&partitions=4`."""
    head, mark, query = url.partition("?")
    if not mark:
        return url, {}
    asked = [(each, *each.partition("=")[::2]) for each in query.split("&")]
    rest = "&".join(each for each, name, _ in asked if name not in OURS)
    return f"{head}?{rest}" if rest else head, {name: unquote(value) for _, name, value in asked if name in OURS}


def schema_named(name: str) -> str:
    """A name that PostgreSQL takes as it is. It would cut a longer one short: two such stores would be one."""
    length = len(name.encode("utf-8", "replace"))
    if length > LONGEST_NAME:
        raise UsageError(f"schema {name} has {length} bytes; give a name of {LONGEST_NAME} at most")
    if name == "$user" or name.startswith("pg_") or "\0" in name:
        raise UsageError(f"schema {name!r} means something of its own to PostgreSQL; give another name")
    return name


def where(url: str, schema: str | None = None) -> str:
    """What a store is called in messages: the server, the database and the schema (`schema`, or the one that the URL
    names); neither user nor password."""
    url, ours = without_ours(url)
    told = parts_of(url)
    host, port, name = (told.get(key, default) for key, default in (("host", ""), ("port", 5432), ("dbname", "")))
    meant = schema_named(schema or ours.get("schema") or SCHEMA)
    if host.startswith("/"):  # the folder of a socket
        return f"postgresql://:{port}/{name}?host={host}&schema={meant}"
    return f"postgresql://{host or 'localhost'}:{port}/{name}?schema={meant}"
