"""English decisions and conventions, and all that is said of the project."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.english.project import choice, project_facts
from everthread.nodes.extract.rules.english.words import EMPTY_OBJECT, REASON, WE, of_project
from everthread.nodes.extract.rules.sketch import Sketch, convention
from everthread.nodes.extract.rules.topics import technology

__all__ = ["about_project"]

_WHEN = r"(?:(?:after|in|at|during|since|following|last|yesterday|today|as of|this)(?: [\w'-]+){0,4},? |in the end,? )?"


DECIDED = (
    re.compile(
        rf"^{WE}(?:'ve| have)? (?:just |finally |recently )?(?P<named>(?:dropped|ended"
        rf"|deprecated) support for .{{2,60}}"
        r"|stopped (?:using|supporting) .{2,60})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_WHEN}{WE}(?:'ve| have| all| both)* (?:just |finally |now )?(?:decided|agreed|chose|opted"
        rf"|voted)(?: today| yesterday| together| last \w+)?(?: (?:to|that|on|for|against)"
        rf"|:) (?P<what>.{{3,300}})$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_WHEN}{WE}(?:'re|'ve| have| are)? ?(?:just |finally |now )?(?:chose|chosen|picked|selected"
        rf"|settled on|standardi[sz]ed on|standardi[sz]e on|went with|going with|going for"
        rf"|migrating from .{{2,40}}? to|moving (?:off|away from) .{{2,40}}? to|moving from .{{2,40}}? to"
        rf"|switching from .{{2,40}}? to|adopted"
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


CONVENTION = re.compile(
    r"^(?:(?:in|for|on|across) (?:this|our|the) (?:[\w-]+ )?(?:club|company|office|shop|firm|newsletter|blog"
    r"|magazine|school|department|association|project|repo(?:sitory)?|code ?base|team"
    r"|monorepo),? (?:we )?(?P<what>(?:always |never |don'?t |do not )?\w+ .{3,160})|(?:our"
    r"|the) (?:convention|rule|policy|house rule|team rule|standard)(?: here)?(?: is (?:to |that "
    r"|:)?|:)\s*(?P<rule>.{3,160})|(?P<here>.{3,80} (?:in|of|to|for) (?:this|our) (?:team|project"
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
    r"|(?P<before>(?:tests|prs|pull requests|commits|branches|migrations|secrets|endpoints|docs|features"
    r"|releases|hotfixes)"
    r" (?:must|have to|need to|may not|can'?t|are never|are always) .{3,100})"
    r"|we (?P<in>(?:bill|invoice|charge|price|trade|sell) in .{3,40})"
    r"|we (?P<habit>(?:always|never|don'?t|do not|only)(?: ever)? (?:use|touch|change|allow|accept|share|expose"
    r"|sell|write|commit|push|merge|deploy|release|ship|test|review"
    r"|run|squash|rebase|pin|log|store|send|document|tag|branch|name|format|lint|sign|encrypt|back up"
    r"|invoice|bill|archive|book|schedule|work|answer|reply|store|ask)\b .{3,160}))$",
    re.IGNORECASE,
)


def about_project(clause: str, project: str | None) -> list[Sketch]:
    subject = project or "project"
    statement = of_project(clause, project)
    for pattern in DECIDED:
        match = pattern.match(clause)
        if match is None:
            continue
        moved = match.groupdict().get("named")
        what = moved or match["what"]
        if EMPTY_OBJECT.match(what):
            continue
        if (moved and re.search(r"[A-Z]", moved)) or _is_lasting_choice(what):
            return [choice(what, statement, subject, "a decision that was made")]
    found = project_facts(clause, project)
    if found:
        return found
    match = CONVENTION.match(clause)
    if match and not re.search(
        r"\b(?:this|that|these|those|the (?:first|second|same|other)) ?(?:one|way)?$", clause, re.IGNORECASE
    ):
        return [convention(statement, subject)]
    return []


_CHOOSES = re.compile(
    r"^(?:use|adopt|switch (?:over )?to|move (?:over )?to|migrate|standardi[sz]e|deploy|release"
    r"|require|encrypt|version|store|split|drop support)\b(?! (?:this|that|these|those|it|them|our|my"
    r"|the (?:rest|money|time))\b)",
    re.IGNORECASE,
)


_RULE = re.compile(r"\b(?:never|always|only|must(?:n'?t)?|at most|at least)\b", re.IGNORECASE)
_FOR_ALL = re.compile(
    r"^(?:all|every|each|no|new|any|weekly|daily|monthly) (?!one\b|more\b|longer\b|time\b)[\w-]+", re.IGNORECASE
)


def _is_lasting_choice(what: str) -> bool:
    """A decision about how the project is done, or one with its reason; "we decided to wait" is neither."""
    return bool(
        technology(what) or REASON.search(what) or _CHOOSES.search(what) or _FOR_ALL.match(what) or _RULE.search(what)
    )
