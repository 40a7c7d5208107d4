"""Which memories an answer rests on: short markers in the block, taken out of the answer and mapped back (R208, R211).

`[m1]` says that the words before it rest on the first memory of the request, `[m1: not applicable]` that it was
considered and does not apply now. A reader never sees them, the thread does not keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Cited", "Unmarking", "cited_in", "unmarked", "without_markers"]

_NAME = r"[mｍ]\d{1,3}"
_BETWEEN = r"[ \t]{0,2}(?:[,，、;；/|&]|and|和|与|與|及|[-–—~～至]|to)[ \t]{0,2}"
_NOT_NOW = r"not applicable(?: now)?|n/a|(?:现在|目前|当前|現在|當前)?(?:不适用|不適用)"
_OPENING, _CLOSING = "\\[【［〔", "\\]】］〕"
MARKER = re.compile(
    rf"[{_OPENING}] ?(?P<list>{_NAME}(?:{_BETWEEN}{_NAME}){{0,9}})(?:[ \t]?[:：,，]?[ \t]?(?P<not>{_NOT_NOW}))? ?"
    rf"[{_CLOSING}](?!\()",
    re.I,
)
"""A marker, or several in one pair of brackets, square or as they are in Chinese. A link is none."""
_PLAIN = re.sub(r"\?P<\w+>", "?:", MARKER.pattern)
_SEVERAL = rf"{_PLAIN}(?:[ \t,，、]{{0,2}}{_PLAIN}){{0,9}}"
_SHOWN = re.compile(rf"[ \t]{{0,8}}(?:\({_SEVERAL}\)|（{_SEVERAL}）|\*\*{_SEVERAL}\*\*|{_PLAIN})", re.I)
"""What is taken out: markers with the blanks before them, and with what holds nothing else."""
MOST_INLINE = 1_000
"""Characters between two quotes that are code: a quote that is closed nowhere near holds nothing up."""
_CODE = re.compile(rf"(```.*?(?:```|\Z)|`[^`\n]{{0,{MOST_INLINE - 1}}}`)", re.DOTALL)
_PART = re.compile(rf"({_BETWEEN})?[mｍ](\d{{1,3}})", re.I)
_RANGE = frozenset("-–—~～至") | {"to"}
_ID = re.compile(r"\bmem_[0-9a-f]{32}\b")
_OPEN = re.compile(
    rf"[ \t]{{0,8}}(?:(?:\(|（|\*\*?)?"
    rf"(?:[ \t,，、]{{0,2}}[{_OPENING}][^{_OPENING}{_CLOSING}\n]{{0,160}}[{_CLOSING}]){{0,10}}"
    rf"(?:[ \t,，、]{{0,2}}(?:[{_OPENING}][^{_OPENING}{_CLOSING}\n]{{0,160}})?|\*)?)\Z"
)
"""The end of a text that may yet become a marker."""


class Cited(NamedTuple):
    """What an answer says of the memories that it was shown, by record id, each once, in the order of the text."""

    used: tuple[str, ...] = ()
    """It rests on them."""
    not_applicable: tuple[str, ...] = ()
    """It looked at them, and they do not apply now."""


def cited_in(text: str, shown: Mapping[str, int], *, marked: bool = True) -> Cited:
    """What `text` cites of the records that were `shown`, each with the number of its marker: by a marker, if they had
    any (`marked`), or by a record's id. What was not shown is ignored, and so is a marker that stands in code."""
    by_number = {number: id for id, number in shown.items()} if marked else {}
    places: list[tuple[int, str, bool]] = []
    for start, prose in _prose(text):
        for match in MARKER.finditer(prose):
            for number in _numbers(match["list"]):
                if number in by_number:
                    places.append((start + match.start(), by_number[number], match["not"] is not None))
    places += [(match.start(), match[0], False) for match in _ID.finditer(text) if match[0] in shown]
    ordered = sorted(places, key=lambda place: place[0])
    used = dict.fromkeys(id for _, id, denied in ordered if not denied)
    return Cited(tuple(used), tuple(dict.fromkeys(id for _, id, denied in ordered if denied and id not in used)))


def without_markers(content: Any) -> Any:
    """A message's content, text or blocks, without its markers. Code stays as it is."""
    if isinstance(content, str):
        return "".join(part if n % 2 else _SHOWN.sub("", part) for n, part in enumerate(_CODE.split(content)))
    if isinstance(content, list):
        return [_block(each) for each in content]
    return content


def unmarked(parts: Iterable[str]) -> Iterator[str]:
    """A stream of text without its markers, for who shows tokens as they come: what could still become a marker is held
    back until it is decided."""
    stream = Unmarking()
    for part in parts:
        if shown := stream.of(part):
            yield shown
    if rest := stream.end():
        yield rest


class Unmarking:
    """One text without its markers, as it comes: together the same that `without_markers` makes of the whole."""

    def __init__(self) -> None:
        self._held = ""
        self._in_fence = False

    def of(self, part: str) -> str:
        """What can be shown now that `part` has come."""
        self._held += part
        shown = ""
        while piece := self._decided():
            shown += piece
        return shown

    def end(self) -> str:
        """The rest: nothing more comes."""
        rest, self._held = self._held, ""
        return rest if self._in_fence else str(without_markers(rest))

    def _decided(self) -> str:
        """The next piece that nothing can change any more, without its markers; empty when there is none."""
        held = self._held
        if self._in_fence:
            end = held.find("```")
            self._in_fence = end < 0
            # one or two quotes at its end may be about to end the code
            return self._shown(end + 3 if end >= 0 else len(held.rstrip("`")))
        start = held.find("`")
        while start >= 0:
            if held.startswith("```", start):
                self._in_fence = True
                return self._prose(start) + self._shown(3)
            if held[start:] == "``":
                return self._prose(start)  # it may yet become a fence
            if code := _CODE.match(held, start):
                return self._prose(start) + self._shown(len(code[0]))
            rest = held[start + 1 : start + 1 + MOST_INLINE]
            if "\n" not in rest and len(rest) < MOST_INLINE:
                return self._prose(start)  # it may yet be closed
            start = held.find("`", start + 1)
        tail = _OPEN.search(held)
        return self._prose(tail.start() if tail else len(held))

    def _prose(self, end: int) -> str:
        """What stands before `end`, without its markers; what follows is looked at, and stays."""
        shown, start = "", 0
        for match in _SHOWN.finditer(self._held):
            if match.start() >= end:
                break
            shown += self._held[start : match.start()]
            start = match.end()
        return shown + self._shown(max(start, end))[start:]

    def _shown(self, end: int) -> str:
        shown, self._held = self._held[:end], self._held[end:]
        return shown


def _numbers(listed: str) -> Iterator[int]:
    """The numbers that a marker names: "m1, m4-m6" is 1, 4, 5 and 6."""
    last = 0
    for between, written in _PART.findall(listed):
        number = int(written)
        if between.strip().lower() in _RANGE:
            yield from range(last + 1, min(number, last + 20))
        yield (last := number)


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """(where it begins, text) of what is not code."""
    start = 0
    for n, part in enumerate(_CODE.split(text)):
        if n % 2 == 0:  # what the pattern has found stands at the odd places
            yield start, part
        start += len(part)


def _block(block: Any) -> Any:
    if isinstance(block, str):
        return without_markers(block)
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return {**block, "text": without_markers(block["text"])}
    return block
