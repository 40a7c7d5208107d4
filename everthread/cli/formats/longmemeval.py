"""LongMemEval: questions, each with a haystack of dated chat sessions.

A haystack session is a thread under its own id; one that several questions share is read once. Roles are kept, turns
get the session's time, a second apart. Two layouts: the official one, with `haystack_sessions` in each question, and
`<name>_questions` whose `haystack` holds `[session id, date, n]`, n being the line in `<name>_sessions` beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from everthread.cli.formats.files import Line, documents
from everthread.cli.formats.jsonl import is_message, messages_of
from everthread.cli.formats.message import Item, Problem, Scribe, Skipped
from everthread.cli.formats.times import moment

__all__ = ["read", "recognises", "sessions_file"]


def recognises(value: Any) -> bool:
    """Whether this value of a file is a LongMemEval question with its haystack."""
    return (
        isinstance(value, dict)
        and "question" in value
        and (isinstance(value.get("haystack_sessions"), list) or isinstance(value.get("haystack"), list))
    )


def sessions_file(path: Path) -> Path | None:
    """The file of sessions that goes with a file of questions, if there is one."""
    beside = path.with_name(path.name.replace("_questions", "_sessions"))
    return beside if beside != path and beside.is_file() else None


def read(path: Path) -> Iterator[Item]:
    """Every turn of every session, each session once."""
    scribe, dates, seen = Scribe(path), dict[int, tuple[str, Any]](), set[str]()
    for item in documents(path):
        if isinstance(item, Problem):
            yield item
        elif not recognises(item.value):
            yield Problem(path, item.number, "is not a LongMemEval question: no haystack")
        elif "haystack_sessions" in item.value:
            yield from _question(scribe, item, seen)
        else:
            for session, date, number in _pointers(item.value):
                dates.setdefault(number, (session, date))
    if dates:
        yield from _pointed_at(path, dates)


def _question(scribe: Scribe, item: Line, seen: set[str]) -> Iterator[Item]:
    sessions = item.value["haystack_sessions"]
    ids = item.value.get("haystack_session_ids") or [
        f"{item.value.get('question_id')}/{n}" for n in range(len(sessions))
    ]
    dates = item.value.get("haystack_dates") or [None] * len(sessions)
    for session, date, turns in zip(ids, dates, sessions, strict=False):
        if str(session) in seen:
            yield Skipped(scribe.path, item.number, "session was read with an earlier question")
            continue
        seen.add(str(session))
        yield from _session(scribe, str(session), date, turns, item.number)


def _pointers(question: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    for pointer in question["haystack"]:
        if isinstance(pointer, list) and len(pointer) == 3 and isinstance(pointer[2], int):
            yield str(pointer[0]), pointer[1], pointer[2]


def _pointed_at(path: Path, dates: dict[int, tuple[str, Any]]) -> Iterator[Item]:
    sessions = sessions_file(path)
    if sessions is None:
        yield Problem(path, None, "the file of sessions is missing; put <name>_sessions beside <name>_questions")
        return
    scribe = Scribe(sessions)
    for item in documents(sessions):
        if isinstance(item, Problem):
            yield item
        elif named := dates.get(item.number - 1):
            yield from _session(scribe, *named, item.value, item.number)


def _session(scribe: Scribe, session: str, date: Any, turns: Any, line: int) -> Iterator[Item]:
    start = moment(date)
    if start is None and date is not None:
        yield Problem(scribe.path, line, f"{session}: time {str(date)[:40]!r} not understood")
    for position, turn in enumerate(turns if isinstance(turns, list) else ()):
        if not is_message(turn):
            yield Problem(scribe.path, line, f"{session}: turn {position + 1} is not a message")
            continue
        said = {"role": turn["role"], "content": turn.get("content"), "id": f"{session}/{position}"}
        if start:
            said["time"] = (start + timedelta(seconds=position)).isoformat()
        yield from messages_of(scribe, said, session, line)
