"""The retrieval benchmarks run on a small set of their own, without data from elsewhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def turn(number: int, speaker: str, text: str) -> dict[str, str]:
    return {"dia_id": f"D1:{number}", "speaker": speaker, "text": text}


CHATS: list[dict[str, Any]] = [
    {
        "sample_id": "one",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn(1, "Ana", "I adopted a puppy from the shelter."),
                turn(2, "Ben", "How nice! I went to the cinema."),
                turn(3, "Ana", "Its name is Biscuit."),
            ],
        },
        "qa": [
            {"question": "What did Ana adopt?", "evidence": ["D1:1"], "category": 4},
            {"question": "What is the puppy's name?", "evidence": ["D1:1; D1:03", "D9:9"], "category": 1},
            {"question": "What did Ben adopt?", "evidence": ["D1:1"], "category": 5},
            {"question": "What is never said?", "evidence": ["D7:1"], "category": 4},
        ],
    }
]


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Any]:
    """What `locomo.py` writes about the small set."""
    (tmp_path / "chats.json").write_text(json.dumps(CHATS))
    options = ["--data", tmp_path / "chats.json", "--no-peers", "--json", tmp_path / "out.json"]
    command = [sys.executable, "benchmarks/locomo.py", *map(str, options), "--report", str(tmp_path / "report.md")]
    subprocess.run([*command], cwd=ROOT, check=True, capture_output=True, timeout=120)
    subprocess.run([*command], cwd=ROOT, check=True, capture_output=True, timeout=120)
    found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    found["report"] = (tmp_path / "report.md").read_text()
    return found


def test_every_ranker_is_asked_the_questions_that_have_evidence(figures: dict[str, Any]) -> None:
    asked = {
        name: {kind: found["N"] for kind, found in run.items() if "N" in found} for name, run in figures["runs"].items()
    }
    three = {"locomo / single-hop": 1, "locomo / multi-hop": 1, "locomo-5 / adversarial": 1}
    assert asked == dict.fromkeys(("BM25 (FTS5)", "vectors", "RRF of both", "everthread"), three)


def test_recall_is_the_share_of_the_evidence_that_exists(figures: dict[str, Any]) -> None:
    found = figures["runs"]["everthread"]["locomo / multi-hop"]
    assert (found["turn R@5"], found["turn all@5"], found["session any@1"]) == (1.0, 1.0, 1.0)
    assert figures["runs"]["everthread"]["locomo / single-hop"]["turn R@1"] == 1.0


def test_a_section_is_written_once_however_often_it_is_measured(figures: dict[str, Any]) -> None:
    assert figures["report"].count("## LoCoMo\n") == 1
    assert figures["report"].count("### Categories 1 to 4 (N = 2)") == 1
