"""Messages as prose: what was said, in sentences, in English and in Chinese. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from langchain_core.messages import BaseMessage

from everthread.stores.messages import text_of
from everthread.stores.text import normalise, sound

__all__ = ["clip", "distinct", "is_pleasantry", "said", "sentences"]

MAX_READ = 65_536
"""Characters of one message that rules summarise: a pasted book must not stall a turn."""

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])\s*|\n+")
_PLEASANTRY = re.compile(
    r"(?:ok(?:ay)?|yes|no|sure|right|great|fine|thanks?|thank you|hi|hello|continue|go on|go ahead|please do"
    r"|好(?:的|吧|啊)?|是的?|不是?|对|嗯|行|可以|谢谢|多谢|你好|继续)[\s,.!~，。！]*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•>]+|\d+[.)]|#+)\s+")


def said(message: BaseMessage) -> str:
    """What the message says, as sound text."""
    return sound(text_of(message.content))


def sentences(text: str) -> list[str]:
    """The sentences of its first 64 K characters in order, without list markers; code blocks are left out, and so is
    what has no letter or digit."""
    pieces = (_BULLET.sub("", piece).strip() for piece in _END.split(_CODE.sub("\n", text[:MAX_READ])))
    return [piece for piece in pieces if any(character.isalnum() for character in piece)]


def clip(text: str, length: int) -> str:
    """The text on one line, and at most `length` characters of it, with an ellipsis where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def distinct(lines: Iterable[str]) -> Iterator[str]:
    """The lines in order, each once: of two that read the same the first one. Numbers and negations tell them apart."""
    seen: set[str] = set()
    for line in lines:
        key = normalise(line)
        if key not in seen:
            seen.add(key)
            yield line


def is_pleasantry(text: str) -> bool:
    """Whether it only greets, thanks, agrees or says to go on."""
    return _PLEASANTRY.fullmatch(text.strip()) is not None
