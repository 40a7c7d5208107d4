"""For whom a record in the search index holds: what of a record decides that, as a short text beside its row.

Few records are narrowed at all, and those that are share few reaches: a search judges each reach once, not each record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from everthread.stores.access import may_read, narrows, unfit
from everthread.stores.identity import Identity, Scope, Within
from everthread.stores.record import Governance, Record

__all__ = ["is_reached", "reach_of"]


def reach_of(record: Record, author: str) -> str | None:
    """What narrows the record within its owner's memory, times aside; None for nothing."""
    within = record.scope.within
    narrowed = {
        "within": within.model_dump(exclude_none=True) if within.model_fields_set else None,
        "readers": record.governance.readable_by,
        "environment": record.environment,
        "agent": record.agent_family,
        "versions": record.agent_versions,
        "author": author if record.scope.owner == "session" else None,
        "superseded": record.status == "superseded",
    }
    if not any(narrowed.values()):
        return None
    return json.dumps({name: value for name, value in narrowed.items() if value}, sort_keys=True)


def is_reached(
    reach: str | None,
    scope: Scope,
    identity: Identity,
    *,
    thread_id: str,
    scopes: Sequence[Scope] | None,
    now: datetime,
    superseded: bool = False,
) -> bool:
    """Whether records of this owner and reach are for this identity, in a turn of that thread, and meant by `scopes`.
    `superseded`: those too that held until something else began.

    The rules are those that the record itself is asked by afterwards (`access`): a record of nothing but its reach.
    """
    said = json.loads(reach) if reach else {}
    if said.get("superseded") and not superseded:
        return False
    record = _nothing().model_copy(
        update={
            "scope": scope.model_copy(update={"within": Within(**said.get("within", {}))}),
            "governance": Governance(readable_by=tuple(said.get("readers", ()))),
            "environment": said.get("environment"),
            "agent_family": said.get("agent"),
            "agent_versions": said.get("versions"),
        }
    )
    return (
        may_read(identity, record, author=said.get("author", ""), thread_id=thread_id)
        and unfit(record, identity, now) is None
        and narrows(scopes, record.scope)
    )


@lru_cache(maxsize=1)
def _nothing() -> Record:
    """A record that says nothing: making one with all its defaults takes longer than a copy."""
    return Record.model_construct(status="active")
