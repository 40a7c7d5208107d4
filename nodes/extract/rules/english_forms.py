"""The forms of English sentences that the rules know."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "ABOUT_USER",
    "AFTERTHOUGHT",
    "AND_MORE",
    "CANONICAL",
    "CONVENTION",
    "CORRECTION",
    "DECIDED",
    "DEPLOY",
    "EMPTY_OBJECT",
    "FOR",
    "FOR_AGENT",
    "HABIT",
    "IMPERATIVE",
    "IS",
    "NICKNAME",
    "NOT_ANY_MORE",
    "NOT_OLD",
    "NO_LONGER",
    "OPENING",
    "OVER",
    "OVER_TO",
    "PREFER",
    "PROJECT",
    "REASON",
    "REMEMBER",
    "REMINDER",
    "REMINDS",
    "SCHEDULE",
    "SHORT_LIVED",
    "SO_WHAT",
    "STANDING",
    "SWAP",
    "TASTE",
    "TENDENCY",
    "TRAILING",
    "USES",
    "WISH",
]

OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|hi|hello|hey|well|so|also|and|but|oh|ah|um|right|great|nice|thanks|thank you|thx|ty|fyi|ps|p\.s"
    r"|btw|by the way|by the by|(?:one|two|some|a few) (?:more |other |quick )?(?:things?|notes?"
    r"|remarks?)|(?:a )?quick (?:one|note|thing)"
    r"|anyway|anyways|for (?:your )?(?:context|reference|info(?:rmation)?)|some (?:context|background)"
    r"|background|context|heads up"
    r"|for the record|just so (?:you|u) know|note|note that|note for later|as i said|as (?:you"
    r"|u) (?:may |might )?know|yes|yeah|yep|sure|cool"
    r"|important|preferences?|reminder|update|ok cool|perfect|good|just|please note(?: that)?|(?:you"
    r"|u) should know(?: that)?"
    r"|to be clear|in case it (?:helps|matters)|since (?:you|u) asked)(?: there| again"
    r"| before we (?:start|begin))?\s*(?:[,:.!—-]+\s*|\s)\s*)+",
    re.IGNORECASE,
)
CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|wait|sorry)(?=\s*[,:;.—-])|oops|hmm|actually|correction"
    r"|to correct myself|i (?:misspoke|made a mistake|was wrong|said .{1,30} but)|let me correct that"
    r"|i meant(?: that| to say)?|that'?s (?:wrong|not right|incorrect))\s*[,:;.—-]*\s*)+",
    re.IGNORECASE,
)
REMEMBER = re.compile(
    r"^(?:please |(?:can|could|would|will) you |pls )*(?:always )?(?:remember|keep in mind"
    r"|bear in mind|(?:make|take) (?:a )?note"
    r"|note down|note|don'?t forget|for your memory|add (?:this )?to (?:your )?memory"
    r"|save(?: this)?(?: to (?:your )?memory)?|memori[sz]e)(?: for (?:later|next time|the future))?"
    r"(?:\s*:\s*|\s+that\s+|,?\s+(?=(?:i|i'?m|my|we|our|the (?:project|team|repo|api)|this (?:project|repo))\b))",
    re.IGNORECASE,
)
REMINDER = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|remember|don'?t forget)\s+(?:to\s+)?"
    r"(?P<what>(?!(?:what|where|who|how|why|which|whether|again)\b).+)$",
    re.IGNORECASE,
)
REMINDS = re.compile(
    r"^(?:please |can you |could you )*(?:remind me|don'?t let me forget|(?:remember|don'?t forget) to)\b",
    re.IGNORECASE,
)
NO_LONGER = re.compile(r"^(?P<who>i|we|i'?m|i am|we'?re|we are) no longer (?P<rest>.+)$", re.IGNORECASE)
NOT_ANY_MORE = re.compile(r"^(?P<who>i|we) (?:don'?t|do not) (?P<rest>.+?),? (?:any ?more|any longer)$", re.IGNORECASE)
NOT_OLD = re.compile(r"^(?P<kept>.+?),? (?:and )?not (?P<old>[\w .+#-]{2,40})$", re.IGNORECASE)
SWAP = (
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
_FROM_NOW = (
    r"(?:from (?:now|here|this point) on(?:wards?)?(?: out| in)?|from here on out|going forwards?"
    r"|in (?:the )?future|by default|as a (?:general )?rule|in general|for all future \w+)"
)
STANDING = re.compile(
    rf"^(?:please |and |but )?(?:{_FROM_NOW}|generally|(?:every|each) time|every single time|at all times"
    rf"|whenever (?:you|i) [^,]{{2,80}},|whenever you (?:answer|reply|write)|(?:(?:every|each|any) time"
    rf"|if|when) (?:you|i) [^,]{{2,80}}, (?=(?:please |pls )?(?:always|never)\b))"
    rf"\s*,?\s*(?P<what>.{{3,200}})$"
    rf"|^(?P<always>(?:please |pls )?(?:always|never|don'?t ever) .{{3,200}})$"
    rf"|^(?:please |pls )?(?P<late>.{{3,200}}?),? (?:{_FROM_NOW}|all the time|every (?:single )?time"
    rf"|at all times|in (?:anything|everything|all) you \w+(?: for me)?)$",
    re.IGNORECASE,
)
"""A wish for every time: the mark of it stands first, is "always" or "never", or stands last."""
_ACTS = (
    r"answer|reply|respond|write|use|keep|call|give|show|explain|format|avoid|skip|include|add|put"
    r"|start|end|begin|finish|make|send|ask|stop"
    r"|speak|talk|prefer|run|commit|sign|address|refer|be|leave|omit|mention|create|need|tests?|name"
    r"|prefix|number|sort|order|group|list"
    r"|link|cite|quote|summari[sz]e|translate|check|lint|type|import|follow|stick|round|convert|state"
    r"|store|save|book|schedule|set"
    r"|apologi[sz]e|switch|assume|treat|return|log|document|comment|refactor|remove|delete|mark|wrap"
    r"|indent|tell|wait|point|present|spell"
    r"|suggest|offer|propose|recommend|read|open|close|push|pull|merge|squash|rebase|tag|deploy|mock"
    r"|cc|bcc|copy|attach|double-check"
    r"|verify|confirm|warn|remind|highlight|bold|capitali[sz]e|uppercase|lowercase|abbreviate|shorten"
    r"|split|draft|prepare|measure|print"
)
IMPERATIVE = re.compile(
    rf"^(?:please |pls |just |kindly |always |never |only |do not |don'?t |don'?t ever "
    rf"|no )*(?:(?:{_ACTS})\b|no \w+|i(?:'?d)? (?:want|need|like|prefer)\b(?! to\b))",
    re.IGNORECASE,
)
FOR_AGENT = re.compile(
    rf"^(?:please |pls )?(?P<mark>always|never|don'?t ever) (?!give up|forget|mind|say never)(?:{_ACTS})\b",
    re.IGNORECASE,
)
"""A bare "always" or "never" is often a saying ("never give up"): these are things that an agent does."""
WISH = re.compile(
    r"^(?:i(?:'d| would) (?:rather|prefer|like|love|appreciate)(?: it)?(?: if)?|i (?:want|need|expect"
    r"|prefer|like)|i'?d rather) (?:that )?(?:you|u)(?: (?:to|would|could))?"
    r" (?P<what>(?:(?:always|never|not|didn'?t|don'?t|stop|avoid|only|first) ).{3,200})$",
    re.IGNORECASE,
)
"""A wish about what the agent does, with a word that makes it last."""
TENDENCY = re.compile(
    r"^i (?:generally|usually|typically|normally|always|tend to|mostly|in general"
    r"|never)(?: really)? (?P<verb>want|like|prefer|need|expect)(?! to\b) (?P<what>.{3,160})$"
    r"|^(?:generally|in general|usually|normally|typically|as a rule),? i(?:'d)? (?P<verb2>want|like"
    r"|prefer|need|expect)(?! to\b) (?P<what2>.{3,160})$",
    re.IGNORECASE,
)
"""What the user wants as a rule."""
HABIT = re.compile(
    r"^i (?:usually|normally|typically|always|generally|tend to|never|don'?t|do not) (?P<what>(?:start"
    r"|finish|stop|leave|arrive|work|wake|get up|go to bed|go to the gym|commute|travel|fly|eat"
    r"|have (?:lunch|dinner|breakfast)|take meetings|answer|read)\b.{3,120})$"
    r"|^i (?P<every>(?!want|need|would|will|can|could|should|hope|plan|wish|have|had"
    r"|\w+ed\b)[a-z]+ .{2,80}? (?:every|each) (?:day|morning|evening|night|week|weekend|month|monday"
    r"|tuesday|wednesday|thursday|friday|saturday|sunday)s?)$"
    r"|^i (?:don'?t|do not|never) (?P<off>work(?: at all)? on (?:mon|tues|wednes|thurs|fri|satur|sun)days?.{0,60})$",
    re.IGNORECASE,
)
"""What the user does as a rule."""
SHORT_LIVED = re.compile(
    r"^(?:please |let'?s |do not |don'?t |we don'?t need |i don'?t need |i prefer |i want "
    r"|i'?d like |can you |could you |just )*(?:answer|reply|respond|write|use|keep|skip|no |do not|don'?t"
    r"|avoid|leave|omit|create|add|run|tests?|make|i prefer|we don'?t need|i don'?t need|short|long)\b",
    re.IGNORECASE,
)
NICKNAME = re.compile(
    r"^(?:(?i:let'?s|we(?:'ll| will| can)|i(?:'ll| will)|please|from now on),?\s+)?(?i:call"
    r"|refer to|name) (?P<what>it|this|that|(?:this|the|our|my)"
    r" (?!.*\b(?:and|or|about|to|for|from|with"
    r"|at)\b)[\w -]{2,40}?)(?: as)? (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)?)(?P<tail> .*)?$"
)

EMPTY_OBJECT = re.compile(
    r"^(?:this|that|these|those|it|them|your|you|how|what|when|where|the (?:idea|way|answer"
    r"|look|first|second|last|new|other)|to (?:know|see|hear|ask)"
    r"|ones?|number|#|both|neither|either|everything|something|nothing|option)\b",
    re.IGNORECASE,
)
ROLE = (
    r"(?:engineer|developer|programmer|designer|manager|teacher|nurse|doctor|physician|lawyer"
    r"|student|scientist|analyst|researcher"
    r"|writer|journalist|architect|consultant|accountant|administrator|admin|director|founder"
    r"|ceo|cto|lead|professor|lecturer"
    r"|chef|pilot|photographer|musician|artist|electrician|plumber|mechanic|translator|editor"
    r"|librarian|pharmacist|dentist"
    r"|therapist|psychologist|biologist|chemist|physicist|mathematician|economist|statistician"
    r"|historian|freelancer|intern"
    r"|maintainer|sysadmin|dba|sre|product owner|scrum master|salesperson|recruiter|farmer"
    r"|firefighter|paramedic|veterinarian|solicitor|barrister|surgeon|midwife|carpenter|welder|driver"
    r"|baker|barista|bartender|waiter|waitress"
    r"|cook|tailor|builder|contractor|freelance \w+|salesman|saleswoman|clerk|secretary|assistant"
    r"|officer|marketer|trader|banker|actuary|auditor"
    r"|coach|trainer|tutor|principal|postdoc|undergrad(?:uate)?|phd (?:student|candidate)"
    r"|grad(?:uate)? student|data engineer|tester|ux \w+"
    r"|illustrator|animator|composer|singer|guitarist|producer|filmmaker|novelist|poet|blogger"
    r"|copywriter|technician|geologist|astronomer"
    r"|zoologist|botanist|ecologist|archaeologist|sociologist|anthropologist|linguist|neuroscientist"
    r"|radiologist|physiotherapist|nutritionist"
    r"|social worker|civil servant|soldier|police officer|retiree|pensioner|stay-at-home \w+"
    r"|entrepreneur|investor|realtor|notary|judge"
    r"|optician|hairdresser|gardener|florist|butcher|fisherman|sailor|captain|flight attendant"
    r"|dispatcher|logistician|planner|surveyor"
    r"|(?:front|back)[- ]?end (?:dev|engineer|developer)|devops|dev|swe|pm|po|qa)"
)
KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|(?:\w+est )?(?:son|daughter|kid|child)"
    r"|baby|mother|father|mom|mum|dad|brother|sister|dog"
    r"|cat|puppy|kitten|horse|parrot|rabbit|hamster|(?:line |project |new )?manager|boss|supervisor"
    r"|advisor|(?:team|tech) ?lead|mentor|coach|doctor|dentist|landlord"
    r"|flatmate|roommate|assistant|(?:co-?|business )?founder|business partner|car|bike|laptop|phone"
    r"|keyboard|machine|workstation|employer|company)"
)
ATTRIBUTE = (
    r"(?:native language|mother tongue|(?:main|first|second) language|job title|title|role|profession"
    r"|occupation|employer"
    r"|department|editor|shell|operating system|os|distro|ide|browser|time ?zone|birthday|hometown"
    r"|nickname|surname|last name|pronouns"
    r"|username|github (?:handle|username)|blood type|shoe size|t-?shirt size|degree|major|(?:work"
    r"|working) hours|locale|keyboard layout"
    r"|favou?rite [\w ]{2,30}|preferred [\w ]{2,30})"
)
NAME = r"[A-ZÀ-Ý][\w'’.-]*(?: [A-ZÀ-Ý][\w'’.-]*){0,3}"
SO_WHAT = re.compile(r",? (?:but|so|because|since|as|which|while|who|where)\b.*$", re.IGNORECASE)
AND_MORE = re.compile(r",? (?:and|but|so|because|since|as|which|while|who|where)\b.*$", re.IGNORECASE)
TRAILING = re.compile(
    r"(?:,?\s+(?:btw|by the way|lol|haha|fyi|tbh|imo|though|actually|please|pls|thx|thanks|anyway|ok"
    r"|at the moment|these days|nowadays|right now|now|currently|:\)|;\)))+$",
    re.IGNORECASE,
)
"""Words after what was said that add nothing to it."""


class Form(NamedTuple):
    """A form of sentence and what it says. `predicate` may name a group of the pattern in braces."""

    pattern: re.Pattern[str]
    predicate: str
    reason: str
    content_type: str = "fact"


def _form(pattern: str, predicate: str, reason: str, content_type: str = "fact", *, case: bool = False) -> Form:
    return Form(re.compile(rf"^{pattern}$", 0 if case else re.IGNORECASE), predicate, reason, content_type)


SELF = "the user said it about themselves"
TASTE = "the user stated a liking"
_I = r"(?i:i)"
_IM = r"(?i:i(?:'m| am)|im)(?i: currently| now| also| actually| just)*"
_SINCE = r"(?i:,? (?:now|since|for|as|near|with|these|at the|but|and|from|last|this|in|on|again|currently)\b.*)?"
_PLACE = (
    rf"(?:(?i:the (?:us|uk|netherlands|usa|bay area|north|south|east|west) ?)|{NAME}(?:, {NAME})?"
    rf"|(?!(?:a|an|the|my|fear|peace|hope|harmony|constant|this|that|sync|line|charge|need|trouble|luck"
    rf"|between|love|denial|doubt|here|there)\b)[a-zà-ý]{{3,20}}(?=$| now| since| btw))"
)
_THING = r"(?:an? |the |my own )?[A-Za-z0-9+#.-][\w+#. -]{1,50}?"
_TO_WHAT = r"(?:,? (?:for|as|on|at|to|with|when|in|by|and|every|instead|rather) .{2,60})?"
ABOUT_USER = (
    _form(rf"[Mm]y (?:full |first )?name(?: is|'s) (?P<value>{NAME})", "name", SELF, case=True),
    _form(
        rf"(?:(?i:please|you|u|everyone|people|just|can|may|friends|pls|they|usually|all|folks|colleagues"
        rf"|\s)+ )?(?i:call me|calls me) (?P<value>{NAME})",
        "wants to be called",
        SELF,
        "preference",
        case=True,
    ),
    _form(
        rf"(?i:i (?:usually |mostly )?go by) (?P<value>{NAME})(?i:,? (?:rather than|instead of|not|in|at|online).*)?",
        "wants to be called",
        SELF,
        "preference",
        case=True,
    ),
    _form(rf"{_IM} (?P<value>{NAME})(?:,? an? .+|,? from .+)?", "name", SELF, case=True),
    _form(rf"(?i:this is|it's) (?P<value>{NAME}) (?:here|from .+)", "name", SELF, case=True),
    _form(
        rf"(?:i'?m|i am|i work as)(?: currently| now| also)? (?:an?|the|your) (?!pretty|very|big|bit|really"
        rf"|good|great|bad|huge|terrible|little|lot)(?P<value>(?:[\w+#/-]+ ){{0,4}}{ROLE})(?:,? (?:at|for"
        rf"|in|with|from"
        rf"|on|and|who|working|based|by|since|specialising|specializing|trying|living|doing) .+)?",
        "role",
        SELF,
    ),
    _form(
        r"(?:i'?m|i am) (?P<value>(?:self-employed|retired|unemployed|left-handed|right-handed"
        r"|ambidextrous|colou?r[- ]?blind|deaf|hard of hearing|blind|short-sighted|dyslexic|autistic"
        r"|bilingual|trilingual|married|single|divorced|widowed|an only child|a night owl|an early bird"
        r"|a morning person|(?:on|in) (?:mac ?os|linux|windows|a mac|an? \w+ machine)\b.{0,40}"
        r"|on a mac\b.{0,40}))(?:,? (?:and|so|with|since|as) .+)?",
        "is",
        SELF,
    ),
    _form(
        r"(?:i work|i'?m) (?P<value>(?:part[- ]time|full[- ]time|remotely|from home|freelance"
        r"|night shifts?|shifts?))(?:,? .+)?",
        "works",
        SELF,
    ),
    _form(
        rf"(?i:i(?:'m| am|'ve been| have been)?(?: currently| now)? (?:work|working|employed) (?:at"
        rf"|for)) (?P<value>{NAME}){_SINCE}",
        "employer",
        SELF,
        case=True,
    ),
    _form(
        rf"(?i:(?:i|i'm|im|i am|i'm now)(?: currently| now| still| actually)? (?:live|living|based|located"
        rf"|residing|reside)) (?i:in|near|outside) (?P<value>{_PLACE}){_SINCE}",
        "lives in",
        SELF,
        case=True,
    ),
    _form(
        rf"(?i:i(?:'ve| have)?(?: just| recently"
        rf"| finally)* moved (?:back )?(?:from {NAME} )?(?:over )?to) (?P<value>{_PLACE}){_SINCE}",
        "lives in",
        SELF,
        case=True,
    ),
    _form(
        rf"(?i:i(?:'m| am| come)(?: originally)?) (?i:from) (?P<value>{NAME}){_SINCE}",
        "comes from",
        SELF,
        case=True,
    ),
    _form(
        r"i(?:'?m| am)(?: severely| very| highly| also| quite| deathly| mildly)* allergic to (?P<value>[\w ,/-]{2,60})",
        "allergic to",
        SELF,
    ),
    _form(
        r"i have an? (?:severe |bad |serious |mild )?(?P<value>[\w-]{2,30}(?: [\w-]{2,30})?) allergy",
        "allergic to",
        SELF,
    ),
    _form(
        r"i(?:'?m| am)(?: also| quite| mildly| a bit)? (?P<value>(?:lactose|gluten|fructose"
        r"|histamine)[- ]intolerant|coeliac|celiac|diabetic|asthmatic|pregnant)",
        "health",
        SELF,
    ),
    _form(
        r"i(?:'?m| am)(?: an?| strictly| also)* (?P<value>vegetarian|vegan|pescatarian|teetotal(?:er)?|kosher|halal)",
        "diet",
        SELF,
    ),
    _form(
        r"i (?:eat|keep|only eat) (?P<value>kosher|halal|vegan|vegetarian|plant-based)(?: food)?(?: only)?",
        "diet",
        SELF,
    ),
    _form(
        r"i (?:don'?t|do not|dont|never|can'?t|cannot) (?:eat|drink) (?P<value>[\w ,/-]{2,60}?)(?: at all)?",
        "does not eat",
        SELF,
    ),
    _form(r"i speak (?:fluent |native )?(?P<value>[\w ,]{3,60})", "speaks", SELF),
    _form(
        r"(?:i'?m|i am|i'?ve been)(?: currently| now)? (?:learning|studying|majoring in"
        r"|teaching myself) (?P<value>(?!to\b|how\b|that\b|the\b|a lot\b|from\b|a bit\b|about\b|more\b"
        r"|it\b|so\b|some\b)[\w+#. -]{2,40}?)(?: (?:at|for|on|with|by|since|in|level) .+)?",
        "is learning",
        SELF,
    ),
    _form(
        r"i drive (?!around|about|to\b|for\b|from\b|over\b|up\b|down\b|\d+ ?(?:km|mi)|past|back|home"
        r"|there)(?P<value>(?:an? )?[\w-]+(?: [\w-]+){0,4})",
        "drives",
        SELF,
    ),
    _form(
        r"i (?:own|ride|play|teach|coach|run) (?P<value>(?:an? |the )?(?!it|them|into|on|through"
        r"|out)[\w-]+(?: [\w-]+){0,3}) ?(?:for a living|in a band|at school|at university|every \w+"
        r"|as a hobby|in my free time)",
        "does",
        SELF,
    ),
    _form(
        r"(?:i|we)(?:'ve| have)(?: got)? (?P<value>(?:an?|one|two|three|four|five"
        r"|\d+)? ?(?:[\w-]+ ){0,2}(?:kids?|child(?:ren)?|sons?|daughters?|dogs?|cats?|brothers?|sisters?"
        r"|parrots?|rabbits?|horses?|hamsters?|puppy|kitten|twins|toddlers?|bab(?:y|ies)"
        r"|grandchildren)(?:,? (?:(?:named|called) )?(?-i:[A-ZÀ-Ý])[\w'-]+(?:,? (?:and "
        r"|& )?(?-i:[A-ZÀ-Ý])[\w'-]+)*)?)(?:,? (?:who|that|which|and|aged) .*)?",
        "has",
        SELF,
    ),
    _form(
        r"i have (?P<value>(?:asthma|diabetes|adhd|dyslexia|epilepsy|arthritis|migraines?|insomnia"
        r"|high blood pressure|coeliac disease|celiac disease|tinnitus|a heart condition|a pacemaker))",
        "health",
        SELF,
    ),
    _form(
        rf"(?i:my (?P<what>{KIN})(?: is|'s| are|'s name is|s'? names? (?:is|are))) (?:(?i:called|named"
        rf"|an?) )?(?:(?<=called )|(?<=named )|(?=[A-ZÀ-Ý0-9])|(?<= an )"
        rf"|(?<= a ))(?P<value>[^,;]{{1,60}}?)(?i: now)?(?: - .*)?",
        "{what}",
        SELF,
        case=True,
    ),
    _form(
        rf"my (?P<what>{ATTRIBUTE})(?: is| are) (?:called |named |on |set to )?(?!not\b|so\b|too\b|very\b"
        rf"|really\b|pretty\b|still\b|always\b|also\b|wrong\b|broken\b|\w+ing\b|to\b|that\b|bad\b|good\b"
        rf"|terrible\b|great\b|killing\b|ok\b|yet\b|tbd\b|undecided\b"
        rf"|unknown\b)(?P<value>[^,;]{{1,60}}?)(?: now)?(?: - .*)?",
        "{what}",
        SELF,
    ),
    _form(
        r"i(?: really| also| just| absolutely)* (?:like|love|enjoy|adore) (?P<value>[^,;]{2,80}?)(?: too| a lot"
        r"| so much)?",
        "likes",
        TASTE,
        "preference",
    ),
    _form(
        r"i(?: really| also| just| absolutely| kinda)* (?:dislike|hate|loathe|can'?t stand|(?:don'?t"
        r"|do not|dont) (?:really )?like) (?P<value>[^,;]{2,80})",
        "dislikes",
        TASTE,
        "preference",
    ),
    _form(
        r"(?:i'?m|i am) not (?:an?|much of an?) (?:big |huge |great )?fan of (?P<value>[^,;]{2,80})",
        "dislikes",
        TASTE,
        "preference",
    ),
    _form(r"(?:i'?m|i am) (?:an?) (?:big |huge |great )?fan of (?P<value>[^,;]{2,80})", "likes", TASTE, "preference"),
    _form(
        rf"i (?:always|usually|mostly|mainly|only|primarily|normally) (?:use|code in|write in"
        rf"|program in) (?!to\b)(?P<value>{_THING}){_TO_WHAT}",
        "uses",
        SELF,
    ),
    _form(
        rf"(?i:i(?:'m| am)? (?:use|using|code in|write in"
        rf"|program in)) (?!to\b)(?P<value>(?=[^,]*[A-Z0-9]){_THING}){_TO_WHAT}",
        "uses",
        SELF,
        case=True,
    ),
)
PREFER = re.compile(
    r"^i(?: always| usually| generally| much| strongly| still| really)? prefer (?:to (?:have"
    r"|get|see|use|read) )?(?P<what>.{2,160})$",
    re.IGNORECASE,
)
OVER = re.compile(
    r"^(?P<value>.{2,60}?),? (?:over|rather than|instead of|more than) (?P<other>.{2,60})$", re.IGNORECASE
)
OVER_TO = re.compile(r"^(?P<value>\S+(?: \S+){0,2}) to (?P<other>\S+(?: \S+)?)$", re.IGNORECASE)
"""Only between a few words is "to" a comparison."""
AFTERTHOUGHT = re.compile(r",\s*(?:but|so|and i\b|though|although)\b.*$", re.IGNORECASE)

WE = r"(?:we|our team|the team|team|our company|my team)"
PROJECT = (
    r"(?:(?:the|our|this|my) (?:[\w-]+ ){0,2}?(?:project|repo(?:sitory)?|service|backend|back end|monorepo"
    r"|frontend|front end|api|app(?:lication)?|codebase|code base|system|pipeline|product|platform"
    r"|site|stack|library|module|package|worker|server|cluster"
    r"|website|database|db|ci|build|production|prod|staging|infra(?:structure)?|dashboard|bot|cli|tool))"
)
_WHEN = r"(?:(?:after|in|at|during|since|following|last|yesterday|today|as of|this)(?: [\w'-]+){0,4},? |in the end,? )?"
DECIDED = (
    re.compile(
        rf"^{_WHEN}{WE}(?:'ve| have| all| both)* (?:just |finally |now )?(?:decided|agreed|chose|opted"
        rf"|voted)(?: today| yesterday"
        rf"| together| last \w+)?(?: (?:to|that|on|for|against)|:) (?P<what>.{{3,300}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_WHEN}{WE}(?:'re|'ve| have| are)? ?(?:just |finally |now )?(?:chose|chosen|picked|selected|settled on"
        r"|standardi[sz]ed on|standardi[sz]e on|went with|going with|going for|adopted|switched to"
        r"|switched over to|moved to|migrated to|moved over to|stick with|sticking with)"
        rf" (?P<what>.{{2,300}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{WE}(?:'ve| have)? (?:just |finally |recently )?(?:switched|moved|migrated|ported) (?:our|the"
        rf"|all|everything) ?[\w -]{{0,30}}? ?(?:over )?to (?P<named>.{{2,200}})$",
        re.IGNORECASE,
    ),
    re.compile(r"^(?:the |our )?(?:final )?decision(?: is|:|was)(?: to| that)? (?P<what>.{3,300})$", re.IGNORECASE),
    re.compile(
        r"^it(?: was|'s been| has been| is)(?: now)? (?:decided|settled|agreed) (?:to|that|:)? ?(?P<what>.{3,300})$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^let'?s (?:go with|use|stick with|settle on) (?P<what>.{2,120} (?:because|since) .{3,160})$", re.IGNORECASE
    ),
)
USES = (
    re.compile(
        rf"^(?:{WE}|{PROJECT})(?:'re| are| is|'s)?(?: now| currently| only| all| mostly| mainly)? (?:(?:use|uses|using)"
        rf" (?P<what>[^,;]{{2,160}})|(?:run|runs|running|store|stores|rely|relies|depend|depends|host|hosts"
        rf"|target|targets|support|supports|follow|follows|require"
        rf"|requires|work with|develop in|develop with|write|keep|log|log in|log to|track)(?: everything"
        rf"| production| prod| staging| it| all [\w ]+?| (?:\w+ )?(?:code|issues|tickets|docs|secrets"
        rf"|timestamps|logs|bugs))?(?: in| on| with)? (?P<named>[^,;]{{2,160}}))$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT}(?: is|'s| are)(?: now| still| all| currently)? (?:written in|written with"
        rf"|built (?:with|on|in|around|using)|based on|hosted (?:on|at|in)|deployed (?:to|on"
        rf"|with|in)|managed (?:with|by)|running on|on|using|in|pure) (?P<named>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT}(?: is|'s) (?P<what>an? (?:[\w.+#-]+ ){{0,3}}(?:monorepo|app|service|library|framework"
        rf"|cli|tool|package|platform|plugin|spa|pwa"
        rf"|api|microservice|monolith|website|extension|bot|game|sdk|server|workspace)s?\b[^,;]{{0,120}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{PROJECT} (?:lives? (?:in|at|under)|sits? (?:in|on|behind)|talks to|exposes|ships as"
        rf"|comes from) (?P<what>[^,;]{{2,160}})$",
        re.IGNORECASE,
    ),
)
DEPLOY = re.compile(
    rf"^(?:{WE}|{PROJECT})(?:'re| are| is|'s)?(?: now| always| only| usually)? (?:deploy|deploys|deployed|deploying"
    rf"|ship|ships|release|releases|released)(?: \w+)? (?P<how>with|to|on|via|using|every|by|twice|once"
    rf"|weekly|daily|monthly)\b ?(?P<what>[^,;]{{0,120}})$",
    re.IGNORECASE,
)
IS = re.compile(
    r"^(?:the|our) (?:project'?s? )?(?P<what>database|db|cache|queue|message broker|ci|cloud|linter"
    r"|formatter|bundler|orm|test runner"
    r"|package manager|test framework|orchestrator|default branch|main branch|code style|style guide"
    r"|coding style|ticket system|issue tracker|wiki"
    r"|license|licence|minimum python version|python version|node version|target platform|staging url"
    r"|tech stack|stack|language|main language"
    r"|repo(?:sitory)?)(?: here| in this (?:repo|project)| we use| for this project)? (?:is|runs on"
    r"|are) (?P<value>[^,;]{2,80})$",
    re.IGNORECASE,
)
CONVENTION = re.compile(
    r"^(?:(?:in|for|on|across) (?:this|our|the) (?:project|repo(?:sitory)?|code ?base|team"
    r"|monorepo),? (?:we )?(?P<what>(?:always "
    r"|never |don'?t |do not )?\w+ .{3,160})"
    r"|(?:our|the) (?:convention|rule|policy|house rule|team rule|standard)(?: here)? is (?:to |that "
    r"|:)?\s*(?P<rule>.{3,160})"
    r"|(?P<here>.{3,80} (?:in|of|to|for) (?:this|our) (?:project|repo(?:sitory)?|code ?base"
    r"|monorepo)s? (?:need|needs|must|have to|has to|should(?:n'?t)?|require|requires|always|never"
    r"|may not|can'?t|are not allowed|is not allowed|get|gets|go|goes)\b.{3,160})"
    r"|(?P<ours>(?:all|every|each|new)(?: [\w-]+){0,3} (?:commits?|prs?|pull requests?|branch(?:es)?"
    r"|endpoints?|functions?|methods?|class(?:es)?|tests?|files?|modules?|migrations?|releases?"
    r"|deploy\w*|merges?|changes?|services?|apis?|tables?|columns?|fields?|variables?|components?"
    r"|invoices?|contracts?|reports?|e-?mails?|tickets?|issues?|docs?|documents?|meetings?|requests?"
    r"|expenses?|orders?|clients?|customers?|timestamps?|amounts?|prices|names?|strings?|logs?"
    r"|secrets?|images?|queries|dates?)(?: [\w-]+){0,3} (?:must|has to|have to|should (?:always|never)"
    r"|always|never|is named|are named|gets?)\b.{3,160})"
    r"|we (?P<habit>(?:always|never) (?:use|write|commit|push|merge|deploy|release|ship|test|review"
    r"|run|squash|rebase|pin|log|store|send|document|tag|branch|name|format|lint|sign|encrypt|back up"
    r"|invoice|bill|archive|book|schedule|work|answer|reply|store|ask)\b .{3,160}))$",
    re.IGNORECASE,
)
SCHEDULE = re.compile(
    r"^(?:our |the )(?P<what>[\w -]{2,30}?(?:stand-?up|meeting|retro(?:spective)?|sprint|demo|planning"
    r"|review|sync|release|freeze|on-?call|fiscal year|quarter|retro|1:1|all-hands))s? (?:is|are"
    r"|starts?|begins?|happens?|takes? place|runs?|ends?) (?P<when>.{0,60}\b(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)days?\b.*|(?:at|in|on|every|from) .{2,60})$"
    r"|^we (?:have|do|hold|release|ship|deploy|meet|plan)\b.{0,30}? (?P<every>(?:every|each|on|twice a"
    r"|once a) .{0,30}\b(?:mon|tues|wednes|thurs|fri|satur|sun|week|month|sprint|quarter|day"
    r"|morning)(?:days?|s)?\b.*)$",
    re.IGNORECASE,
)

FOR = re.compile(
    r" (?:for|in|as) (?:the |our |all )?(?P<purpose>[\w -]{2,40}?)(?= (?:because|since|so)\b|$)", re.IGNORECASE
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
