"""Corrections and retractions in Chinese sentences."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.chinese.decision import about_project
from everthread.nodes.extract.rules.chinese.fact import about_user
from everthread.nodes.extract.rules.chinese.preference import preferred
from everthread.nodes.extract.rules.chinese.words import STOP
from everthread.nodes.extract.rules.sketch import Sketch

__all__ = ["CORRECTION", "retraction", "swap"]

CORRECTION = re.compile(
    rf"^(?:(?:其实|更正(?:一下)?|纠正(?:一下)?|(?:我)?(?:刚才?|之前|上面)?(?:说|记|写"
    rf"|打)错了?(?=[，,：:、\s])|不对|错了|抱歉|不好意思|应该说|准确地说){STOP})+"
)


RETRACTION = (
    re.compile(r"^(?P<who>我|我们|咱们)(?:现在|已经|早就)*(?:不再|不)(?P<rest>.{2,60}?)了?$"),
    re.compile(r"^(?P<who>我|我们|咱们)(?:现在|已经|早就)*没(?:有)?(?P<rest>在.{2,60}?)了$"),
)


NO_MORE = re.compile(r"不再|(?:已经|现在|早就)?不.{1,60}了$|没(?:有)?在.{1,60}了$")


SWAP = re.compile(
    rf"^(?P<head>.{{0,30}}?)不是(?P<old>[^，,。]{{1,40}}?){STOP}(?:而)?(?:是|应该是)(?P<new>[^，,。]{{1,40}})$"
)


SWAP_BACK = re.compile(r"^(?P<head>.{0,30}?)是(?P<new>[^，,。]{1,40}?)[，,]?\s*(?:而)?不是(?P<old>[^，,。]{1,40})$")


def retraction(clause: str, project: str | None) -> list[Sketch]:
    if not NO_MORE.search(clause):
        return []
    for pattern in RETRACTION:
        match = pattern.match(clause)
        if match:
            held = f"{match['who']}{match['rest']}"
            before = about_project(held, project) or preferred(held, project) or about_user(held, project)
            return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]
    return []


def swap(clause: str, project: str | None) -> list[Sketch]:
    match = SWAP.match(clause) or SWAP_BACK.match(clause)
    if match is None:
        return []
    head, new, old = match["head"].strip(" ，,"), match["new"].strip(), match["old"].strip()
    said = about_project(f"{head}是{new}", project) or about_user(f"{head}是{new}", project) if head else []
    if said:
        return [sketch._replace(replaces=old, corrects=True) for sketch in said]
    return [Sketch(clause, "the user corrected it", value=new, replaces=old, corrects=True)]
