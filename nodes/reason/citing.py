"""Which memories an answer rests on: short markers in the block, taken out of the answer and mapped back (R208, R211).

`[m1]` says that the words before it rest on the first memory of the request, `[m1: not applicable]` that it was
considered and does not apply now. A reader never sees them, the thread does not keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Cited", "cited_in", "unmarked", "without_markers"]

_LIST = r"m\d{1,3}(?:[ \t]{0,2}[,，、;；][ \t]{0,2}m\d{1,3}){0,9}"
_NOT_NOW = r"not applicable(?: now)?|n/a|不适用|不適用"
MARKER = re.compile(rf"(?<![ \t])[ \t]*\[ ?(?P<list>{_LIST}) ?(?:[:：] ?(?P<not>{_NOT_NOW}) ?)?\](?!\()", re.I)
"""A marker, or several in one pair of brackets, with the blanks before it. A link is none."""
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_NUMBER = re.compile(r"m(\d{1,3})", re.I)
_ID = re.compile(r"\bmem_[0-9a-f]{32}\b")
_OPEN = re.compile(r"(?<![ \t])[ \t]*(?:\[[^\[\]\n]{0,160}\]?)?\Z")
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
            for number in _NUMBER.findall(match["list"]):
                if int(number) in by_number:
                    places.append((start + match.start(), by_number[int(number)], match["not"] is not None))
    places += [(match.start(), match[0], False) for match in _ID.finditer(text) if match[0] in shown]
    ordered = sorted(places, key=lambda place: place[0])
    used = dict.fromkeys(id for _, id, denied in ordered if not denied)
    return Cited(tuple(used), tuple(dict.fromkeys(id for _, id, denied in ordered if denied and id not in used)))


def without_markers(content: Any) -> Any:
    """A message's content, text or blocks, without its markers. Code stays as it is."""
    if isinstance(content, str):
        return "".join(part if n % 2 else MARKER.sub("", part) for n, part in enumerate(_CODE.split(content)))
    if isinstance(content, list):
        return [_block(each) for each in content]
    return content


def unmarked(parts: Iterable[str]) -> Iterator[str]:
    """A stream of text without its markers, for who shows tokens as they come: what could still become a marker, or is
    in code that has not ended, is held back until it is decided."""
    held = ""
    for part in parts:
        held += part
        ready = len(held) - _undecided(held)
        if ready > 0:
            shown, held = without_markers(held[:ready]), held[ready:]
            if shown:
                yield shown
    if held:
        yield without_markers(held)


def _undecided(text: str) -> int:
    """How many characters at the end of `text` cannot be shown yet."""
    start = 0
    for code in _CODE.finditer(text):
        if code.end() == len(text) and (code[0] == "``" or _is_open_fence(code[0])):
            return len(text) - code.start()
        start = code.end()
    quote = text.find("`", max(start, text.rfind("\n") + 1))
    if quote >= 0:
        return len(text) - quote
    tail = _OPEN.search(text, start)
    return len(tail[0]) if tail else 0


def _is_open_fence(code: str) -> bool:
    return code.startswith("```") and (len(code) < 6 or not code.endswith("```"))


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
