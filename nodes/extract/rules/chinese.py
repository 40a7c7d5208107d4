"""What Chinese sentences say that is worth keeping. The same forms as the English rules, and as conservative."""

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

_STOP = r"[，,：:、\s]*"
_OPENING = re.compile(
    rf"^(?:(?:好的?|嗯+|哦|对了|另外|顺便(?:说一下|一提)?|还有|那么?|你好|您好|谢谢|是的|对"
    rf"|没错|补充一下|说明一下){_STOP}(?=\S))+"
)
_CORRECTION = re.compile(
    rf"^(?:(?:其实|更正(?:一下)?|纠正(?:一下)?|(?:我)?(?:刚才)?(?:说|记|写)错了|不对|错了|抱歉"
    rf"|不好意思|应该说|准确地说){_STOP})+"
)
_REMEMBER = re.compile(
    rf"^(?:请|麻烦|帮我|你|您|要|一定要|务必|把这个)*(?:记住|记一下|记下来?|记着|备注一下"
    rf"|保存一下|记得(?=我|我们|项目)){_STOP}"
)
_REMINDER = re.compile(
    rf"^(?:请|麻烦|帮我|你|您|要|记得)*(?P<before>.{{0,20}}?)(?:提醒(?:我|一下我)|别让我忘了){_STOP}(?P<what>.+)$"
)
_TO_DO = re.compile(rf"^(?:请|帮我|你)*记得{_STOP}(?P<what>(?!我|我们|项目).+)$")
_RETRACTION = (
    re.compile(r"^(?P<who>我|我们|咱们)(?:现在|已经|早就)*(?:不再|不)(?P<rest>.{2,60}?)了?$"),
    re.compile(r"^(?P<who>我|我们|咱们)(?:现在|已经|早就)*没(?:有)?(?P<rest>在.{2,60}?)了$"),
)
_NO_MORE = re.compile(r"不再|(?:已经|现在|早就)?不.{1,60}了$|没(?:有)?在.{1,60}了$")
_SWAP = re.compile(
    rf"^(?P<head>.{{0,30}}?)不是(?P<old>[^，,。]{{1,40}}?){_STOP}(?:而)?(?:是|应该是)(?P<new>[^，,。]{{1,40}})$"
)
_SWAP_BACK = re.compile(r"^(?P<head>.{0,30}?)是(?P<new>[^，,。]{1,40}?)[，,]?\s*(?:而)?不是(?P<old>[^，,。]{1,40})$")
_STANDING = re.compile(
    rf"^(?:请|麻烦)?(?:以后|今后|往后|从现在起|从现在开始|从今以后|从今往后|接下来都|每次"
    rf"|每一次|一直|始终|总是|永远)(?:都|请|的|你)*{_STOP}(?P<what>.{{2,120}})$"
)
_IMPERATIVE = re.compile(r"请|用|别|不要|不用|给我|帮我|回答|回复|写|保持|叫我|称呼|先|都|把|加|避免|尽量|直接|只")
_SHORT_LIVED = re.compile(
    r"^(?:请|麻烦|的|先|就|都|[，,\s]|报告|回答|邮件|文档|代码|总结|任务|演示)*(?:用|别|不要|不用|不需要|无需|写|回答|回复|跳过|简短|详细|只|按|保持)"
)
_NICKNAME = re.compile(
    r"^(?:那|就|咱们?|我们)*(?:先|就|来)?(?:把|将|管)(?P<what>[^，,。]{1,20}?)(?:就"
    r"|简)?(?:叫做|叫作|称为|称作|叫)[“”「」]?(?P<name>[^，,。“”「」]{1,16}?)(?:吧|好了"
    r"|就行)?$"
    r"|^(?:那|就|咱们?|我们)*(?:先|就)?(?:叫|称呼)(?P<it>它|这个项目|这个任务)(?:为|做"
    r"|作)?[“”「」]?(?P<called>[^，,。“”「」]{1,16}?)(?:吧|好了|就行)?$"
)
_EMPTY_OBJECT = re.compile(r"^(?:这|那|你|它|第[一二三]|上面|下面|刚才|哪|什么|怎么|一下)")
_ROLE = (
    r"(?:工程师|程序员|开发者?|设计师|老师|教师|医生|护士|律师|(?:大)?学生|研究生|博士生?"
    r"|产品经理|项目经理|经理|研究员|分析师|会计师?|作家|记者|编辑|架构师|顾问|教授|科学家"
    r"|厨师|飞行员|摄影师|音乐人|翻译|药剂师|运维|测试|负责人|创始人|自由职业者|实习生|公务员"
    r"|销售)"
)
_RELATION = (
    r"(?:老婆|妻子|太太|老公|丈夫|儿子|女儿|妈妈|爸爸|母亲|父亲|哥哥|弟弟|姐姐|妹妹|男朋友"
    r"|女朋友|狗|猫|经理|老板|领导|导师|团队|部门|公司|职业|职位|工作|母语|时区|生日|家乡|老家"
    r"|爱好|编辑器|操作系统|用户名|网名|最喜欢的[^是叫]{1,12}|常用的[^是叫]{1,12})"
)
_PREDICATES = {
    "老婆": "wife",
    "妻子": "wife",
    "太太": "wife",
    "老公": "husband",
    "丈夫": "husband",
    "儿子": "son",
    "女儿": "daughter",
    "狗": "dog",
    "猫": "cat",
    "经理": "manager",
    "老板": "boss",
    "领导": "boss",
    "导师": "mentor",
    "团队": "team",
    "部门": "department",
    "公司": "employer",
    "职业": "role",
    "职位": "role",
    "工作": "role",
    "母语": "native language",
    "时区": "time zone",
    "生日": "birthday",
    "家乡": "hometown",
    "老家": "hometown",
    "编辑器": "editor",
    "操作系统": "operating system",
    "用户名": "username",
}


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    predicate: str
    reason: str
    content_type: str = "fact"


def _form(pattern: str, predicate: str, reason: str, content_type: str = "fact") -> _Form:
    return _Form(re.compile(rf"^{pattern}$", re.IGNORECASE), predicate, reason, content_type)


_SELF = "the user said it about themselves"
_TASTE = "the user stated a liking"
_NAME = r"[\u4e00-\u9fffA-Za-z·. ]{1,20}"
_ABOUT_USER = (
    _form(rf"(?:我的名字(?:是|叫)|我叫|我的全名是)(?P<value>{_NAME})", "name", _SELF),
    _form(
        rf"(?:请|你可以|就)?(?:叫我|称呼我(?:为)?)(?P<value>{_NAME}?)(?:就行|就好|就可以|吧|即可)?(?:了)?",
        "wants to be called",
        _SELF,
        "preference",
    ),
    _form(rf"我(?:现在)?(?:是|做)(?:一?[名个位])?(?P<value>[^，,。是]{{0,12}}?{_ROLE})", "role", _SELF),
    _form(
        r"我(?:现在|目前)?(?:在|就职于|任职于|受雇于)(?P<value>[^，,。]{1,20}?)(?:工作|上班|任职|做.{1,12})",
        "employer",
        _SELF,
    ),
    _form(r"我(?:就职于|任职于)(?P<value>[^，,。]{1,20})", "employer", _SELF),
    _form(r"我(?:现在|目前|一直)?(?:住在|定居在|家在|常住)(?P<value>[^，,。]{1,20})", "lives in", _SELF),
    _form(r"我(?:刚刚?|最近|上个月|去年|已经)?搬(?:到|去|家到)了?(?P<value>[^，,。]{1,12}?)了?", "lives in", _SELF),
    _form(r"我(?:来自|的老家在|老家是)(?P<value>[^，,。]{1,12})", "comes from", _SELF),
    _form(r"我(?:对)(?P<value>[^，,。]{1,20}?)(?:严重|有点)?过敏", "allergic to", _SELF),
    _form(r"我是?(?P<value>吃素|素食者|素食主义者|纯素(?:食)?者?)(?:的)?", "diet", _SELF),
    _form(r"我(?:从来|一般|平时)?(?:不吃|不喝)(?P<value>[^，,。]{1,20})", "does not eat", _SELF),
    _form(r"我会说(?P<value>[^，,。]{1,20})", "speaks", _SELF),
    _form(
        r"我(?:家)?(?:有|养了)(?P<value>[一两二三四五]?[个只条](?:孩子|儿子|女儿|狗|猫|哥哥|姐姐|弟弟|妹妹).{0,20})",
        "has",
        _SELF,
    ),
    _form(rf"我的?(?P<what>{_RELATION})(?:的名字)?(?:是|叫|在)(?P<value>[^，,。]{{1,30}})", "{what}", _SELF),
    _form(
        r"我(?:平时|一般|一直|主要|习惯|习惯于)(?:使用|用)(?P<value>[^，,。]{1,30}?)(?:来?(?:写|做"
        r"|编辑|开发|办公|记).{0,12})?",
        "uses",
        _SELF,
    ),
    _form(
        r"我(?:很|非常|特别|一直|也)*(?:不喜欢|讨厌|受不了|不爱)(?P<value>[^，,。]{1,40})",
        "dislikes",
        _TASTE,
        "preference",
    ),
    _form(
        r"我(?:很|非常|特别|一直|也|最)*(?:喜欢|爱|热爱)(?:(?:吃|喝|看|玩)?的?(?:就)?是)?(?P<value>[^，,。]{1,40})",
        "likes",
        _TASTE,
        "preference",
    ),
)
_PREFER = re.compile(
    r"^我(?:一直|总是|通常|一般|还是|平时)*(?:更|比较|最|很)?(?:喜欢|偏好|偏爱|偏向(?:于)?"
    r"|倾向于|习惯(?:看|用)?)(?P<what>[^。]{1,80})$"
)
_RATHER = re.compile(r"^(?:比起|相比)(?P<other>[^，,]{1,20})[，,]?\s*我更(?:喜欢|偏好|爱)(?P<value>[^，,。]{1,20})$")
_NOT_OTHER = re.compile(r"^(?P<value>[^，,]{1,30}?)[，,]?\s*(?:而不是|不喜欢|胜过|多过|多于)(?P<other>[^，,]{1,30})$")
_WE = r"(?:我们|咱们|我们团队|我们项目(?:组)?|团队|大家|项目组|公司)"
_PROJECT = (
    r"(?:(?:这个|我们的?|本|该|咱们的?)?(?:项目|仓库|代码库|服务|后端|前端|接口|系统|应用|平台"
    r"|网站|数据库|流水线|产品))"
)
_DECIDED = re.compile(
    rf"^(?:因为|由于)?(?P<why>[^。]{{0,60}}?)[，,]?\s*(?:所以|因此)?{_WE}(?:今天|已经|最终|最后"
    rf"|刚刚?|一致|正式|现在)*(?:决定|商定|选定|定下来?|敲定|确定|同意|选择|选)了?(?:要|用|使用"
    rf"|采用|选择|选|改用|以后)*(?P<what>[^。]{{2,160}})$"
)
_USES = re.compile(
    rf"^(?:{_WE}|{_PROJECT})(?:{_PROJECT})?(?:目前|现在|统一|主要|一直|都|的)*(?:用的是"
    rf"|使用的是|用|使用|采用|跑在|运行在|基于|部署在|是用)(?P<what>[^，,。]{{2,60}}?)(?:写的"
    rf"|开发的|搭建的|构建的|部署的|的)?$"
)
_IS = re.compile(
    rf"^(?:{_PROJECT}|我们)?(?:的)?(?P<what>数据库|缓存|消息队列|默认分支|主分支|代码规范"
    rf"|许可证|部署方式|包管理器|测试框架|Python版本)(?:现在)?(?:是|用的是|为"
    rf"|用)(?P<value>[^，,。]{{2,40}})$",
    re.IGNORECASE,
)
_IS_WHAT = {
    "数据库": "database",
    "缓存": "cache",
    "消息队列": "message queue",
    "默认分支": "default branch",
    "主分支": "default branch",
    "代码规范": "code style",
    "许可证": "license",
    "部署方式": "deploys with",
    "包管理器": "package manager",
    "测试框架": "test framework",
}
_DEPLOY = re.compile(
    rf"^(?:{_WE}|{_PROJECT})?(?:目前|现在|统一|都)*(?:用|使用"
    rf"|通过)(?P<what>[^，,。]{{2,30}}?)(?:来)?(?:部署|发布|上线)$"
)
_CONVENTION = re.compile(
    rf"^(?:(?:在)?(?:这个|本|我们的?)(?:项目|仓库|代码库)(?:里|中|的)?{_STOP}(?P<what>[^。]{{2,80}})"
    rf"|我们(?:的)?(?:约定|规范|惯例)是{_STOP}(?P<rule>[^。]{{2,80}})|(?:我们)(?P<habit>(?:一律|统一|必须).{{2,80}}))$"
)
_GOES_ON = re.compile(r"我(?!们)|在.+(?:工作|上班)|是一?[名个位]|住在|来自|对.+过敏|不吃|会说")
_REASON = re.compile(r"[，,]?\s*(?:因为|由于|理由是|原因是).+$")
_PURPOSE = re.compile(r"(?:来|用来|用于|作为?|做)(?P<purpose>[^，,。]{1,12})$")


def read(sentence: str, said_at: datetime, project: str | None) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations."""
    clause = _OPENING.sub("", sentence.strip()).rstrip(" 。！!；;.~～")
    corrected = _CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    reminder = _REMINDER.match(clause) or _TO_DO.match(clause)
    if reminder:
        return _reminders(reminder, said_at)
    asked = _REMEMBER.sub("", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_question(sentence) or wording.is_guess(clause) or wording.is_reported(clause):
        return []
    found = _retraction(clause, project) or _one(clause, project) or _first_part(clause, project)
    if not found and explicit and len(clause) > 2:
        found = [_told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


def _one(clause: str, project: str | None) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        _swap,
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
    return []


def _first_part(clause: str, project: str | None) -> list[Sketch]:
    """Chinese strings facts together by commas: each part that says something about the user counts."""
    parts = [part.strip() for part in re.split(r"[，,]", clause)]
    if len(parts) < 2 or not parts[0].startswith("我") or any(wording.is_question(part) for part in parts):
        return []
    told = [part if part.startswith("我") else f"我{part}" for part in parts if _GOES_ON.match(part)]
    return [sketch for part in told for sketch in _preferred(part, project) or _about_user(part, project)]


def _reminders(match: re.Match[str], said_at: datetime) -> list[Sketch]:
    said = f"{match.groupdict().get('before') or ''}{match['what']}"
    when = due(said, said_at)
    what = (when.rest if when else said).replace(" ", "") if wording.is_chinese(said) else said
    what = re.sub(r"^(?:去|要|的时候)", "", what.strip(" ，,"))
    if not what:
        return []
    if when is None and "提醒" not in match[0]:
        return []
    return [Sketch(what, "the user asked to be reminded", kind="prospective", due_at=when.at if when else None)]


def _retraction(clause: str, project: str | None) -> list[Sketch]:
    if not _NO_MORE.search(clause):
        return []
    for pattern in _RETRACTION:
        match = pattern.match(clause)
        if match:
            held = f"{match['who']}{match['rest']}"
            before = _about_project(held, project) or _preferred(held, project) or _about_user(held, project)
            return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]
    return []


def _swap(clause: str, project: str | None) -> list[Sketch]:
    match = _SWAP.match(clause) or _SWAP_BACK.match(clause)
    if match is None:
        return []
    head, new, old = match["head"].strip(" ，,"), match["new"].strip(), match["old"].strip()
    said = _about_project(f"{head}是{new}", project) or _about_user(f"{head}是{new}", project) if head else []
    if said:
        return [sketch._replace(replaces=old, corrects=True) for sketch in said]
    return [Sketch(clause, "the user corrected it", value=new, replaces=old, corrects=True)]


def _nickname(clause: str, project: str | None) -> list[Sketch]:
    match = _NICKNAME.match(clause)
    if match is None:
        return []
    what, name = match["what"] or match["it"], (match["name"] or match["called"]).strip()
    return [
        Sketch(
            f"在本次对话中，{what}叫做{name}。",
            "a name that this conversation uses",
            subject=what,
            predicate="is called",
            value=name,
            owner="session",
            reach="session",
        )
    ]


def _short_lived(clause: str, project: str | None) -> list[Sketch]:
    reach = wording.limits_reach(clause)
    if reach is None:
        return []
    core = wording.without_limit(clause)
    if len(core) > 30 or not _SHORT_LIVED.match(core):
        return [sketch._replace(reach=reach) for sketch in _about_user(clause, project)]
    statement = f"仅限当前{'对话' if reach == 'session' else '任务'}：{clause}。"
    return [passing_limit(statement, preference(clause), reach)]


def _standing(clause: str, project: str | None) -> list[Sketch]:
    match = _STANDING.match(clause)
    if match is None:
        return []
    what = match["what"].strip()
    inner = _about_project(what, project) or _preferred(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in _about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if not _IMPERATIVE.search(what):
        return []
    of_project = bool(re.match(r"^(?:在)?(?:这个|本|我们的?)(?:项目|仓库|代码库)", what))
    statement = f"{_project_name(project)}：{what}。" if of_project else f"用户希望以后都这样：{what}。"
    return [standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)]


def _preferred(clause: str, project: str | None) -> list[Sketch]:
    rather = _RATHER.match(clause)
    match = rather or _PREFER.match(clause)
    if match is None:
        return []
    what = rather["value"] if rather else _REASON.sub("", match["what"])
    what = re.sub(r"^(?:吃|喝|看|玩)?的?就?是", "", what)
    if _EMPTY_OBJECT.match(what):
        return []
    other = rather or _NOT_OTHER.match(what)
    chosen = other["value"].strip() if other else what.strip()
    topic = preference(chosen)
    statement, reason = f"{third_person(clause)}。", "the user stated a preference"
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
    if other:
        first, second = sorted((chosen, other["other"].strip()))
        predicate = f"prefers among {first} and {second}"
        return [
            Sketch(
                statement, reason, "preference", subject="user", predicate=predicate, value=chosen, concerns="decision"
            )
        ]
    if re.search(r"[，,]", what):
        return []
    predicate = "likes" if re.match(r"^我(?:最|很)?喜欢", clause) else "prefers"
    return [
        Sketch(statement, reason, "preference", subject="user", predicate=predicate, value=chosen, concerns="decision")
    ]


def _about_user(clause: str, project: str | None) -> list[Sketch]:
    bare = _REASON.sub("", clause)
    for form in _ABOUT_USER:
        match = form.pattern.match(bare)
        if match is None:
            continue
        value = match["value"].strip()
        if not value or _EMPTY_OBJECT.match(value) or (form.reason == _TASTE and not _is_lasting_taste(value)):
            return []
        what = match.groupdict().get("what")
        predicate = _PREDICATES.get(what, what) if what else form.predicate
        return [
            Sketch(
                f"{third_person(clause)}。",
                form.reason,
                form.content_type,
                subject="user",
                predicate=predicate,
                value=value,
                concerns="decision" if form.content_type == "preference" else None,
            )
        ]
    return []


_OF_THE_MOMENT = re.compile(r"这|那|你|他|她|它|咱|感觉|一下|去.+了$|[的了]$")


def _is_lasting_taste(value: str) -> bool:
    """A liking of a kind of thing, in a few words; not of what is being looked at (R101)."""
    return len(value) <= 16 and not _OF_THE_MOMENT.search(value)


def _about_project(clause: str, project: str | None) -> list[Sketch]:
    subject = project or "project"
    statement = f"{_project_name(project)}：{clause}。"
    match = _DECIDED.match(clause)
    if match and not _EMPTY_OBJECT.match(match["what"]) and _is_lasting_choice(clause):
        return [_choice(match["what"], statement, subject, "a decision that was made")]
    match = _IS.match(clause)
    if match:
        found = technology(match["value"])
        predicate = found.category if found else _IS_WHAT.get(match["what"], match["what"])
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
        predicate = found.category if found else "deploys with"
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
    match = _USES.match(_REASON.sub("", clause))
    if match and not _EMPTY_OBJECT.match(match["what"]):
        return [_choice(match["what"], statement, subject, "a fact about the project")]
    match = _CONVENTION.match(clause)
    if match:
        return [
            Sketch(
                statement, "a convention of the project", "procedural", "procedural", subject=subject, owner="project"
            )
        ]
    return []


def _is_lasting_choice(clause: str) -> bool:
    """A decision about how the project is done, or one with its reason."""
    return bool(
        technology(clause)
        or re.search(r"因为|由于|理由|用|采用|迁移|改成|换成|支持|放弃|部署|拆分|合并到|发布", clause)
    )


def _choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
    chosen = re.split(r"(?:而不是|不用|代替|取代|替代)", _REASON.sub("", what), maxsplit=1)[0].strip("，, ")
    found = technology(chosen)
    purpose = _PURPOSE.search(chosen)
    predicate = value = None
    if found:
        predicate = found.category + (f" for {purpose['purpose']}" if purpose else "")
        value = found.name
    if (
        predicate
        and found
        and purpose
        and found.category in ("database", "cache")
        and purpose["purpose"] in ("数据库", "缓存")
    ):
        predicate = found.category
    return Sketch(statement, reason, subject=subject, predicate=predicate, value=value, owner="project")


def _told_to_keep(clause: str, project: str | None) -> Sketch:
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{_WE}|{_PROJECT})", clause))
    statement = f"{_project_name(project)}：{clause}。" if about_project else f"{third_person(clause)}。"
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)


def _project_name(project: str | None) -> str:
    return f"项目 {project}" if project else "用户的项目"


def third_person(clause: str) -> str:
    """What the user says of themselves, said of the user: 我喜欢茶 -> 用户喜欢茶."""
    return re.sub(r"我(?!们)", "用户", clause)
