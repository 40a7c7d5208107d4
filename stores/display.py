"""How records, receipts and recalls look in a notebook: Markdown tables. Text from memory stays text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from everthread.stores.passages import excerpt, part_shown

if TYPE_CHECKING:
    from everthread.stores.record import ErasureReceipt, Hit, Recall, Receipt, Record

__all__ = ["shown", "table", "told"]

MOST_SHOWN = 200
"""Tokens of a message that a table shows."""


def told(value: object) -> str:
    """Plain data in words, without what is empty: `status: active, evidence: m1 m2`; several such as `(...), (...)`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {told(part)}" for name, part in value.items() if told(part))
    if isinstance(value, list | tuple):
        if any(isinstance(part, Mapping) for part in value):
            return ", ".join(f"({told(part)})" for part in value)
        return " ".join(filter(None, map(told, value)))
    return "" if value is None else str(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; a cell can hold any text without breaking it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def shown(hit: Hit) -> str:
    """What a person is shown of a hit: a record's statement, and of a long message the passage that answers."""
    if hit.source == "records":
        return hit.statement
    return excerpt(hit.statement, part_shown(hit.statement, hit.passage, MOST_SHOWN))


def record_table(record: Record) -> str:
    """One record, a row for each field that is set."""
    fields = record.model_dump(mode="json", exclude_defaults=True)
    return table(["field", "value"], fields.items())


def receipt_table(receipt: Receipt) -> str:
    """One receipt, a row for each decision."""
    rows = [
        (d.outcome, d.rule, d.reason, d.record_id or "", d.revision or "", d.target or "") for d in receipt.decisions
    ]
    heads = ["outcome", "rule", "reason", "record", "revision", "target"]
    return f"Receipt `{receipt.id}`, {receipt.at:%Y-%m-%d %H:%M:%S}\n\n{table(heads, rows)}"


def erasure_table(receipt: ErasureReceipt) -> str:
    """One erasure, a row for each kind of thing that is gone."""
    state = "verified" if receipt.verified else "NOT verified"
    remains = "".join(f"\n- remains: {_cell(each)}" for each in receipt.remains)
    return f"Erasure `{receipt.id}`, {state}\n\n{table(['erased', 'rows'], receipt.erased.items())}\n{remains}"


def recall_table(recall: Recall) -> str:
    """One recall: the hits in order with their signals, then what was dropped."""
    rows = [
        (mark, shown(hit), f"{hit.score:.3f}", _signals(hit.signals.model_dump()), hit.why)
        for mark, hits in (("kept", recall.hits), ("dropped", recall.dropped))
        for hit in hits
    ]
    notes = "".join(f"\n\n{name}: {_cell(text)}" for name, text in (("abstained", recall.abstained),) if text)
    notes += "".join(f"\n\ndegraded: {_cell(arm)}" for arm in recall.degraded)
    return table(["", "statement", "score", "signals", "why"], rows) + notes


def _signals(signals: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in signals.items() if value)


def _cell(value: object) -> str:
    text = " ".join(told(value).split())
    for mark, inert in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(mark, inert)
    return text
