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
    "NO_MORE",
    "OPENING",
    "OURS",
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
    r"^(?:(?:ok(?:ay)?|hi|hello|hey|well|so|also|and|but|oh|ah|um|right|great|nice|thanks|thank you"
    r"|thx|ty|fyi|ps|p\.s|btw|by the way|by the by|(?:one|two|some|a few) (?:more |other "
    r"|quick )?(?:things?|notes?|remarks?|preferences?|requests?|rules?)|(?:a )?quick (?:one|note"
    r"|thing)|anyway|anyways|for (?:your )?(?:context|reference|info(?:rmation)?)|some (?:context"
    r"|background)|background|context|heads up|for the record|just so (?:you|u) know|note that"
    r"|as i said|as (?:you|u) (?:may |might )?know|yes|yeah|yep|sure|cool|important|preferences?"
    r"|reminder|update|ok cool|perfect|good|just|please note(?: that)?|(?:you|u) should know(?: that)?"
    r"|to be clear|in case it (?:helps|matters)|for future reference|for the future|yo|psst|listen"
    r"|look|ah yes|oh yes|since (?:you|u) asked)(?: there| again| before we (?:start"
    r"|begin))?\s*(?:[,:.!—-]+\s*|\s)\s*)+",
    re.IGNORECASE,
)
CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|wait|sorry)(?=\s*[,:;.—-])|oops|hmm|actually|correction|to correct myself"
    r"|i (?:misspoke|made a mistake|was wrong|said .{1,30} but)|let me correct that|i meant(?: that"
    r"| to say)?|that'?s (?:wrong|not right|incorrect))\s*[,:;.—-]*\s*)+",
    re.IGNORECASE,
)
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
NO_LONGER = re.compile(r"^(?P<who>i|we|i'?m|i am|we'?re|we are) no longer (?P<rest>.+)$", re.IGNORECASE)
NOT_ANY_MORE = re.compile(r"^(?P<who>i|we) (?:don'?t|do not) (?P<rest>.+?),? (?:any ?more|any longer)$", re.IGNORECASE)
NOT_OLD = re.compile(r"^(?P<kept>.+?),? (?:and )?not (?P<old>[\w .+#-]{2,40})$", re.IGNORECASE)
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
_FROM_NOW = (
    r"(?:from (?:now|here|this point) on(?:wards?)?(?: out| in)?|from here on out|going forwards?"
    r"|in (?:the )?future|by default|as a (?:general )?rule|in general|for all future \w+)"
)
_POLITE = r"(?:please |pls |and |but |(?:can|could|would|will) you )*"
STANDING = re.compile(
    rf"^{_POLITE}(?:{_FROM_NOW}|(?:make sure|ensure)(?: that)? (?=(?:all|every|each|any|your) )"
    rf"|generally|(?:every|each) time|every single time|at all times|whenever (?:you"
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
    rf"|i(?:'?d)? (?:want|need|like|prefer)\b(?! to\b))",
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
NO_MORE = re.compile(
    r"^(?:please |pls |can you |could you )*(?P<what>(?:(?:stop|quit) (?:using|adding|putting"
    r"|calling me|saying|apologi[sz]ing|asking me|giving me|starting|ending|writing)|(?:don'?t"
    r"|do not) call me|never again)\b(?!.*\b(?:function|script|file|class|button|page|server|tests?"
    r"|endpoint|module|component|table|column|process|loop|job|service)\b).{0,120})$",
    re.IGNORECASE,
)
"""To stop something that the agent does each time."""
TENDENCY = re.compile(
    r"^i (?:generally|usually|typically|normally|always|tend to|mostly|in general"
    r"|never)(?: really)? (?P<verb>want|like|prefer|need|expect)(?! to\b) (?P<what>.{3,160})$"
    r"|^(?:generally|in general|usually|normally|typically|as a rule),? i(?:'d)? (?P<verb2>want|like"
    r"|prefer|need|expect)(?! to\b) (?P<what2>.{3,160})$",
    re.IGNORECASE,
)
"""What the user wants as a rule."""
HABIT = re.compile(
    r"^i (?:usually|normally|typically|always|generally|tend to|never|only|don'?t"
    r"|do not) (?P<what>(?:start|finish|stop|leave|arrive|work|wake|get up|go to bed|go to the gym"
    r"|commute|travel|fly|eat|have (?:lunch|dinner|breakfast)|take meetings|answer|read)\b.{3,120})$"
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
NICKNAME = re.compile(
    r"^(?:(?i:let'?s|we(?:'ll| will| can)|i(?:'ll| will)|please|from now on),?\s+)?(?i:call|refer to"
    r"|name) (?P<what>it|this|that|(?:this|the|our|my) (?!.*\b(?:and|or|about|to|for|from|with"
    r"|at)\b)[\w -]{2,40}?)(?: as)? (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)?)(?P<tail> .*)?$"
)

EMPTY_OBJECT = re.compile(
    r"^(?:this|that|these|those|it|them|your|you|how|what|when|where|the (?:idea|way|answer|look|first"
    r"|second|last|new|other)|to (?:know|see|hear|ask)|ones?|number|#|both|neither|either|everything"
    r"|something|nothing|option)\b",
    re.IGNORECASE,
)
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
    _form(
        r"(?:my [\w-]+(?: [A-Z]\w+)? and i|we both|we)(?:'re| are)(?: both| all)? (?P<value>vegetarians?"
        r"|vegans?|pescatarians?|kosher|halal)",
        "diet",
        SELF,
    ),
    _form(
        r"(?:i'?m|i am) (?P<value>(?:more |most |very |quite |pretty )?(?:comfortable|familiar|fluent"
        r"|experienced) (?:with|in) (?!this|that|it|the\b|these)[^,;]{2,60})",
        "knows",
        SELF,
    ),
    _form(
        r"i find (?P<value>(?!it\b|this\b|that\b|these\b|those\b|your\b|the (?:second|first|new"
        r"|last)\b)[^,;]{3,40}? (?:easier|harder|easy|hard|difficult|annoying|distracting|confusing"
        r"|helpful|unreadable|more \w+)(?: to \w+)?)",
        "finds",
        SELF,
        "preference",
    ),
    _form(
        r"i work (?:for|at) (?P<value>(?:the|an?) (?!moment|same|time|other|next|day|problem|end|pace"
        r"|desk)[\w' -]{3,40}?)(?: (?:in|as|since|and|near) .*)?",
        "employer",
        SELF,
    ),
    _form(
        rf"(?i:my (?P<what>{KIN})),? (?P<value>[A-ZÀ-Ý][\w'-]+),? (?:is|are|starts?|has|works?|lives?|will"
        rf"|likes?|loves?|goes|just|was|studies|turns|wants|plays)\b.*",
        "{what}",
        SELF,
        case=True,
    ),
    _form(
        r"i (?:can'?t|cannot|don'?t|do not) (?:read|speak|understand|code in|drive|swim|cook"
        r"|touch-type) (?P<value>(?!this\b|that\b|it\b|the\b|why\b|what\b|how\b|your\b|you\b|any of\b"
        r"|a word\b)[A-Za-z][\w ]{1,30}?)(?: (?:at all|well|very well|yet))?",
        "does not know",
        SELF,
    ),
    _form(
        r"(?:i'?m|i am)(?: currently)? (?:in|on) (?P<value>(?:the )?(?:[\w/+-]+ ){1,3}time(?: ?zone)?"
        r"|(?:utc|gmt|cet|est|pst)(?: ?[+-] ?\d{1,2})?)",
        "time zone",
        SELF,
    ),
    _form(
        rf"(?i:i(?:'ve| have)?(?: just| recently)? (?:joined|started at|started working (?:at|for)"
        rf"|got hired by|switched to working at)) (?P<value>{NAME}){_SINCE}",
        "employer",
        SELF,
        case=True,
    ),
    _form(
        r"i(?:'m| am)? (?:only |mostly )?(?:play|playing) (?P<value>(?:the )?(?!with\b|around\b|it\b"
        r"|a role|this|that|to\b|games?\b|by\b|along\b)[a-z]+(?: [a-z]+)?)(?: (?:in|for|at|with|on|since"
        r"|every|as) .+)?",
        "plays",
        SELF,
    ),
    _form(
        rf"as an? (?P<value>vegetarian|vegan|pescatarian|coeliac|celiac|diabetic|beginner in [\w+#]+"
        rf"|(?:[\w-]+ ){{0,2}}{ROLE})(?: myself)?",
        "is",
        SELF,
    ),
    _form(
        r"(?:i'?m|i am)(?: currently)? (?P<value>(?:training for|preparing for|studying for"
        r"|saving (?:up )?for|writing my thesis|writing my dissertation|writing a book"
        r"|writing a novel)[^,;]{0,50})",
        "is busy with",
        SELF,
    ),
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
        rf"|in|with|from|on|and|who|working|based|by|since|specialising|specializing|trying|living"
        rf"|doing) .+)?",
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
        r"i(?:'ve| have)(?: got)? (?P<value>(?:asthma|diabetes|adhd|dyslexia|epilepsy|arthritis|migraines?"
        r"|insomnia|high blood pressure|coeliac disease|celiac disease|tinnitus|add|a bad back"
        r"|back problems|a bad knee|a heart condition|a pacemaker))",
        "health",
        SELF,
    ),
    _form(
        rf"(?i:my (?P<what>{KIN})(?: is|'s| are|'s name is|s'? names? (?:is|are))) (?:(?i:called|named"
        rf"|an?) )?(?:(?<=called )|(?<=named )|(?=[A-ZÀ-Ý0-9])|(?<= an )"
        rf"|(?<= a ))(?P<value>[^,;]{{1,60}}?)(?i: now)?(?i:,? and (?:she|he|they|we|i|it)\b.*)?(?: - .*)?",
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
        r"i(?: really| also| just| absolutely)* (?:like|love|enjoy|adore) (?P<value>[^,;]{2,80}?)(?: too"
        r"| a lot| so much)?",
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
    r"^i(?: always| usually| generally| much| strongly| still| really)? prefer (?:to (?:have|get|see"
    r"|use|read) )?(?P<what>.{2,160})$",
    re.IGNORECASE,
)
OVER = re.compile(
    r"^(?P<value>.{2,60}?),? (?:over|rather than|instead of|more than) (?P<other>.{2,60})$", re.IGNORECASE
)
OVER_TO = re.compile(r"^(?P<value>\S+(?: \S+){0,2}) to (?P<other>\S+(?: \S+)?)$", re.IGNORECASE)
"""Only between a few words is "to" a comparison."""
AFTERTHOUGHT = re.compile(
    r"(?:,\s*(?:but|so|and i\b|though|although)|\s+so (?!far|much|many|that|as|on))\b.*$", re.IGNORECASE
)

WE = r"(?:we|our team|the team|team|our company|my team)"
PROJECT = (
    r"(?:(?:the (?:[\w-]+ )?(?:project|repo(?:sitory)?|service|backend|back end|frontend|front end|api"
    r"|app(?:lication)?|codebase|code base|system|pipeline|product|platform|site|stack|website"
    r"|database|db|ci|build|production|prod|staging|infra(?:structure)?|dashboard|monorepo|(?:staging"
    r"|prod|production|build|db|web) server)|(?:our|this|my) (?:[\w-]+ ){0,2}?(?:project"
    r"|repo(?:sitory)?|service|backend|back end|monorepo|frontend|front end|api|app(?:lication)?"
    r"|codebase|code base|system|pipeline|product|platform|site|stack|library|module|package|worker"
    r"|server|cluster|website|database|db|ci|build|production|prod|staging|infra(?:structure)?"
    r"|dashboard|bot|cli|tool)))"
)
_WHEN = r"(?:(?:after|in|at|during|since|following|last|yesterday|today|as of|this)(?: [\w'-]+){0,4},? |in the end,? )?"
DECIDED = (
    re.compile(
        rf"^{_WHEN}{WE}(?:'ve| have| all| both)* (?:just |finally |now )?(?:decided|agreed|chose|opted"
        rf"|voted)(?: today| yesterday| together| last \w+)?(?: (?:to|that|on|for|against)"
        rf"|:) (?P<what>.{{3,300}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_WHEN}{WE}(?:'re|'ve| have| are)? ?(?:just |finally |now )?(?:chose|chosen|picked|selected"
        rf"|settled on|standardi[sz]ed on|standardi[sz]e on|went with|going with|going for"
        rf"|migrating from .{{2,40}}? to|moving from .{{2,40}}? to|switching from .{{2,40}}? to|adopted"
        rf"|switched to|switched over to|moved to|migrated to|moved over to|stick with"
        rf"|sticking with) (?P<what>.{{2,300}})$",
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
        rf"^{PROJECT} (?:lives? (?:in|at|under)|sits? (?:in|on|behind)|talks to|exposes|ships as"
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
    r"|only)[\w'-]+(?: [\w-]+){0,2}) (?:is|are)(?: called| named| now"
    r"| on)? (?P<value>(?-i:[A-Z0-9])[^,;]{1,60})$|^we(?:'re| are) (?P<kind>an? (?:\w+ )?(?:team"
    r"|company|start-?up|agency|studio|group|shop|non-?profit|law firm|clinic|school"
    r"|lab)\b[^;]{0,80})$",
    re.IGNORECASE,
)
"""What "we" have or are, when it is named."""
CONVENTION = re.compile(
    r"^(?:(?:in|for|on|across) (?:this|our|the) (?:project|repo(?:sitory)?|code ?base|team"
    r"|monorepo),? (?:we )?(?P<what>(?:always |never |don'?t |do not )?\w+ .{3,160})|(?:our"
    r"|the) (?:convention|rule|policy|house rule|team rule|standard)(?: here)? is (?:to |that "
    r"|:)?\s*(?P<rule>.{3,160})|(?P<here>.{3,80} (?:in|of|to|for) (?:this|our) (?:team|project"
    r"|repo(?:sitory)?|code ?base|monorepo)s? (?:need|needs|must|have to|has to|should(?:n'?t)?"
    r"|require|requires|always|never|may not|can'?t|are not allowed|is not allowed|get|gets|go|goes"
    r"|(?:are|is) (?:always|never|in|stored|written|named|kept|done|called|tested|versioned|managed"
    r"|built))\b.{3,160})|(?P<ours>(?:all|every|each|new)(?: [\w-]+){0,3} (?:commits?|prs?"
    r"|pull requests?|branch(?:es)?|endpoints?|functions?|methods?|class(?:es)?|tests?|files?|modules?"
    r"|migrations?|releases?|deploy\w*|merges?|changes?|services?|apis?|tables?|columns?|fields?"
    r"|variables?|components?|invoices?|contracts?|reports?|e-?mails?|tickets?|issues?|docs?"
    r"|documents?|meetings?|requests?|expenses?|orders?|clients?|customers?|timestamps?|amounts?"
    r"|prices|names?|strings?|logs?|secrets?|images?|queries|dates?)(?: [\w-]+){0,3} (?:must|has to"
    r"|have to|should (?:always|never)|always|never|is named|are named|gets?)\b.{3,160})"
    r"|we (?P<habit>(?:always|never) (?:use|write|commit|push|merge|deploy|release|ship|test|review"
    r"|run|squash|rebase|pin|log|store|send|document|tag|branch|name|format|lint|sign|encrypt|back up"
    r"|invoice|bill|archive|book|schedule|work|answer|reply|store|ask)\b .{3,160}))$",
    re.IGNORECASE,
)
SCHEDULE = re.compile(
    r"^(?:our |the )(?P<what>[\w -]{2,30}?(?:stand-?up|meeting|retro(?:spective)?|sprint|demo|planning"
    r"|review|sync|release|freeze|on-?call|fiscal year|quarter|retro|1:1|all-hands))s? (?:is|are"
    r"|starts?|begins?|happens?|takes? place|runs?|ends?) (?P<when>.{0,60}\b(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)days?\b.*|(?:at|in|on|every|from) .{2,60})$|^(?:we|our team|the team) (?!met\b"
    r"|had\b|did\b|was\b|were\b)(?:[\w-]+ ){1,6}?(?P<every>(?:(?:every|each|twice a"
    r"|once a) .{0,30}\b(?:mon|tues|wednes|thurs|fri|satur|sun|week|month|sprint|quarter|day"
    r"|morning)(?:days?|s)?|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b.*)$",
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
