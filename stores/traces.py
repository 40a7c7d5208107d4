"""Looks for words in bytes: whether what was erased is still anywhere, however it is spelled there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

__all__ = ["Traces", "spellings"]

ANCHOR = 8
"""Bytes from the middle of a word by which its places are found; beginnings are too much alike."""
FEW = 16
"""So many words are looked for one by one, which is faster."""
CHUNK = 8 * 1024 * 1024
"""Bytes of a file that are looked at together."""


def spellings(word: str) -> set[str]:
    """A text as it is, and as JSON writes it."""
    return {word, json.dumps(word, ensure_ascii=False)[1:-1], json.dumps(word)[1:-1]}


class Traces:
    """Words to look for, in every spelling. Ten thousand take little longer than one."""

    def __init__(self, words: Iterable[str]) -> None:
        spelled = {spelling for word in words if word.strip() for spelling in spellings(word)}
        self.patterns = sorted(spelling.encode("utf-8", "surrogatepass") for spelling in spelled)
        self._short = [pattern for pattern in self.patterns if len(pattern) < ANCHOR]
        self._long: dict[int, list[bytes]] = defaultdict(list)
        for pattern in self.patterns:
            if len(pattern) >= ANCHOR:
                self._long[int.from_bytes(self._anchor(pattern), "little")].append(pattern)
        self._may_be = np.zeros(1 << 16, bool)
        self._may_be[_hashed(np.array(list(self._long), np.uint64))] = True

    def _anchor(self, pattern: bytes) -> bytes:
        start = _middle(pattern)
        return pattern[start : start + ANCHOR]

    def among(self, content: bytes) -> set[bytes]:
        """Which of the words, as bytes, are in `content`."""
        if len(self.patterns) <= FEW:
            return {pattern for pattern in self.patterns if pattern in content}
        return {pattern for pattern in self._short if pattern in content} | set(self._long_among(content))

    def _long_among(self, content: bytes) -> Iterator[bytes]:
        for offset in range(min(ANCHOR, max(0, len(content) - ANCHOR + 1))):
            windows = np.frombuffer(content, "<u8", (len(content) - offset) // ANCHOR, offset)
            for n in np.flatnonzero(self._may_be[_hashed(windows)]).tolist():
                for pattern in self._long.get(int(windows[n]), ()):
                    if content.startswith(pattern, max(0, n * ANCHOR + offset - _middle(pattern))):
                        yield pattern

    def in_file(self, path: Path, *, part: int = CHUNK) -> bool:
        """Whether one of the words is in the file's bytes, which are read in parts."""
        if not self.patterns:
            return False
        longest = max(map(len, self.patterns))
        before = b""
        with path.open("rb") as file:
            while chunk := file.read(part):
                if self.among(before + chunk):
                    return True
                before = (before + chunk)[-longest:]
        return False


def _middle(pattern: bytes) -> int:
    return (len(pattern) - ANCHOR) // 2


def _hashed(windows: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Each window as a number below 2^16, spread evenly."""
    return (windows * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48)
