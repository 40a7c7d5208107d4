"""Words and small changes of English text that the readers share."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "AFTERTHOUGHT",
    "AND_MORE",
    "CANONICAL",
    "EMPTY_OBJECT",
    "NAME",
    "NOT_OLD",
    "ONE_THING",
    "PROJECT",
    "REASON",
    "ROLE",
    "SELF",
    "SO_WHAT",
    "TASTE",
    "WE",
    "bare",
    "capital",
    "form",
    "of_project",
    "project_name",
    "third_person",
]

OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|hi|hello|hey|well|so|also|and|but|oh|ah|um|right|great|nice|thanks|thank you"
    r"|thx|ty|fyi|ps|p\.s|btw|by the way|by the by|(?:one|two|some|a few) (?:more |other "
    r"|quick )?(?:things?|notes?|remarks?|preferences?|requests?|rules?)|(?:a )?quick (?:one|note"
    r"|thing)|anyway|anyways|for (?:your )?(?:context|reference|info(?:rmation)?)|some (?:context"
    r"|background)|background|context|heads up|for the record|just so (?:you|u) know|note that"
    r"|as i said|as (?:you|u) (?:may |might )?know|yes|yeah|yep|sure|cool|important|preferences?"
    r"|reminder|update|ok cool|perfect|good|just|please note(?: that)?|(?:you|u) should know(?: that)?"
    r"|to be clear|in case it (?:helps|matters)|for future reference|yo|psst|listen"
    r"|look|ah yes|oh yes|since (?:you|u) asked)(?: there| again| before we (?:start"
    r"|begin))?\s*(?:[,:.!—-]+\s*|\s)\s*)+",
    re.IGNORECASE,
)


NOT_OLD = re.compile(r"^(?P<kept>.+?),? (?:and )?not (?P<old>[\w .+#-]{2,40})$", re.IGNORECASE)


EMPTY_OBJECT = re.compile(
    r"^(?:this|that|these|those|it|them|your|you|my usual|how|what|when|where|the (?:idea|way|answer|look|first"
    r"|second|last|new|other)|to (?:know|see|hear|ask)|ones?|number|#|both|neither|either|everything"
    r"|something|nothing|option)\b",
    re.IGNORECASE,
)


NAME = r"[A-ZÀ-Ý][\w'’.-]*(?: [A-ZÀ-Ý][\w'’.-]*){0,3}"


SO_WHAT = re.compile(r",? (?:but|so|because|since|as|which|while|who|where)\b.*$", re.IGNORECASE)


AND_MORE = re.compile(
    r",? (?:and(?= (?:i|i'?m|i'?ve|my|we|our|he|she|they|it|you|your|the|this|have|am|was|want|need|would|do|don'?t|can"
    r"|could|will|also|now|then|usually|live|work|love|like|hate|please|what|how|where|is|are|looking|trying|currently"
    r"|just|always|never)\b)|but|so|because|since|as|which|while|who|where)\b.*$",
    re.IGNORECASE,
)
ONE_THING = re.compile(r"^(?:an? (?!good\b)|one\b|some\b|the\b)", re.IGNORECASE)
"""One thing, not a kind of things: what is looked for just now."""


TRAILING = re.compile(
    r"(?:,?\s+(?:btw|by the way|lol|haha|fyi|tbh|imo|though|actually|please|pls|thx|thanks|anyway|ok"
    r"|at the moment|these days|nowadays|right now|now|currently|:\)|;\)))+$",
    re.IGNORECASE,
)
"""Words after what was said that add nothing to it."""


ROLE = (
    r"(?:engineer|developer|programmer|designer|manager|teacher|nurse|doctor|physician|lawyer|student"
    r"|scientist|analyst|researcher|writer|journalist|architect|consultant|accountant|administrator"
    r"|admin|director|founder|ceo|cto|lead|professor|lecturer|chef|pilot|photographer|musician|artist"
    r"|electrician|plumber|mechanic|translator|editor|librarian|pharmacist|dentist|therapist"
    r"|psychologist|biologist|chemist|physicist|mathematician|economist|statistician|historian"
    r"|freelancer|intern|maintainer|sysadmin|dba|sre|product owner|scrum master|salesperson|recruiter"
    r"|farmer|firefighter|paramedic|veterinarian|solicitor|barrister|surgeon|midwife|carpenter|welder"
    r"|driver|baker|barista|bartender|waiter|waitress|cook|tailor|builder|contractor|freelance \w+"
    r"|salesman|saleswoman|clerk|secretary|assistant|officer|marketer|trader|banker|actuary|auditor"
    r"|coach|trainer|tutor|principal|postdoc|undergrad(?:uate)?|phd (?:student|candidate)"
    r"|grad(?:uate)? student|data engineer|tester|ux \w+|illustrator|animator|composer|singer"
    r"|guitarist|producer|filmmaker|novelist|poet|blogger|copywriter|technician|geologist|astronomer"
    r"|zoologist|botanist|ecologist|archaeologist|sociologist|anthropologist|linguist|neuroscientist"
    r"|radiologist|physiotherapist|nutritionist|social worker|civil servant|soldier|police officer"
    r"|retiree|pensioner|stay-at-home \w+|entrepreneur|investor|realtor|notary|judge|optician"
    r"|hairdresser|gardener|florist|butcher|fisherman|sailor|captain|flight attendant|dispatcher"
    r"|logistician|planner|surveyor|(?:front|back)[- ]?end (?:dev|engineer|developer)|devops|dev|swe"
    r"|pm|po|qa)"
)


class Form(NamedTuple):
    """A form of sentence and what it says. `predicate` may name a group of the pattern in braces."""

    pattern: re.Pattern[str]
    predicate: str
    reason: str
    content_type: str = "fact"


def form(pattern: str, predicate: str, reason: str, content_type: str = "fact", *, case: bool = False) -> Form:
    return Form(re.compile(rf"^{pattern}$", 0 if case else re.IGNORECASE), predicate, reason, content_type)


SELF = "the user said it about themselves"


TASTE = "the user stated a liking"


AFTERTHOUGHT = re.compile(
    r"(?:,\s*(?:but|so|and i\b|though|although)|\s+so (?!far|much|many|that|as|on))\b.*$", re.IGNORECASE
)


WE = r"(?:we|our team|the team|team|our company|my team)"


PROJECT = (
    r"(?:(?:the (?:[\w-]+ )?(?:project|repo(?:sitory)?|service|backend|back end|frontend|front end|api"
    r"|app(?:lication)?|codebase|code base|system|pipeline|product|platform|site|stack|website"
    r"|database|db|ci|build|production|prod|staging|infra(?:structure)?|dashboard|monorepo|(?:staging"
    r"|prod|production|build|db|web) (?:server|box|machine|host|environment|cluster))|(?:our|this"
    r"|my) (?:[\w-]+ ){0,2}?(?:project"
    r"|repo(?:sitory)?|service|backend|back end|monorepo|frontend|front end|api|app(?:lication)?"
    r"|codebase|code base|system|pipeline|product|platform|site|stack|library|module|package|worker"
    r"|server|cluster|website|database|db|ci|build|production|prod|staging|infra(?:structure)?"
    r"|dashboard|bot|cli|tool)))"
)


REASON = re.compile(r",? (?:because|since|so that|as it|due to) .+$", re.IGNORECASE)


CANONICAL = {
    "db": "database",
    "main branch": "default branch",
    "ci": "CI",
    "licence": "license",
    "repo": "repository",
    "python version": "minimum python version",
}


def bare(clause: str) -> str:
    """The clause without what leads up to it and what trails behind it."""
    stripped = OPENING.sub("", clause.strip()).rstrip(" .!;?:")
    return TRAILING.sub("", stripped) or stripped


def project_name(project: str | None) -> str:
    return f"Project {project}" if project else "The user's project"


def of_project(clause: str, project: str | None) -> str:
    """The clause with its project named: "we" and "the project" mean nothing in another conversation."""
    named = re.sub(r"^(?:the|our|this) project(?=\s)", project_name(project), clause, flags=re.IGNORECASE)
    return f"{named}." if named != clause else f"{project_name(project)}: {clause}."


_PAST = frozenset(
    "was were had did got made went took came saw knew thought found gave told became left felt put "
    "brought began kept held wrote stood heard let meant met ran paid sat spoke led grew lost fell "
    "sent built understood drew broke spent cut rose drove bought wore chose can could will would "
    "shall should may might must cannot".split()
)


_BE = {
    "am": "is",
    "'m": "is",
    "have": "has",
    "'ve": "has",
    "do": "does",
    "don't": "doesn't",
    "dont": "doesn't",
    "'ll": "will",
    "'d": "would",
    "haven't": "hasn't",
}


_SUBJECT = re.compile(
    r"\bI(?!\w)(?P<short>'m|'ve|'ll|'d|’m|’ve|’ll|’d)?(?P<adverbs>(?:\s+(?:also|always|usually"
    r"|typically|normally|primarily|actually|generally|never|really|only|just|still|mostly|mainly"
    r"|often|much|strongly|currently|now|recently))*)(?:\s+(?P<verb>[a-z']+))?",
)


def third_person(clause: str) -> str:
    """What the user says of themselves, said of the user: "I prefer tea" -> "The user prefers tea"."""
    text = re.sub(r"\bi(?=['’ ]|$)", "I", clause)
    text = _SUBJECT.sub(_conjugated, text)
    for mine, theirs in (("my", "the user's"), ("mine", "the user's"), ("myself", "themselves"), ("me", "the user")):
        text = re.sub(rf"\b{mine}\b", theirs, text, flags=re.IGNORECASE)
    return capital(text)


def _conjugated(match: re.Match[str]) -> str:
    short = (match["short"] or "").replace("’", "'")
    verb = (match["verb"] or "").lower()
    adverbs = match["adverbs"] or ""
    if short:
        return f"the user {_BE[short]}{adverbs}" + (f" {verb}" if verb else "")
    return f"the user{adverbs}" + (f" {_third(verb)}" if verb else "")


def _third(verb: str) -> str:
    if verb in _BE:
        return _BE[verb]
    if verb in _PAST or verb.endswith("ed") or "'" in verb:
        return verb
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
