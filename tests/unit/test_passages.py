"""What is shown of a long text: the sentence that answers, and what fits around it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.stores.answers import answering
from everthread.stores.embedding import StaticEmbedder, unit
from everthread.stores.encoding import Document, pieces
from everthread.stores.passages import LONG, MOST_SAID, excerpt, part_shown, sentences
from everthread.stores.query import Query
from everthread.stores.text import estimate_tokens

WALK = "We walked along the river, and nothing much happened on the way. "
WALK_ZH = "今天我们沿着河边走了一会儿，路上没有发生什么特别的事情。"
GOOSE = "Momo, my greyhound, was bitten by a goose! "
GUITAR = "小林生日那天想要一把吉他。"
LANGUAGES = pytest.mark.parametrize(
    ("walk", "answer", "question"),
    [(WALK, GOOSE, "What bit my greyhound?"), (WALK_ZH, GUITAR, "小林过生日想要什么？")],
    ids=["english", "chinese"],
)
NONE = np.zeros(0, np.float32)


def placed(walk: str, answer: str, before: int = 100, behind: int = 100) -> tuple[str, tuple[int, int]]:
    """A long text with the answer in it, and where that stands."""
    start = len(walk) * before
    return walk * before + answer + walk * behind, (start, start + len(answer))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Dr. Alvarez costs $3.50 a visit. Really?  Yes!", ["Dr. Alvarez costs $3.50 a visit. ", "Really?  ", "Yes!"]),
        ("他说：“好！”然后走了。第二天……\n完", ["他说：“好！”", "然后走了。", "第二天……\n", "完"]),
        ("- one\n- two\n\n- three", ["- one\n", "- two\n\n", "- three"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == parts


@given(st.text(alphabet="ab .!?。！\n茶", max_size=3 * LONG))
def test_sentences_together_are_the_text(text: str) -> None:
    parts = sentences(text)
    assert "".join(text[start:end] for start, end in parts) == text
    assert all(0 < end - start <= LONG for start, end in parts)


@LANGUAGES
def test_the_sentence_that_answers_is_found_by_words_alone(walk: str, answer: str, question: str) -> None:
    text, part = placed(walk, answer)
    assert answering(text, Query.of(question), NONE, []) == part


def test_the_sentence_that_answers_is_found_by_what_it_means() -> None:
    text, _ = placed(WALK, "The cat had five kittens in our old barn. ")
    embedder, chunks = StaticEmbedder(), pieces(Document("", text))
    vector = embedder.embed_query("How many felines were born?")
    likeness = np.asarray(unit(embedder.embed_documents(chunks)) @ vector, np.float32)
    found = answering(text, Query.of("How many felines were born?", vector), likeness, chunks)
    # a piece of a long text has several sentences, and means what they mean together
    assert "kittens" in excerpt(text, part_shown(text, found, 300))


@LANGUAGES
@pytest.mark.parametrize("tokens", [100, 300, 900])
def test_what_is_shown_has_the_answer_and_whole_sentences_around_it(
    walk: str, answer: str, question: str, tokens: int
) -> None:
    text, passage = placed(walk, answer)
    part = part_shown(text, passage, tokens)
    assert part is not None
    shown = excerpt(text, part)
    assert tokens * 0.6 < estimate_tokens(shown) <= tokens and len(shown) <= MOST_SAID
    assert answer.strip() in shown
    bounds = {bound for each in sentences(text) for bound in each}
    assert set(part) <= bounds
    assert shown.startswith(f"({part[0]:,} characters are left out) ... ")
    assert shown.endswith(f" ... ({len(text) - part[1]:,} characters are left out)")
    assert part[0] < passage[0] and passage[1] < part[1]


def test_an_answer_at_an_end_has_what_fits_on_its_other_side() -> None:
    for before, behind in ((0, 200), (200, 0)):
        text, passage = placed(WALK, GOOSE, before, behind)
        part = part_shown(text, passage, 300)
        assert part is not None and estimate_tokens(excerpt(text, part)) > 250
        assert (part[0] == 0) == (before == 0) and (part[1] == len(text)) == (behind == 0)


def test_all_of_a_text_that_fits_is_shown_and_of_one_that_has_no_room_nothing_is_chosen() -> None:
    text, passage = placed(WALK, GOOSE, 3, 3)
    assert part_shown(text, passage, 1_000) is None and excerpt(text, None) == text
    assert part_shown(text, passage, 20) is None


def test_a_text_without_an_answer_shows_its_beginning() -> None:
    part = part_shown(WALK_ZH * 200, None, 300)
    assert part is not None and part[0] == 0 and part[1] > 200
