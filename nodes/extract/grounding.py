"""Whether a statement says what its messages say, beyond sharing words with them (R90, R297, S1). Pure.

A model that was talked into something hangs it on a harmless line of the user's: it changes the address, the number or
the name, or leaves out a "not". Most words agree then, and the few that matter do not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.topics import named
from everthread.nodes.extract.sameness import denies, numbers
from everthread.nodes.extract.script import simplified
from everthread.stores.text import query_terms, terms

__all__ = ["FRAME", "GROUNDED", "adds_nothing", "speaks_of", "stray"]

GROUNDED = 0.5
"""Share of a statement's content words that must occur in what it rests on; below it, a person looks first."""
ALIKE = 4
"""So many letters in common at the beginning make one word of two: Postgres is PostgreSQL."""

FRAME = frozenset(
    query_terms(
        "user users user's the project team wants prefers states said asks now on from 用户 的 "
        "项目 希望 用户的 户的 户 用"
    )
)
"""Words that a self-contained statement adds to what was said."""

_LATIN = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[a-z0-9_@.+#/&-]*[a-z0-9_+#])?", re.IGNORECASE)
_BEGINNING = re.compile(r"(?:^|[.!?:;\n。！？；：])\W*")
_ENDS = re.compile(
    r"\b(?:stop\w*|quit\w*|left|leav\w+|mov(?:ed?|ing)|end(?:s|ed)?|cancel\w*|drop\w*|remov\w+|delet\w+|forget|over|gone"
    r"|former\w*|used to|was|were|had|wrong|mistak\w+|outdated|obsolete|past|ago|until|done with|gave up|switch\w*|"
    r"chang\w+|replac\w+|instead|any ?more)\b"
    r"|取消|结束|結束|离开|離開|搬|退|错|錯|停|忘|删|刪|作废|作廢|过时|過時|以前|换|換|改|撤",
    re.IGNORECASE,
)
"""Words by which a speaker says that something is over, beside a plain "not"."""
_QUOTES = re.compile(r"[“”\"「」『』]")
_CONTRAST = re.compile(
    r"\bnot\b.*\bbut\b|n't\b.*\bbut\b|\binstead of\b|\brather than\b|不是.*(?:而是|，是)|是.*不是|而不是|而非",
    re.IGNORECASE,
)
"""One part is denied, the other is said: which is which, code does not tell."""


def stray(
    statement: str,
    value: str | None,
    said: Sequence[str],
    *,
    beside: Sequence[str] = (),
    outside: Iterable[str] = (),
    retracts: bool = False,
) -> str | None:
    """What of a statement its messages (`said`) do not say, as a reason; None when they say all that matters.

    `beside` are words that may come along unsaid: names of the user and the project, and what a correction corrects.
    `outside` is what pages, files and tools say in the same window: a word that a statement has from there, and not
    from its own messages, is theirs. A retraction ends something: its messages must say that it is over.
    """
    said = [wording.spelled_out(_QUOTES.sub("", text)) for text in said]
    beside = (*beside, *(key for text in said for key in named(simplified(text))))
    heard = "\n".join((*said, *beside))
    known, tokens = set(terms(heard)), _tokens(heard)
    wanted = set(query_terms(f"{statement} {value or ''}")) - FRAME
    from_beside = set(query_terms("\n".join(beside)))
    if not wanted:
        return "it says nothing of what the messages it points to say"
    if len((wanted - from_beside) & set(query_terms("\n".join(said)))) < GROUNDED * len(wanted - from_beside):
        return "its words are not in the messages it points to"
    if numbers(f"{statement}\n{value or ''}") - numbers(heard):
        return "it has a number that is not in the messages it points to"
    if any(not _is_heard(term, known) for term in set(query_terms(value or "")) - FRAME):
        return "its value is not in the messages it points to"
    if any(not _is_heard(name, tokens) for name in _names(statement)):
        return "it has a name that is not in the messages it points to"
    if (wanted - known) & {term for each in outside for term in query_terms(each)}:
        return "it has words of a page or a tool that are not in the messages it points to"
    if retracts and not any(denies(text) or _ENDS.search(text) for text in said):
        return "the messages it points to do not say that anything is over"
    if not retracts and not all(_agrees(sentence, said) for sentence in wording.sentences(statement)):
        return "it denies what the messages it points to say, or says what they deny"
    return None


def speaks_of(statement: str, other: str, *, beside: Sequence[str] = ()) -> bool:
    """Whether two statements have a word in common that says something; `beside`, such as names, does not count."""
    return bool((set(query_terms(statement)) & set(query_terms(other))) - FRAME - set(query_terms(" ".join(beside))))


def adds_nothing(statement: str, other: str) -> bool:
    """Whether a statement says no more than another one does: the same, or a part of it, in the same sense."""
    new = set(query_terms(statement)) - FRAME - set(terms(other))
    return not new and numbers(statement) <= numbers(other) and bool(denies(statement)) == bool(denies(other))


def _is_heard(word: str, heard: set[str]) -> bool:
    """Whether a word was said, if in a shorter or longer form."""
    if word in heard or word.isdecimal():  # `numbers` tells whether a number was said
        return True
    if not word.isalpha() or len(word) < ALIKE or not word.isascii():
        return False
    return any(len(each) >= ALIKE and (each.startswith(word) or word.startswith(each)) for each in heard)


def _tokens(text: str) -> set[str]:
    """Latin words, addresses and identifiers, each also in its parts."""
    whole = {found.casefold() for found in _LATIN.findall(unicodedata.normalize("NFKC", text))}
    return whole | {part for each in whole for part in re.split(r"[^a-z0-9]+", each) if part}


def _names(statement: str) -> set[str]:
    """Words of a statement that stand for one thing: names, addresses, identifiers. The first word of a sentence is
    written like a name, and is none by that."""
    text = unicodedata.normalize("NFKC", statement)
    first = {found.end() for found in _BEGINNING.finditer(text)}
    found = (match for match in _LATIN.finditer(text) if _is_name(match[0], is_first=match.start() in first))
    return {match[0].casefold() for match in found} - {"i", "i'm"}


def _is_name(word: str, *, is_first: bool) -> bool:
    return any(letter.isdigit() or letter in "@./_" for letter in word) or any(map(str.isupper, word[is_first:]))


def _agrees(statement: str, said: Sequence[str]) -> bool:
    """Whether the part of the messages that says most of the statement denies as it does."""
    wanted = set(query_terms(statement)) - FRAME
    parts = [
        (len(wanted & set(query_terms(part))), part, sentence)
        for text in said
        for sentence in wording.sentences(text)
        for part in (*wording.clauses(sentence), sentence)
    ]
    most = max((shared for shared, *_ in parts), default=0)
    best = [(part, sentence) for shared, part, sentence in parts if shared == most]
    denied = bool(denies(statement))
    return any(bool(denies(part)) == denied or _CONTRAST.search(sentence) for part, sentence in best)
