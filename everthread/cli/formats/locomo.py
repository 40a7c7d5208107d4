"""LoCoMo: long chats of two people, many sessions each.

A session is the thread `<sample id>/session_<n>`, a turn keeps its `dia_id` (`D1:3`). Both speakers are people, so both
are users. A shared picture is its caption, `[image: ...]`. Turns get the session's time, a second apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import each_document
from everthread.cli.formats.message import Item, Problem, Scribe
from everthread.cli.formats.times import moment

__all__ = ["read", "recognises"]

_SESSION = re.compile(r"session_(\d+)")


def recognises(value: Any) -> bool:
    """Whether this value of a file is a LoCoMo sample."""
    return isinstance(value, dict) and any(
        isinstance(turn, dict) and "dia_id" in turn for _, turns in _sessions(value) for turn in turns[:1]
    )


def read(path: Path) -> Iterator[Item]:
    """Every turn of every session."""
    return each_document(path, recognises, "is not a LoCoMo sample: no session_<n> with turns", _sample)


def _conversation(sample: dict[str, Any]) -> dict[str, Any]:
    inner = sample.get("conversation")
    return inner if isinstance(inner, dict) else sample


def _sessions(sample: dict[str, Any]) -> list[tuple[int, list[Any]]]:
    found = ((_SESSION.fullmatch(key), turns) for key, turns in _conversation(sample).items())
    return sorted((int(key[1]), turns) for key, turns in found if key and isinstance(turns, list) and turns)


def _sample(scribe: Scribe, sample: dict[str, Any], line: int) -> Iterator[Item]:
    conversation = _conversation(sample)
    names = [str(conversation.get(key) or key) for key in ("speaker_a", "speaker_b")]
    name = sample.get("sample_id") or "-".join(names)
    for number, turns in _sessions(sample):
        date = conversation.get(f"session_{number}_date_time")
        start = moment(date)
        if start is None:
            yield Problem(scribe.path, line, f"{name}/session_{number}: time {str(date)[:40]!r} not understood")
        for position, turn in enumerate(turns):
            if not isinstance(turn, dict):
                yield Problem(scribe.path, line, f"{name}/session_{number}: turn {position + 1} is not an object")
                continue
            yield from scribe.write(
                f"{name}/session_{number}",
                "user",
                _text(turn),
                line=line,
                id=turn.get("dia_id"),
                at=start + timedelta(seconds=position) if start else None,
                speaker=turn.get("speaker"),
                payload=turn if "img_url" in turn else None,
            )


def _text(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    said = turn.get("text")
    words = said if isinstance(said, str) else ""
    return f"{words} [image: {caption}]".strip() if isinstance(caption, str) and caption else words
