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
    ["The build broke then [m2: not applicable].", "当时构建失败 [m2：不适用]。", "[m2: Not Applicable now] it was"],
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


def test_a_hostile_answer_is_read_in_time() -> None:
    for said in ("[" * 200_000, "[m1" * 100_000, "`" * 200_001, " " * 200_000 + "[m1", "[m1," * 50_000):
        assert cited_in(said, SHOWN) == Cited()
        without_markers(said)
