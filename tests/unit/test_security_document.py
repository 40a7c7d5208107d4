"""Each claim of docs/security.md names the test that shows it, and each test that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "security.md"

pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="the documents are not part of a source distribution")


def claims() -> list[str]:
    """The document's list entries, each whole."""
    return re.findall(r"^- .+?(?=^- |^$|\Z)", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)


def named(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)


@pytest.mark.parametrize(("page", "most"), [("security", 30), ("threads", 14)])
def test_each_named_test_exists(page: str, most: int) -> None:
    found = named((DOCUMENT.parent / f"{page}.md").read_text(encoding="utf-8"))
    assert len(found) > most
    missing = [
        f"{path}::{test}"
        for path, test in found
        if not re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.M)
    ]
    assert missing == []


def test_each_claim_names_a_test() -> None:
    outside = ("- An embedder that you choose",)
    assert [claim for claim in claims() if not named(claim) and not claim.startswith(outside)] == []
