"""`everthread recall --explain` and `everthread why --query`: signals, ranks, and what a turn makes of it."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from support.records import NOON, keep, learnt
from typer.testing import CliRunner

from everthread import Evidence, Identity, Record
from everthread.cli import app
from everthread.cli.reports import Explanation
from everthread.stores import open_store
from everthread.stores.record import Recall

ANA = Identity(tenant="local", user="ana")


def run(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana"])
    assert result.exit_code == 0, result.output
    return result.stdout


def kept(home: Path, *records: Record) -> list[Record]:
    with open_store(f"sqlite:{home}") as store:
        return keep(store, ANA, *records)


@pytest.mark.parametrize(
    ("tea", "question"),
    [("Ana prefers tea over coffee.", "Does Ana prefer tea or coffee?"), ("安娜喜欢喝乌龙茶。", "安娜喜欢喝什么茶？")],
)
def test_explaining_shows_signals_ranks_and_what_a_turn_would_show(tmp_path: Path, tea: str, question: str) -> None:
    wish = learnt("Answers are in German.", content_type="preference", concerns="expression")
    guess = learnt(f"{tea} 也许 maybe", authority="inferred", stated=False, confidence=0.1)
    best, resident, unsure = kept(tmp_path, learnt(tea), wish, guess)
    lines = [line.split("\t") for line in run(tmp_path, "recall", question, "--explain").splitlines()]
    assert lines[0] == ["statement", "score", "signals", "ranks", "why", "id"]
    assert lines[1][0] == tea and "semantic " in lines[1][2] and "semantic #" in lines[1][3]
    turn = lines[lines.index(["in a turn", "rule", "why", "id"]) + 1 :]
    assert {(row[1], row[3]) for row in turn} == {
        ("shown", best.id),
        ("shown", resident.id),
        ("untrusted", unsure.id),
    }


@pytest.mark.parametrize(
    ("words", "question"),
    [("My dentist is Dr. Alvarez.", "Which dentist do I go to?"), ("我的牙医在使命街。", "我的牙医在哪里？")],
)
def test_a_turn_that_looks_at_what_was_said_is_explained_too(tmp_path: Path, words: str, question: str) -> None:
    said = Evidence(thread_id="t9", message_id="m1", role="user", text=words, at=NOON, source="user")
    with open_store(f"sqlite:{tmp_path}") as store:
        store.transcripts.append(ANA, [said])
    shown = run(tmp_path, "recall", question, "--explain", "--sources", "evidence").splitlines()
    turn = [line.split("\t") for line in shown[shown.index("in a turn\trule\twhy\tid") + 1 :]]
    assert turn == [[words, "shown", "found by the search", "m1"]]
    hit = shown[1].split("\t")
    assert (hit[0], hit[3], hit[5]) == (words, "keyword #1, semantic #1", "t9#m1")


class Screen(StringIO):
    """A terminal that keeps what it is shown."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_an_explanation_has_a_line_for_each_thing_that_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    (tea, _) = kept(tmp_path, learnt("Ana prefers tea over coffee."), learnt("安娜住在柏林。"))
    screen = Screen()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", screen)
    app(
        ["recall", "Does Ana prefer tea?", "--explain", "--home", str(tmp_path), "--user", "ana"], standalone_mode=False
    )
    shown = re.sub(r"\x1b\[\d*m", "", screen.getvalue()).splitlines()
    assert max(map(len, shown)) <= width
    lines = [line.strip() for line in shown]
    start = lines.index(next(line for line in lines if line.startswith("Ana prefers tea over coffee.")))
    said = " ".join(lines[start + 1 : lines.index("ranks keyword #1, semantic #1")])
    assert re.fullmatch(
        r"signals semantic 1\.00, keyword 1\.00, likeness 0\.\d\d, coverage 1\.00, importance 0\.50, authority 0\.83",
        said,
    )
    assert tea.id in lines
    dropped = lines[lines.index(next(line for line in lines if line.startswith("dropped"))) :]
    assert any(line.startswith("安娜住在柏林。") for line in dropped)
    assert "it shares no word with the question and is not close in meaning" in dropped


def test_every_candidate_has_its_rank_in_each_arm_that_found_it(tmp_path: Path) -> None:
    kept(tmp_path, *(learnt(text) for text in ("Ana prefers tea.", "Ana drinks tea at four.", "The office is closed.")))
    found = Recall.model_validate(
        json.loads(run(tmp_path, "recall", "When does Ana drink tea?", "--explain", "--json"))
    )
    candidates = (*found.hits, *found.dropped)
    assert len(candidates) == 3
    assert sorted(hit.ranks["semantic"] for hit in candidates if "semantic" in hit.ranks) == [1, 2]
    assert sorted(hit.ranks["keyword"] for hit in candidates if "keyword" in hit.ranks) == [1, 2]
    assert all(hit.why for hit in candidates)
    plain = Recall.model_validate(json.loads(run(tmp_path, "recall", "When does Ana drink tea?", "--json")))
    assert [hit.ranks for hit in plain.hits] == [{} for _ in plain.hits]


@pytest.mark.parametrize(
    ("record", "question", "told"),
    [
        (
            learnt("Ana prefers tea over coffee."),
            "Does Ana prefer tea or coffee?",
            "in a turn: shown: ",
        ),
        (
            learnt("回答要简短。", content_type="preference", concerns="expression"),
            "Who wrote Faust?",
            "in a turn: shown: how the user wants to be answered",
        ),
        (
            learnt("Ana may like jazz concerts.", authority="inferred", stated=False, confidence=0.1),
            "Does Ana like jazz concerts?",
            "in a turn: left out by the rule untrusted: its trust of 0.09 is below 0.3",
        ),
        (
            learnt("安娜写了：" + "茶和更多的茶，" * 400),
            "安娜写了什么关于茶的事？",
            "in a turn: left out by the rule over-budget: it does not fit",
        ),
        (learnt("The office is closed."), "Does Ana prefer tea?", "in a turn: not shown: "),
    ],
)
def test_why_says_what_becomes_of_a_memory_in_a_turn(tmp_path: Path, record: Record, question: str, told: str) -> None:
    (known,) = kept(tmp_path, record)
    assert [line for line in run(tmp_path, "why", known.id, "--query", question).splitlines() if told in line]
    explained: Any = Explanation.model_validate(
        json.loads(run(tmp_path, "why", known.id, "--query", question, "--json"))
    )
    assert told.removeprefix("in a turn: ") in explained.in_a_turn
