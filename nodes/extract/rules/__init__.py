"""The extractor that needs no model: it knows a few forms of sentence in English and Chinese, and nothing else.

Precision comes first: what it takes for a lasting fact has to be one, and it misses what is said in other ways.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, NamedTuple, Self

from everthread.nodes.extract import wording
from everthread.nodes.extract.candidate import Candidate, Window
from everthread.nodes.extract.rules import chinese, english
from everthread.nodes.extract.rules.sketch import Sketch
from everthread.nodes.extract.script import simplified
from everthread.nodes.node import Ask
from everthread.stores.record import Evidence, Record
from everthread.stores.text import query_terms

__all__ = ["RuleExtractor"]

MAX_TASK = 400
"""Characters of a message that starts with a task, up to which it is read as the user's own words."""
_WISH = re.compile(
    r"(?:please )?(?:remember|from now on|going forward|always|never)\b|请?(?:记住|以后|今后|从现在起)", re.IGNORECASE
)
MAX_READ = 20_000
"""Characters of one message that the rules read: nobody states preferences in a pasted log."""


class RuleExtractor:
    """Explicit "remember", standing preferences, decisions, facts about oneself and the project, corrections,
    retractions, reminders, and what holds for this conversation only."""

    id = "rules/1"
    calls_model = False

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        """Candidates from what the user said, in the order of the messages. Asks no model and raises nothing."""
        yield from ()
        return [
            self._candidate(sketch, number, window)
            for number, line in enumerate(window.lines, 1)
            if line.source == "user"
            for task in [_Task.of(line.text, _before(number, window))]
            for sketch in _sketches(line, window.project)
            if not self._is_loose(sketch, window) and not (sketch.unmarked and task.takes(sketch))
        ]

    def _is_loose(self, sketch: Sketch, window: Window) -> bool:
        """A correction ("it's Lyon, not Paris") of something that is not known says nothing that can be kept."""
        return sketch.replaces is not None and sketch.subject is None and _replaced(sketch, window) is None

    def _candidate(self, sketch: Sketch, number: int, window: Window) -> Candidate:
        fields = sketch.fields()
        records: tuple[int, ...] = ()
        found = _replaced(sketch, window) if sketch.replaces else None
        if found and sketch.replaces and sketch.value:
            place, old = found
            records = (place,)
            fields["corrects"] = True
            if sketch.subject is None:
                fields |= _in_place_of(old, sketch)
        return Candidate.model_validate(
            {**fields, "messages": (number,), "records": records, "entities": _entities(fields["value"])}
        )


_SEEKS = re.compile(
    r"\b(?:looking (?:for|to)|search(?:ing)? for|recommend\w*|suggest\w*|budget|options?|i'd like|i would like"
    r"|i want (?:to|an?"
    r"|the)\b|i need (?:an?|to|some|help)\b|can you|could you|help me|open to|planning|choos\w+|design\w*|draft"
    r"|layout|logo)\b"
    r"|推荐|想(?:买|找|要|去|看|订)|预算|帮我|选一|挑一|给我(?:找|列|做)|设计|方案|求",
    re.IGNORECASE,
)


def _before(number: int, window: Window) -> str:
    """What the assistant said just before message `number`."""
    return next((line.text for line in reversed(window.lines[: number - 1]) if line.source == "assistant"), "")


class _Task(NamedTuple):
    """What is being done as a message is said; read once for all that it says."""

    seeks: bool
    """Something is looked for."""
    offered: frozenset[str]
    """The words by which the assistant has just offered something."""

    @classmethod
    def of(cls, text: str, before: str) -> Self:
        """The task of a message, and of what the assistant said before it."""
        return cls(bool(_SEEKS.search(simplified(text[:MAX_READ]))), frozenset(query_terms(before[-MAX_OFFER:])))

    def takes(self, sketch: Sketch) -> bool:
        """Whether a plain "I prefer X" answers what is being done: something is looked for, or X was offered."""
        words = set(query_terms(sketch.value or ""))
        return self.seeks or (bool(words) and words <= self.offered)


MAX_OFFER = 2_000
"""Characters at the end of the assistant's message that are looked through for what it offered."""


def _sketches(line: Evidence, project: str | None) -> list[Sketch]:
    text = wording.own_words(line.text[:MAX_READ])
    found = wording.sentences(text)
    if wording.is_fiction(text):
        found = []
    if found and wording.is_task_text(found[0]):
        # A text to work on may follow, and its words are not the user's: only a short, plain wish beside it counts.
        handed_over = len(line.text) > MAX_TASK or re.search(r"[:：]|⟪", found[0])
        found = [] if handed_over else [each for each in found if _WISH.match(each)]
    listed = _listed(found)
    found = _at_the_rims(found, line.text) if len(line.text) > PASTED and not listed else found
    read = [
        sketch
        for number, sentence in enumerate(found)
        if wording.QUOTED not in sentence
        and not wording.is_task_text(sentence)
        and not wording.forbids_memory(sentence)
        and not wording.takes_back(sentence)
        for sketch in (chinese if wording.is_chinese(sentence) else english).read(
            sentence, line.at, project, listed=number in listed
        )
    ]
    return [sketch for sketch in read if len(line.text) <= LONG or not _is_loose(sketch)]


def _at_the_rims(found: list[str], text: str) -> list[str]:
    """The sentences at the beginning and the end of a long text: what stands between is pasted, more often than not."""
    head, tail = text[:RIM], text[-RIM:]
    return [each for each in found if each[:60] in head or each[-60:] in tail]


PASTED = 1_500
"""Characters of a message from which on only its rims are read."""
RIM = 500
LONG = 600
"""Characters of a message from which on it is mostly about something else than the user."""
_COMPANY = re.compile(r": (?:we are|we're|our)\b", re.IGNORECASE)
"""How a pasted advertisement speaks."""
_OF_ONESELF = re.compile(r"^(?:the user|project |用户|项目)", re.IGNORECASE)


def _is_loose(sketch: Sketch) -> bool:
    """What a long text says without saying it of the user or the project: "Remember: the hero must win"."""
    told = sketch.predicate is None and sketch.owner == "user" and sketch.reach == "lasting"
    if sketch.owner == "project" and _COMPANY.search(sketch.statement):
        return True
    always = (
        re.match(r"The user wants from now on: (?:always|never|when(?:ever)?|if)\b", sketch.statement, re.IGNORECASE)
        is not None
    )
    return always or (told and not _OF_ONESELF.match(sketch.statement))


_HEADING = re.compile(
    r"\b(?:my|house|our team'?s?) (?:[\w-]+ )?(?:preferences?|habits?|rules?|style|likes)\b"
    r"|\bhow i (?:like|want|prefer|work)\b"
    r"|\bi (?:like|want|prefer) (?:things|it|to work)\b|(?:more|another) preference\b"
    r"|我的?(?:\w{0,4})(?:习惯|偏好|喜好|要求|规矩)|(?:补充|还有|另外|再加|说)[^:：]{0,6}(?:习惯|偏好"
    r"|喜好|要求|规矩)",
    re.IGNORECASE,
)


def _listed(found: list[str]) -> frozenset[int]:
    """The sentences that stand under a heading such as "How I like to work:", by their place."""
    heading = next(
        (
            n
            for n, each in enumerate(found)
            if each.rstrip().endswith((":", "：")) and _HEADING.search(simplified(each))
        ),
        None,
    )
    under = frozenset() if heading is None else frozenset(range(heading + 1, len(found)))
    headed = (n for n, each in enumerate(found) if (head := _HEAD.match(each)) and _HEADING.search(simplified(head[1])))
    return under | frozenset(headed)


_HEAD = re.compile(r"([^:：]{2,40})[:：]\s*\S")
"""A heading and what it stands over, in one sentence: "One more preference: no lists"."""


def _replaced(sketch: Sketch, window: Window) -> tuple[int, Record] | None:
    """The known record whose value the speaker replaces, and its number; None when none or several fit."""
    old = (sketch.replaces or "").casefold().strip()
    fitting = [
        (number, record)
        for number, record in window.look(sketch.replaces or "")
        if record.value is not None and record.value.casefold().strip() == old
    ]
    return fitting[0] if len(fitting) == 1 else None


def _in_place_of(old: Record, sketch: Sketch) -> dict[str, Any]:
    """What the old record says, with the new value in place of the old one."""
    new, before = sketch.value or "", old.value or ""
    # The reason that was given for the old value is none for the new one.
    plain = re.sub(r",? (?:because|since|due to) [^.]+|[，,]?\s*(?:因为|由于)[^。，]+", "", old.statement)
    statement = re.sub(re.escape(before), lambda _: new, plain, flags=re.IGNORECASE)
    return {
        "statement": statement,
        "subject": old.subject,
        "predicate": old.predicate,
        "content_type": old.content_type,
        "kind": old.kind,
        "concerns": old.concerns,
        "owner": old.scope.owner,
    }


def _entities(value: str | None) -> tuple[str, ...]:
    """Names in a value: what is written with a capital."""
    return tuple(re.findall(r"[A-ZÀ-Ý][\w.+#-]*(?: [A-ZÀ-Ý][\w.+#-]*)*", value or ""))
