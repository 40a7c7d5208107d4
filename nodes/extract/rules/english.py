"""What English sentences say that is worth keeping. Conservative: a sentence that fits no form says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish
from everthread.nodes.extract.rules.topics import preference, technology
from everthread.nodes.extract.rules.when import due

__all__ = ["read", "third_person"]

_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|hi|hello|hey|well|so|also|and|but|oh|right|great|thanks|thank you|fyi"
    r"|btw|by the way|one more thing|anyway"
    r"|for context|for the record|just so you know|note that|as i said|yes|yeah|yep|sure|cool"
    r"|perfect|good)(?: there| again)?\s*[,:.!—-]?\s+)+",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|wait|sorry)(?=\s*[,:;.—-])|oops|hmm|actually|correction"
    r"|to correct myself|i (?:misspoke|made a mistake)|let me correct that"
    r"|i meant(?: that| to say)?|that'?s (?:wrong|not right|incorrect))\s*[,:;.—-]*\s*)+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^(?:please |can you |could you |pls )*(?:always )?(?:remember|keep in mind|make a note"
    r"|note down|don'?t forget"
    r"|save(?: this)?(?: to (?:your )?memory)?|memori[sz]e)(?: for (?:later|next time|the future))?"
    r"(?:\s*:\s*|\s+that\s+|,?\s+(?=(?:i|my|we|our|the project)\b))",
    re.IGNORECASE,
)
_REMINDER = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|remember|don'?t forget)\s+(?:to\s+)?"
    r"(?P<what>(?!(?:what|where|who|how|why|which|whether|again)\b).+)$",
    re.IGNORECASE,
)
_REMINDS = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|(?:remember|don'?t forget) to)\b",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(r"^(?P<who>i|we|i'?m|i am|we'?re|we are) no longer (?P<rest>.+)$", re.IGNORECASE)
_NOT_ANY_MORE = re.compile(r"^(?P<who>i|we) (?:don'?t|do not) (?P<rest>.+?),? (?:any ?more|any longer)$", re.IGNORECASE)
_NOT_OLD = re.compile(r"^(?P<kept>.+?),? (?:and )?not (?P<old>[\w .+#-]{2,40})$", re.IGNORECASE)
_SWAP = (
    re.compile(
        r"^(?:it'?s|it is|it was|it should be|that should be"
        r"|the [\w ]{2,30} is) not (?P<old>[^,]{1,60}),?;? (?:but|it'?s"
        r"|it is) (?P<new>[^,]{1,60})$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?:it'?s|it is|that'?s|it should be) (?P<new>[^,]{1,60}),? not (?P<old>[^,]{1,60})$", re.IGNORECASE),
    re.compile(r"^not (?P<old>[^,]{1,60}),? but (?P<new>[^,]{1,60})$", re.IGNORECASE),
    re.compile(r"^(?P<new>[^,]{1,60}), not (?P<old>[^,]{1,60})$", re.IGNORECASE),
)
_STANDING = re.compile(
    r"^(?:please )?(?:from now on|from here on|going forward|in (?:the )?future|as a rule"
    r"|by default|in general|every time|each time"
    r"|whenever you (?:answer|reply|write))\s*,?\s*(?P<what>.{3,200})$"
    r"|^(?P<always>(?:please )?(?:always|never|don'?t ever) .{3,200})$"
    r"|^(?:please )?(?P<late>.{3,200}?),? (?:from now on|from here on|going forward|in (?:the )?future)$",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^(?:please |always |never |do not |don'?t |don'?t ever |no )*(?:answer|reply|respond"
    r"|write|use|keep|call|give|show|explain|format|avoid|skip|include|add"
    r"|put|start|end|make|send|ask|stop|speak|talk|prefer|run|commit|sign|address|refer|be"
    r"|leave|omit|mention|create|need|tests?|i want|i'?d like)\b",
    re.IGNORECASE,
)
_FOR_AGENT = re.compile(
    r"^(?:please )?(?:always|never|don'?t ever) (?:answer|reply|respond|write|use|call me"
    r"|address me|include|format|explain|show me"
    r"|give me|ask me|run|commit|send me|sign|add|cite|avoid|quote|create|push|deploy)\b",
    re.IGNORECASE,
)
"""A bare "always" or "never" is often a saying ("never give up"): these are things that an agent does."""
_SHORT_LIVED = re.compile(
    r"^(?:please |let'?s |do not |don'?t |we don'?t need |i don'?t need |i prefer |i want "
    r"|i'?d like )*(?:answer|reply|respond|write|use|keep|skip|no |do not|don'?t"
    r"|avoid|leave|omit|create|add|run|tests?|make|i prefer|we don'?t need|i don'?t need|short|long)\b",
    re.IGNORECASE,
)
_NICKNAME = re.compile(
    r"^(?:(?i:let'?s|we(?:'ll| will| can)|i(?:'ll| will)|please|from now on),?\s+)?(?i:call"
    r"|refer to|name) (?P<what>it|this|that|(?:this|the|our|my)"
    r" [\w -]{2,40}?)(?: as)? (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)?)(?P<tail> .*)?$"
)

_EMPTY_OBJECT = re.compile(
    r"^(?:this|that|these|those|it|them|your|you|how|what|when|where|the (?:idea|way|answer"
    r"|look|first|second|last|new|other)|to (?:know|see|hear|ask)"
    r"|one|both|neither|either|everything|something|nothing|option)\b",
    re.IGNORECASE,
)
_ROLE = (
    r"(?:engineer|developer|programmer|designer|manager|teacher|nurse|doctor|physician|lawyer"
    r"|student|scientist|analyst|researcher"
    r"|writer|journalist|architect|consultant|accountant|administrator|admin|director|founder"
    r"|ceo|cto|lead|professor|lecturer"
    r"|chef|pilot|photographer|musician|artist|electrician|plumber|mechanic|translator|editor"
    r"|librarian|pharmacist|dentist"
    r"|therapist|psychologist|biologist|chemist|physicist|mathematician|economist|statistician"
    r"|historian|freelancer|intern"
    r"|maintainer|sysadmin|dba|sre|product owner|scrum master|salesperson|recruiter|farmer"
    r"|firefighter|paramedic|veterinarian)"
)
_RELATION = (
    r"(?:wife|husband|partner|son|daughter|mother|father|brother|sister|dog|cat|manager|boss"
    r"|team ?lead|mentor|native language"
    r"|mother tongue|job|job title|title|role|profession|occupation|employer|company|team"
    r"|department|editor|shell|operating system|os"
    r"|time ?zone|birthday|hometown|nickname|pronouns|username|github (?:handle|username)"
    r"|favou?rite [\w ]{2,30}|preferred [\w ]{2,30})"
)
_NAME = r"[A-ZÀ-Ý][\w'’.-]*(?: [A-ZÀ-Ý][\w'’.-]*){0,3}"
_SO_WHAT = re.compile(r",? (?:but|so|because|since|as|which|while)\b.*$", re.IGNORECASE)
_AND_MORE = re.compile(r",? (?:and|but|so|because|since|as|which|while)\b.*$", re.IGNORECASE)


class _Form(NamedTuple):
    """A form of sentence and what it says. `predicate` may name a group of the pattern in braces."""

    pattern: re.Pattern[str]
    predicate: str
    reason: str
    content_type: str = "fact"


def _form(pattern: str, predicate: str, reason: str, content_type: str = "fact", *, case: bool = False) -> _Form:
    return _Form(re.compile(rf"^{pattern}$", 0 if case else re.IGNORECASE), predicate, reason, content_type)


_SELF = "the user said it about themselves"
_TASTE = "the user stated a liking"
_ABOUT_USER = (
    _form(rf"[Mm]y (?:full |first )?name(?: is|'s) (?P<value>{_NAME})", "name", _SELF, case=True),
    _form(rf"(?:[Pp]lease )?[Cc]all me (?P<value>{_NAME})", "wants to be called", _SELF, "preference", case=True),
    _form(
        rf"i(?:'m| am) (?:an?|the) (?P<value>(?:[\w+#/-]+ ){{0,4}}{_ROLE})(?:,? (?:at|for|in|with"
        rf"|on|and|who|working) .+)?",
        "role",
        _SELF,
    ),
    _form(
        rf"i work as (?:an?|the) (?P<value>(?:[\w+#/-]+ ){{0,4}}{_ROLE})(?:,? (?:at|for|in|with) .+)?", "role", _SELF
    ),
    _form(
        rf"[Ii](?:'m| am)?(?: currently| now)? (?:work|working|employed) (?:at"
        rf"|for) (?P<value>{_NAME})(?:,? (?:in|as|on|and|since) .+)?",
        "employer",
        _SELF,
        case=True,
    ),
    _form(
        rf"[Ii](?:'m| am)?(?: currently| now)? (?:live|living"
        rf"|based) in (?P<value>{_NAME}(?:, {_NAME})?)(?:,? (?:with|and|now|since|near) .+| now)?",
        "lives in",
        _SELF,
        case=True,
    ),
    _form(
        rf"[Ii](?:'ve| have)?(?: just"
        rf"| recently)? moved (?:from {_NAME} )?to (?P<value>{_NAME}(?:, {_NAME})?)(?:,? (?:last|in"
        rf"|this|with|from|and) .+)?",
        "lives in",
        _SELF,
        case=True,
    ),
    _form(rf"[Ii](?:'m| am)(?: originally)? from (?P<value>{_NAME})", "comes from", _SELF, case=True),
    _form(r"i(?:'m| am)(?: severely| very| highly| also)? allergic to (?P<value>[\w ,/-]{2,60})", "allergic to", _SELF),
    _form(r"i have an? (?:severe |bad )?(?P<value>[\w-]{2,30}(?: [\w-]{2,30})?) allergy", "allergic to", _SELF),
    _form(r"i(?:'m| am)(?: an?| strictly)? (?P<value>vegetarian|vegan|pescatarian|teetotal(?:er)?)", "diet", _SELF),
    _form(r"i (?:don'?t|do not|never) (?:eat|drink) (?P<value>[\w ,/-]{2,60})", "does not eat", _SELF),
    _form(r"i speak (?:fluent |native )?(?P<value>[\w ,]{3,60})", "speaks", _SELF),
    _form(
        r"i have (?P<value>(?:an?|one|two|three|four|\d+) (?:\w+ )?(?:kids?|child(?:ren)?|sons?"
        r"|daughters?|dogs?|cats?|brothers?|sisters?)(?: (?:named|called) .{2,60})?)",
        "has",
        _SELF,
    ),
    _form(
        rf"my (?P<what>{_RELATION})(?: is|'s name is| are) (?:called |named |on )?(?P<value>[^,;]{{1,60}}?)(?: - .*)?",
        "{what}",
        _SELF,
    ),
    _form(
        r"i(?: really| also)? (?:like|love|enjoy|adore) (?P<value>[^,;]{2,80}?)(?: too| a lot"
        r"| so much)?",
        "likes",
        _TASTE,
        "preference",
    ),
    _form(
        r"i(?: really| also)? (?:dislike|hate|loathe|can'?t stand|(?:don'?t|do not) like) (?P<value>[^,;]{2,80})",
        "dislikes",
        _TASTE,
        "preference",
    ),
    _form(
        r"i(?: always| usually| mostly| mainly| only)? use (?P<value>[\w.+# -]{2,40}?)(?: (?:for"
        r"|as|on|at|to|with|when) .{2,60})?",
        "uses",
        _SELF,
    ),
)
_PREFER = re.compile(
    r"^i(?: always| usually| generally| much| strongly| still| really)? prefer (?:to (?:have"
    r"|get|see|use|read) )?(?P<what>.{2,160})$",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"^(?P<value>.{2,60}?),? (?:over|to|rather than|instead of|more than) (?P<other>.{2,60})$", re.IGNORECASE
)

_WE = r"(?:we|our team|the team)"
_PROJECT = (
    r"(?:(?:the|our|this) (?:[\w-]+ )?(?:project|repo(?:sitory)?|service|backend|back end"
    r"|frontend|front end|api|app(?:lication)?|codebase|system|pipeline|product|platform|site"
    r"|website|database|db|ci|build))"
)
_DECIDED = (
    re.compile(
        rf"^{_WE}(?:'ve| have)? (?:just |finally |now )?(?:decided|agreed|chose|opted)(?: today"
        rf"| together)? (?:to|that|on|for|against) (?P<what>.{{3,300}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_WE}(?:'ve| have)? (?:just |finally |now )?(?:chose|chosen|picked|selected|settled on"
        rf"|standardi[sz]ed on|went with|(?:a|')?re going with"
        rf"|are going with) (?P<what>.{{2,300}})$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?:the|our) (?:final )?decision(?: is|:|was)(?: to| that)? (?P<what>.{3,300})$", re.IGNORECASE),
    re.compile(r"^it(?: was|'s been| has been) decided (?:to|that) (?P<what>.{3,300})$", re.IGNORECASE),
    re.compile(
        r"^let'?s (?:go with|use|stick with|settle on) (?P<what>.{2,120} (?:because|since) .{3,160})$", re.IGNORECASE
    ),
)
_USES = (
    re.compile(
        rf"^(?:{_WE}|{_PROJECT})(?:'re| are| is)?(?: now| currently)? (?:use|uses|using|run|runs"
        rf"|running|store|stores|rely|relies|depend|depends)(?: on)? (?P<what>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_PROJECT} is (?:written in|built (?:with|on|in)|based on|hosted on|deployed (?:to|on"
        rf"|with)) (?P<what>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
)
_DEPLOY = re.compile(
    rf"^(?:{_WE}|{_PROJECT})(?:'re| are| is)?(?: now)? (?:deploy|deploys|deployed|deploying"
    rf"|ship|release)(?: \w+)? (?P<how>with|to|on|via|using|every|by) (?P<what>[^,;]{{2,120}})$",
    re.IGNORECASE,
)
_IS = re.compile(
    r"^(?:the|our) (?:project'?s? )?(?P<what>database|db|cache|queue|ci|cloud|linter"
    r"|package manager|test framework|orchestrator|default branch|main branch|code style"
    r"|license|licence|minimum python version|python version|target platform|staging url"
    r"|repo(?:sitory)?) (?:is|runs on) (?P<value>[^,;]{2,80})$",
    re.IGNORECASE,
)
_CONVENTION = re.compile(
    r"^(?:in this (?:project|repo(?:sitory)?|codebase|team),? (?:we )?(?P<what>(?:always "
    r"|never |don'?t |do not )?\w+ .{3,160})"
    r"|our convention is (?:to |that )?(?P<rule>.{3,160}))$",
    re.IGNORECASE,
)
_FOR = re.compile(
    r" (?:for|in|as) (?:the |our |all )?(?P<purpose>[\w -]{2,40}?)(?= (?:because|since|so)\b|$)", re.IGNORECASE
)
_REASON = re.compile(r",? (?:because|since|so that|as it|due to) .+$", re.IGNORECASE)
_CANONICAL = {
    "db": "database",
    "main branch": "default branch",
    "ci": "CI",
    "licence": "license",
    "repo": "repository",
    "python version": "minimum python version",
}


def read(sentence: str, said_at: datetime, project: str | None) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations."""
    clause = _OPENING.sub("", sentence.strip()).rstrip(" .!;?")
    corrected = _CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    if _REMINDS.match(clause):
        return _reminders(clause, said_at)
    asked = _REMEMBER.sub("", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_question(sentence) or wording.is_guess(clause) or wording.is_reported(clause):
        return []
    found = [
        sketch
        for part in _parts(clause)
        for sketch in _retraction(part, project) or _one(part, project, corrects=corrects)
    ]
    if not found and explicit and len(clause.split()) > 1 and not _TO_LISTENER.search(clause):
        found = [_told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


def _parts(clause: str) -> list[str]:
    """ "My name is Ana and I work at Acme" says two things."""
    return re.split(r",? and (?=(?:I|i|my|My|we|We)(?:'\w+)? )", clause)


def _one(clause: str, project: str | None, *, corrects: bool) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        _nickname,
        _short_lived,
        _standing,
        _about_project,
        _preferred,
        _about_user,
    )
    for reader in readers:
        found = reader(clause, project)
        if found:
            return found
    return _swap(clause, project) if corrects or clause.lower().startswith(("it", "not ", "that")) else []


def _reminders(clause: str, said_at: datetime) -> list[Sketch]:
    match = _REMINDER.match(clause)
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
    match = _NO_LONGER.match(clause) or _NOT_ANY_MORE.match(clause)
    if match is None:
        return []
    held = f"{match['who']} {match['rest']}"
    before = _about_project(held, project) or _preferred(held, project) or _about_user(held, project)
    return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]


def _swap(clause: str, project: str | None) -> list[Sketch]:
    """ "It's Lyon, not Paris": only what is known says what it is about, so the extractor looks the old value up."""
    match = next((found for pattern in _SWAP if (found := pattern.match(clause))), None)
    if match is None:
        return []
    new, old = match["new"].strip(), match["old"].strip()
    return [Sketch(_capital(clause), "the user corrected it", value=new, replaces=old, corrects=True)]


def _nickname(clause: str, project: str | None) -> list[Sketch]:
    match = _NICKNAME.match(clause)
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
    if not _SHORT_LIVED.match(core):
        # A fact that holds for a while only is no lasting fact, and no agreement either.
        return [sketch._replace(reach=reach) for sketch in _about_project(core, project) + _about_user(core, project)]
    return [
        passing_limit(
            f"For the current {'conversation' if reach == 'session' else 'task'}: {clause}.", preference(clause), reach
        )
    ]


def _standing(clause: str, project: str | None) -> list[Sketch]:
    match = _STANDING.match(clause)
    if match is None:
        return []
    what = (match["what"] or match["always"] or match["late"]).strip()
    inner = _about_project(what, project) or _preferred(what, project) or _nickname(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in _about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if not (_FOR_AGENT if match["always"] else _IMPERATIVE).match(what):
        return []
    of_project = bool(re.search(r"\bin this (?:project|repo(?:sitory)?|codebase)\b", what, re.IGNORECASE))
    statement = _capital(f"{_project_name(project)}: {what}.") if of_project else f"The user wants from now on: {what}."
    return [standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)]


def _preferred(clause: str, project: str | None) -> list[Sketch]:
    match = _PREFER.match(clause)
    if match is None or _EMPTY_OBJECT.match(match["what"]):
        return []
    what = _REASON.sub("", match["what"])
    statement, reason = f"{third_person(clause)}.", "the user stated a preference"
    replaced = re.match(r"^(?P<what>.+?), not (?P<old>.+)$", what, re.IGNORECASE)
    what = replaced["what"] if replaced else what
    over = _OVER.match(what)
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
    kept = _NOT_OLD.match(clause)
    bare = kept["kept"] if kept else clause
    for form in _ABOUT_USER:
        match = form.pattern.match(_SO_WHAT.sub("", bare)) or form.pattern.match(_AND_MORE.sub("", bare))
        if match is None:
            continue
        value = match["value"].strip(" .")
        if _EMPTY_OBJECT.match(value) or (form.reason == _TASTE and not _is_lasting_taste(value)):
            return []
        predicate = form.predicate.format(**{name: (found or "").lower() for name, found in match.groupdict().items()})
        sketch = Sketch(
            f"{third_person(match[0])}.",
            form.reason,
            form.content_type,
            subject="user",
            predicate=_CANONICAL.get(predicate, predicate),
            value=value,
            concerns="decision" if form.content_type == "preference" else None,
            replaces=kept["old"] if kept else None,
        )
        return [sketch]
    return []


_OF_THE_MOMENT = re.compile(
    r"\b(?:this|that|these|those|it|them|him|her|his|he|she|they|your|you|what|how|thought"
    r"|idea|color|colour)\b|^(?:the|to|a lot|having|being"
    r"|seeing|making|getting|entering|finding|sharing|hearing)\b| - ",
    re.IGNORECASE,
)


def _is_lasting_taste(value: str) -> bool:
    """A liking of a kind of thing, in a few words; not of what is being looked at (R101)."""
    return len(value.split()) <= 6 and not _OF_THE_MOMENT.search(value)


def _about_project(clause: str, project: str | None) -> list[Sketch]:
    subject = project or "project"
    statement = _of_project(clause, project)
    for pattern in _DECIDED:
        match = pattern.match(clause)
        if match and not _EMPTY_OBJECT.match(match["what"]) and _is_lasting_choice(match["what"]):
            return [_choice(match["what"], statement, subject, "a decision that was made")]
    match = _IS.match(clause)
    if match:
        what = match["what"].lower()
        found = technology(match["value"])
        predicate = found.category if found else _CANONICAL.get(what, what)
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
    match = _DEPLOY.match(clause)
    if match:
        found = technology(match["what"])
        predicate = f"deploys {match['how'].lower()}" if found is None else found.category
        value = found.name if found else match["what"]
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
    for pattern in _USES:
        match = pattern.match(_NOT_OLD.sub(r"\g<kept>", clause))
        if match and not _EMPTY_OBJECT.match(match["what"]):
            sketch = _choice(match["what"], statement, subject, "a fact about the project")
            swapped = _NOT_OLD.match(clause)
            return [sketch._replace(replaces=swapped["old"] if swapped else None)]
    match = _CONVENTION.match(clause)
    if match:
        return [
            Sketch(
                statement, "a convention of the project", "procedural", "procedural", subject=subject, owner="project"
            )
        ]
    return []


_TO_LISTENER = re.compile(r"\b(?:you|your|yourself|you'?re|let'?s)\b", re.IGNORECASE)
_CHOOSES = re.compile(
    r"^(?:use|adopt|switch (?:over )?to|move (?:over )?to|migrate|standardi[sz]e|deploy"
    r"|release|require|encrypt|version|store|split|drop"
    r" support)\b(?! (?:this|that|these|those|it|them|our|my|the (?:rest|money|time))\b)",
    re.IGNORECASE,
)


def _is_lasting_choice(what: str) -> bool:
    """A decision about how the project is done, or one with its reason; "we decided to wait" is neither."""
    return bool(technology(what) or _REASON.search(what) or _CHOOSES.search(what))


def _choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
    """A choice of something; its property is known when it names one technology that we know."""
    chosen = re.split(r",? (?:over|instead of|rather than)\b", _REASON.sub("", what), maxsplit=1, flags=re.IGNORECASE)[
        0
    ]
    found = technology(chosen)
    purpose = _FOR.search(chosen)
    predicate = value = None
    if found:
        tells = purpose and not purpose["purpose"].lower().startswith(found.category[:4])
        predicate = found.category + (f" for {purpose['purpose'].lower()}" if purpose and tells else "")
        value = found.name
    return Sketch(statement, reason, subject=subject, predicate=predicate, value=value, owner="project")


def _told_to_keep(clause: str, project: str | None) -> Sketch:
    """Something that the user asked to remember and that fits no form: their own words."""
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{_PROJECT}|we|our)\b", clause, re.IGNORECASE))
    statement = _of_project(clause, project) if about_project else f"{third_person(clause)}."
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)


def _project_name(project: str | None) -> str:
    return f"Project {project}" if project else "The user's project"


def _of_project(clause: str, project: str | None) -> str:
    """The clause with its project named: "we" and "the project" mean nothing in another conversation."""
    named = re.sub(r"^(?:the|our|this) project(?=\s)", _project_name(project), clause, flags=re.IGNORECASE)
    return f"{named}." if named != clause else f"{_project_name(project)}: {clause}."


_PAST = frozenset(
    "was were had did got made went took came saw knew thought found gave told became left "
    "felt put brought began kept held wrote stood"
    " heard let meant met ran paid sat spoke led grew lost fell sent built understood drew "
    "broke spent cut rose drove bought wore chose"
    " can could will would shall should may might must cannot".split()
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
    r"|generally|never|really|only|just|still|mostly|mainly|often|much"
    r"|strongly|currently|now|recently))*)(?:\s+(?P<verb>[a-z']+))?",
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
