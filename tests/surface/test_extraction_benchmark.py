"""What extraction makes of the labelled exchanges, and what its benchmark says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
PARTS = {
    "first": "extraction",
    "dev": "extraction_dev",
    "second": "extraction_second",
    "held-out": "extraction_held_out",
    "third": "extraction_third",
    "unseen": "extraction_unseen",
}


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], dict[str, Any]]:
    """What the benchmark prints, by extractor and part."""
    command = [sys.executable, str(ROOT / "benchmarks" / "extraction.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {(each["extractor"], each["part"]): each for each in json.loads(done.stdout)}


def exchanges(part: str) -> list[dict[str, Any]]:
    lines = (FIXTURES / f"{PARTS[part]}.jsonl").read_text(encoding="utf-8").splitlines()
    return [exchange for exchange in map(json.loads, lines) if "say" in exchange]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_the_rules_learn_most_of_what_they_should_and_hardly_anything_else(
    measured: dict[tuple[str, str], dict[str, Any]], part: str, language: str
) -> None:
    found = measured["rules", part]
    figures = found["figures"][language]
    print(part, language, figures, *found["failures"], sep="\n  ")
    assert figures["precision"] >= 0.95
    assert figures["recall"] >= 0.6


@pytest.mark.parametrize("part", PARTS)
def test_what_a_model_proposes_rightly_survives_the_rules_of_validation(
    measured: dict[tuple[str, str], dict[str, Any]], part: str
) -> None:
    """A protocol test: the model's replies are scripted."""
    found = measured["model (scripted)", part]
    print(*found["failures"], sep="\n  ")
    assert found["figures"]["all"]["precision"] >= 0.95
    assert found["figures"]["all"]["recall"] >= 0.95


def test_the_labelled_exchanges_are_many_and_half_of_them_chinese() -> None:
    languages = Counter(exchange["language"] for part in PARTS for exchange in exchanges(part))
    assert languages == {"en": 280, "zh": 280}
    ids = [exchange["id"] for part in PARTS for exchange in exchanges(part)]
    assert len(ids) == len(set(ids))
