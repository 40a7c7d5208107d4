"""What English sentences say that is worth keeping. Conservative: a sentence that fits no form says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.english.correction import CORRECTION, retraction, swap
from everthread.nodes.extract.rules.english.decision import about_project
from everthread.nodes.extract.rules.english.fact import about_user, nickname
from everthread.nodes.extract.rules.english.preference import (
    IMPERATIVE,
    as_a_rule,
    preferred,
    short_lived,
    standing,
    wished,
)
from everthread.nodes.extract.rules.english.request import REMEMBER, REMINDS, SAYS_NOTHING, reminders, told_to_keep
from everthread.nodes.extract.rules.english.words import NAME, bare, capital, third_person
from everthread.nodes.extract.rules.sketch import Sketch

__all__ = ["read", "third_person"]


def read(sentence: str, said_at: datetime, project: str | None, *, listed: bool = False) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations. `listed`: it
    stands in a list of preferences, so a plain imperative is meant for every time.

    A sentence is read whole, and when that says nothing, part by part: "I'm in Oslo, so what time is it there?"
    """
    clause = bare(wording.spelled_out(sentence))
    corrected = CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    if REMINDS.match(clause):
        return reminders(clause, said_at)
    asked = REMEMBER.sub("", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_past(clause):
        clause = next(
            (part for part in wording.clauses(clause) if wording.is_now(part) and not wording.is_past(part)), ""
        )
        return read(_SINCE_THEN.sub("", clause), said_at, project) if clause else []
    if wording.is_guess(clause) or wording.is_reported(clause):
        return []
    asks = wording.is_question(sentence) and not (wording.is_request(sentence) and wording.is_lasting(sentence))
    if asks and not wording.tells(sentence):
        return []
    found: list[Sketch] = [] if asks else _said(clause, project, corrects=corrects, listed=listed)
    if not found:
        parts = [bare(CORRECTION.sub("", part)) for part in wording.clauses(clause)]
        told = parts[:-1] if asks else parts
        headed = _HEADED.match(clause)
        if headed and not _HANDS_OVER.search(headed["head"]):
            parts = told = [bare(headed["tail"])]
        if len(parts) > 1 or headed:
            found = [
                _under(before, sketch)
                for before, part, after in zip(["", *parts], told, [*parts[1:], ""], strict=False)
                if not wording.is_question(part)
                for sketch in _said(part, project, corrects=corrects, listed=listed)
                if not (_OPEN_ENDED.search(sketch.predicate or "") and _GOES_ON.match(after))
            ]
    if explicit and _WEAKLY_ASKED.search(sentence) and (not _OF_US.match(clause) or wording.is_event(clause)):
        explicit = False
    if not found and explicit and len(clause.split()) > 1 and not SAYS_NOTHING.search(clause):
        found = [told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


_SINCE_THEN = re.compile(r"^(?:now|nowadays|these days|today|currently),? ", re.IGNORECASE)
_WEAKLY_ASKED = re.compile(r"\bnote:|\bdon'?t forget", re.IGNORECASE)
_OF_US = re.compile(
    r"^(?:i|i'?m|i'?ve|my|we|we're|our|the (?:project|team|repo|api)|this (?:project|repo))\b", re.IGNORECASE
)
"""Whom "note" and "don't forget" must speak of, to be more than a saying."""
_OPEN_ENDED = re.compile(r"^(?:as a rule|likes|dislikes|prefers|uses|plays|speaks|does not eat|wants)")
"""What a list is said of more often than one thing."""
_GOES_ON = re.compile(
    r"^(?:and |or )?(?!i\b|i'|my\b|we\b|our\b|you\b|it|he\b|she\b|they\b|that\b|this\b|which\b|who\b|where\b"
    r"|because\b|since\b"
    r"|please\b|not\b|thanks\b|though\b|and\b|so\b|but\b|around\b|especially\b|\w+ing\b|too\b|as\b|at\b|in\b|on\b|for\b"
    r"|with\b|when\b|if\b|do\b|can\b|could\b|what\b|how\b|is\b|are\b|don'?t\b|always\b|never\b|no\b|use\b|give\b)[\w'-]+"
    r"(?: [\w'-]+){0,2}$",
    re.IGNORECASE,
)
"""The next item of a list: what was read of the first one is cut off."""
_CONDITION = re.compile(
    r"^(?:for(?! (?:the|that|this|your|all|these)\b)|when|whenever|while|during|in|on|at|after|before|with"
    r"|depending)\b",
    re.IGNORECASE,
)


def _under(condition: str, sketch: Sketch) -> Sketch:
    """The sketch with the condition that was said before it: "on long flights, I prefer the aisle"."""
    if not (_CONDITION.match(condition) and _OPEN_ENDED.search(sketch.predicate or "")):
        return sketch
    said = capital(third_person(condition)).rstrip(" .")
    return sketch._replace(statement=f"{said}, {sketch.statement[0].lower()}{sketch.statement[1:]}")


_HEADED = re.compile(
    r"^(?P<head>\S+(?: \S+){1,6}):\s+(?P<tail>(?:i|i'm|we|my|our|please|always|never|no)\b.+)$", re.IGNORECASE
)


_HANDS_OVER = re.compile(
    r"\b(?:title|subject|bio|text|message|e-?mail|caption|headline|example|prompt|lyrics|quote|line"
    r"|sentence|input|output|post|tweet|story|letter|poem|slogan|script|dialogue|essay|name|character"
    r"|persona|client|customer|user|agent|speaker|following|below|one|about|from|by|for|them|him|her|review|comment|this|it)$",
    re.IGNORECASE,
)
"""What stands before a colon when the words after it are somebody else's, or a text to work on."""


def _said(clause: str, project: str | None, *, corrects: bool, listed: bool) -> list[Sketch]:
    return [
        sketch
        for part in _parts(clause)
        for sketch in retraction(part, project) or _one(part, project, corrects=corrects, listed=listed)
    ]


def _parts(clause: str) -> list[str]:
    """ "My name is Ana and I work at Acme" says two things."""
    found = re.split(r",? (?:and|&) (?=(?:I|i|my|My|we|We)(?:'\w+)? )", clause)
    named = re.match(rf"^(I'm|I am) ({NAME}), (?=an? )", found[0])
    # "I'm Ana, a nurse from Porto" says two things as well.
    return [f"{named[1]} {named[2]}", f"I'm {found[0][named.end() :]}", *found[1:]] if named else found


def _one(clause: str, project: str | None, *, corrects: bool, listed: bool) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        nickname,
        short_lived,
        standing,
        about_project,
        preferred,
        about_user,
        as_a_rule,
    )
    for reader in readers:
        found = reader(clause, project)
        if found:
            return found
    if listed and IMPERATIVE.match(clause):
        return [wished(clause, project)]
    return swap(clause, project) if corrects or clause.lower().startswith(("it", "not ", "that")) else []
