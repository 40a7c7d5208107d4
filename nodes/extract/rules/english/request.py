"""What English sentences ask to remember, or to be reminded of."""

from __future__ import annotations

import re
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.english.words import PROJECT, capital, of_project, third_person
from everthread.nodes.extract.rules.sketch import Sketch
from everthread.nodes.extract.rules.when import due

__all__ = ["REMEMBER", "REMINDS", "SAYS_NOTHING", "reminders", "told_to_keep"]

REMEMBER = re.compile(
    r"^(?:please |(?:can|could|would|will) you |pls )*(?:always )?(?:remember|keep in mind"
    r"|bear in mind|(?:make|take) (?:a )?note|note down|note|don'?t forget|for your memory"
    r"|add (?:this )?to (?:your )?memory|save(?: this)?(?: to (?:your )?memory)?"
    r"|memori[sz]e)(?: for (?:later|next time|the future))?(?:\s*:\s*|\s+that\s+|,?\s+(?=(?:i|i'?m|my"
    r"|we|our|the (?:project|team|repo|api)|this (?:project|repo))\b))",
    re.IGNORECASE,
)


REMINDER = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|remember"
    r"|don'?t forget)\s+(?:to\s+)?(?P<what>(?!(?:what|where|who|how|why|which|whether|again)\b).+)$",
    re.IGNORECASE,
)


REMINDS = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|(?:remember|don'?t forget) to)\b",
    re.IGNORECASE,
)


def reminders(clause: str, said_at: datetime) -> list[Sketch]:
    match = REMINDER.match(clause)
    if match is None:
        return []
    when = due(match["what"], said_at)
    what = re.sub(r"^(?:to|about|that) ", "", when.rest if when else match["what"], flags=re.IGNORECASE).strip()
    if not what or (when is None and "remind" not in clause.lower()):
        return []  # "remember to focus": advice, not an errand
    return [
        Sketch(capital(what), "the user asked to be reminded", kind="prospective", due_at=when.at if when else None)
    ]


_TO_LISTENER = re.compile(r"\b(?:you|your|yourself|you'?re|let'?s)\b", re.IGNORECASE)


SAYS_NOTHING = re.compile(
    rf"{_TO_LISTENER.pattern}|^(?:(?:all|every|each|any|no) \w+ (?:must|should|has to|have to)|it'?s?"
    rf"|this|that|that'?s|these|those|there|the [\w ]{{2,30}}? (?:should|must|will|has to|needs to"
    rf"|is an?)|the (?:story|hero|character|target|persona|essay|article|answer|output|response|text"
    rf"|question|example|reader|audience))\b",
    re.IGNORECASE,
)
"""Told to the listener, or about what is being written: said of this task, whatever "remember" it follows."""


def told_to_keep(clause: str, project: str | None) -> Sketch:
    """Something that the user asked to remember and that fits no form: their own words."""
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{PROJECT}|we|our)\b", clause, re.IGNORECASE))
    statement = of_project(clause, project) if about_project else f"{third_person(clause)}."
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)
