"""Looking for words in bytes: none is missed, wherever it lies."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from everthread.stores.traces import Traces, spellings


def sentence(chance: random.Random) -> str:
    return " ".join("".join(chance.choices("abcdeé绿茶", k=chance.randint(1, 6))) for _ in range(chance.randint(1, 9)))


@pytest.mark.parametrize("count", [1, 16, 17, 400])
def test_many_words_are_found_as_one_would_be(count: int) -> None:
    chance = random.Random(count)
    for _ in range(50):
        words = [sentence(chance) for _ in range(count)]
        there = chance.sample(words, min(count, 5))
        content = "|".join([sentence(chance), *there, sentence(chance)]).encode()
        found = Traces(words)
        assert found.among(content) == {pattern for pattern in found.patterns if pattern in content}
        assert found.among(content) >= {word.encode() for word in there}


def test_a_word_is_known_as_json_writes_it() -> None:
    assert spellings('a "b" é') == {'a "b" é', r"a \"b\" é", r"a \"b\" \u00e9"}
    assert Traces(['a "b" é']).among(rb'{"x": "a \"b\" \u00e9"}') == {rb"a \"b\" \u00e9"}


def test_nothing_is_found_where_nothing_is() -> None:
    words = [f"word number {n}" for n in range(100)]
    for content in (b"", b"word", b"word numbe", b"\x00" * 1_000):
        assert Traces(words).among(content) == set()
    assert Traces([]).among(b"anything") == Traces([" ", ""]).among(b" ") == set()


def test_a_word_across_two_parts_of_a_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for before in range(50, 70):
        file.write_bytes(b"." * before + b"the Xylophon-4711" + b"." * 100)
        assert Traces(["the Xylophon-4711"]).in_file(file, part=64)
    assert not Traces(["the Xylophon-4712"]).in_file(file, part=64)
