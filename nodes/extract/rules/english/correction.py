"""Corrections and retractions in English sentences."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.english.decision import about_project
from everthread.nodes.extract.rules.english.fact import about_user
from everthread.nodes.extract.rules.english.preference import preferred
from everthread.nodes.extract.rules.english.words import capital
from everthread.nodes.extract.rules.sketch import Sketch

__all__ = ["CORRECTION", "retraction", "swap"]

CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|wait|sorry)(?=\s*[,:;.—-])|oops|hmm|actually|correction|to correct myself"
    r"|i (?:misspoke|made a mistake|was wrong|said .{1,30} but)|let me correct that|i meant(?: that"
    r"| to say)?|that'?s (?:wrong|not right|incorrect))\s*[,:;.—-]*\s*)+",
    re.IGNORECASE,
)


NO_LONGER = re.compile(r"^(?P<who>i|we|i'?m|i am|we'?re|we are) no longer (?P<rest>.+)$", re.IGNORECASE)


NOT_ANY_MORE = re.compile(r"^(?P<who>i|we) (?:don'?t|do not) (?P<rest>.+?),? (?:any ?more|any longer)$", re.IGNORECASE)


SWAP = (
    re.compile(
        r"^(?:it'?s|it is|it was|it should be|that should be"
        r"|the [\w ]{2,30} is) not (?P<old>[^,]{1,60}),?;? (?:but|it'?s|it is) (?P<new>[^,]{1,60})$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?:it'?s|it is|that'?s|it should be) (?P<new>[^,]{1,60}),? not (?P<old>[^,]{1,60})$", re.IGNORECASE),
    re.compile(r"^not (?P<old>[^,]{1,60}),? but (?P<new>[^,]{1,60})$", re.IGNORECASE),
    re.compile(r"^(?P<new>[^,]{1,60}), not (?P<old>[^,]{1,60})$", re.IGNORECASE),
)


def retraction(clause: str, project: str | None) -> list[Sketch]:
    match = NO_LONGER.match(clause) or NOT_ANY_MORE.match(clause)
    if match is None:
        return []
    held = f"{match['who']} {match['rest']}"
    before = about_project(held, project) or preferred(held, project) or about_user(held, project)
    return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]


def swap(clause: str, project: str | None) -> list[Sketch]:
    """ "It's Lyon, not Paris": only what is known says what it is about, so the extractor looks the old value up."""
    match = next((found for pattern in SWAP if (found := pattern.match(clause))), None)
    if match is None:
        return []
    new, old = match["new"].strip(), match["old"].strip()
    return [Sketch(capital(clause), "the user corrected it", value=new, replaces=old, corrects=True)]
