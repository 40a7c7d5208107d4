"""Preferences, standing wishes, habits and passing limits in English sentences."""

from __future__ import annotations

import re

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.english.decision import about_project
from everthread.nodes.extract.rules.english.fact import about_user, nickname
from everthread.nodes.extract.rules.english.words import (
    AFTERTHOUGHT,
    EMPTY_OBJECT,
    ONE_THING,
    REASON,
    bare,
    capital,
    project_name,
    third_person,
)
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish, stated_preference
from everthread.nodes.extract.rules.topics import preference

__all__ = ["IMPERATIVE", "as_a_rule", "preferred", "short_lived", "standing", "wished"]

_FROM_NOW = (
    r"(?:(?:from|starting|as of|effective) (?:now|today|tomorrow|this week|monday|here)(?: on(?:wards?)?)?"
    r"|until further notice|for the future|from (?:now|here|this point) on(?:wards?)?(?: out| in)?"
    r"|from here on out|going forwards?"
    r"|in (?:the )?future|by default|as a (?:general )?rule|in general|for all future \w+)"
)


_IN_ALL = (
    r"(?:in|for|with|on) (?:all|every|each|any)(?: of)?(?: your| my)?(?: future)? (?:replies|reply|answers?|responses?"
    r"|messages?|e-?mails?|explanations?|summar(?:y|ies)|reports?|code|commits?)(?: you \w+(?: for)?(?: me)?)?"
)
_WHEN_ASKED = (
    r"(?:(?:when|whenever|if) i ask (?:you )?(?:for|to|about|what|how|why)\b(?! (?:this|that|these|it|the)\b)[^,]{2,60}"
    r"|(?:when|whenever) (?:you (?:write|answer|reply|explain|quote|show|generate|format|cite|translate|summari[sz]e"
    r"|review)|(?:writing|answering|quoting|formatting|citing|translating|summari[sz]ing|reviewing))"
    r"(?![^,]*\b(?:the|this|that|these|it|them|my|an?)\b)[^,]{0,40}),"
)
"""A kind of occasion, not the one at hand."""
_POLITE = r"(?:please |pls |and |but |(?:can|could|would|will) you )*"


STANDING = re.compile(
    rf"^{_POLITE}(?:{_FROM_NOW}|{_IN_ALL}|{_WHEN_ASKED}|(?:make sure|ensure)(?: that)? (?=(?:all|every|each|any|your) )"
    rf"|generally|(?:every|each|any) time (?:you|i) [^,]{{2,80}},|(?:every|each) time|every single time"
    rf"|at all times|whenever (?:you"
    rf"|i) [^,]{{2,80}}?(?:,|(?= (?:please|can you|could you|always|never) ))|whenever you (?:answer"
    rf"|reply|write)|(?:(?:every|each|any) time|if|when) (?:you|i) [^,]{{2,80}}, (?=(?:please "
    rf"|pls )?(?:always|never)\b))\s*,?\s*(?P<what>.{{3,200}})$|^{_POLITE}(?P<always>(?:always|never"
    rf"|don'?t ever) .{{3,200}})$|^{_POLITE}(?P<late>.{{3,200}}?),? (?:{_FROM_NOW}|all the time|always"
    rf"|every (?:single )?time|at all times|(?:whenever|every time|each time) (?:you|i) .{{3,80}}"
    rf"|in (?:anything|everything|all) you \w+(?: for me)?)$",
    re.IGNORECASE,
)
"""A wish for every time: the mark of it stands first, is "always" or "never", or stands last."""


_ACTS = (
    r"answer|reply|respond|write|use|keep|call|give|show|explain|format|avoid|skip|include|add|put"
    r"|start|end|begin|finish|make|send|ask|stop|speak|talk|prefer|run|commit|sign|address|refer|be"
    r"|leave|omit|mention|create|need|tests?|name|prefix|number|sort|order|group|list|link|cite|quote"
    r"|summari[sz]e|translate|check|lint|type|import|follow|stick|round|convert|state|store|save|book"
    r"|schedule|set|apologi[sz]e|switch|assume|treat|return|log|document|comment|refactor|remove"
    r"|delete|mark|wrap|indent|tell|wait|point|present|spell|suggest|offer|propose|recommend|read|open"
    r"|close|push|pull|merge|squash|rebase|tag|deploy|mock|cc|bcc|copy|attach|double-check|verify"
    r"|confirm|warn|remind|highlight|bold|capitali[sz]e|uppercase|lowercase|abbreviate|shorten|split"
    r"|draft|prepare|measure|print"
)


IMPERATIVE = re.compile(
    rf"^(?:please |pls |just |kindly |always |never |only |do not |don'?t |don'?t ever "
    rf"|no )*(?:(?:{_ACTS})\b|no \w+|(?:all|every|each|any) [\w ]{{2,40}}? you \w+ me\b"
    rf"|i(?:'?d)? (?:want|need|like|prefer|rather)\b(?! to\b)|(?:[\w-]+ ){{1,4}}only$)",
    re.IGNORECASE,
)


FOR_AGENT = re.compile(
    rf"^(?:please |pls )?(?P<mark>always|never|don'?t ever) (?!give up|forget|mind|say never)(?:{_ACTS})\b",
    re.IGNORECASE,
)
"""A bare "always" or "never" is often a saying ("never give up"): these are things that an agent does."""


WISH = re.compile(
    r"^(?:i(?:'d| would) (?:rather|prefer|like|love|appreciate)(?: it)?(?: if)?|i (?:want|need|expect"
    r"|prefer|like)|i'?d rather) (?:that )?(?:you|u)(?: (?:to|would|could))? (?P<what>(?:(?:always"
    r"|never|not|didn'?t|don'?t|stop|avoid|only|first) ).{3,200})$",
    re.IGNORECASE,
)
"""A wish about what the agent does, with a word that makes it last."""


ANNOYED = re.compile(
    r"^i (?:really )?(?:hate|dislike|can'?t stand|don'?t like|do not like) (?:it when|when|how) (?P<what>you (?:always "
    r"|constantly |keep )?[a-z]+ (?!(?:this|that|the)\b).{3,120})$",
    re.IGNORECASE,
)
"""What the agent does that the user does not like."""


NO_MORE = re.compile(
    r"^(?:please |pls |can you |could you )*(?P<what>(?:(?:stop|quit) (?:using|adding|putting"
    r"|calling me|saying|apologi[sz]ing|asking me|giving me|starting|ending|writing)|(?:don'?t"
    r"|do not) call me|never again|no more (?=(?:bullet|emoji|list|table|disclaimer|apolog|exclamation|heading|jargon"
    r"|small talk|filler|hedging|smiley|buzzword))|(?:keep|make) (?:all )?(?:of )?your (?:answers|replies|responses"
    r"|messages|explanations))\b(?!.*\b(?:function|script|file|class|button|page|server|tests?"
    r"|endpoint|module|component|table|column|process|loop|job|service)\b).{0,120})$",
    re.IGNORECASE,
)
"""To stop something that the agent does each time."""


TOWARDS_ME = re.compile(
    r"^(?:please |just )?(?P<what>(?:treat me (?:as|like) |talk to me (?:as|like|in) |speak \w+ (?:with|to) me"
    r"|address me "
    r"|(?:don'?t|do not|never|please) (?=.* in my (?:texts|e-?mails|letters|documents|drafts|code|posts|reports"
    r"|papers)$)"
    r"|you (?:don'?t|do not|never) (?:need|have) to (?=explain|tell|remind|thank|apologi[sz]e|ask|translate|repeat)"
    r"(?!.*\b(?:this|that|it|these|those)\b)).{0,120})$",
    re.IGNORECASE,
)
"""How the agent is to speak to the user: that holds for every time."""


TENDENCY = re.compile(
    r"^i (?:generally|usually|typically|normally|always|tend to|mostly|in general"
    r"|never)(?: really)? (?P<verb>want|like|prefer|need|expect)(?! to\b) (?P<what>.{3,160})$"
    r"|^(?:generally|in general|usually|normally|typically|as a rule),? i(?:'d)? (?P<verb2>want|like"
    r"|prefer|need|expect|rather)(?! to\b) (?P<what2>.{3,160})$",
    re.IGNORECASE,
)
"""What the user wants as a rule."""


_AS_A_RULE = re.compile(
    r"^(?:as a (?:general )?rule|most (?:days|mornings|evenings|weekends)|on weekdays|every \w+day),? (?=i\b)",
    re.IGNORECASE,
)
_NO_HABIT = (
    r"(?:forget|wonder|think|feel|want|need|wish|hope|hear|see|know|get (?!up\b|to work)|end up|mess|try"
    r"|struggle|find|ask"
    r"|say|assume|believe|enjoy|like|love|prefer|hate|have (?:a|trouble|an?|the|to|some|difficult|no|issues)|am|be|was"
    r"|can|could|would|will|make|do (?:this|that|it)|\w+ed\b|went|had|took|got|did|use)\b"
)
HABIT = re.compile(
    r"^i (?:usually|normally|typically|always|generally|tend to|never|only|don'?t"
    r"|do not) (?P<what>(?:start|finish|stop|leave|arrive|work|wake|get up|go to bed|go to the gym"
    r"|commute|travel|fly|eat|drink|wear|buy|watch|have (?:lunch|dinner|breakfast)|take meetings|answer"
    r"|read)\b.{3,120})$"
    rf"|^i (?:usually|normally|typically|generally|tend to) (?P<does>(?!{_NO_HABIT})[a-z]+ .{{3,80}})$"
    r"|^i (?P<every>(?!want|need|would|will|can|could|should|hope|plan|wish|have|had|actually"
    r"|\w+ed\b)[a-z]+ .{2,80}? (?:every|each) (?:day|morning|evening|night|week|weekend|month|monday"
    r"|tuesday|wednesday|thursday|friday|saturday|sunday)s?)$|^i (?:don'?t|do not"
    r"|never) (?P<off>work(?: at all)? on (?:mon|tues|wednes|thurs|fri|satur|sun)days?.{0,60})$",
    re.IGNORECASE,
)
"""What the user does as a rule."""


SHORT_LIVED = re.compile(
    r"^(?:please |let'?s |do not |don'?t |we don'?t need |i don'?t need |i prefer |i want |i'?d like "
    r"|can you |could you |just )*(?:answer|reply|respond|write|use|keep|skip|no |do not|don'?t|avoid"
    r"|leave|omit|create|add|run|tests?|make|i prefer|we don'?t need|i don'?t need|short|long)\b",
    re.IGNORECASE,
)


PREFER = re.compile(
    r"^i(?P<mark> always| usually| generally| typically| normally| mostly| tend to| strongly"
    r"| still)?(?: much| really)? prefer (?:to (?:have|get|see|use|read) )?(?P<what>.{2,160})$",
    re.IGNORECASE,
)


PREFERENCE = re.compile(
    r"^my (?:(?:personal|(?P<mark>general|usual|standing|default)|clear|strong) )?preference is (?:for "
    r"|to (?:have |get "
    r"|use )?)?(?P<what>.{2,160})$",
    re.IGNORECASE,
)


_REQUIREMENT = re.compile(r"\b(?:with|without|that|which|under|near|within|no more than|at least)\b", re.IGNORECASE)
"""What a thing that is looked for must have: "routes with little traffic"."""


OVER = re.compile(
    r"^(?P<value>.{2,60}?),? (?:over|rather than|instead of|more than) (?P<other>.{2,60})$", re.IGNORECASE
)


OVER_TO = re.compile(r"^(?P<value>\S+(?: \S+){0,2}) to (?P<other>\S+(?: \S+)?)$", re.IGNORECASE)
"""Only between a few words is "to" a comparison."""


def short_lived(clause: str, project: str | None) -> list[Sketch]:
    reach = wording.limits_reach(clause)
    if reach is None:
        return []
    core = re.sub(
        r"^(?:this time|for now|just this once|today|for this [\w ]+?,|in this \w+)\s*,?\s*",
        "",
        clause,
        flags=re.IGNORECASE,
    )
    if not SHORT_LIVED.match(core):
        # A fact that holds for a while only is no lasting fact, and no agreement either.
        return [sketch._replace(reach=reach) for sketch in about_project(core, project) + about_user(core, project)]
    return [
        passing_limit(
            f"For the current {'conversation' if reach == 'session' else 'task'}: {clause}.", preference(clause), reach
        )
    ]


def standing(clause: str, project: str | None) -> list[Sketch]:
    wish = WISH.match(clause)
    if wish:
        return [wished(wish["what"], project)]
    annoyed = ANNOYED.match(clause)
    if annoyed:
        return [standing_wish(f"{third_person(clause)}.", f"not: {annoyed['what']}", None, project=None)]
    no_more = NO_MORE.match(clause) or TOWARDS_ME.match(clause)
    if no_more and not _OF_THIS.search(no_more["what"]):
        return [wished(no_more["what"], project)]
    match = STANDING.match(clause)
    if match is None:
        return []
    what = bare(match["what"] or match["always"] or match["late"])
    inner = about_project(what, project) or preferred(what, project) or nickname(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if not (FOR_AGENT if match["always"] else IMPERATIVE).match(what) or _OF_THIS.search(what):
        return []
    conditional = match["what"] and re.match(r"(?:when|whenever|if|every|each|any)\b", clause, re.IGNORECASE)
    return [wished(clause if conditional else what, project, what)]


_OF_THIS = re.compile(r"\b(?:this|that|these|those|it|them)$|\bthis (?!project|repo|codebase|team)\w+", re.IGNORECASE)


def wished(said: str, project: str | None, what: str | None = None) -> Sketch:
    """A wish for every time: the user's, or the project's when it says so."""
    what = what or said
    of_project = bool(re.search(r"\bin (?:this|our) (?:project|repo(?:sitory)?|codebase)\b", what, re.IGNORECASE))
    statement = capital(f"{project_name(project)}: {what}.") if of_project else f"The user wants from now on: {said}."
    return standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)


def as_a_rule(clause: str, project: str | None) -> list[Sketch]:
    """What the user wants, or does, as a rule."""
    clause = _AS_A_RULE.sub("", AFTERTHOUGHT.sub("", clause))
    wants = TENDENCY.match(clause)
    if wants:
        what = (wants["what"] or wants["what2"]).strip()
        if EMPTY_OBJECT.match(what) or (len(what.split()) < 2 and not preference(what)):
            return []
        return [standing_wish(f"{third_person(clause)}.", what, preference(what), project=None)]
    does = HABIT.match(clause)
    if does is None:
        return []
    said = does["what"] or does["does"] or does["every"] or does["off"]
    if re.search(r"\b(?:it|this|that|them|these|those)\b(?! is\b)", said, re.IGNORECASE):
        return []
    return [
        Sketch(f"{third_person(clause)}.", "a habit of the user", subject="user", predicate="as a rule", value=said)
    ]


def preferred(clause: str, project: str | None) -> list[Sketch]:
    clause = AFTERTHOUGHT.sub("", clause)
    match = PREFER.match(clause) or PREFERENCE.match(clause)
    if match is None or EMPTY_OBJECT.match(match["what"]):
        return []
    what = REASON.sub("", match["what"])
    marked = match.groupdict().get("mark") is not None
    statement = f"{third_person(clause)}."
    replaced = re.match(r"^(?P<what>.+?), not (?P<old>.+)$", what, re.IGNORECASE)
    what = replaced["what"] if replaced else what
    over = OVER.match(what) or OVER_TO.match(what)
    topic = preference(over["value"] if over else what)
    required = _REQUIREMENT.search(what) and not (topic and topic.expression)  # "reports with a table" are a style
    unmarked = not marked and not over
    if unmarked and (ONE_THING.match(what) or required):
        return []
    if topic:
        return [
            stated_preference(statement, topic.predicate, topic.value, expression=topic.expression, unmarked=unmarked)
        ]
    predicate, value = "prefers", what
    if over:
        pair = sorted((over["value"].lower().strip(), over["other"].lower().strip()))
        predicate, value = f"prefers among {pair[0]} and {pair[1]}", over["value"].strip()
    return [stated_preference(statement, predicate, value, unmarked=unmarked)]
