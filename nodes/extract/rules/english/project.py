"""What English sentences say of the project."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.english.words import (
    CANONICAL,
    EMPTY_OBJECT,
    NOT_OLD,
    PROJECT,
    REASON,
    WE,
    of_project,
)
from everthread.nodes.extract.rules.sketch import PROJECT_FACT, Sketch, project_fact
from everthread.nodes.extract.rules.topics import technology

__all__ = ["choice", "project_facts"]

USES = (
    re.compile(
        r"^(?:our|all our|all the) (?:[\w-]+ ){1,3}?(?:(?:is|are) )?(?:runs?|lives?|goes|go|hosted|stored|built|written"
        r"|deployed|managed|tracked|kept|documented) (?:on|in|with|at|to|through|by) (?P<named>[^,;]{2,100})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:{WE}|{PROJECT})(?:'re| are| is|'s)?(?: now| currently| only| all| mostly| mainly)? (?:(?:use"
        rf"|uses|using) (?P<what>[^,;]{{2,160}})|(?:run|runs|running|store|stores|rely|relies|depend"
        rf"|depends|host|hosts|target|targets|support|supports|follow|follows|require|requires|work with"
        rf"|develop in|develop with|write|keep|log|log in|log to|track)(?: everything| production| prod"
        rf"| staging| it| all [\w ]+?| (?:\w+ )?(?:code|issues|tickets|docs|secrets|timestamps|logs"
        rf"|bugs))?(?: in| on| with)? (?P<named>[^,;]{{2,160}}))$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT}(?: is|'s| are)(?: now| still| all| currently)? (?:written in|written with"
        rf"|built (?:with|on|in|around|using)|based on|hosted (?:on|at|in)|deployed (?:to|on|with|in)"
        rf"|managed (?:with|by)|running on|on|using|in|pure) (?P<named>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT} (?:is|are) (?P<tech>(?!not\b|down|broken|failing|still|too|slow|in\b)[^,;]{{2,60}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT}(?: is|'s) (?P<what>an? (?:[\w.+#-]+ ){{0,3}}(?:monorepo|app|service|library|framework"
        rf"|cli|tool|package|platform|plugin|spa|pwa|api|microservice|monolith|website|extension|bot|game"
        rf"|sdk|server|workspace)s?\b[^,;]{{0,120}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT} (?:lives? (?:in|at|under|on)|sits? (?:in|on|behind)|talks to|exposes|ships as"
        rf"|comes from) (?P<what>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
)


DEPLOY = re.compile(
    rf"^(?:{WE}|{PROJECT})(?:'re| are| is|'s)?(?: now| always| only| usually)? (?:deploy|deploys"
    rf"|deployed|deploying|ship|ships|release|releases|released)(?: \w+)? (?P<how>with|to|on|via|using"
    rf"|every|by|twice|once|weekly|daily|monthly)\b ?(?P<what>[^,;]{{0,120}})$",
    re.IGNORECASE,
)


IS = re.compile(
    r"^(?:the|our) (?:project'?s? )?(?P<what>database|db|cache|queue|message broker|ci|cloud|linter"
    r"|formatter|bundler|orm|test runner|package manager|test framework|orchestrator|default branch"
    r"|main branch|code style|style guide|coding style|ticket system|issue tracker|wiki|license"
    r"|licence|minimum python version|python version|node version|target platform|staging url"
    r"|tech stack|stack|language|main language|repo(?:sitory)?)(?: here| in this (?:repo|project)"
    r"| we use| for this project)? (?:is|runs on|are) (?P<value>[^,;]{2,80})$",
    re.IGNORECASE,
)


OURS = re.compile(
    r"^our (?P<what>(?!closest|best|first|last|current|favou?rite|problem|issue|question|error|bug"
    r"|goal|plan|task|next|idea|biggest|main (?:problem|issue|goal)|guess"
    r"|only)[\w'-]+(?: [\w-]+){0,2}) (?:is|are|has moved to|moved to)(?: called| named| now"
    r"| on)? (?P<value>(?-i:[A-Z0-9])[^,;]{1,60})$|^we(?:'re| are) (?P<kind>an? (?:\w+ )?(?:team"
    r"|company|start-?up|agency|studio|shop|non-?profit|law firm|clinic|school"
    r"|lab)\b[^;]{0,80})$",
    re.IGNORECASE,
)
"""What "we" have or are, when it is named."""


DEADLINE = re.compile(
    r"^(?:the|our) (?P<what>(?:[\w-]+ ){0,3}(?:deadline|launch(?: date)?|release date|due date"
    r"|go-live(?: date)?|code freeze)"
    r"(?: (?:for|of) [\w -]{2,30}?)?) (?:is|has been|was)(?: now)? (?:on |set (?:for|to) |moved to "
    r"|due )?(?P<when>(?:the )?"
    r"(?=.{0,20}(?:\d|january|february|march|april|may|june|july|august|september|october|november|december|mon|tues|wednes"
    r"|thurs|fri|satur|sun|end of))[\w ,./-]{3,30})$",
    re.IGNORECASE,
)
_WORK = (
    r"(?:deploy|release|ship|demo|plan|review|groom|refine|sync|invoice|bill|pay|publish|merge|cut|tag|back up"
    r"|rotate|(?:close|open) (?:the|our)"
    r"|report|have (?:an?|our|the) [\w -]{0,20}(?:stand-?up|meeting|retro\w*|sync|review|demo|planning|call|all-hands))"
)
SCHEDULE = re.compile(
    r"^(?:our|the) (?P<place>(?:[\w-]+ )?(?:shop|store|office|warehouse|restaurant|caf[eé]|clinic|studio|school"
    r"|library)"
    r"(?: opens| closes| is open| is closed)) (?P<open>(?:at|on|in|from|until|between|every) .{2,40})$|^(?:our "
    r"|the )?(?P<regular>invoices|salaries|payroll|backups|reports|releases|deploys|deployments|builds|newsletters"
    r"|payslips|orders|bills) (?P<at>(?:go|goes) out|are sent|are paid|run|happen|ship|are due|are made|take place)"
    r" (?P<on>(?:on|at|every|twice|once|by) .{2,40})$|^(?:our |the )(?P<what>(?:[\w -]{2,30}? )?(?:stand-?up"
    r"|meeting|retro(?:spective)?|sprint|demo|planning"
    r"|review|sync|release|freeze|on-?call|fiscal year|quarter|retro|1:1|all-hands))s? (?:is|are"
    r"|starts?|begins?|happens?|takes? place|runs?|ends?) (?P<when>.{0,60}\b(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)days?\b.*|(?:at|in|on|every|from) .{2,60})$|^(?:we|our team|the team) (?:always |usually |only )?"
    rf"{_WORK} (?:[\w-]+ ){{0,5}}?(?P<every>(?:(?:every|each|twice a"
    r"|once a) .{0,30}\b(?:mon|tues|wednes|thurs|fri|satur|sun|week|month|sprint|quarter|day"
    r"|morning)(?:days?|s)?|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b.*)$",
    re.IGNORECASE,
)


FOR = re.compile(
    r" (?:for|in|as) (?:the |our |all )?(?P<purpose>[\w -]{2,40}?)(?= (?:because|since|so)\b|$)", re.IGNORECASE
)


def used(match: re.Match[str] | None) -> str | None:
    """What is used, by the words of a form. After "we", or a verb that may mean anything, it must be a name."""
    if match is None:
        return None
    groups = match.groupdict()
    if groups.get("tech"):
        return groups["tech"] if technology(groups["tech"]) else None
    used = groups.get("named") or groups.get("what") or ""
    says_much = groups.get("named") is None and re.match(PROJECT, match[0], re.IGNORECASE)
    return used if says_much or technology(used) or re.search(r"[A-Z0-9]", used) else None


def choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
    """A choice of something; its property is known when it names one technology that we know."""
    chosen = re.split(r",? (?:over|instead of|rather than)\b", REASON.sub("", what), maxsplit=1, flags=re.IGNORECASE)[0]
    found = technology(chosen)
    purpose = FOR.search(chosen)
    predicate = value = None
    if found:
        tells = purpose and not purpose["purpose"].lower().startswith(found.category[:4])
        predicate = found.category + (f" for {purpose['purpose'].lower()}" if purpose and tells else "")
        value = found.name
    return project_fact(statement, subject, predicate, value, reason=reason)


def project_facts(clause: str, project: str | None) -> list[Sketch]:
    """What the clause says of the project, apart from decisions and conventions."""
    subject = project or "project"
    statement = of_project(clause, project)
    match = IS.match(clause)
    if match:
        what = match["what"].lower()
        found = technology(match["value"])
        predicate = found.category if found else CANONICAL.get(what, what)
        value = found.name if found else match["value"]
        return [project_fact(statement, subject, predicate, value)]
    match = OURS.match(clause)
    if match and not match["what"]:
        return [project_fact(statement)]
    if match:
        what, value = match["what"].lower(), match["value"] or match["kind"]
        found = technology(value)
        predicate = found.category if found else CANONICAL.get(what, what)
        return [project_fact(statement, subject, predicate, found.name if found else value)]
    match = SCHEDULE.match(clause)
    if match:
        what = (match["what"] or match["regular"] or match["place"] or "").lower()
        when = match["when"] or match["every"] or match["on"] or match["open"]
        return [project_fact(statement, subject, f"{what} is", when) if what else project_fact(statement)]
    match = DEADLINE.match(clause)
    if match:
        return [project_fact(statement, subject, f"{match['what'].lower()} is", match["when"])]
    match = DEPLOY.match(clause)
    if match:
        found = technology(match["what"])
        predicate = f"deploys {match['how'].lower()}" if found is None else found.category
        value = found.name if found else match["what"] or match["how"]
        return [project_fact(statement, subject, predicate, value)]
    for pattern in USES:
        match = pattern.match(NOT_OLD.sub(r"\g<kept>", clause))
        what = used(match)
        if what and not EMPTY_OBJECT.match(what):
            sketch = choice(what, statement, subject, PROJECT_FACT)
            swapped = NOT_OLD.match(clause)
            return [sketch._replace(replaces=swapped["old"] if swapped else None)]
    return []
