"""What a notebook shows: tables that text from memory cannot break."""

from __future__ import annotations

from datetime import UTC, datetime

from everthread.stores.display import told
from everthread.stores.record import Decision, Hit, Recall, Receipt, Signals


def test_a_recall_shows_its_hits_with_signals_and_stays_one_row_each() -> None:
    hit = Hit(
        source="records", statement="a | b\n<script>", score=0.5, signals=Signals(semantic=0.25), why="shares words"
    )
    assert Recall(query="q", hits=(hit,), degraded=("vectors: gone",))._repr_markdown_() == (
        "|  | statement | score | signals | why |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| kept | a &#124; b &lt;script&gt; | 0.500 | semantic 0.25 | shares words |\n\n"
        "degraded: vectors: gone"
    )


def test_a_receipt_shows_which_rule_decided() -> None:
    decision = Decision(outcome="refused", rule="secret", reason="it holds a key")
    receipt = Receipt(id="rcp_1", key="k", at=datetime(2026, 3, 4, tzinfo=UTC), decisions=(decision,))
    assert receipt._repr_markdown_() == (
        "Receipt `rcp_1`, 2026-03-04 00:00:00\n\n"
        "| outcome | rule | reason | record | revision | target |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| refused | secret | it holds a key |  |  |  |"
    )


def test_plain_data_is_told_without_what_is_empty() -> None:
    decisions = [["created", "new", "mem_1", 1, None]]
    assert told({"decisions": decisions, "receipt": "rcp_1", "key": None}) == (
        "decisions: created new mem_1 1, receipt: rcp_1"
    )
