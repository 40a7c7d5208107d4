"""Terms, keys and token estimates, in English and Chinese."""

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.porter_stemmer import PorterStemmer

from everthread.stores.text import cjk_share, estimate_tokens, most_tokens, normalise, query_terms, spans, stem, terms


def test_latin_words_are_lowered_and_stemmed() -> None:
    assert terms("Running DEPLOYS, deployed! v3.11") == ["run", "deploi", "deploi", "v3", "11"]


def test_every_word_has_its_place_and_what_says_nothing_has_no_term() -> None:
    assert list(spans("What DEPLOYS? 我喜欢v3")) == [
        (0, 4, None),
        (5, 12, "deploi"),
        (14, 15, None),
        (15, 16, "喜"),
        (16, 17, "欢"),
        (17, 19, "v3"),
    ]


@given(st.text())
def test_places_of_words_are_in_order_and_inside_the_text(text: str) -> None:
    places = [place for start, end, _ in spans(text) for place in (start, end)]
    assert places == sorted(places) and all(0 <= place <= len(text) for place in places)


def vocabulary() -> list[str]:
    """Some twenty thousand words and beginnings of words: those of the built-in embedder."""
    found = find_spec("wordllama")
    assert found is not None and found.submodule_search_locations
    file = Path(found.submodule_search_locations[0], "tokenizers", "l2_supercat_tokenizer_config.json")
    words = {word.strip("\u2581").lower() for word in json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]}
    return sorted(word for word in words if word.isascii() and word.isalpha())


def test_stems_are_the_same_with_and_without_the_compiled_stemmer() -> None:
    """Else a file would be searched by other terms on another machine."""
    words, plain = vocabulary(), PorterStemmer()
    assert len(words) > 15_000
    assert [stem(word) for word in words] == [plain.stemWord(word) for word in words]


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=80))
def test_the_stem_of_a_plain_word_is_its_term(word: str) -> None:
    assert [stem(word)] == terms(word)


@given(st.text("aeiouyslngtdzb", min_size=1, max_size=30))
def test_made_up_words_have_the_same_stems_too(word: str) -> None:
    assert stem(word) == PorterStemmer().stemWord(word)


def test_chinese_is_indexed_as_characters_and_bigrams() -> None:
    assert terms("李雷喝茶") == ["李", "雷", "喝", "茶", "李雷", "雷喝", "喝茶"]


def test_mixed_text_keeps_both_kinds_of_terms() -> None:
    assert terms("用Postgres16部署") == ["用", "postgres16", "部", "署", "部署"]


def test_full_width_letters_are_the_same_terms() -> None:
    assert terms("ＡＢＣ１２") == terms("abc12")


def test_thai_and_korean_are_found_by_bigrams() -> None:
    assert "กาแ" not in terms("กาแฟ") and "กา" in terms("กาแฟ")
    assert "마라" in terms("마라톤을")


def test_a_megabyte_without_spaces_is_one_short_term() -> None:
    assert terms("x" * 1_000_000) == ["x" * 64]


def test_nul_surrogates_and_emoji_are_no_terms_and_do_no_harm() -> None:
    assert terms("a\x00b \ud800 🎉") == ["a", "b"]


def test_stop_words_of_both_languages_are_dropped_from_a_query() -> None:
    assert query_terms("What is the name of my dog?") == {"name": 1.0, "dog": 1.0}
    assert query_terms("我的猫叫什么名字") == pytest.approx(
        {"猫": 0.4, "叫": 0.4, "名": 0.4, "字": 0.4, "的猫": 1, "猫叫": 1, "叫什": 1, "么名": 1, "名字": 1}
    )


def test_a_query_of_stop_words_alone_keeps_them() -> None:
    assert query_terms("who are you") == {"who": 1.0, "ar": 1.0, "you": 1.0}
    assert query_terms("") == {}


def test_a_repeated_query_word_weighs_more_but_not_twice() -> None:
    assert query_terms("tea tea tea milk") == {"tea": 1.5, "milk": 1.0}


def test_a_single_chinese_character_keeps_its_weight_when_it_is_all_there_is() -> None:
    assert query_terms("茶") == {"茶": 1.0}


def test_stemming_is_the_same_from_many_threads() -> None:
    words = [f"{stem}{ending}" for stem in ("relat", "hop", "run", "studi") for ending in ("ing", "ed", "ional", "es")]
    alone = [terms(word) for word in words]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(terms, words * 50)) == alone * 50


@pytest.mark.parametrize(("text", "share"), [("", 0.0), ("abc", 0.0), ("喝茶", 1.0), ("喝tea茶", 0.4)])
def test_the_share_of_cjk_characters(text: str, share: float) -> None:
    assert cjk_share(text) == share


@pytest.mark.parametrize(
    ("text", "fewest", "most"),  # by the tokenizers of Qwen, OpenAI (cl100k), Anthropic (Claude 2), DeepSeek, Mistral
    [
        ("The billing project uses PostgreSQL 16 in production, and deployments happen on Tuesdays.", 17, 21),
        ("Ana prefers green tea over coffee in the morning. " * 20, 201, 201),
        ('{"role": "user", "content": "hello there", "n": [1, 2, 3]}', 23, 25),
        ("我昨天去了北京出差，项目进展顺利，下周三之前要把数据库迁移完，记得提醒我。", 22, 40),
        ("私は昨日東京に行きました。とても楽しかったです。", 12, 24),
        ("저는 어제 서울에 갔습니다. 정말 즐거웠습니다.", 15, 28),
        ("Вчера я ездил в Москву. Было очень интересно.", 17, 26),
    ],
)
def test_the_estimate_lies_between_the_tokenizers_or_within_a_tenth_of_them(text: str, fewest: int, most: int) -> None:
    assert fewest * 0.9 - 1 <= estimate_tokens(text) <= most * 1.11


def test_the_estimate_of_nothing_is_zero_and_of_anything_is_not() -> None:
    assert [estimate_tokens(text) for text in ("", " ", "a", "\ud800", "🎉")] == [0, 1, 1, 1, 3]


@given(st.text(max_size=40))
def test_the_estimate_is_never_above_the_most_that_the_length_allows(text: str) -> None:
    assert estimate_tokens(text) <= most_tokens(text)


def test_normalising_folds_case_width_and_white_space_only() -> None:
    assert normalise("  Ｔhe\u3000Straße \n IS  Long ") == "the strasse is long"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 years", "6 years"),
        ("3 May", "3 June"),
        ("likes tea", "not likes tea"),
        ("喜欢茶", "不喜欢茶"),
        ("a-1", "a1"),
    ],
)
def test_normalising_keeps_numbers_dates_and_negations(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)
