"""Reasons that people give are free text, and may repeat what is erased: those that do are blanked (R280)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from everthread.stores.database import Connection
from everthread.stores.record import Receipt, Record
from everthread.stores.tables.rows import body_of
from everthread.stores.text import normalise

__all__ = ["ERASED", "blank_reasons", "repeats"]

ERASED = "the record was erased"
"""Stands where a reason stood."""

RECEIPTS = "SELECT id, body, body -> '$.decisions' FROM receipts WHERE tenant = ?1 AND (?2 IS NULL OR user = ?2)"
REVISIONS = """
SELECT id, revisions.revision, reason, body -> '$.write_reason', body -> '$.relations'
FROM revisions JOIN records USING (id)
WHERE records.tenant = ?1 AND (?2 IS NULL OR author = ?2 OR actor = ?2)
"""
BODY = "SELECT body FROM revisions WHERE id = ? AND revision = ?"
REWRITE = "UPDATE revisions SET body = ?, reason = ? WHERE id = ? AND revision = ?"


def repeats(text: str, words: Sequence[str]) -> bool:
    """Whether a text has one of these words, which are normalised."""
    told = normalise(text)
    return any(word in told for word in words)


def blank_reasons(connection: Connection, tenant: str, user: str | None, words: Sequence[str]) -> None:
    """Blank each reason that repeats one of these normalised words: in receipts, and in the history of records, of this
    user (None: of the tenant)."""
    if not words:
        return
    known: dict[str, bool] = {}

    def told(reason: str | None) -> bool:
        # most reasons are one of a few sentences of ours
        if reason is None:
            return False
        if reason not in known:
            known[reason] = repeats(reason, words)
        return known[reason]

    for id, body, decisions in connection.execute(RECEIPTS, (tenant, user)).fetchall():
        if any(told(decision.get("reason")) for decision in json.loads(str(decisions))):
            receipt = Receipt.model_validate_json(str(body))
            blank = tuple(
                decision.model_copy(update={"reason": ERASED}) if told(decision.reason) else decision
                for decision in receipt.decisions
            )
            receipt = receipt.model_copy(update={"decisions": blank})
            connection.execute(
                "UPDATE receipts SET body = ? WHERE id = ?", (receipt.model_dump_json(exclude_none=True), id)
            )
    for id, revision, reason, written, relations in connection.execute(REVISIONS, (tenant, user)).fetchall():
        edges = json.loads(str(relations)) if relations else []
        if told(str(reason)) or told(json.loads(str(written))) or any(told(edge.get("reason")) for edge in edges):
            ((body,),) = connection.execute(BODY, (id, revision)).fetchall()
            record = Record.model_validate_json(str(body))
            kept = tuple(
                edge.model_copy(update={"reason": ERASED}) if told(edge.reason) else edge for edge in record.relations
            )
            update = {"relations": kept, "write_reason": ERASED if told(record.write_reason) else record.write_reason}
            connection.execute(
                REWRITE,
                (body_of(record.model_copy(update=update)), ERASED if told(str(reason)) else reason, id, revision),
            )
