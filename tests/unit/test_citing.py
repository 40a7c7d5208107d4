"""Markers in an answer: what they cite, and that nobody sees them."""

from __future__ import annotations

import random

import pytest

from everthread.nodes.reason.citing import Cited, cited_in, unmarked, without_markers

TEA, COAT, CITY = (f"mem_{n * 32}" for n in "abc")
SHOWN = {TEA: 1, COAT: 2, CITY: 12}


@pytest.mark.parametrize(
    ("said", "seen", "used"),
    [
        ("You prefer tea [m1].", "You prefer tea.", [TEA]),
        ("你喜欢喝茶[m1]。", "你喜欢喝茶。", [TEA]),
        ("你喜欢喝茶，住在柏林 [m1、m12]。", "你喜欢喝茶，住在柏林。", [TEA, CITY]),
        ("Tea [m1][m2] and Berlin [M12].", "Tea and Berlin.", [TEA, COAT, CITY]),
        ("[m2] is why, and [m2] again.", " is why, and again.", [COAT]),
        ("你喜欢喝茶【m1】，穿外套［m２］〔ｍ12〕。", "你喜欢喝茶，穿外套。", [TEA, COAT, CITY]),
        ("Tea ([m1]), a coat （[m2]） and **[m12]** Berlin.", "Tea, a coat and Berlin.", [TEA, COAT, CITY]),
        ("Tea ([m1][m2], [m12]).", "Tea.", [TEA, COAT, CITY]),
        ("All of it [m1-m12], 都对[m1至m2]。", "All of it, 都对。", [TEA, COAT, CITY]),
        ("Both [m1 and m2]; 两者[m1和m2]。", "Both; 两者。", [TEA, COAT]),
        ("f() and (a) and **b** stay [m1].", "f() and (a) and **b** stay.", [TEA]),
        (f"As {TEA} says.", f"As {TEA} says.", [TEA]),
        ("Nothing is known.", "Nothing is known.", []),
    ],
)
def test_a_marker_is_what_it_stands_for_and_is_taken_out(said: str, seen: str, used: list[str]) -> None:
    assert cited_in(said, SHOWN) == Cited(tuple(used))
    assert without_markers(said) == seen


@pytest.mark.parametrize("said", ["Tea [m3].", "Tea [m0].", "Tea [m999].", f"Tea mem_{'d' * 32}."])
def test_what_was_not_shown_is_not_cited(said: str) -> None:
    assert cited_in(said, SHOWN) == Cited()


@pytest.mark.parametrize(
    "said",
    [
        "The build broke then [m2: not applicable].",
        "当时构建失败 [m2：不适用]。",
        "[m2: Not Applicable now] it was",
        "It broke [m2 not applicable]",
        "It broke [m2, n/a]",
        "当时构建失败【m2：目前不适用】。",
    ],
)
def test_an_answer_says_that_a_memory_does_not_apply_now(said: str) -> None:
    assert cited_in(said, SHOWN) == Cited((), (COAT,))
    assert "m2" not in without_markers(said)


def test_what_is_used_in_one_place_is_used() -> None:
    assert cited_in("No [m1: not applicable], but yes [m1].", SHOWN) == Cited((TEA,))


@pytest.mark.parametrize(
    "said",
    [
        "```python\nrow[m1]\nx = [m2]\n```",
        "Write `[m1]` there.",
        "See [m1](https://example.org).",
        "[m] [1] [M&M] [m1",
        "m1]",
    ],
)
def test_code_links_and_other_brackets_are_no_markers(said: str) -> None:
    assert without_markers(said) == said
    assert cited_in(said, SHOWN) == Cited()


def test_blocks_of_text_lose_their_markers_and_other_blocks_stay() -> None:
    image = {"type": "image", "url": "[m1]"}
    content = ["Tea [m1].", {"type": "text", "text": "Coat [m2]."}, image]
    assert without_markers(content) == ["Tea.", {"type": "text", "text": "Coat."}, image]


def test_a_stream_is_without_markers_however_it_is_cut() -> None:
    texts = [
        "Tea [m1]. And [m2: not applicable] so `[m3]` on [m1, m2]",
        "你喜欢茶[m1]。不是[m2：不适用]",
        "a ```code [m1]\n``` b [m1]",
        "`a\n[m1]` [m2] [link](x) [m1] and [m",
        "```a```[m1]",
        "`` [m1]",
        "([m1]) （[m1]、[m2]） **[m1]** **b** ([m1](x) ([m1] ```",
        "a ````b [m1]```[m1]`c\n[m1]``",
    ]
    for text in texts:
        for seed in range(100):
            chance, rest, parts = random.Random(seed), text, []
            while rest:
                size = chance.randint(1, 6)
                parts.append(rest[:size])
                rest = rest[size:]
            assert "".join(unmarked(parts)) == without_markers(text)


def test_a_stream_flows_on_where_nothing_is_in_doubt() -> None:
    assert list(unmarked(["You ", "prefer tea", " [m1", "].", " Yes."])) == ["You", " prefer tea", ".", " Yes."]
    assert list(unmarked(["```py\n", "row[m1]", " = 2\n", "```", " [m2]"])) == ["```py\n", "row[m1]", " = 2\n", "```"]


def test_a_hostile_answer_is_read_in_time() -> None:
    for said in (
        "[" * 200_000,
        "[m1" * 100_000,
        "`" * 200_001,
        " " * 200_000 + "[m1",
        "[m1," * 50_000,
        "([m1" * 50_000,
    ):
        assert cited_in(said, SHOWN) == Cited()
        assert "".join(unmarked(said[n : n + 9] for n in range(0, len(said), 9))) == without_markers(said)
