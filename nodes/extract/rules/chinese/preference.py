"""Preferences, standing wishes, habits and passing limits in Chinese sentences."""

from __future__ import annotations

import re

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.chinese.decision import about_project
from everthread.nodes.extract.rules.chinese.fact import about_user, is_lasting_taste
from everthread.nodes.extract.rules.chinese.words import EMPTY_OBJECT, REASON, STOP, project_name, third_person
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish
from everthread.nodes.extract.rules.topics import preference

__all__ = ["IMPERATIVE", "as_a_rule", "preferred", "short_lived", "standing", "wished"]

_FROM_NOW = (
    r"(?:以后|今后|往后|日后|将来|从现在起|从现在开始|从今天起|从今天开始|从今以后|从今往后"
    r"|从此(?:以后)?|接下来都|之后都|默认(?:情况下)?|一般情况下|平时)"
)


STANDING = re.compile(
    rf"^(?:请|麻烦|希望|我希望|我要|我想要)?(?:你)?(?:{_FROM_NOW}|每次|每一次|每当|一直|始终|总是|永远"
    rf"|凡是)(?:都|请|的话?|你)*{STOP}(?P<what>.{{2,120}})$"
)


NEVER_AGAIN = re.compile(
    r"^(?:请|麻烦|你)*(?P<what>(?:别再|不要再|不许再|别总是?|别老是?|不要总是?|不要老是?)(?:用|写|加"
    r"|叫|说|发|给我|道歉|推荐|问|解释|重复|输出|生成|放).{1,40}?)了?$"
)
"""To stop something that the agent does each time."""


LIKE_THIS = re.compile(
    r"^(?P<what>.{3,80}?)[，,]\s*(?:以后|今后|往后|之后)(?:都|也|就)?(?:这样|照这样|这么|按这个"
    r"|如此)(?:来|做|写|办)?(?:就行|就好)?$"
)


OF_TROUBLE = re.compile(r"报错|失败|出错|出问题|卡住|崩|挂了|超时|很慢|不行|没有|出现|报 ?\d|提示|闪退|掉线|断开")
"""What happens each time is no wish."""


STANDING_AMID = re.compile(
    r"^(?P<thing>(?!我|你|他|她|它|咱|大家|这|那)[^，,。我你]{2,14}?)(?:以后|今后|往后|从现在起|永远"
    r"|始终|一律)(?:请|都|一律|统一|也)*(?P<what>(?:用|写|放|按|发|给|不要|别|改|保留|叫|加|附|控制"
    r"|翻译|只|先).{1,60})$"
)
"""The mark stands behind what it is about: 代码示例以后统一用 TypeScript."""


TOPIC_FIRST = re.compile(
    r"^(?P<thing>(?!我|你|他|她|这|那)[^，,。我]{1,10})我(?:比较|更|最|一般|通常|都)*(?:喜欢|偏好"
    r"|习惯)(?P<what>[^，,。]{2,40})$"
)


STANDING_LATE = re.compile(
    r"^(?:请|麻烦)?(?:你)?(?P<when>(?:(?:给|跟|和|替|帮)我.{1,14}?|(?:写|做|发|画|起|改|回|用|翻译"
    r"|总结|解释|回答|生成|提交|debug|review).{0,24}?)(?:的?时候|时|的话)|(?:给|跟|和)我(?:的)?(?:回复"
    r"|回答|报告|邮件|说话|聊天|写的?[^，,]{1,10}?|发的?[^，,]{1,10}?))[，,]?\s*(?P<what>(?:请|都"
    r"|你)*(?:一直|始终|总是|一律|都|必须|统一|永远|务必|只|先|尽量|不要|别|不用|优先).{2,80})$",
    re.IGNORECASE,
)


IMPERATIVE = re.compile(
    r"请|用|别|不要|不用|不必|无需|给我|帮我|回答|回复|写|保持|叫我|称呼|先|都|把|加|避免|尽量|直接|只"
    r"|一律|统一|必须|控制|按|放|附|带|标|注明|优先|推荐|提供|发|改|缩进|禁止|少|多"
)


SHORT_LIVED = re.compile(
    r"^(?:请|麻烦|的|先|就|都|[，,\s]|报告|回答|邮件|文档|代码|总结|任务|演示)*(?:用|别|不要|不用"
    r"|不需要|无需|写|回答|回复|跳过|简短|详细|只|按|保持)"
)


PREFER = re.compile(
    r"^我(?:一直|总是|通常|一般|平时|个人|都|的|会|其实)*(?:更|比较|最|很|还是)*(?:喜欢|偏好|偏爱"
    r"|偏向(?:于)?|倾向于|习惯(?!就|了)(?:于|看|用)?)(?P<what>[^。]{1,80})$"
)


RATHER = re.compile(
    r"^(?:比起|相比)(?P<other>[^，,]{1,20})[，,]?\s*我更(?:喜欢|偏好|爱|熟悉?|擅长|习惯|会)(?P<value>[^，,。]{1,20})$"
)


NOT_OTHER = re.compile(r"^(?P<value>[^，,]{1,30}?)[，,]?\s*(?:而不是|不喜欢|胜过|多过|多于)(?P<other>[^，,]{1,30})$")


HABIT = re.compile(
    r"^我(?P<what>(?:只(?=[在能有].{1,16}(?:工作|上班|开会|有空|学习))|每天|每周|每晚|每个?月|天天"
    r"|平时|平常|一般|通常|习惯(?!就|了)|基本|向来|每个?周末|从不|从来不|绝不)(?!想|觉得|不知道"
    r"|怎么)[^。]{3,60})$"
)
"""What the user does as a rule."""


def short_lived(clause: str, project: str | None) -> list[Sketch]:
    reach = wording.limits_reach(clause)
    if reach is None:
        return []
    core = wording.without_limit(clause)
    if len(core) > 30 or not SHORT_LIVED.match(core):
        return [sketch._replace(reach=reach) for sketch in about_user(clause, project)]
    statement = f"仅限当前{'对话' if reach == 'session' else '任务'}：{clause}。"
    return [passing_limit(statement, preference(clause), reach)]


def standing(clause: str, project: str | None) -> list[Sketch]:
    again = NEVER_AGAIN.match(clause) or LIKE_THIS.match(clause)
    if again and not re.search(r"这个|那个|这里|那里|上面", again["what"]):
        return [wished(again["what"], project)]
    amid = STANDING_AMID.match(clause)
    if amid:
        return [wished(clause, project)]
    match = STANDING.match(clause) or STANDING_LATE.match(clause)
    if match is None:
        return []
    groups = match.groupdict()
    what = groups["what"].strip()
    if groups.get("when"):
        what = f"{groups['when']}{what}"
    elif clause.startswith("每次") and not re.match(r"(?:都|请|用|给|先)", what):
        what = f"每次{what}"
    inner = about_project(what, project) or preferred(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if OF_TROUBLE.search(what) or not IMPERATIVE.search(what) or re.match(r"我(?!的)|你(?!给|在)|他|她|它|大家", what):
        return []
    return [wished(what, project)]


def wished(what: str, project: str | None) -> Sketch:
    """A wish for every time: the user's, or the project's when it says so."""
    of_project = bool(re.match(r"^(?:在)?(?:这个|本|我们的?)(?:项目|仓库|代码库)", what))
    statement = f"{project_name(project)}：{what}。" if of_project else f"用户希望以后都这样：{what}。"
    return standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)


def as_a_rule(clause: str, project: str | None) -> list[Sketch]:
    """What the user wants, or does, as a rule."""
    match = HABIT.match(clause)
    if match is None:
        return []
    statement = f"{third_person(clause)}。"
    return [
        Sketch(statement, "a habit of the user", subject="user", predicate="as a rule", value=match["what"].strip())
    ]


def preferred(clause: str, project: str | None) -> list[Sketch]:
    topic_first = TOPIC_FIRST.match(clause)
    if topic_first and not EMPTY_OBJECT.match(topic_first["what"]) and is_lasting_taste(topic_first["what"]):
        clause = f"我喜欢{topic_first['thing']}{topic_first['what']}"
    rather = RATHER.match(clause)
    match = rather or PREFER.match(clause)
    if match is None:
        return []
    what = rather["value"] if rather else REASON.sub("", match["what"])
    what = re.sub(r"^(?:吃|喝|看|玩)?的?就?是", "", what)
    if EMPTY_OBJECT.match(what):
        return []
    other = rather or NOT_OTHER.match(what)
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
