"""Words of a text, for searching, counting and comparing it: the same for every backend, English and Chinese alike.

Pure functions. What a backend indexes are the terms of `terms()`; what it is asked are those of `query_terms()`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from string import ascii_letters
from threading import Lock

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

__all__ = [
    "cjk_share",
    "estimate_tokens",
    "is_telling",
    "most_tokens",
    "normalise",
    "query_terms",
    "sound",
    "spans",
    "stem",
    "terms",
]

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana, and marks that repeat a character
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul: words are spaced but carry particles
)
"""Scripts whose words are not separated by spaces (or are glued to particles): indexed as characters and bigrams."""

_TOKEN = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")
_ASCII_WORD = re.compile("[a-z0-9]+")

STOP_WORDS = frozenset(
    # English: articles, auxiliaries, pronouns, question words, prepositions, and what "don't", "I'll" leave behind
    "a an the of to in on at for and or is are was were be been being am do does did done has have had having how "
    "what when where who whom which why with by from as it its this that these those their his her he she they i you "
    "we my your our me him them us mine yours about into than then so if not no can could would should will shall may "
    "might must there here just also any some get got s t d ll re ve m don "
    # Chinese: particles, pronouns, copulas, question words, auxiliaries, and the characters that these are made of
    "的 了 是 我 你 他 她 它 们 在 有 和 就 不 也 都 吗 呢 吧 啊 哦 嗯 嘛 呀 哈 哇 这 那 哪 个 些 样 "
    "很 太 真 更 最 还 又 再 才 只 什 么 怎 谁 几 多 为 请 问 与 及 而 但 被 把 得 着 过 让 给 对 到 "
    "想 要 会 能 可 以 说 知 道 去 来 没 自 己 觉 感 非 常 时 候 "
    "什么 怎么 怎样 哪里 多少 为什么 如何 是否 我们 你们 他们 可以 没有 自己 "
    "一个 这个 那个 觉得 感到 感觉 非常 时候".split()
)
"""Words that say nothing about the topic, in both languages. Dropped from queries only: documents keep them."""

CHARACTER_WEIGHT = 0.4
"""Weight of a single CJK character in a query beside its bigrams (MADial zh MRR: 52.4 at 1, 53.9 at 0.4, 53.1 at 0)."""

MAX_WORD = 64
"""Characters of a word that count: a megabyte of base64 is one term of this length."""

_stemmer = snowballstemmer.stemmer("porter")  # PyStemmer's where it is installed: the same stems, nine times faster
_stemming = Lock()


def ends_of(text: str, most: int) -> str:
    """The text, or of a longer one the first and the last half of so many characters: what is pasted into a question
    stands before the question or behind it."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-(most // 2) :]}"


def sound(text: str) -> str:
    """The text as valid Unicode, which models, their providers and JSON need: a surrogate pair that arrived in two
    halves is joined, a lone half becomes U+FFFD. Everything else stays."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if not (word.isascii() and word.isalpha()):
        return word
    with _stemming:  # a snowball stemmer keeps the word it works on
        return str(_stemmer.stemWord(word))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(term, word it came from), in order; a run of unspaced script gives its characters, then its bigrams."""
    if text.isascii():  # the same, without a look at each word's script
        yield from ((_stem(word[:MAX_WORD]), word) for word in _ASCII_WORD.findall(text.lower()))
        return
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).lower()):
        word = match[0]
        if _IS_UNSPACED.match(word):
            yield from ((character, character) for character in word)
            yield from ((word[n : n + 2], word[n : n + 2]) for n in range(len(word) - 1))
        else:
            yield _stem(word[:MAX_WORD]), word


def stem(word: str) -> str:
    """The one term of a word of ASCII letters and digits in lower case: what `terms` makes of it."""
    return _stem(word[:MAX_WORD])


def terms(text: str) -> list[str]:
    """The index terms of a text, in order, repeated as often as they occur.

    Lower case; Latin words porter-stemmed; Chinese, Japanese, Korean and Thai as characters and bigrams, so that a word
    is found without a dictionary. Digits and other scripts stay whole words.
    """
    return [term for term, _ in _tokens(text)]


def spans(text: str) -> Iterator[tuple[int, int, str | None]]:
    """(start, end, term) of each word, in order; a character of an unspaced script is a word. No term for a word that
    says nothing about the topic."""
    for match in _TOKEN.finditer(text):
        first, unspaced = match.start(), _IS_UNSPACED.match(match[0]) is not None
        words = (
            [(first + n, first + n + 1, c) for n, c in enumerate(match[0])] if unspaced else [(*match.span(), match[0])]
        )
        for start, end, word in words:
            term, said = next(_tokens(word), (None, ""))
            yield start, end, None if _says_nothing(said) else term


def query_terms(text: str) -> dict[str, float]:
    """The terms of a question and their weights: stop words dropped unless nothing is left.

    A word said c times weighs 2c/(c+1): 1 for once, 4/3 for twice, never as much as 2. A single character of an
    unspaced script weighs `CHARACTER_WEIGHT` of that beside bigrams: they say more.
    """
    found = list(_tokens(text))
    telling = [term for term, word in found if not _says_nothing(word)]
    counts = Counter(telling or [term for term, _ in found])
    bigrams = any(len(term) == 2 and _IS_UNSPACED.match(term) for term in counts)
    return {
        term: 2 * count / (count + 1) * (CHARACTER_WEIGHT if bigrams and _is_character(term) else 1)
        for term, count in counts.items()
    }


def _is_character(term: str) -> bool:
    return len(term) == 1 and _IS_UNSPACED.match(term) is not None


def is_telling(text: str) -> bool:
    """Whether a text has a word that says something about a topic: one that is not a stop word."""
    return any(not _says_nothing(word) for _, word in _tokens(text))


def _says_nothing(word: str) -> bool:
    """A stop word, or a bigram of two stop characters such as 我的."""
    if word in STOP_WORDS:
        return True
    return len(word) == 2 and not word.isascii() and word[0] in STOP_WORDS and word[1] in STOP_WORDS


def _codes(text: str) -> NDArray[np.uint32]:
    """The code points of a text (lone surrogates included)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _is_cjk(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return (
        ((codes >= 0x3040) & (codes <= 0x30FF))
        | ((codes >= 0x3400) & (codes <= 0x9FFF))
        | ((codes >= 0xAC00) & (codes <= 0xD7AF))
        | ((codes >= 0xF900) & (codes <= 0xFAFF))
        | ((codes >= 0x20000) & (codes <= 0x3FFFF))
    )


def cjk_share(text: str) -> float:
    """The share of the characters that are Chinese, Japanese or Korean, from 0 to 1; 0 for an empty text."""
    return 0.0 if text.isascii() else float(_is_cjk(_codes(text)).mean())


@lru_cache(maxsize=1)
def _token_weights() -> NDArray[np.float32]:
    """Tokens a character, by code point; the last entry stands for everything beyond the basic plane."""
    weights = np.full(0x10001, 0.65, np.float32)  # Cyrillic, Arabic, Devanagari, Thai, ...
    weights[:0x80] = 0.6  # digits, punctuation, line breaks
    weights[[*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)]] = 0.24
    weights[ord(" ")] = 0.1
    weights[0x80:0x250] = 0.9  # accented Latin
    weights[0x400:0x530] = 0.45  # Cyrillic
    weights[0x3000:0x3040] = 0.9  # CJK punctuation
    weights[0x3040:0x3100] = 0.7  # kana
    weights[0x3100:0xA000] = 1.05  # Han
    weights[0xAC00:0xD7B0] = 0.85  # Hangul
    weights[0xF900:0xFB00] = 1.2
    weights[0xFF00:0xFFF0] = 0.9  # full-width punctuation
    weights[0x10000] = 2.2  # emoji, rare Han
    return weights


_LETTERS_AND_SPACE = f"{ascii_letters} ".encode()


def estimate_tokens(text: str) -> int:
    """About how many tokens a model counts for this text, from its characters alone: 10 MB take a tenth of a second.

    Against the tokenizers of OpenAI (cl100k), Anthropic (Claude 2), Qwen, DeepSeek and Mistral: English chat, code and
    Markdown -2 % to +19 %, tool logs +20 to +29 %. For other scripts they differ by a factor of two, and this is
    between them: Chinese chat -25 % (cl100k) to +43 % (DeepSeek), Japanese -19 to +47 %, Russian -24 to +32 %, Korean
    -35 to +40 %. Too low for random hex (-20 %), base64 (-56 %) and, with the older tokenizers, for Arabic, Hindi and
    Thai (-20 to -65 %). A budget leaves room for that; `counter` takes a model's own count.
    """
    if text.isascii():  # most text: the same sum, without an array for each message
        plain = text.encode()
        others = len(plain.translate(None, _LETTERS_AND_SPACE))
        spaces = plain.count(b" ")
        return -(-(60 * others + 10 * spaces + 24 * (len(plain) - others - spaces)) // 100)
    return int(np.ceil(_token_weights()[np.minimum(_codes(text), 0x10000)].sum(dtype=np.float64)))


def most_tokens(text: str) -> int:
    """No less than `estimate_tokens`, from the length alone."""
    return (3 * len(text) + 4) // 5 if text.isascii() else (11 * len(text) + 4) // 5


_SPACE = re.compile(r"\s+")


def normalise(text: str) -> str:
    """The text as a key for duplicates and tombstones: NFKC, case-folded, white space folded.

    Numbers, dates, negations and punctuation stay: "5 years" and "6 years" are different statements.
    """
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
