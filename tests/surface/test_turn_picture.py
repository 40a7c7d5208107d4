"""docs/turn.svg is what docs/make_turn.py draws."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from support.pictures import events_of, nodes_of, texts_of

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_of_a_turn_shows_what_a_turn_does_now() -> None:
    if not DOCS.exists():
        pytest.skip("the documents are not part of a source distribution")
    script = runpy.run_path(str(DOCS / "make_turn.py"))
    told = script["turn"]()
    kept = (DOCS / "turn.svg").read_text(encoding="utf-8")
    drawn: str = script["picture"](told)
    assert nodes_of(kept) == {node: "" for node in told.nodes} | {
        node: str(step) for step, node in enumerate(told.path) if not node.startswith("__")
    }
    assert events_of(kept) == [(event["node"], event["event"]) for event in told.events]
    # a score may move with every change of recall: it is no reason to draw anew
    assert [re.sub(r"\d\.\d\d", "0.00", said) for said in texts_of(kept)] == [
        re.sub(r"\d\.\d\d", "0.00", said) for said in texts_of(drawn)
    ], "run python docs/make_turn.py"
