"""What English sentences say of the user, and names that a conversation gives."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.english.life import LIFE
from everthread.nodes.extract.rules.english.words import (
    AND_MORE,
    CANONICAL,
    EMPTY_OBJECT,
    NAME,
    NOT_OLD,
    ONE_THING,
    ROLE,
    SELF,
    SO_WHAT,
    TASTE,
    form,
    third_person,
)
from everthread.nodes.extract.rules.sketch import Sketch

__all__ = ["about_user", "nickname"]

NICKNAME = re.compile(
    r"^(?:(?i:let'?s|we(?:'ll| will| can)|i(?:'ll| will)|please|from now on),?\s+)?(?i:call|refer to"
    r"|name) (?P<what>it|this|that|(?:this|the|our|my) (?!.*\b(?:and|or|about|to|for|from|with"
    r"|at)\b)[\w -]{2,40}?)(?: as)? (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)?)(?P<tail> .*)?$"
)


KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|(?:\w+est )?(?:son|daughter|kid|child)"
    r"|baby|mother|father|mom|mum|dad|brother|sister|dog|cat|puppy|kitten|horse|parrot|rabbit|hamster"
    r"|(?:line |project |new )?manager|boss|supervisor|advisor|(?:team|tech) ?lead|mentor|coach|doctor"
    r"|dentist|landlord|flatmate|roommate|assistant|(?:co-?|business )?founder|business partner|car"
    r"|bike|laptop|phone|keyboard|machine|workstation|employer|company)"
)


ATTRIBUTE = (
    r"(?:native language|mother tongue|(?:main|first|second) language|job title|title|role|profession"
    r"|occupation|employer|department|editor|shell|operating system|os|distro|ide|browser|time ?zone"
    r"|birthday|hometown|nickname|surname|last name|pronouns|username|github (?:handle|username)"
    r"|blood type|shoe size|t-?shirt size|degree|major|(?:work|working) hours|locale|keyboard layout"
    r"|favou?rite [\w ]{2,30}|preferred [\w ]{2,30})"
)


_IM = r"(?i:i(?:'m| am)|im)(?i: currently| now| also| actually| just)*"


_SINCE = r"(?i:,? (?:now|since|for|as|near|with|these|at the|but|and|from|last|this|in|on|again|currently)\b.*)?"


_PLACE = (
    rf"(?:(?i:the (?:us|uk|netherlands|usa|bay area|north|south|east|west) ?)|{NAME}(?:, {NAME})?"
    rf"|(?!(?:a|an|the|my|fear|peace|hope|harmony|constant|this|that|sync|line|charge|need|trouble|luck"
    rf"|between|love|denial|doubt|here|there|downtown|town|bed|hospital|traffic|front)\b)[a-zà-ý]{{3,20}}(?=$"
    rf"| now| since| btw))"
)


_THING = r"(?:an? |the |my own )?[A-Za-z0-9+#.-][\w+#. -]{1,50}?"


_TO_WHAT = r"(?:,? (?:for|as|on|at|to|with|when|in|by|and|every|instead|rather) .{2,60})?"


ABOUT_USER = (
    form(
        r"(?:my [\w-]+(?: [A-Z]\w+)? and i|we both|we)(?:'re| are)(?: both| all)? (?P<value>vegetarians?"
        r"|vegans?|pescatarians?|kosher|halal)",
        "diet",
        SELF,
    ),
    form(
        r"(?:i'?m|i am) (?P<value>(?:more |most |very |quite |pretty )?(?:comfortable|familiar|fluent"
        r"|experienced) (?:with|in) (?=.{0,40}(?-i:[A-Z+#]))(?!this|that|it|the\b|these|those|some\b|all\b|most\b)"
        r"[^,;]{2,60})",
        "knows",
        SELF,
    ),
    form(
        r"i find (?P<value>(?!it\b|this\b|that\b|these\b|those\b|your\b|the (?:second|first|new"
        r"|last)\b)[^,;]{3,40}? (?:easier|harder|easy|hard|difficult|annoying|distracting|confusing"
        r"|helpful|unreadable|more \w+)(?: to \w+)?)",
        "finds",
        SELF,
        "preference",
    ),
    form(
        r"i work (?:for|at) (?P<value>(?:the|an?) (?!moment|same|time|other|next|day|problem|end|pace"
        r"|desk)[\w' -]{3,40}?)(?: (?:in|as|since|and|near) .*)?",
        "employer",
        SELF,
    ),
    form(
        rf"(?i:my (?P<what>{KIN})),? (?P<value>[A-ZÀ-Ý][\w'-]+),? (?:(?<=, )[a-z]+s|is|are|starts?|has|works?"
        rf"|lives?|will"
        rf"|likes?|loves?|goes|just|was|studies|turns|wants|plays)\b.*",
        "{what}",
        SELF,
        case=True,
    ),
    form(
        r"i (?:can'?t|cannot|don'?t|do not) (?:read|speak|understand|code in|drive|swim|cook"
        r"|touch-type) (?P<value>(?!this\b|that\b|it\b|the\b|why\b|what\b|how\b|your\b|you\b|any of\b"
        r"|a word\b)[A-Za-z][\w ]{1,30}?)(?: (?:at all|well|very well|yet))?",
        "does not know",
        SELF,
    ),
    form(
        r"(?:i'?m|i am)(?: currently)? (?:in|on) (?P<value>(?:the )?(?:[\w/+-]+ ){1,3}time(?: ?zone)?"
        r"|(?:utc|gmt|cet|est|pst)(?: ?[+-] ?\d{1,2})?)",
        "time zone",
        SELF,
    ),
    form(
        rf"(?i:i(?:'ve| have)?(?: just| recently)? (?:joined|started at|started working (?:at|for)"
        rf"|got hired by|switched to working at)) (?P<value>{NAME}){_SINCE}",
        "employer",
        SELF,
        case=True,
    ),
    form(
        r"i(?:'m| am)? (?:only |mostly )?(?:play|playing) (?P<value>(?:the )?(?!with\b|around\b|it\b"
        r"|a role|this|that|to\b|games?\b|by\b|along\b)[a-z]+(?: [a-z]+)?)(?: (?:in|for|at|with|on|since"
        r"|every|as) .+)?",
        "plays",
        SELF,
    ),
    form(
        rf"as an? (?P<value>vegetarian|vegan|pescatarian|coeliac|celiac|diabetic|beginner in [\w+#]+"
        rf"|(?:[\w-]+ ){{0,2}}{ROLE})(?: myself)?",
        "is",
        SELF,
    ),
    form(
        r"(?:i'?m|i am)(?: currently)? (?P<value>(?:training for|saving (?:up )?for|writing my thesis"
        r"|writing my dissertation|writing a book|writing a novel|(?:preparing|studying) for (?=.{0,40}\b(?:exams?"
        r"|examinations?|certification|boards?|bar|degree|licen[cs]e|marathon|finals|gre|gmat|sats?|mcat|lsat|ielts"
        r"|toefl|driving test|citizenship test)\b))[^,;]{0,50})",
        "is busy with",
        SELF,
    ),
    form(rf"[Mm]y (?:full |first )?name(?: is|'s) (?P<value>{NAME})", "name", SELF, case=True),
    form(
        rf"(?:(?i:please|you|u|everyone|people|just|can|may|friends|pls|they|usually|all|folks|colleagues"
        rf"|\s)+ )?(?i:call me|calls me) (?P<value>{NAME})",
        "wants to be called",
        SELF,
        "preference",
        case=True,
    ),
    form(
        rf"(?i:i (?:usually |mostly )?go by) (?P<value>{NAME})(?i:,? (?:rather than|instead of|not|in|at|online).*)?",
        "wants to be called",
        SELF,
        "preference",
        case=True,
    ),
    form(rf"{_IM} (?P<value>{NAME})(?:,? an? .+|,? from .+)?", "name", SELF, case=True),
    form(rf"(?i:this is|it's) (?P<value>{NAME}) (?:here|from .+)", "name", SELF, case=True),
    form(
        rf"(?:i'?m|i am|i work as)(?: currently| now| also)? (?:an?|the(?=.+ (?:of|at|for|in) )|your) (?!pretty"
        rf"|very|big|bit|really"
        rf"|good|great|bad|huge|terrible|little|lot)(?P<value>(?:[\w+#/-]+ ){{0,4}}{ROLE})(?:,? (?:at|for"
        rf"|in|with|from|on|and|who|working|based|by|since|specialising|specializing|trying|living"
        rf"|doing) .+)?",
        "role",
        SELF,
    ),
    form(
        r"(?:i'?m|i am) (?P<value>(?:self-employed|retired|unemployed|left-handed|right-handed"
        r"|ambidextrous|colou?r[- ]?blind|deaf|hard of hearing|blind|short-sighted|dyslexic|autistic"
        r"|bilingual|trilingual|(?:not )?married|single|divorced|widowed|an only child|a night owl|an early bird"
        r"|a morning person|(?:on|in) (?:mac ?os|linux|windows|a mac|an? \w+ machine)\b.{0,40}"
        r"|on an? mac(?:book)?\b.{0,40}))(?:,? (?:and|so|with|since|as) .+)?",
        "is",
        SELF,
    ),
    form(
        r"(?:i work|i'?m) (?P<value>(?:part[- ]time|full[- ]time|remotely|from home|freelance"
        r"|night shifts?|shifts?))(?:,? .+)?",
        "works",
        SELF,
    ),
    form(
        rf"(?i:i(?:'m| am|'ve been| have been)?(?: currently| now)? (?:work|working|employed) (?:at"
        rf"|for)) (?P<value>{NAME}){_SINCE}",
        "employer",
        SELF,
        case=True,
    ),
    form(
        rf"(?i:(?:i|i'm|im|i am|i'm now)(?: currently| now| still| actually)? (?:live|living|based|located"
        rf"|residing|reside)) (?i:in|near|outside) (?P<value>{_PLACE}){_SINCE}",
        "lives in",
        SELF,
        case=True,
    ),
    form(
        rf"(?i:i(?:'ve| have)?(?: just| recently"
        rf"| finally)* moved (?:back )?(?:from {NAME} )?(?:over )?to) (?P<value>{_PLACE}){_SINCE}",
        "lives in",
        SELF,
        case=True,
    ),
    form(
        rf"(?i:i(?:'m| am| come)(?: originally)?) (?i:from) (?P<value>{NAME}){_SINCE}",
        "comes from",
        SELF,
        case=True,
    ),
    form(
        r"i(?:'?m| am)(?: severely| very| highly| also| quite| deathly| mildly)* allergic to (?P<value>[\w ,/-]{2,60})",
        "allergic to",
        SELF,
    ),
    form(
        r"i have an? (?:severe |bad |serious |mild )?(?P<value>[\w-]{2,30}(?: [\w-]{2,30})?) allergy",
        "allergic to",
        SELF,
    ),
    form(
        r"i(?:'?m| am)(?: also| quite| mildly| a bit)? (?P<value>(?:lactose|gluten|fructose"
        r"|histamine)[- ]intolerant|coeliac|celiac|diabetic|asthmatic|pregnant)",
        "health",
        SELF,
    ),
    form(
        r"i(?:'?m| am)(?: an?| strictly| also)* (?P<value>vegetarian|vegan|pescatarian|teetotal(?:er)?|kosher|halal)",
        "diet",
        SELF,
    ),
    form(
        r"i (?:eat|keep|only eat) (?P<value>kosher|halal|vegan|vegetarian|plant-based)(?: food)?(?: only)?",
        "diet",
        SELF,
    ),
    form(
        r"i (?:don'?t|do not|dont|never|can'?t|cannot) (?:eat|drink) (?P<value>[\w ,/-]{2,60}?)(?: at all)?",
        "does not eat",
        SELF,
    ),
    form(r"i speak (?:fluent |native )?(?P<value>[\w ,]{3,60})", "speaks", SELF),
    form(
        r"(?:i'?m|i am|i'?ve been)(?: currently| now)? (?:learning|studying|majoring in"
        r"|teaching myself) (?P<value>(?!to\b|how\b|that\b|the\b|a lot\b|from\b|a bit\b|about\b|more\b"
        r"|it\b|so\b|some\b)[\w+#. -]{2,40}?)(?: (?:at|for|on|with|by|since|in|level) .+)?",
        "is learning",
        SELF,
    ),
    form(
        r"i drive (?!around|about|to\b|for\b|from\b|over\b|up\b|down\b|\d+ ?(?:km|mi)|past|back|home"
        r"|there)(?P<value>(?:an? )?[\w-]+(?: [\w-]+){0,4})",
        "drives",
        SELF,
    ),
    form(
        r"i (?:own|ride|play|teach|coach|run) (?P<value>(?:an? |the )?(?!it|them|into|on|through"
        r"|out)[\w-]+(?: [\w-]+){0,3}) ?(?:for a living|in a band|at school|at university|every \w+"
        r"|as a hobby|in my free time)",
        "does",
        SELF,
    ),
    form(
        r"(?:i|we)(?:'ve| have)(?: got)? (?P<value>(?:an?|one|two|three|four|five"
        r"|\d+)? ?(?:[\w-]+ ){0,2}(?:kids?|child(?:ren)?|sons?|daughters?|dogs?|cats?|brothers?|sisters?"
        r"|parrots?|rabbits?|horses?|hamsters?|puppy|kitten|twins|toddlers?|bab(?:y|ies)"
        r"|grandchildren)(?:[,:]? (?:(?:named|called) )?(?-i:[A-ZÀ-Ý])[\w'-]+(?:,? (?:and "
        r"|& )?(?-i:[A-ZÀ-Ý])[\w'-]+)*)?)(?:,? (?:who|that|which|and|aged) .*)?",
        "has",
        SELF,
    ),
    form(
        r"i(?:'ve| have)(?: got)? (?P<value>(?:asthma|(?:type [12] |type (?:one|two) )?diabetes|adhd|dyslexia"
        r"|epilepsy|arthritis|migraines?"
        r"|insomnia|high blood pressure|coeliac disease|celiac disease|tinnitus|add|a bad back"
        r"|back problems|a bad knee|a heart condition|a pacemaker))",
        "health",
        SELF,
    ),
    form(
        rf"(?i:my (?P<what>{KIN})(?: is|'s| are|'s name is|s'? names? (?:is|are))) (?:(?i:called|named"
        rf"|an?) )?(?:(?<=called )|(?<=named )|(?=[A-ZÀ-Ý0-9])|(?<= an )"
        rf"|(?<= a ))(?P<value>[^,;]{{1,60}}?)(?i: now)?(?i:,? and (?:she|he|they|we|i|it)\b.*)?(?: - .*)?",
        "{what}",
        SELF,
        case=True,
    ),
    form(
        rf"my (?P<what>{ATTRIBUTE})(?: is| are) (?:called |named |on |set to )?(?!not\b|so\b|too\b|very\b"
        rf"|really\b|pretty\b|still\b|always\b|also\b|wrong\b|broken\b|\w+ing\b|to\b|that\b|bad\b|good\b"
        rf"|terrible\b|great\b|killing\b|ok\b|yet\b|tbd\b|undecided\b"
        rf"|unknown\b)(?P<value>[^,;]{{1,60}}?)(?: now)?(?: - .*)?",
        "{what}",
        SELF,
    ),
    form(
        r"i(?: really| also| just| absolutely| personally)* (?:like|love|enjoy|adore) (?P<value>[^,;]{2,80}?)(?: too"
        r"| a lot| so much)?",
        "likes",
        TASTE,
        "preference",
    ),
    form(
        r"i(?: really| also| just| absolutely| kinda)* (?:dislike|hate|loathe|can'?t stand|(?:don'?t"
        r"|do not|dont) (?:really )?like) (?P<value>[^,;]{2,80})",
        "dislikes",
        TASTE,
        "preference",
    ),
    form(
        r"(?:i'?m|i am) (?:not (?:an?|much of an?)|no) (?:big |huge |great )?fan of (?P<value>[^,;]{2,80})",
        "dislikes",
        TASTE,
        "preference",
    ),
    form(r"(?:i'?m|i am) (?:an?) (?:big |huge |great )?fan of (?P<value>[^,;]{2,80})", "likes", TASTE, "preference"),
    form(
        rf"i (?:always|usually|mostly|mainly|only|primarily|normally) (?:use|code in|write in"
        rf"|program in) (?!to\b)(?P<value>{_THING}){_TO_WHAT}",
        "uses",
        SELF,
    ),
    form(
        rf"(?i:i(?:'m| am)? (?:use|using|code in|write in"
        rf"|program in)) (?!to\b)(?P<value>(?=[^,]*[A-Z0-9]){_THING}){_TO_WHAT}",
        "uses",
        SELF,
        case=True,
    ),
    *LIFE,
)


def nickname(clause: str, project: str | None) -> list[Sketch]:
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


def about_user(clause: str, project: str | None) -> list[Sketch]:
    kept = NOT_OLD.match(clause)
    bare = kept["kept"] if kept else clause
    readings = dict.fromkeys((SO_WHAT.sub("", bare), AND_MORE.sub("", bare), bare))
    plain = _PLAIN_LIKING.match(bare) is not None
    for each in ABOUT_USER:
        match = next((found for reading in readings if (found := each.pattern.match(reading))), None)
        if match is None:
            continue
        value = match["value"].strip(" .")
        if EMPTY_OBJECT.match(value) or (each.reason == TASTE and not _is_lasting_taste(value)):
            return []
        if (plain and ONE_THING.match(value)) or _CUT_OFF.search(value):
            return []
        said = _OURS.sub("I", match[0]) if each.predicate == "has" else match[0]
        predicate = each.predicate.format(**{name: (found or "").lower() for name, found in match.groupdict().items()})
        sketch = Sketch(
            f"{third_person(said)}.",
            each.reason,
            each.content_type,
            subject="user",
            predicate=CANONICAL.get(predicate, predicate),
            value=value,
            concerns="decision" if each.content_type == "preference" else None,
            replaces=kept["old"] if kept else None,
            unmarked=plain,
        )
        return [sketch]
    return []


_PLAIN_LIKING = re.compile(r"i(?: really| also| just)* like\b", re.IGNORECASE)
"""What is said of a draft as easily as of a lifetime; "love" and "enjoy" are said of kinds of things."""
_OURS = re.compile(r"^(?:we|my [\w-]+ and i)\b", re.IGNORECASE)
"""Who has a thing together with the user: "we" means nothing in another conversation."""
_CUT_OFF = re.compile(r"\b(?:and|or|the|an?|of|with|to)$", re.IGNORECASE)
_OF_THE_MOMENT = re.compile(
    r"\b(?:this|that|these|those|it|them|their|him|her|his|he|she|they|your|you|what|how|thought|idea"
    r"|color|colour)\b|^(?:the|to|a lot|having|being|seeing|making|getting|entering|finding|sharing"
    r"|hearing)\b| - ",
    re.IGNORECASE,
)


def _is_lasting_taste(value: str) -> bool:
    """A liking of a kind of thing, in a few words; not of what is being looked at (R101)."""
    return len(value.split()) <= 6 and not _OF_THE_MOMENT.search(value)
