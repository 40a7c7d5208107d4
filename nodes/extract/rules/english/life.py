"""Forms of English sentences about the user's life: work, family, age, food, pastimes and turns of life."""

from __future__ import annotations

from everthread.nodes.extract.rules.english.words import NAME, ROLE, SELF, form

__all__ = ["LIFE"]

_COUNT = r"(?:once|twice|(?:two|three|four|five|six|\d+) times|every (?:day|week|morning|evening|night|weekend))"
_FOOD = (
    r"(?:dairy|gluten|sugar|caffeine|coffee|alcohol|meat|red meat|pork|beef|fish|nuts|soy|lactose|carbs|bread|eggs"
    r"|shellfish|seafood|(?:processed|fried|spicy|fatty) foods?)"
)
_BUSINESS = (
    r"(?:bakery|(?:book|coffee |flower |barber|corner |e-?bay |etsy |online )?shop|(?:book|online |etsy )?store"
    r"|caf[eé]|restaurant|company|business|farm|studio|practice|clinic|agency|consultancy|salon|gym|bar|pub|hotel"
    r"|guesthouse|garage|vineyard|brewery|podcast|blog|newsletter|youtube channel|start-?up|non-?profit|food truck)"
)

LIFE = (
    form(
        r"i work in (?P<value>(?!the\b|an?\b|my\b|this\b|that\b|progress\b|order\b|silence\b|pairs\b|teams?\b|groups?\b"
        r"|shifts?\b|batch|chunks\b|parallel\b|person\b|different\b|one\b|two\b|short\b)[a-z&]+(?: [a-z&]+){0,2}?)"
        r"(?: (?:and|at|for|as|so|since|here)\b.*)?",
        "field of work",
        SELF,
    ),
    form(r"i work as (?P<value>an? [\w' -]{3,40}?)(?: (?:and|at|for|in|so|since|with)\b.*)?", "role", SELF),
    form(rf"i(?:'ve| have) been an? (?P<value>(?:[\w-]+ ){{0,3}}{ROLE})(?: at .+?)? (?:for|since) .+", "role", SELF),
    form(
        rf"(?i:i(?:'ve| have) (?:lived|been living|been based)) (?i:in) (?P<value>{NAME})(?i: (?:for|since) .+)",
        "lives in",
        SELF,
        case=True,
    ),
    form(
        rf"i (?:also )?(?:own|run|manage|co-own|have) (?P<value>(?:an?|my own|two|three) (?:[\w-]+ ){{0,3}}{_BUSINESS})"
        r"(?: (?:in|on|near|called|named|with|selling|for|and|that|which)\b.*)?",
        "runs",
        SELF,
    ),
    form(
        rf"(?i:i(?:'ve| have)?(?: just| recently)? (?:started|began|got|landed|accepted) (?:a |my )?(?:new )?"
        rf"(?:job|position|role|work)(?: as an? [\w ]{{3,40}}?)? (?:at|with)) (?P<value>{NAME})(?i: .*)?",
        "employer",
        SELF,
        case=True,
    ),
    form(
        r"i(?:'m| am) (?P<value>(?:an? )?(?:single|divorced|stay-at-home|working|new|first-time|foster|adoptive)?[ -]?"
        r"(?:mother|mum|mom|father|dad|parent|grandmother|grandfather|grandparent|widow|widower|twin|vegan|veteran)"
        r"(?: (?:of|to) (?:\w+|\w+ \w+))?)(?:,? (?:and|so|with|who)\b.*)?",
        "is",
        SELF,
    ),
    form(r"i(?:'m| am) (?P<value>\d{1,2})(?: years old| y/?o)?(?:,? (?:and|so|now)\b.*)?", "age", SELF),
    form(r"i (?:just |recently )?turned (?P<value>[1-9]\d)(?: .{0,30})?", "age", SELF),
    form(
        rf"(?i:i was born(?: and raised)?) (?P<value>(?:(?i:in|on) (?:[12]\d{{3}}"
        rf"|{NAME})(?: \d[\w ,]*)?))(?i: and raised.*)?",
        "born",
        SELF,
        case=True,
    ),
    form(
        r"i(?:'ve| have)?(?: just| recently| finally)* (?P<value>retired|got (?:divorced|married|engaged)"
        r"|(?:quit|stopped|gave up|given up) (?:smoking|drinking|alcohol|eating meat|coffee|sugar))(?: .{0,30})?",
        "turn of life",
        SELF,
    ),
    form(rf"(?i:i(?:'ve| have)?(?: \w+)? changed my name to) (?P<value>{NAME})", "name", SELF, case=True),
    form(r"(?P<value>[a-z]+) (?:isn'?t|is not) my (?:first|native) language", "native language is not", SELF),
    form(
        r"i(?:'m| am)(?: still| quite| very| completely| totally| an?| absolute)* (?P<value>(?:beginner|novice|newcomer"
        r"|newbie) (?:at|in|with|to) [\w+# -]{2,30}?|new to (?!this\b|that\b|it\b|the\b|here\b|these\b|all\b"
        r"|me\b|town\b)"
        r"[\w+#-]+(?: [\w+#-]+)?)(?: (?:and|so|but)\b.*)?",
        "knows",
        SELF,
    ),
    form(
        rf"i(?: usually| generally| try to)? avoid (?P<value>{_FOOD}(?:(?:,| and| or|, and) {_FOOD})*)",
        "does not eat",
        SELF,
    ),
    form(rf"i(?:'m| am)(?: \w+)? (?:intolerant|sensitive) to (?P<value>{_FOOD}(?: and {_FOOD})?)", "allergic to", SELF),
    form(
        r"i(?: usually| always| mostly)? (?P<value>(?:(?:ride my bike|bike|cycle|walk|drive|commute)(?: by \w+)?"
        r"|take the (?:bus|train|tram|subway|metro|tube)) to (?:work|school|campus|the office))(?: .{0,30})?",
        "as a rule",
        SELF,
    ),
    form(
        rf"i (?P<value>(?:go|do|play|practi[sc]e|attend|see|visit|swim|run|jog|cycle|cook|teach|train|volunteer"
        rf"|have|take"
        rf"|work out|meet|meditate|travel)\b(?! (?:it|this|that|them)\b).{{0,50}}? {_COUNT}(?: an?| per)?"
        r"(?: (?:day|week|month|year))?)",
        "as a rule",
        SELF,
    ),
    form(
        r"i(?: also)? (?:collect|restore|breed) (?P<value>(?!the\b|this\b|that\b|these\b|those\b|my\b|data\b|all\b"
        r"|feedback\b|information\b|it\b|them\b)[\w-]+(?: [\w-]+){0,3}?)(?: (?:and|as|so|from|since)\b.*)?",
        "pastime",
        SELF,
    ),
    form(r"i(?: also)? volunteer (?P<value>(?:at|with|for) (?!this|that|it)[\w' -]{3,40})", "volunteers", SELF),
    form(
        r"(?:i|we|my [\w-]+ and i)(?: also)? (?:keep|breed|raise) (?P<value>(?:\w+ )?(?:bees|chickens|hens|ducks|geese"
        r"|goats|sheep|pigs|pigeons|horses|ponies|alpacas|rabbits|snakes|fish|turtles|parrots|canaries))(?: .{0,50})?",
        "has",
        SELF,
    ),
    form(
        rf"(?i:i(?:'ve| have)?(?: just| recently| finally)? (?:switched|changed|converted)(?: over)? from {NAME} to)"
        rf" (?P<value>{NAME})(?i: (?:last|this|in|for|because|a|two|three|\d)\b.*)?",
        "uses",
        SELF,
        case=True,
    ),
    form(
        r"my (?P<what>wife|husband|partner|(?:\w+est |older |younger )?(?:sons?|daughters?|kids?|child(?:ren)?)|baby)"
        r"(?: [A-Z]\w+)? (?P<value>(?:is|are)(?: both| all| also)? (?:allergic to [\w -]{3,30}|vegans?"
        r"|vegetarians?|coeliac"
        r"|celiac|lactose intolerant|\d{1,2}(?: years old)?))",
        "{what}",
        SELF,
    ),
    form(
        r"i (?:learn|work|think|focus|concentrate|write|sleep|study|understand things) best (?P<value>(?:with"
        r"|when|in|from|by"
        r"|on|at|to)\b.{3,60})",
        "at their best",
        SELF,
        "preference",
    ),
    form(
        r"i (?:don'?t|do not) (?:own|have) (?P<value>(?:an? )?(?:car|dog|cat|tv|television|smartphone|microwave|oven"
        r"|dishwasher|garden|balcony|bike|driving licen[cs]e|driver'?s licen[cs]e|pets?|children|kids|siblings))",
        "does not have",
        SELF,
    ),
    form(
        r"i live (?P<value>alone|with (?!it\b|this\b|that\b)[\w ]{3,40}|in an? (?:[\w-]+ )?(?:flat|apartment"
        r"|house|studio"
        r"|van|village|town|farm|dorm)(?: [\w ]{1,30})?)",
        "household",
        SELF,
    ),
    form(r"i share (?P<value>an? (?:flat|apartment|house|room|office) with .{3,40})", "household", SELF),
    form(
        r"i work (?P<value>(?:\w+ (?:days|hours) (?:a|per) week|nights|weekends|mornings|evenings"
        r"|(?:from )?\d+(?:am)? to"
        r" \d+(?:pm)?))(?: .{0,40})?",
        "works",
        SELF,
    ),
    form(
        r"i (?P<value>(?:start|begin|finish|leave|stop) (?:work|working|the office) (?:at|around|by) .{1,30})",
        "as a rule",
        SELF,
    ),
    form(
        r"(?:i'?m|i am)(?: currently)? (?:doing|pursuing|finishing|working on) (?P<value>(?:an?"
        r"|my) (?:\w+ )?(?:phd|ph\.d"
        r"|doctorate|master'?s?|bachelor'?s?|mba|degree|apprenticeship|residency)\b.{0,50})",
        "is studying",
        SELF,
    ),
    form(
        r"(?:i'?m|i am)(?: currently)? in (?P<value>(?:my )?(?:first|second|third|fourth|fifth|final|last)[ -]"
        r"(?:year|semester|grade)\b.{0,40})",
        "is studying",
        SELF,
    ),
    form(
        r"i study (?P<value>(?!the\b|this\b|that\b|for\b|hard\b|a lot\b|at\b|in\b|with\b|every\b|my\b|best\b"
        r"|how\b|it\b)"
        r"[a-z]+(?: [a-z]+){0,2}?)(?: (?:in|at|and|so|since)\b.*)?",
        "is studying",
        SELF,
    ),
    form(rf"(?i:i grew up (?:in|near)) (?P<value>{NAME})(?i:,? .*)?", "grew up in", SELF, case=True),
    form(
        r"my (?:company|employer|firm) (?P<value>(?:makes|sells|builds|develops|produces|provides|distributes|imports)"
        r" .{3,60})",
        "employer",
        SELF,
    ),
    form(
        r"i (?:lead|manage|run|head|supervise) (?P<value>(?:an?|the|our) (?:[\w-]+ ){0,3}(?:team|department"
        r"|group|branch"
        r"|division|unit|side|crew|lab|warehouse|store)\b[\w ]{0,40})",
        "role",
        SELF,
    ),
    form(
        r"(?:i'?m|i am)(?: also)? (?P<value>(?:an?|the) (?:[\w-]+ )?(?:secretary|treasurer|chair(?:man|woman|person)?"
        r"|president|member|head|captain|co-?ordinator|organi[sz]er|trustee|owner|co-?owner|host|deputy) (?:of"
        r"|at|for|in)"
        r" (?!this\b|that\b|it\b|their\b|these\b)[\w' -]{3,50}?)",
        "role",
        SELF,
    ),
    form(
        r"i(?: also)? (?P<value>(?:sing|act|dance|row|play) (?:in|for|with) (?:an?|our|the local) [\w -]{3,30})",
        "pastime",
        SELF,
    ),
    form(
        r"i(?: also)? (?P<value>(?!want|need|would|will|can|could|should|hope|plan|wish|have|had|leave|arrive|\w+ed\b"
        r"|met\b|went\b|saw\b|got\b|was\b)[a-z]+ .{2,60}? on (?:mon|tues|wednes|thurs|fri|satur|sun)days)(?: .{0,30})?",
        "as a rule",
        SELF,
    ),
    form(
        r"i(?:'ve| have)(?: been)? work(?:ed|ing) as (?P<value>an? [\w' -]{3,40}?)(?: (?:at|in"
        r"|with) .+?)? (?:for|since) .+",
        "role",
        SELF,
    ),
    form(
        r"i(?:'ve got| have| own) (?P<value>an? (?:\w+ )?(?:greenhouse|garden|allotment|balcony|boat|sailboat|caravan"
        r"|camper(?: van)?|motorbike|motorcycle|piano|workshop|pool|3d printer|electric car))(?: .{0,40})?",
        "has",
        SELF,
    ),
    form(
        r"i (?:don'?t|do not|never) (?P<value>smoke|drink|drive|swim|cook|gamble|eat out)(?: (?:at all|anything"
        r"|myself))?",
        "does not",
        SELF,
    ),
)
"""What a person tells of their life that stays so. `words.Form` says how a form is read."""
