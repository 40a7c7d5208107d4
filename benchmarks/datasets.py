"""Public conversations with questions, in one shape: LoCoMo, MADial-Bench, LongMemEval. The files are not ours and are
not shipped: `--data` says where they are."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Conversation", "Message", "Question", "locomo", "longmemeval", "madial"]


class Message(NamedTuple):
    """One message, in the order in which it was said."""

    id: str
    thread: str
    speaker: str
    text: str
    at: datetime


class Question(NamedTuple):
    """A question and the ids of the messages that answer it."""

    text: str
    gold: frozenset[str]
    """Empty when no message does."""
    kind: str
    """Which table it belongs to."""
    type: str = ""
    """The set's own name for questions of this sort."""
    asked: datetime | None = None
    """When it is asked; the time of the newest message where the set does not say."""
    sessions: frozenset[str] = frozenset()
    """The threads that the set names as the answer's, where it names threads."""


class Conversation(NamedTuple):
    """What one user said, and what is asked about it. No other conversation's messages are searched."""

    name: str
    messages: list[Message]
    questions: list[Question]


CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def locomo(path: Path) -> Iterator[Conversation]:
    """Long chats of two people. Evidence ids are normalised, those that do not exist are dropped, and questions that
    have none left are skipped. `kind` is `locomo` for categories 1 to 4, `locomo-5` for the adversarial ones, whose
    evidence is what the other person said."""
    for number, sample in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        messages = list(_locomo_messages(sample["conversation"]))
        known = {message.id for message in messages}
        end = max(message.at for message in messages)
        questions = [
            Question(
                entry["question"],
                gold,
                "locomo-5" if entry["category"] == 5 else "locomo",
                CATEGORIES[entry["category"]],
                end,
            )
            for entry in sample["qa"]
            if (gold := frozenset(_locomo_evidence(entry["evidence"]) & known))
        ]
        yield Conversation(sample.get("sample_id", f"locomo-{number}"), messages, questions)


def _locomo_messages(conversation: dict[str, Any]) -> Iterator[Message]:
    numbers = sorted(int(match[1]) for key in conversation if (match := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        said = conversation[f"session_{number}_date_time"]
        at = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"]:
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Message(turn["dia_id"], f"session-{number}", turn["speaker"], turn["text"] + caption, at)


def _locomo_evidence(entries: list[str]) -> set[str]:
    """`D8:6; D9:17`, `D:11:26` and `D30:05` as D8:6, D9:17, D11:26 and D30:5."""
    return {f"D{int(match[1])}:{int(match[2])}" for entry in entries for match in re.finditer(r"D:?(\d+):(\d+)", entry)}


def madial(folder: Path, language: str) -> Iterator[Conversation]:
    """One set of short memories (each a thread of its own) and dialogues that should recall some of them; `language` is
    zh or en. The query is what was said before the turn in question."""
    home = folder / {"zh": "ch"}.get(language, language)
    messages = [
        Message(key, f"memory-{key}", "", memory["event"], datetime.fromisoformat(memory["time"]).replace(tzinfo=UTC))
        for line in _lines(home / f"MADial-Bench-{language}-memory.json")
        for key, memory in line.items()
    ]
    known, end = {message.id for message in messages}, max(message.at for message in messages)
    questions = [
        Question(_said_before(entry), gold, f"madial-{language}", asked=end)
        for entry in _lines(home / f"MADial-Bench-{language}-dialogue.json")
        if (gold := frozenset(str(number) for number in entry["relevant-id"]) & known)
    ]
    yield Conversation(f"madial-{language}", messages, questions)


def _said_before(entry: dict[str, Any]) -> str:
    turns = entry["dialogue"][1 : entry["test-turn"][0]]
    return " ".join(re.sub(r"^\s*<(\w+)>\s*:\s*", _speaker_prefix, turn).strip() for turn in turns)


def _speaker_prefix(match: re.Match[str]) -> str:
    return "" if match[1] == "Assistant" else f"{match[1]}: "


def longmemeval(folder: Path) -> Iterator[Conversation]:
    """One conversation a question, by the official protocol: user turns only; gold are the user turns with the answer
    in an answer session. `kind` is `longmemeval` for the questions that the protocol counts, else
    `longmemeval-uncounted`: those about what was never said (`_abs`), and those that no user turn answers."""
    sessions = list(_packed(next(folder.glob("*_sessions.jsonl.gz"))))
    for entry in _packed(next(folder.glob("*_questions.jsonl.gz"))):
        messages: list[Message] = []
        gold: set[str] = set()
        for position, (session, date, line) in enumerate(entry["haystack"]):
            for number, turn in enumerate(sessions[line]):
                if turn["role"] != "user":
                    continue
                messages.append(
                    Message(f"{position}:{number}", f"{position}-{session}", "", turn["content"], _day(date))
                )
                if "answer" in session and turn.get("has_answer"):
                    gold.add(messages[-1].id)
        never_said = "_abs" in entry["question_id"]
        question = Question(
            entry["question"],
            frozenset() if never_said else frozenset(gold),
            "longmemeval-uncounted" if never_said or not gold else "longmemeval",
            "abstention" if never_said else entry["question_type"],
            _day(entry["question_date"]),
            frozenset(
                f"{n}-{id}" for n, (id, _, _) in enumerate(entry["haystack"]) if id in entry["answer_session_ids"]
            ),
        )
        yield Conversation(entry["question_id"], messages, [question])


def _day(said: str) -> datetime:
    """2023/05/30 (Tue) 18:40."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", said), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _packed(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
