"""What English sentences say that is worth keeping. Conservative: a sentence that fits no form says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.english_forms import (
    ABOUT_USER,
    AFTERTHOUGHT,
    AND_MORE,
    CANONICAL,
    CONVENTION,
    CORRECTION,
    DECIDED,
    DEPLOY,
    EMPTY_OBJECT,
    FOR,
    FOR_AGENT,
    HABIT,
    IMPERATIVE,
    IS,
    NAME,
    NICKNAME,
    NO_LONGER,
    NO_MORE,
    NOT_ANY_MORE,
    NOT_OLD,
    OPENING,
    OURS,
    OVER,
    OVER_TO,
    PREFER,
    PROJECT,
    REASON,
    REMEMBER,
    REMINDER,
    REMINDS,
    SCHEDULE,
    SHORT_LIVED,
    SO_WHAT,
    STANDING,
    SWAP,
    TASTE,
    TENDENCY,
    TRAILING,
    USES,
    WISH,
)
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish
from everthread.nodes.extract.rules.topics import preference, technology
from everthread.nodes.extract.rules.when import due

__all__ = ["read", "third_person"]


def read(sentence: str, said_at: datetime, project: str | None, *, listed: bool = False) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations. `listed`: it
    stands in a list of preferences, so a plain imperative is meant for every time.

    A sentence is read whole, and when that says nothing, part by part: "I'm in Oslo, so what time is it there?"
    """
    clause = _bare(spelled_out(sentence))
    corrected = CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    if REMINDS.match(clause):
        return _reminders(clause, said_at)
    asked = REMEMBER.sub("", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_guess(clause) or wording.is_reported(clause) or wording.is_past(clause):
        return []
    asks = wording.is_question(sentence) and not (wording.is_request(sentence) and wording.is_lasting(sentence))
    if asks and not wording.tells(sentence):
        return []
    found: list[Sketch] = [] if asks else _said(clause, project, corrects=corrects, listed=listed)
    if not found:
        parts = [_bare(CORRECTION.sub("", part)) for part in wording.clauses(clause)]
        told = parts[:-1] if asks else parts
        headed = _HEADED.match(clause)
        if headed and not _HANDS_OVER.search(headed["head"]):
            parts = told = [_bare(headed["tail"])]
        if len(parts) > 1 or headed:
            found = [
                sketch
                for part in told
                if not wording.is_question(part)
                for sketch in _said(part, project, corrects=corrects, listed=listed)
            ]
    if not found and explicit and len(clause.split()) > 1 and not _SAYS_NOTHING.search(clause):
        found = [_told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


def _bare(clause: str) -> str:
    """The clause without what leads up to it and what trails behind it."""
    stripped = OPENING.sub("", clause.strip()).rstrip(" .!;?:")
    return TRAILING.sub("", stripped) or stripped


_HEADED = re.compile(
    r"^(?P<head>\S+(?: \S+){1,6}):\s+(?P<tail>(?:i|i'm|we|my|our|please|always|never|no)\b.+)$", re.IGNORECASE
)
_HANDS_OVER = re.compile(
    r"\b(?:title|subject|bio|text|message|e-?mail|caption|headline|example|prompt|lyrics|quote|line"
    r"|sentence|input|output|post|tweet|story|letter|poem|slogan|script|dialogue|essay|name|character"
    r"|persona|client|customer|user|agent|speaker|following|below|one|about|from|by|for)$",
    re.IGNORECASE,
)
"""What stands before a colon when the words after it are somebody else's, or a text to work on."""
_SHORTHAND = (
    (re.compile(r"\bi(?:am|m)\b(?!\w)(?!\.)", re.IGNORECASE), "I'm"),
    (re.compile(r"\bive\b", re.IGNORECASE), "I've"),
    (re.compile(r"\b(do|does|did|is|are|was|were|have|has|would|should|could)nt\b", re.IGNORECASE), r"\1n't"),
    (re.compile(r"\bcant\b", re.IGNORECASE), "can't"),
    (re.compile(r"\b(?:pls|plz)\b", re.IGNORECASE), "please"),
    (re.compile(r"\bu\b"), "you"),
    (re.compile(r"[’‘]"), "'"),
)


def spelled_out(sentence: str) -> str:
    """The sentence with the usual slips and short forms of typing written out: "im", "dont", "pls", "u"."""
    for short, whole in _SHORTHAND:
        sentence = short.sub(whole, sentence)
    return sentence


def _said(clause: str, project: str | None, *, corrects: bool, listed: bool) -> list[Sketch]:
    return [
        sketch
        for part in _parts(clause)
        for sketch in _retraction(part, project) or _one(part, project, corrects=corrects, listed=listed)
    ]


def _parts(clause: str) -> list[str]:
    """ "My name is Ana and I work at Acme" says two things."""
    found = re.split(r",? and (?=(?:I|i|my|My|we|We)(?:'\w+)? )", clause)
    named = re.match(rf"^(I'm|I am) ({NAME}), (?=an? )", found[0])
    # "I'm Ana, a nurse from Porto" says two things as well.
    return [f"{named[1]} {named[2]}", f"I'm {found[0][named.end() :]}", *found[1:]] if named else found


def _one(clause: str, project: str | None, *, corrects: bool, listed: bool) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        _nickname,
        _short_lived,
        _standing,
        _about_project,
        _preferred,
        _about_user,
        _as_a_rule,
    )
    for reader in readers:
        found = reader(clause, project)
        if found:
            return found
    if listed and IMPERATIVE.match(clause):
        return [_wished(clause, project)]
    return _swap(clause, project) if corrects or clause.lower().startswith(("it", "not ", "that")) else []


def _reminders(clause: str, said_at: datetime) -> list[Sketch]:
    match = REMINDER.match(clause)
    if match is None:
        return []
    when = due(match["what"], said_at)
    what = re.sub(r"^(?:to|about|that) ", "", when.rest if when else match["what"], flags=re.IGNORECASE).strip()
    if not what or (when is None and "remind" not in clause.lower()):
        return []  # "remember to focus": advice, not an errand
    return [
        Sketch(_capital(what), "the user asked to be reminded", kind="prospective", due_at=when.at if when else None)
    ]


def _retraction(clause: str, project: str | None) -> list[Sketch]:
    match = NO_LONGER.match(clause) or NOT_ANY_MORE.match(clause)
    if match is None:
        return []
    held = f"{match['who']} {match['rest']}"
    before = _about_project(held, project) or _preferred(held, project) or _about_user(held, project)
    return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]


def _swap(clause: str, project: str | None) -> list[Sketch]:
    """ "It's Lyon, not Paris": only what is known says what it is about, so the extractor looks the old value up."""
    match = next((found for pattern in SWAP if (found := pattern.match(clause))), None)
    if match is None:
        return []
    new, old = match["new"].strip(), match["old"].strip()
    return [Sketch(_capital(clause), "the user corrected it", value=new, replaces=old, corrects=True)]


def _nickname(clause: str, project: str | None) -> list[Sketch]:
    match = NICKNAME.match(clause)
    if match is None or match["what"].lower() == "me":
        return []
    lasting = bool(re.search(r"from now on|in (?:the )?future", clause, re.IGNORECASE)) and "this" not in match["what"]
    return [
        Sketch(
            f"In this conversation, {match['what']} is called {match['name']}.",
            "a name that this conversation uses",
            subject=match["what"].lower(),
            predicate="is called",
            value=match["name"],
            owner="session",
            reach="lasting" if lasting else "session",
        )
    ]


def _short_lived(clause: str, project: str | None) -> list[Sketch]:
    reach = wording.limits_reach(clause)
    if reach is None:
        return []
    core = re.sub(
        r"^(?:this time|for now|just this once|today|for this [\w ]+?|in this \w+)\s*,\s*",
        "",
        clause,
        flags=re.IGNORECASE,
    )
    if not SHORT_LIVED.match(core):
        # A fact that holds for a while only is no lasting fact, and no agreement either.
        return [sketch._replace(reach=reach) for sketch in _about_project(core, project) + _about_user(core, project)]
    return [
        passing_limit(
            f"For the current {'conversation' if reach == 'session' else 'task'}: {clause}.", preference(clause), reach
        )
    ]


def _standing(clause: str, project: str | None) -> list[Sketch]:
    wish = WISH.match(clause)
    if wish:
        return [_wished(wish["what"], project)]
    no_more = NO_MORE.match(clause)
    if no_more and not _OF_THIS.search(no_more["what"]):
        return [_wished(no_more["what"], project)]
    match = STANDING.match(clause)
    if match is None:
        return []
    what = _bare(match["what"] or match["always"] or match["late"])
    inner = _about_project(what, project) or _preferred(what, project) or _nickname(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in _about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if not (FOR_AGENT if match["always"] else IMPERATIVE).match(what) or _OF_THIS.search(what):
        return []
    conditional = match["what"] and re.match(r"(?:when|whenever|if|every|each|any)\b", clause, re.IGNORECASE)
    return [_wished(clause if conditional else what, project, what)]


_OF_THIS = re.compile(r"\b(?:this|that|these|those|it|them)$|\bthis (?!project|repo|codebase|team)\w+", re.IGNORECASE)


def _wished(said: str, project: str | None, what: str | None = None) -> Sketch:
    """A wish for every time: the user's, or the project's when it says so."""
    what = what or said
    of_project = bool(re.search(r"\bin (?:this|our) (?:project|repo(?:sitory)?|codebase)\b", what, re.IGNORECASE))
    statement = _capital(f"{_project_name(project)}: {what}.") if of_project else f"The user wants from now on: {said}."
    return standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)


def _as_a_rule(clause: str, project: str | None) -> list[Sketch]:
    """What the user wants, or does, as a rule."""
    clause = AFTERTHOUGHT.sub("", clause)
    wants = TENDENCY.match(clause)
    if wants:
        what = (wants["what"] or wants["what2"]).strip()
        if EMPTY_OBJECT.match(what) or (len(what.split()) < 2 and not preference(what)):
            return []
        return [standing_wish(f"{third_person(clause)}.", what, preference(what), project=None)]
    does = HABIT.match(clause)
    if does is None:
        return []
    said = does["what"] or does["every"] or does["off"]
    if re.search(r"\b(?:it|this|that|them|these|those)\b(?! is\b)", said, re.IGNORECASE):
        return []
    return [
        Sketch(f"{third_person(clause)}.", "a habit of the user", subject="user", predicate="as a rule", value=said)
    ]


def _preferred(clause: str, project: str | None) -> list[Sketch]:
    clause = AFTERTHOUGHT.sub("", clause)
    match = PREFER.match(clause)
    if match is None or EMPTY_OBJECT.match(match["what"]):
        return []
    what = REASON.sub("", match["what"])
    statement, reason = f"{third_person(clause)}.", "the user stated a preference"
    replaced = re.match(r"^(?P<what>.+?), not (?P<old>.+)$", what, re.IGNORECASE)
    what = replaced["what"] if replaced else what
    over = OVER.match(what) or OVER_TO.match(what)
    topic = preference(over["value"] if over else what)
    if topic:
        concerns = "expression" if topic.expression else "decision"
        return [
            Sketch(
                statement,
                reason,
                "preference",
                subject="user",
                predicate=topic.predicate,
                value=topic.value,
                concerns=concerns,
            )
        ]
    predicate, value = "prefers", what
    if over:
        pair = sorted((over["value"].lower().strip(), over["other"].lower().strip()))
        predicate, value = f"prefers among {pair[0]} and {pair[1]}", over["value"].strip()
    return [
        Sketch(statement, reason, "preference", subject="user", predicate=predicate, value=value, concerns="decision")
    ]


def _about_user(clause: str, project: str | None) -> list[Sketch]:
    kept = NOT_OLD.match(clause)
    bare = kept["kept"] if kept else clause
    for form in ABOUT_USER:
        match = form.pattern.match(SO_WHAT.sub("", bare)) or form.pattern.match(AND_MORE.sub("", bare))
        if match is None:
            continue
        value = match["value"].strip(" .")
        if EMPTY_OBJECT.match(value) or (form.reason == TASTE and not _is_lasting_taste(value)):
            return []
        predicate = form.predicate.format(**{name: (found or "").lower() for name, found in match.groupdict().items()})
        sketch = Sketch(
            f"{third_person(match[0])}.",
            form.reason,
            form.content_type,
            subject="user",
            predicate=CANONICAL.get(predicate, predicate),
            value=value,
            concerns="decision" if form.content_type == "preference" else None,
            replaces=kept["old"] if kept else None,
        )
        return [sketch]
    return []


_OF_THE_MOMENT = re.compile(
    r"\b(?:this|that|these|those|it|them|their|him|her|his|he|she|they|your|you|what|how|thought|idea"
    r"|color|colour)\b|^(?:the|to|a lot|having|being|seeing|making|getting|entering|finding|sharing"
    r"|hearing)\b| - ",
    re.IGNORECASE,
)


def _is_lasting_taste(value: str) -> bool:
    """A liking of a kind of thing, in a few words; not of what is being looked at (R101)."""
    return len(value.split()) <= 6 and not _OF_THE_MOMENT.search(value)


def _about_project(clause: str, project: str | None) -> list[Sketch]:
    subject = project or "project"
    statement = _of_project(clause, project)
    for pattern in DECIDED:
        match = pattern.match(clause)
        if match is None:
            continue
        moved = match.groupdict().get("named")
        what = moved or match["what"]
        if EMPTY_OBJECT.match(what):
            continue
        if (moved and re.search(r"[A-Z]", moved)) or _is_lasting_choice(what):
            return [_choice(what, statement, subject, "a decision that was made")]
    match = IS.match(clause)
    if match:
        what = match["what"].lower()
        found = technology(match["value"])
        predicate = found.category if found else CANONICAL.get(what, what)
        value = found.name if found else match["value"]
        return [
            Sketch(
                statement,
                "a fact about the project",
                subject=subject,
                predicate=predicate,
                value=value,
                owner="project",
            )
        ]
    match = OURS.match(clause)
    if match:
        what, value = (match["what"] or "").lower(), match["value"] or match["kind"]
        found = technology(value)
        predicate = found.category if found else CANONICAL.get(what, what)
        return [
            Sketch(
                statement,
                "a fact about the project",
                subject=subject if what else None,
                predicate=predicate if what else None,
                value=(found.name if found else value) if what else None,
                owner="project",
            )
        ]
    match = SCHEDULE.match(clause)
    if match:
        what, when = (match["what"] or "").lower(), match["when"] or match["every"]
        return [
            Sketch(
                statement,
                "a fact about the project",
                subject=subject if what else None,
                predicate=f"{what} is" if what else None,
                value=when if what else None,
                owner="project",
            )
        ]
    match = DEPLOY.match(clause)
    if match:
        found = technology(match["what"])
        predicate = f"deploys {match['how'].lower()}" if found is None else found.category
        value = found.name if found else match["what"] or match["how"]
        return [
            Sketch(
                statement,
                "a fact about the project",
                subject=subject,
                predicate=predicate,
                value=value,
                owner="project",
            )
        ]
    for pattern in USES:
        match = pattern.match(NOT_OLD.sub(r"\g<kept>", clause))
        what = _used(match)
        if what and not EMPTY_OBJECT.match(what):
            sketch = _choice(what, statement, subject, "a fact about the project")
            swapped = NOT_OLD.match(clause)
            return [sketch._replace(replaces=swapped["old"] if swapped else None)]
    match = CONVENTION.match(clause)
    if match and not re.search(
        r"\b(?:this|that|these|those|the (?:first|second|same|other)) ?(?:one|way)?$", clause, re.IGNORECASE
    ):
        return [
            Sketch(
                statement, "a convention of the project", "procedural", "procedural", subject=subject, owner="project"
            )
        ]
    return []


def _used(match: re.Match[str] | None) -> str | None:
    """What is used, by the words of a form. After "we", or a verb that may mean anything, it must be a name."""
    if match is None:
        return None
    groups = match.groupdict()
    if groups.get("tech"):
        return groups["tech"] if technology(groups["tech"]) else None
    used = groups.get("named") or groups.get("what") or ""
    says_much = groups.get("named") is None and re.match(PROJECT, match[0], re.IGNORECASE)
    return used if says_much or technology(used) or re.search(r"[A-Z0-9]", used) else None


_TO_LISTENER = re.compile(r"\b(?:you|your|yourself|you'?re|let'?s)\b", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    rf"{_TO_LISTENER.pattern}|^(?:(?:all|every|each|any|no) \w+ (?:must|should|has to|have to)|it'?s?"
    rf"|this|that|that'?s|these|those|there|the [\w ]{{2,30}}? (?:should|must|will|has to|needs to"
    rf"|is an?)|the (?:story|hero|character|target|persona|essay|article|answer|output|response|text"
    rf"|question|example|reader|audience))\b",
    re.IGNORECASE,
)
"""Told to the listener, or about what is being written: said of this task, whatever "remember" it follows."""
_CHOOSES = re.compile(
    r"^(?:use|adopt|switch (?:over )?to|move (?:over )?to|migrate|standardi[sz]e|deploy|release"
    r"|require|encrypt|version|store|split|drop support)\b(?! (?:this|that|these|those|it|them|our|my"
    r"|the (?:rest|money|time))\b)",
    re.IGNORECASE,
)


_FOR_ALL = re.compile(r"^(?:all|every|each|no|new|any) (?!one\b|more\b|longer\b|time\b)[\w-]+", re.IGNORECASE)


def _is_lasting_choice(what: str) -> bool:
    """A decision about how the project is done, or one with its reason; "we decided to wait" is neither."""
    return bool(technology(what) or REASON.search(what) or _CHOOSES.search(what) or _FOR_ALL.match(what))


def _choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
    """A choice of something; its property is known when it names one technology that we know."""
    chosen = re.split(r",? (?:over|instead of|rather than)\b", REASON.sub("", what), maxsplit=1, flags=re.IGNORECASE)[0]
    found = technology(chosen)
    purpose = FOR.search(chosen)
    predicate = value = None
    if found:
        tells = purpose and not purpose["purpose"].lower().startswith(found.category[:4])
        predicate = found.category + (f" for {purpose['purpose'].lower()}" if purpose and tells else "")
        value = found.name
    return Sketch(statement, reason, subject=subject, predicate=predicate, value=value, owner="project")


def _told_to_keep(clause: str, project: str | None) -> Sketch:
    """Something that the user asked to remember and that fits no form: their own words."""
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{PROJECT}|we|our)\b", clause, re.IGNORECASE))
    statement = _of_project(clause, project) if about_project else f"{third_person(clause)}."
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)


def _project_name(project: str | None) -> str:
    return f"Project {project}" if project else "The user's project"


def _of_project(clause: str, project: str | None) -> str:
    """The clause with its project named: "we" and "the project" mean nothing in another conversation."""
    named = re.sub(r"^(?:the|our|this) project(?=\s)", _project_name(project), clause, flags=re.IGNORECASE)
    return f"{named}." if named != clause else f"{_project_name(project)}: {clause}."


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
    return _capital(text)


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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
