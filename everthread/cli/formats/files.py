"""JSON out of files: lines, one document, or one large array, plain or gzipped, read bit by bit."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

from everthread.cli.formats.message import Item, Problem, Scribe

__all__ = ["Line", "documents", "each_document", "load", "stem"]

_PEEK = 64 * 1024
_CHUNK = 256 * 1024
_LINES = (".jsonl", ".ndjson")
_GAP = re.compile(r"[ \t\r\n,]*")
_BROKEN = (OSError, EOFError, zlib.error)
"""What reading a damaged or unreadable file raises."""


class Line(NamedTuple):
    """One JSON value of a file."""

    number: int
    """The line that it starts on, from 1."""
    value: Any
    """The value."""


def documents(path: Path) -> Iterator[Line | Problem]:
    """Every JSON value of a file in order: each line of JSON Lines, each element of one large array, or one document.

    A line that is not JSON is a Problem and the next ones are read. In an array nothing after a broken element can be
    trusted, so the Problem is the last thing. A file that is no JSON at all yields nothing.
    """
    try:
        with _opened(path) as file:
            yield from _values(path, file)
    except _BROKEN as error:
        yield Problem(path, None, f"cannot be read: {error}")


def each_document(
    path: Path,
    recognises: Callable[[Any], bool],
    otherwise: str,
    convert: Callable[[Scribe, Any, int], Iterator[Item]],
) -> Iterator[Item]:
    """What `convert` makes of every JSON value of a file; one that is not of the format is a Problem that says
    `otherwise`, and the next ones are read."""
    scribe = Scribe(path)
    for item in documents(path):
        if isinstance(item, Problem):
            yield item
        elif not recognises(item.value):
            yield Problem(path, item.number, otherwise)
        else:
            yield from convert(scribe, item.value, item.number)


def load(path: Path) -> Any:
    """The one JSON document of a small file; a Problem when it is none."""
    found = list(islice(documents(path), 2))
    if len(found) == 1:
        return found[0].value if isinstance(found[0], Line) else found[0]
    return Problem(path, None, "is not one JSON document")


def stem(path: Path) -> str:
    """The file's name without `.json`, `.jsonl`, `.gz`."""
    name = path.name
    while Path(name).suffix.lower() in (".json", ".gz", *_LINES):
        name = Path(name).stem
    return name or path.name


def _opened(path: Path) -> TextIO:
    # Bytes that are not UTF-8 become U+FFFD: the rest of the message is worth keeping.
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    raw = gzip.open(path, "rb") if zipped else path.open("rb")
    return io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8-sig", errors="replace")


def _values(path: Path, file: TextIO) -> Iterator[Line | Problem]:
    head = file.read(_PEEK)
    first, newline, _ = head.lstrip().partition("\n")
    lines = any(suffix in _LINES for suffix in path.suffixes)
    if not first or not (lines or first[0] in "[{"):
        return
    rest = _Rest(head, file)
    if lines or (newline and _parses(first) and head.lstrip()[len(first) :].strip()):
        yield from _lines(path, rest)
    elif first[0] == "[":
        yield from _elements(path, rest)
    else:
        yield from _whole(path, rest)


class _Rest:
    """A text file whose beginning was read already."""

    def __init__(self, head: str, file: TextIO) -> None:
        self.head, self.file = head, file

    def read(self, size: int = -1) -> str:
        if self.head:
            head, self.head = self.head, ""
            return head + self.file.read() if size < 0 else head
        return self.file.read(size)

    def __iter__(self) -> Iterator[str]:
        *complete, last = self.head.split("\n")
        yield from complete
        yield last + self.file.readline()
        yield from self.file


def _nothing(_: str) -> None:
    """NaN and Infinity are not JSON, and no store keeps them."""


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_nothing)


def _parses(text: str) -> bool:
    try:
        return isinstance(_parse(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return f"is not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else f"is not JSON: {error}"


def _lines(path: Path, file: _Rest) -> Iterator[Line | Problem]:
    for number, text in enumerate(file, 1):
        text = text.strip(" \t\r\n\x00\ufeff")  # a crash may leave a block of NULs at the end
        if not text:
            continue
        try:
            yield Line(number, _parse(text))
        except (ValueError, RecursionError) as error:
            yield Problem(path, number, _why(error))


def _whole(path: Path, file: _Rest) -> Iterator[Line | Problem]:
    try:
        yield Line(1, _parse(file.read()))
    except json.JSONDecodeError as error:
        yield Problem(path, error.lineno, _why(error))
    except (ValueError, RecursionError) as error:
        yield Problem(path, 1, _why(error))


def _elements(path: Path, file: _Rest) -> Iterator[Line | Problem]:
    """The elements of an array, one at a time: such a file can be larger than the memory."""
    decoder = json.JSONDecoder(parse_constant=_nothing)
    text = file.read(_CHUNK)
    at, number, size = text.index("[") + 1, 1, _CHUNK
    failure: Exception = ValueError("the file ends inside an array")
    while True:
        start = _gap(text, at)
        number += text.count("\n", at, start)
        if text.startswith("]", start):
            return
        try:
            value, end = decoder.raw_decode(text, start)
            complete = _gap(text, end) < len(text)  # 12 may go on as 123
        except (ValueError, RecursionError) as error:
            failure, complete = error, False
        if complete:
            yield Line(number, value)
            number += text.count("\n", start, end)
            at, size = end, _CHUNK
        elif more := file.read(size):
            text, at, size = text[start:] + more, 0, size * 2
        else:
            yield Problem(path, number, f"{_why(failure)}; the file was read up to here")
            return


def _gap(text: str, at: int) -> int:
    """Where what follows the commas and spaces at `at` begins."""
    return _GAP.match(text, at).end()  # type: ignore[union-attr]
