"""What the wording of a sentence gives away, in English and Chinese. Pure functions over text."""

from __future__ import annotations

import re

from everthread.nodes.extract.script import simplified

__all__ = [
    "clauses",
    "forbids_memory",
    "gives_advice",
    "gives_orders",
    "grants_permission",
    "is_chinese",
    "is_event",
    "is_fiction",
    "is_guess",
    "is_lasting",
    "is_liking",
    "is_live_value",
    "is_now",
    "is_one_off_output",
    "is_past",
    "is_question",
    "is_reported",
    "is_request",
    "is_task_text",
    "is_temporary_path",
    "limits_reach",
    "only_forbids",
    "own_words",
    "sentences",
    "spelled_out",
    "takes_back",
    "tells",
    "without_limit",
]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")


def is_chinese(text: str) -> bool:
    """Whether the text is read by the Chinese rules: it has a Han character."""
    return bool(_HAN.search(text))


# --- Own words and sentences

QUOTED = "⟪…⟫"
"""Stands where somebody else's words were."""

_FENCE = re.compile(r"(```|~~~).*?(\1|\Z)", re.DOTALL)
_QUOTE_LINE = re.compile(r"^\s*>.*$", re.MULTILINE)
_SPAN = re.compile(r"\"([^\"\n]{1,2000})\"|“([^”]{1,2000})”|「([^」]{1,2000})」|『([^』]{1,2000})』|«([^»]{1,2000})»")
_SINGLE = re.compile(r"(?<![\w'’])['‘](?=\S)([^\n]{4,500}?\S)['’](?![\w'’])")
_MARKUP = re.compile(r"<(\w+)[^>]*>.*?</\1>", re.DOTALL)
_HANDED_OVER = re.compile(
    r"(?:\b(?:here(?:'?s| is| are)|below (?:is|are)|this is|see|read"
    r"|the following)\b(?![^\n]{0,60}\b(?:my|how i)\b)|(?:下面|以下|如下"
    r"|这是)(?![^\n]{0,20}我的))[^\n]{0,120}[:：][ \t]*\n.*",
    re.IGNORECASE | re.DOTALL,
)
_SPEAKER = re.compile(r"^[ \t]*(?P<who>[\w .'-]{1,24}|[\u4e00-\u9fff]{1,8})[ \t]*[:：][ \t]*\S.*$", re.MULTILINE)
_LIST_MARK = re.compile(
    r"(?:^|(?<=[：;；。!！\n])|(?<=[.:])(?=[ \t]))[ \t]*(?:[-*•·][ \t]+|\(?\d{1,2}(?:[.)）][ \t]+|、))", re.MULTILINE
)


def own_words(text: str) -> str:
    """The text without code blocks, tagged blocks, quotations, what is handed over to work on ("Here is the mail:")
    and other people's turns in a transcript: what the speaker says in person.

    A quotation of one or two words ("call me "Bo"") is a name and stays; a longer one becomes a mark that no rule
    reads across.
    """
    for pattern, stand_in in (
        (_FENCE, f"\n{QUOTED}\n"),
        (_MARKUP, f"\n{QUOTED}\n"),
        (_QUOTE_LINE, ""),
        (_HANDED_OVER, f"\n{QUOTED}\n"),
    ):
        text = pattern.sub(stand_in, text)
    who = [match["who"].strip().casefold() for match in _SPEAKER.finditer(text)]
    if len(set(who)) < len(who):  # somebody speaks twice: it is a transcript, not a list of properties
        text = _SPEAKER.sub(f"\n{QUOTED}\n", text)
    for pattern in (_SPAN, _SINGLE):
        text = pattern.sub(_short_or_mark, text)
    return _LIST_MARK.sub("\n", text).replace("`", "")


def _short_or_mark(match: re.Match[str]) -> str:
    inner = next(group for group in match.groups() if group is not None).strip()
    short = len(inner) <= 6 if is_chinese(inner) else len(inner.split()) <= 2
    return inner if short else QUOTED


_SHORTHAND = (
    (re.compile(r"\bi(?:am|m)\b(?!\w)(?!\.)", re.IGNORECASE), "I'm"),
    (re.compile(r"\bive\b", re.IGNORECASE), "I've"),
    (re.compile(r"\b(do|does|did|is|are|was|were|have|has|would|should|could)nt\b", re.IGNORECASE), r"\1n't"),
    (re.compile(r"\bcant\b", re.IGNORECASE), "can't"),
    (re.compile(r"\b(?:pls|plz)\b", re.IGNORECASE), "please"),
    (re.compile(r"\bu\b"), "you"),
    (re.compile(r"[’‘]"), "'"),
)


def spelled_out(text: str) -> str:
    """English text with the usual slips and short forms of typing written out: "im", "dont", "pls", "u"."""
    for short, whole in _SHORTHAND:
        text = short.sub(whole, text)
    return text


_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|vs|no|inc|ltd|e\.g|i\.e|etc|approx)|\b[A-Z])\.$", re.IGNORECASE
)
_END = re.compile(r"[。！？；\n]+|[.!?;]+(?=\s|$)")


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, each with its closing mark; empty ones left out."""
    found, start = [], 0
    for end in _END.finditer(text):
        piece = text[start : end.end()]
        if end[0] == "." and _ABBREVIATION.search(piece) and end.end() < len(text):
            continue
        found.append(piece)
        start = end.end()
    found.append(text[start:])
    return [piece.strip() for piece in found if piece.strip(" \t\n.!?;。！？；")]


_JOINT = re.compile(
    r"[，,；;]+\s*|\s+[-–—]+\s+|——|\.{2,}\s*|…+\s*|\s*[（(][^)）]*[)）]\s*|\s+(?:but|so|and|plus"
    r"|also)\s+(?=(?:i|my|we|our|the|this|please|pls|always|never|from now)\b)",
    re.IGNORECASE,
)
_JOINT_WORD = re.compile(r"^(?:(?:and|but|so|also|plus|then|because|since|as|ok(?:ay)?)\s+)+", re.IGNORECASE)


def clauses(sentence: str) -> list[str]:
    """The parts of a sentence between commas, dashes and conjunctions, in order, without empty ones and remarks in
    brackets."""
    parts = (_JOINT_WORD.sub("", part.strip()) for part in _JOINT.split(sentence))
    return [part for part in parts if part.strip(" .!?。！？")]


# --- Questions, guesses, what others said

_ASKS_TO_KEEP = re.compile(
    r"^(?:(?:hey|hi|ok(?:ay)?|so|and|also|oh)[, ]+)?(?:can|could|would|will) (?:you|u) (?:please "
    r"|pls )?(?:remember|keep in mind|make a note|note(?: down)?|save|memori[sz]e) (?:that|this"
    r"|to memory|:)|^(?:你|您)?(?:能不能|可以|能)(?:帮我|请)?记(?:住|一下|下)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"^(?:right|correct|no|yes|yeah|huh|ok(?:ay)?|eh|true|or not|(?:do|does|did|is|are|was|were|have"
    r"|has|can|could|should|would|wo|will|am)(?:n'?t|nt)? (?:i|we|it|you|they|he|she)(?: not)?|对吧?"
    r"|对不对|是吧|对吗|是吗|没错吧|不是吗|好吗)$",
    re.IGNORECASE,
)

_ASKS = re.compile(
    r"^(?:(?:and|so|but|then|ok|hey|hi)[, ]+)?(?:what|who|whom|whose|where|when(?! (?:i|you|we|he|she"
    r"|it|they|this|that|there|the|my|our|your)\b)|why|how|which|do|does|did|can|could|would|should"
    r"|shall|is|are|was|were|am|will|has|have|may)\s+(?:i|you|we|he|she|it|they|this|that|there|the|my"
    r"|our|your|is|are|do|does|did|can|could|should|would|about|many|much|long|to)\b",
    re.IGNORECASE,
)
_ASKS_ZH = re.compile(
    r"[吗么呢][。！!.…\s]*$|是不是|是否|能不能|可不可以|要不要|有没有|会不会|对不对|为什么"
    r"|怎么[样办做用]?|哪[个里些种儿]|多少|几点|谁(?:是|的|在)|什么时候|是什么|啥"
)


def is_question(sentence: str) -> bool:
    """Whether it asks instead of telling."""
    sentence = simplified(sentence)
    if _ASKS_TO_KEEP.search(sentence):
        return False
    stripped = sentence.rstrip(" \t\"'”」)）")
    if stripped.endswith(("?", "？")):
        return True
    return bool(_ASKS_ZH.search(sentence)) if is_chinese(sentence) else bool(_ASKS.search(sentence))


_REQUEST = re.compile(
    r"^(?:(?:hey|hi|hello|ok(?:ay)?|so|and|also|oh|please|great|thanks|thank you)[,! ]+)*(?:can|could"
    r"|would|will) (?:you|u|we) (?:please |maybe |also |kindly |just )*(?!tell\b|explain\b|remind\b"
    r"|remember\b|see\b|believe\b|help\b)[a-z]+\b|^(?:请问?)?(?:你|您)?(?:能不能|可不可以|可以"
    r"|能)(?:帮我|请|给我|把|用|写|改|按|以|短|长|简).{1,40}[?？吗]?$",
    re.IGNORECASE,
)


def is_request(sentence: str) -> bool:
    """Whether it asks politely for something to be done ("Can you use bullet points?"), not for an answer."""
    return bool(_REQUEST.search(simplified(sentence).strip()))


_LASTING = re.compile(
    r"\b(?:always|never|from now on|going forward|whenever|(?:every|each) time|at all times)\b|以后"
    r"|今后|往后|从现在|每次|一律|始终|一直|永远|总是",
    re.IGNORECASE,
)


def is_lasting(sentence: str) -> bool:
    """Whether a word says that it is meant for every time."""
    return bool(_LASTING.search(simplified(sentence)))


_ONESELF = re.compile(
    r"^(?:i(?:'?m|'?ve|'?d)?|my|we(?:'?re|'?ve)?|our|the|this|for context|fyi|btw|always|never"
    r"|please)\b|^(?:(?:去年|今年|前年|最近|现在|平时|前阵子|上个?月|上周|昨天|以后|目前)[，,]?)?(?:我|本人|咱|俺|小弟|大家都|这个|本项目)",
    re.IGNORECASE,
)


def tells(sentence: str) -> bool:
    """Whether a sentence that asks also tells something ("I'm in Nairobi, what time is it?"): one of its parts speaks
    of the speaker and is no question, and the rest does not only ask whether that is so."""
    parts = [part.strip(" .!?。！？") for part in clauses(simplified(sentence))]
    if len(parts) < 2 or _TAG.match(parts[-1]):
        return False
    asked_last = sentence.rstrip().endswith(("?", "？"))
    told = parts[:-1] if asked_last else parts
    return any(_ONESELF.match(part) and not is_question(part) and not is_guess(part) for part in told)


_GUESS = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|apparently|supposedly|might|may be|could be"
    r"|seems?|i (?:guess|think|suppose|assume|believe|wonder|imagine|doubt)|not (?:really )?sure"
    r"|unsure|no idea|as far as i know"
    r"|(?<!prefer )(?<!better )(?<!appreciate it )(?<!like it )(?<!love it )(?<!great )(?<!nice )if(?! i ask\b)"
    r"|suppose|supposing|imagine|let'?s say|say that|say (?:i|we) (?!that\b)|hypothetical(?:ly)?"
    r"|assuming|unless|whether|i wish|would have|for example|for instance|e\.g|in (?:the|this|my|a|her"
    r"|his) (?:story|book|novel|movie|film|scenario|dream)|pretend|thinking (?:of|about)|considering"
    r"|as+ume|just kidding|joking|not decided|undecided)\b",
    re.IGNORECASE,
)
_GUESS_ZH = re.compile(
    r"可能|也许|或许|大概(?![\d一二三四五六七八九十两几半])|好像|似乎|应该是|我猜|猜测|估计|不确定"
    r"|不太确定|我觉得|说不定|没准|如果|假如|假设|(?<!主)(?<!需)(?<!重)(?<!只)要是|倘若|万一|比如|例如"
    r"|假装|真想|想学|希望能|要是能|在考虑|还没(?:有)?(?:决定|想好|定)|考虑(?:用|换|要)|开玩笑|打算"
    r"|想试"
)


def is_guess(sentence: str) -> bool:
    """Whether it is hedged, hypothetical or an example: nobody stands behind it."""
    sentence = simplified(sentence)
    return bool(_GUESS.search(sentence) or _GUESS_ZH.search(sentence))


_PAST = re.compile(
    r"\b(?:used to|formerly|previously|back (?:then|when|in)|years ago|in the past|as a (?:kid|child"
    r"|student|teenager))\b|我(?:们|家)?(?:以前|之前|曾经?|过去|原来|从前|小时候|当年)|(?:以前|曾经?"
    r"|从前|小时候|当年|过去)我|这几天|最近几天|这两天|前几天|这阵子",
    re.IGNORECASE,
)


def is_past(sentence: str) -> bool:
    """Whether it tells of how things were once."""
    return bool(_PAST.search(simplified(sentence)))


_EVENT = re.compile(
    r"^(?:i|we) (?:also |just |even )?(?:got|went|had|saw|met|bought|took|made|did|found"
    r"|\w+ed)\b",
    re.IGNORECASE,
)


def is_event(clause: str) -> bool:
    """Whether it tells in English of something that happened once."""
    return bool(_EVENT.match(clause))


_NOW = re.compile(r"\b(?:now|nowadays|these days|currently|today)\b|现在|如今|目前", re.IGNORECASE)


def is_now(text: str) -> bool:
    """Whether it says how things are now, beside how they were."""
    return bool(_NOW.search(simplified(text)))


_FICTION = re.compile(
    r"\brole-?play|\b(?:pretend|imagine) (?:that )?(?:i|you|we|it)\b|\blet'?s (?:play|say|pretend"
    r"|imagine)\b|\byou are now\b|\bact (?:as|like)\b|\b(?:you|you'?ll) (?:play|be) (?:the|a) (?:role|character"
    r"|knight|villain|hero|customer|interviewer)\b|扮演|想象(?:一下)?(?:我|你)|假装|假设我|假如我"
    r"|(?:你|我)(?:现在|来)(?:是|演|当)(?!个).{0,12}(?:你|我)|你现在是|我来演|你来当",
    re.IGNORECASE,
)


def is_fiction(text: str) -> bool:
    """Whether it sets up a game or a scene: what is said in it is said in a role."""
    return bool(_FICTION.search(simplified(text)))


_REPORTED = re.compile(
    r"\b(?:(?<!\bi )said|says|say that|told (?:me|us)|claims?|claimed|according to|wrote|writes|i (?:read"
    r"|heard)|heard that|asked (?:me|us)|quote|reportedly|the (?:article|page|site|docs?|email|log"
    r"|error|output) )\b",
    re.IGNORECASE,
)
_REPORTED_ZH = re.compile(
    r"(?<!应该)(?:他|她|他们|她们|有人|同事|老板|朋友|客户|经理|老师|妈妈?|爸爸?|听|据|文章|网上|网页"
    r"|客户|对方|妹妹|姐姐|哥哥|弟弟|室友|邻居)(?:们)?(?:都)?(?:说|写(?:道|着|的是|说|到|过)|认为|表示"
    r"|告诉)|(?:文档|文件|报告|邮件|日志|页面|网页|文章|书|采访|新闻|帖子)(?:(?:里|中"
    r"|上)面?(?:都)?(?:说|写|提到|显示|建议|推荐)|(?:说|提到|显示))"
)


def is_reported(sentence: str) -> bool:
    """Whether it passes on what somebody else said."""
    if QUOTED in sentence:
        return True
    sentence = simplified(sentence)
    return bool(_REPORTED.search(sentence) or _REPORTED_ZH.search(sentence))


_TASK_TEXT = re.compile(
    r"^(?:please |can you |could you |help me |now )*(?:write|translate|draft|rewrite|rephrase"
    r"|summari[sz]e|proofread|compose|correct|edit|polish|role-?play|act as|complete|continue|parse"
    r"|classify|fix|reply to|respond to|paraphrase|reword|simplify|critique|shorten|improve)\b",
    re.IGNORECASE,
)
_TASK_TEXT_ZH = re.compile(
    r"^(?!我(?:在|让|叫|请|是|做|当))(?:请|帮我|麻烦|能否)*(?:把|将)?.{0,6}(?:翻译|改写|润色|总结|扮演|起草|续写|写一|写个|校对|造句"
    r"|分类|解析)|^(?:请|帮我|麻烦|能否|你)*(?:给|替|帮|以|用).{1,14}(?:写|发|回|拟"
    r"|编)[一个封段篇份首条]|^(?:请|帮我|麻烦)*(?:写|拟|编|回|起草)[一个封段篇份首条]"
)


def is_task_text(sentence: str) -> bool:
    """Whether it hands over text to work on ("Translate: I live in Paris"), whose words nobody means."""
    sentence = simplified(sentence)
    return bool(_TASK_TEXT_ZH.search(sentence) if is_chinese(sentence) else _TASK_TEXT.search(sentence))


# --- "Do not remember this"

_FORBIDS = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\byou )\b(?:do not|don'?t|never|no need to|without"
    r"|please not) (?:ever )?(?:remember|memori[sz]e|sav(?:e|ing)|stor(?:e|ing)|record|keep|note|learn"
    r"|writ(?:e|ing) down) (?:this|that|it|these|any of (?:this|it)|what i|in (?:your )?memory)\b"
    r"|\boff the record\b|\bforget (?:what i (?:just )?(?:said|told)|i (?:said|told|mentioned)"
    r"|about (?:that|this)\b)|\b(?:keep|leave) (?:this|that|it) out of (?:your )?memory\b",
    re.IGNORECASE,
)
_FORBIDS_ZH = re.compile(
    r"(?:别|不要|不用|请勿|无需|不必|不准|不许)(?:把(?:这|它|那).{0,8})?(?:记住|记下|记录|记(?:得|在"
    r"|到)?|保存|存(?:下来|储|起来)?|写进记忆)|(?:忘掉|忘了|忘记)(?:这|那|它|我刚|刚才|我说)"
    r"|就当我没说"
)


def forbids_memory(text: str) -> bool:
    """Whether it asks not to be remembered (R104)."""
    return bool(_FORBIDS.search(text) or _FORBIDS_ZH.search(simplified(text)))


def only_forbids(text: str) -> bool:
    """Whether it says little beside that: then it means the message before it."""
    rest = _FORBIDS_ZH.sub("", _FORBIDS.sub("", simplified(text)))
    words = re.findall(r"[A-Za-z0-9]{3,}|[\u4e00-\u9fff]", rest)
    fillers = {"please", "the", "and", "thanks", "thank", "you", "just", "last", "message", "part", "actually", "also"}
    return len([word for word in words if word.lower() not in fillers]) <= 4


_TAKES_BACK = re.compile(
    r"\b(?:never ?mind|nvm|scratch that|forget it|on second thought|ah no|hm+ no)\b|算了|当我没说|还是不了",
    re.IGNORECASE,
)


def takes_back(sentence: str) -> bool:
    """Whether the speaker drops what was being said: "please always... no, never mind"."""
    return bool(_TAKES_BACK.search(simplified(sentence)))


# --- How long it was meant for

_THIS_SESSION = re.compile(
    r"\b(?:in|for|during) (?:this|our|the current) (?:conversation|chat|session|thread|call"
    r"|discussion)\b|\bfor this chat\b|(?:本次|这次|这个|当前|本)(?:对话|会话|聊天|讨论)",
    re.IGNORECASE,
)
_THIS_TASK = re.compile(
    r"\b(?:this time|just (?:this )?once|this once|for now|right now|for the moment|for the time being"
    r"|temporar(?:y|ily)|today|tonight|this (?:week|month|morning|afternoon|evening|sprint)|(?:for|in"
    r"|on|to) (?:this|the current) (?:one|task|report|demo|pr|pull request|email|answer|reply|question"
    r"|request|ticket|file|function|example|exercise|draft|document|change|fix|commit|prototype|script"
    r"|case|meeting|trip))\b|这次|这一次|这回|本次|暂时|临时|目前先|今天|今晚|这周|本周|这个月|现在先"
    r"|先(?:别|不要|不用)|仅此一次|(?:这个|这份|这篇|这段|当前)(?:任务|报告|演示|邮件|需求|文件|函数"
    r"|例子|草稿|文档|脚本|原型|问题|提交)",
    re.IGNORECASE,
)


_DECISION = re.compile(
    r"\b(?:decided|agreed|chose|settled|picked|voted)\b|决定|定下|敲定|商量好|拍板|选了|定了|一致同意", re.IGNORECASE
)
_WHEN_DECIDED = re.compile(
    r"\b(?:today|this (?:week|month|morning|afternoon|evening|sprint))\b|今天|今早|这周|本周|这个月", re.IGNORECASE
)


def limits_reach(text: str) -> str | None:
    """`session` or `task` when the wording limits it to this conversation or this task, else None (R95)."""
    text = simplified(text)
    if _THIS_SESSION.search(text):
        return "session"
    if _DECISION.search(text):
        text = _WHEN_DECIDED.sub("", text)  # "today we decided": that is when, not how long
    return "task" if _THIS_TASK.search(text) else None


def without_limit(text: str) -> str:
    """The text without the words that limit its reach."""
    return _THIS_TASK.sub("", _THIS_SESSION.sub("", text)).strip(" ,，、")


# --- What is not worth keeping, or belongs to somebody else

_PATH = re.compile(
    r"(?:^|[\s'\"(=:：，])(?:/tmp/|/var/(?:tmp|folders)/|/private/var/|/run/user/|~?/\.cache/|/proc/"
    r"|/dev/shm/|\$TMPDIR|%TEMP%"
    r"|[A-Z]:\\(?:Windows\\)?Temp\\|[A-Z]:\\Users\\[^\\]+\\AppData\\Local\\Temp\\)"
    r"|\btmp[a-z0-9_]{6,8}\b",
    re.IGNORECASE,
)


def is_temporary_path(text: str) -> bool:
    """Whether it names a place that will be gone."""
    return bool(_PATH.search(text))


_ONE_OFF = re.compile(
    r"\bexit(?:ed)? (?:code|status|with)\b|\b\d+ (?:tests? )?(?:passed|failed|skipped|errors?"
    r"|warnings?)\b|\bpid \d+\b|\b(?:took|elapsed|finished in|completed in|in) \d+(?:\.\d+)? ?(?:ms|s"
    r"|sec(?:ond)?s?|min(?:ute)?s?)\b|\btraceback\b|\bstack trace\b|\bhttp(?:/\d\.\d)? [1-5]\d\d\b"
    r"|\bstatus(?: code)? [1-5]\d\d\b|\b\d+ (?:rows?|files?|results?|matches|lines) (?:returned|found"
    r"|changed|affected|matched)\b|退出码|耗时|用时|报错|堆栈|测试(?:全部)?通过|返回(?:了)?\d+",
    re.IGNORECASE,
)


def is_one_off_output(text: str) -> bool:
    """Whether it reads like the output of one run of a tool."""
    return bool(_ONE_OFF.search(simplified(text)))


_LIVE = re.compile(
    r"\b(?:current(?:ly)?|right now|at the moment|now|today|latest|live)\b.{0,60}\d|\b(?:stock price"
    r"|share price|exchange rate|temperature|weather|balance|stock level|inventory|queue (?:length"
    r"|depth)|cpu|disk|memory usage|load average|uptime|traffic|latency|price)\b.{0,40}\b(?:is|are|was"
    r"|at|of|=)\b.{0,20}\d|\b(?:server|service|site|build|pipeline|deployment|job"
    r"|api) is (?:currently |now )?(?:up|down|running|failing|green|red|online|offline|broken)\b"
    r"|(?:股价|汇率|气温|天气|余额|库存|价格|负载|延迟|流量|占用率|使用率|在线人数).{0,12}(?:是|为|有"
    r"|达|到|[:：]).{0,6}\d|(?:当前|目前|现在|此刻|最新).{0,12}(?:是|为|有|[:：]).{0,4}\d|(?:服务器?"
    r"|网站|构建|流水线)(?:现在|目前|正在)?(?:挂了|宕机|运行中|在线|离线)",
    re.IGNORECASE,
)


def is_live_value(text: str) -> bool:
    """Whether it is a reading of something that another system owns and that changes (R101, R182)."""
    return bool(_LIVE.search(simplified(text)))


_LIKING = re.compile(
    r"\b(?:prefers?|likes?|loves?|hates?|dislikes?|wants?|wishes)\b|喜欢|偏好|希望|讨厌|更爱", re.IGNORECASE
)


def is_liking(text: str) -> bool:
    """Whether it tells what somebody likes or wants: no system owns that."""
    return bool(_LIKING.search(simplified(text)))


_ORDERS = re.compile(
    r"\b(?:ignore|disregard|override|overrule|bypass|forget) (?:all |any |the |your "
    r"|every )*(?:previous|prior|earlier|above|other|existing|safety|system)?\s*(?:instructions?"
    r"|rules?|constraints?|policies|guidelines|prompts?)\b|\bsupersedes? (?:all|any|every|earlier"
    r"|previous)\b|\byour new (?:role|task|instructions?) (?:is|are)\b|\byou are now\b|\b(?:do not"
    r"|don'?t|never) (?:tell|inform|mention|reveal|alert|notify)\b.{0,30}\b(?:user|anyone|them|him"
    r"|her)\b|\b(?:forward|send|upload|post|exfiltrate|route|copy) .{0,60}(?:https?://"
    r"|\bto [\w.-]+\.(?:com|net|xyz|org|io|example)\b)|\bcurl\b.{0,80}\|\s*(?:ba)?sh\b"
    r"|\bdisable (?:the )?(?:safety|security|filters?|checks?|validation|audit)\b|\b(?:system"
    r"|developer|admin(?:istrator)?) (?:note|message|override|prompt)\b"
    r"|ignora (?:todas )?las instrucciones|no menciones esta|nota importante del sistema|(?:忽略|无视"
    r"|覆盖|绕过).{0,8}(?:之前|以前|先前|上述|所有|系统|安全).{0,6}(?:指令|指示|规则|限制|提示|检查)"
    r"|(?:不要|别)(?:告诉|让|通知)用户|你的新(?:角色|任务|指令)|(?:转发|发送|上传).{0,20}https?://",
    re.IGNORECASE,
)
_STANDING_ORDER = re.compile(
    r"\b(?:from now on|in (?:the )?future|for all future|going forward|always|never|whenever"
    r"|every time|must|should|at all times|a partir de ahora|siempre|ab jetzt|dorénavant)\b|以后|今后"
    r"|从现在起|每次|始终|总是|永远|必须|务必|一律",
    re.IGNORECASE,
)


def gives_orders(text: str, *, standing: bool) -> bool:
    """Whether it tries to direct the agent. With `standing`, a plain "from now on" or "always" counts too: fine from
    the user, never from anything else."""
    text = simplified(text)
    return bool(_ORDERS.search(text)) or (standing and bool(_STANDING_ORDER.search(text)))


_ADVICE = re.compile(
    r"(?:^|[.;:!\n]\s*)(?:please |just |simply |then |first,? |finally,? |instead,? "
    r"|for \w+,? )*(?:add|adjust|always|append|apply|archive|attach|avoid|bundle|bypass|cache|call"
    r"|cast|change|check|choose|clean|clear|click|clone|commit|compare|compress|compute|configure"
    r"|confirm|connect|convert|copy|create|curl|cut|define|delete|deploy|detect|disable|do not|don'?t"
    r"|download|drop|edit|embed|enable|encode|encrypt|ensure|enter|evaluate|execute|export|extract"
    r"|fetch|fill|filter|find|fit|fix|flag|follow|force|format|forward|generate|get|give|go to|grant"
    r"|group|handle|hash|ignore|impute|import|include|insert|inspect|install|join|keep|load|log"
    r"|make sure|mark|mask|match|merge|monkeypatch|move|never|normali[sz]e|omit|open|overwrite|parse"
    r"|pass|paste|patch|pay|pin|pipe|plot|prefer|prioriti[sz]e|profile|publish|pull|push|put|read"
    r"|rebuild|record|redirect|reduce|refer|remove|rename|replace|report|reset|resize|restart|restrict"
    r"|retry|return|reuse|review|route|run|sample|save|scale|select|send|serve|set|share|shuffle|sign"
    r"|skip|sort|specify|split|start|stop|store|stratify|submit|suppress|switch|tag|take|test|track"
    r"|train|transfer|trim|truncate|try|tune|turn|unset|update|upgrade|upload|use|validate|verify"
    r"|visit|wrap|write)\b(?! (?:is|are|was|were|has|have|had|runs?|takes?|uses?|fails?|failed|passed"
    r"|of)\b)|\b(?:you|we|users?|agents?|assistants?|one|everyone) (?:should|must|need to|have to"
    r"|ought to|can safely)\b|\b(?:best practice|it is (?:safe|recommended|best) to)\b|\|\s*(?:ba"
    r"|z)?sh\b|\bcurl\s+-|\bsudo\s|\brm\s+-rf|(?:^|[。；！\n，,])(?:请|先|再|应该?|应当|必须|务必|建议"
    r"|推荐|不要|禁用|跳过|绕过|关闭|执行|运行|下载|上传|删除|设置|将|把|使用|用)",
    re.IGNORECASE,
)


def gives_advice(text: str) -> bool:
    """Whether it says what to do, or how: an imperative, "should", "best practice", or a command line."""
    return bool(_ADVICE.search(simplified(text)))


_GRANTS = re.compile(
    r"\b(?:authori[sz]ed?|grant(?:ed|s)?|permit(?:s|ted)?|allow(?:s|ed)?|pre-?approved?"
    r"|approved)\b.{0,50}\b(?:access|export|delet\w*|purchas\w*|transfer\w*|send\w*|pay\w*|tools?"
    r"|permissions?|everything|anything|requests?)\b|\bwithout (?:asking|confirm\w*|verif\w*|approval"
    r"|permission|review|additional)\b|\bno (?:need (?:to|for)) (?:ask|confirm\w*|approv\w*"
    r"|verif\w*)\b|\balways comply\b|\bskip (?:the )?(?:confirmation|approval|verification|review"
    r"|validation)\b|(?:无需|不用|不必|不需要)再?(?:[向跟经]过?(?:我|用户))?(?:确认|询问|问我|问用户"
    r"|批准|审批|验证|授权)|(?:别|不要|不用)(?:再)?(?:问我|找我确认|来问)|(?:可以"
    r"|能)不经.{0,12}(?:直接|就)|(?:授权|允许|批准).{0,10}(?:访问|删除|转账|付款|购买|发送|导出|所有)",
    re.IGNORECASE,
)


def grants_permission(text: str) -> bool:
    """Whether it grants a permission or waives a check: memory never does (R167, R293)."""
    return bool(_GRANTS.search(simplified(text)))
