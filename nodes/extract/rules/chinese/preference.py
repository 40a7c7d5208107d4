"""Preferences, standing wishes, habits and passing limits in Chinese sentences."""

from __future__ import annotations

import re

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.chinese.decision import about_project
from everthread.nodes.extract.rules.chinese.fact import about_user, is_lasting_taste
from everthread.nodes.extract.rules.chinese.words import EMPTY_OBJECT, REASON, STOP, project_name, third_person
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish, stated_preference
from everthread.nodes.extract.rules.topics import preference

__all__ = ["IMPERATIVE", "as_a_rule", "preferred", "short_lived", "standing", "wished"]

_FROM_NOW = (
    r"(?:以后|今后|往后|日后|将来|从现在起|从现在开始|从今天起|从今天开始|从今以后|从今往后"
    r"|从此(?:以后)?|接下来都|之后都|默认(?:情况下)?|一般情况下|平时)"
)


_IN_ALL = (
    r"(?:你|您)?的?(?:所有|每个|每条|每封|任何)的?(?:回复|回答|答复|答案|邮件|代码|总结|报告|解释"
    r"|消息)(?:里面?|中)?(?=都|一律|必须|要)"
)
STANDING = re.compile(
    rf"^(?:请|麻烦|希望|我希望|我要|我想要?|我需要)?(?:你)?(?:{_FROM_NOW}|{_IN_ALL}|每次|每一次|每当|一直|始终|总是|永远"
    rf"|凡是)(?:都|请|的话?|你)*{STOP}(?P<what>.{{2,120}})$"
)


NEVER_AGAIN = re.compile(
    r"^(?:请|麻烦|你)*(?P<what>(?:别再|不要再|不许再|别总是?|别老是?|不要总是?|不要老是?)(?:用|写|加"
    r"|叫|说|发|给我|道歉|推荐|问|解释|重复|输出|生成|放).{1,40}?)了?$"
)
"""To stop something that the agent does each time."""


LIKE_THIS = re.compile(
    r"^(?P<what>.{3,80}?)[，,]\s*(?:以后|今后|往后|之后|一直|每次)(?:都|也|就)?(?:这样|照这样|这么|按这个"
    r"|如此|不用|不要|不必)(?:来|做|写|办)?(?:就行|就好)?$"
)


OF_TROUBLE = re.compile(r"报错|失败|出错|出问题|卡住|崩|挂了|超时|很慢|不行|没有|出现|报 ?\d|提示|闪退|掉线|断开")
"""What happens each time is no wish."""


STANDING_AMID = re.compile(
    r"^(?P<thing>(?!我|你|他|她|它|咱|大家|这|那)[^，,。我你]{2,14}?)(?:以后|今后|往后|从现在起|永远"
    r"|始终|一律|都给我)(?:请|都|一律|统一|也)*(?P<what>(?:用|写|放|按|发|给|不要|别|改|保留|叫|加|附|控制"
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


ON_OCCASION = re.compile(
    r"^(?P<what>(?:我(?:让你|叫你|要你|请你|贴|发|问|给你|传|丢)(?![^，,]{0,12}[这那])[^，,。]{1,14}?|(?:写|做|翻译|总结|解释|回答|生成|画|改|列)(?![^，,]{0,12}"
    r"(?:[这那]|一[个份封篇]|刚才|上面))[^，,。了]{0,16}?)(?:的时候|时)[，,]?\s*[^，,。]{0,8}?(?:都|请|只|先|不要|别|直接|用|按|加|给|要)"
    r"(?!了|过)[^。]{1,60}?)(?:就行|就好|就可以)?$"
)
"""A kind of occasion, not the one at hand, and what is wished on it."""


IN_MY_TEXTS = re.compile(
    r"^(?:请|麻烦|你)*(?P<what>(?:别|不要)(?:再)?叫我[^，,。]{1,8}$|我的?(?:所有)?(?:文章|邮件|代码|稿子|报告|文案|作文|周报|标题)(?:里面?|中)?(?:都|一律|也)?(?:别|不要|禁止|不许|不用|只)(?:用|写|加|出现|放)"
    r"(?!了|过|这|那).{1,40})$"
)
ANNOYED = re.compile(
    r"^我(?:最|很|特别|非常|真的|真|挺)*(?:烦|讨厌|受不了|不喜欢)(?P<what>你(?:老是|总是|老|总|一直|每次|动不动就?)?(?:重复|用|说|加|写|给|问"
    r"|道歉|列|解释|绕|敷衍)(?![^。]{0,12}[这那])[^。]{1,30})$"
)
"""What the agent does that the user does not like."""


IMPERATIVE = re.compile(
    r"请|用|别|不要|不用|不必|无需|给我|帮我|回答|回复|写|保持|叫我|称呼|先|都|把|加|避免|尽量|直接|只"
    r"|一律|统一|必须|控制|按|放|附|带|标|注明|优先|推荐|提供|发|改|缩进|压|缩短|限|禁止|少|多"
)


SHORT_LIVED = re.compile(
    r"^(?:请|麻烦|的|里|中|先|就|都|[，,\s]|报告|回答|邮件|文档|代码|总结|任务|演示)*(?:用|别|不要|不用"
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


_MARKED = re.compile(r"^我(?:一直|总是|通常|一般|平时|都|从来|向来|最(?=喜欢|爱)|很(?=喜欢|爱))")
"""A word of habit, or a liking of the strongest kind."""
ONE_THING = re.compile(r"^(?:一[个款件种家条本部张台双间辆套幅]|[这那]|带|有|能|靠近|离)")
"""One thing, or what it must have: what is looked for just now."""
HABIT = re.compile(
    r"^我(?P<what>(?:只(?=[喝吃穿买看听坐住](?!了|过|到|完|见|懂)|[在能有].{1,16}(?:工作|上班|开会|有空|学习))|每天|每周|每晚|每个?月|天天"
    r"|平时|平常|一般|通常|习惯(?!就|了)|基本|向来|每个?周末|从不|从来不|绝不|(?:周[一二三四五六日天末]|早上|晚上|中午|下午|睡前|节假日|出差|坐飞机|开会|出门)(?:从来|从不|一般|通常"
    r"|都|总是|基本|习惯|只)+)(?!想|觉得|不知道"
    r"|怎么)[^。，,]{3,60})$"
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
    annoyed = ANNOYED.match(clause)
    if annoyed:
        return [standing_wish(f"{third_person(clause)}。", f"不要：{annoyed['what']}", None, project=None)]
    occasion = ON_OCCASION.match(clause)
    if occasion and not OF_TROUBLE.search(clause):
        return [wished(occasion["what"], project)]
    again = NEVER_AGAIN.match(clause) or IN_MY_TEXTS.match(clause) or LIKE_THIS.match(clause)
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
    if re.fullmatch(r"都?(?:是|不用|不要|别|这样|一样|行|可以)(?:的|了)?", what):
        return []
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
    if EMPTY_OBJECT.match(what) or re.match(r"的[^，,]{1,12}(?:是|叫)", what):
        return []
    marked = rather is not None or _MARKED.match(clause) is not None
    if not marked and ONE_THING.match(what):
        return []
    other = rather or NOT_OTHER.match(what)
    chosen = other["value"].strip() if other else what.strip()
    topic = preference(chosen)
    statement = f"{third_person(clause)}。"
    if topic:
        return [
            stated_preference(statement, topic.predicate, topic.value, expression=topic.expression, unmarked=not marked)
        ]
    if other:
        first, second = sorted((chosen, other["other"].strip()))
        predicate = f"prefers among {first} and {second}"
        return [stated_preference(statement, predicate, chosen)]
    if re.search(r"[，,]", what):
        return []
    predicate = "likes" if re.match(r"^我(?:最|很)?喜欢", clause) else "prefers"
    return [stated_preference(statement, predicate, chosen, unmarked=not marked)]
