"""Ids of threads, made so that two users' "t1" never meet, and that a sub-agent's thread is known by its parent's."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from typing import Any

from everthread.stores.identity import Identity, thread_name_check

__all__ = ["below", "thread_config", "thread_id_for"]

READABLE = 40
"""Characters of the name that an id begins with."""
ANCESTORS = re.compile(r"in-((?:[0-9a-f]{20}\.)*)")


def thread_config(identity: Identity, name: str) -> dict[str, Any]:
    """The `config` of a run in the thread that this user calls `name`; UsageError when the name is empty or has a NUL
    character or a lone surrogate.

        graph.invoke(..., thread_config(ana, "t1"), context=ana)
    """
    return {"configurable": {"thread_id": thread_id_for(identity, name)}}


def thread_id_for(identity: Identity, name: str) -> str:
    """The id of the thread that this user calls `name`: always the same one, and never another user's.

    It reads `name-<32 hex digits>`. The digits hash tenant, user and name, each behind its length, so that no choice of
    names makes two of them equal. The part in front is for people only. UsageError as in `thread_config`.
    """
    parts = [part.encode() for part in (identity.tenant, identity.user, thread_name_check(name))]
    digest = sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()[:32]
    return "-".join(filter(None, (_readable(name), digest)))


def below(thread_id: str) -> str:
    """What the ids of all threads of sub-agents under this one begin with, those of their sub-agents included, and no
    other id does: `in-`, and a hash of each thread above, so that they are found, and go, with it (R300)."""
    found = ANCESTORS.match(thread_id)
    digest = sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return f"in-{found[1] if found else ''}{digest}."


def _readable(name: str) -> str:
    """Letters and digits of the name, in lower case, in any script, joined by "-"; may be empty."""
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", name).lower()).strip("-")[:READABLE].rstrip("-")
