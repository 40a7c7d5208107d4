"""What is shown of a long text: the passage that answers, with what stands around it.

Pure functions. A part of a text is where it begins and where it ends, in characters: it can be kept in a checkpoint,
which holds no words.
"""

from __future__ import annotations

import re

from everthread.stores.text import estimate_tokens

__all__ = ["LONG", "MOST_SAID", "MOST_TOKENS", "Part", "excerpt", "part_shown", "sentences", "shortened"]

Part = tuple[int, int]
"""From which character, and to which, exclusive."""

LONG = 400
"""Characters from which it is worth knowing where in a text the answer stands; a sentence above it is cut."""
MOST_SAID = 4_000
"""Characters that are shown of a message that was said, as many as a record's statement may have: somebody may have
pasted a book."""
MOST_TOKENS = 1_000
"""The same in tokens: a Chinese character is one, an English word of five is one."""
MARKS = 90
"""Characters of the words on what is left out, before and behind."""
_END = re.compile(r"[.!?;]+[\"')\]]*\s+|[。！？；…]+[\"'”’」』）】]*\s*|\n\s*")
_ABBREVIATED = re.compile(r"\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|vs|e\.g|i\.e)\.\s+\Z")


def sentences(text: str) -> list[Part]:
    """The sentences of a text, each with the blanks behind it; together the whole text. A long one is cut."""
    ends = [end.end() for end in _END.finditer(text) if not _ABBREVIATED.search(text, end.start() - 4, end.end())]
    found: list[Part] = []
    start = 0
    for end in (*ends, len(text)):
        while end - start > LONG:
            blank = text.rfind(" ", start + LONG // 2, start + LONG)
            cut = blank + 1 if blank >= 0 else start + LONG
            found.append((start, cut))
            start = cut
        if start < end:
            found.append((start, end))
        start = end
    return found


def part_shown(text: str, answer: Part | None, tokens: int) -> Part | None:
    """What is shown of a text in so many tokens: None for all of it, and when there is no room for a sentence."""
    if len(text) <= MOST_SAID and estimate_tokens(text) <= tokens:
        return None
    return _around(text, answer, tokens - MARKS // 4)


def _around(text: str, answer: Part | None, tokens: int) -> Part | None:
    """The sentence that answers, and as many around it as fit into so many tokens and `MOST_SAID` characters, about
    twice as much behind it as before it. None when that sentence alone does not fit. Without an answer it is the
    beginning."""
    parts = sentences(text)
    if not parts:
        return None
    at = next((n for n, (_, end) in enumerate(parts) if answer is not None and answer[0] < end), 0)
    first = last = at
    used = [0, 0]  # before, behind
    tokens, room = tokens - _cost(text, parts[at]), MOST_SAID - MARKS - _length(parts[at])
    if tokens < 0 or room < 0:
        return None
    ways = {0, 1}
    while ways:
        way = min(ways) if len(ways) == 1 else int(used[1] <= 2 * used[0])
        n = last + 1 if way else first - 1
        if not 0 <= n < len(parts) or (cost := _cost(text, parts[n])) > tokens or _length(parts[n]) > room:
            ways.remove(way)
            continue
        tokens, room = tokens - cost, room - _length(parts[n])
        used[way] += cost
        first, last = min(first, n), max(last, n)
    return parts[first][0], parts[last][1]


def _length(part: Part) -> int:
    return part[1] - part[0]


def _cost(text: str, part: Part) -> int:
    return estimate_tokens(text[part[0] : part[1]])


def excerpt(text: str, part: Part | None) -> str:
    """A part of a text with a word on how much is left out before it and behind it; all of a text that is short, and of
    a long one without a part its beginning and its end."""
    if part is None:
        return shortened(text)
    start, end = part
    before = f"({start:,} characters are left out) ... " if text[:start].strip() else ""
    behind = f" ... ({len(text) - end:,} characters are left out)" if text[end:].strip() else ""
    return f"{before}{text[start:end].strip()}{behind}"


def shortened(text: str, most: int = MOST_SAID) -> str:
    """The text, or what stands at its beginning and at its end with a word on how much is left out between."""
    if len(text) <= most:
        return text
    head = most * 3 // 4
    return f"{text[:head]} ... ({len(text) - most:,} characters are left out) ... {text[head - most :]}"
