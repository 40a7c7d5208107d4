"""Words and small changes of Chinese text that the readers share."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "EMPTY_OBJECT",
    "NAME",
    "PREDICATES",
    "PROJECT",
    "REASON",
    "ROLE",
    "SELF",
    "STOP",
    "TASTE",
    "WE",
    "bare",
    "form",
    "project_name",
    "third_person",
]

STOP = r"[，,：:、\s]*"


OPENING = re.compile(
    rf"^(?:(?:好的?|嗯|哦|噢|啊|对了|另外|而且|同时|顺便(?:说(?:一下|下|一句)?|一提|讲一下)?"
    rf"|顺带(?:一提)?|还有|那么?|你好|您好|嗨|谢谢|多谢|是的|对|没错|补充(?:一下|一点)?"
    rf"|说明一下(?:背景)?|背景(?:是|说明)?|跟你(?:说|讲)(?:一下|下|一声|个事)?|和你说(?:一下|下)?"
    rf"|总的来说|总体来说|总体上|一般来说|总之|说实话|老实说|讲真|其实吧|先说(?:一下|明一下)?|提前说(?:一下|下)?|提醒(?:一下|你一下)|备注|注|声明一下|告诉你|你知道|顺便"
    rf"|不过|但是?|所以|by the way|btw|fyi|ps|ok|hi|hello|thanks){STOP}(?=\S))++",
    re.IGNORECASE,
)


TRAILING = re.compile(
    r"(?:[，,\s]*(?:谢谢(?:你|啦|了)?|谢啦|多谢|拜托了?|麻烦了|辛苦了|哈|啦|呀|啊|哦|喔|噢|嘛|呗|咯"
    r"|的说|(?<![A-Za-z])(?:thanks|thx|ok)|好吗|好不好|行吗))++$",
    re.IGNORECASE,
)
"""Words after what was said that add nothing to it."""


EMPTY_OBJECT = re.compile(r"^(?:这|那|你|它|第[一二三]|上面|下面|刚才|哪|什么|怎么|一下)")


PREDICATES = {
    "孩子": "child",
    "宝宝": "child",
    "主管": "boss",
    "上司": "boss",
    "直属领导": "boss",
    "专业": "major",
    "系统": "operating system",
    "浏览器": "browser",
    "车": "car",
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


ROLE = (
    r"(?:工程师|程序员|开发者?|设计师|老师|教师|医生|护士|律师|(?:大)?学生|研究生|博士生?|产品经理"
    r"|项目经理|经理|研究员|分析师|会计师?|作家|记者|编辑|架构师|顾问|教授|科学家|厨师|飞行员|摄影师"
    r"|音乐人|翻译|药剂师|运维|测试|负责人|创始人|自由职业者|实习生|公务员|销售|司机|护工|药师|牙医"
    r"|兽医|警察|军人|消防员|电工|木工|画师|插画师|漫画家|歌手|演员|导演|主播|博主|店长|店主|农民"
    r"|建筑师|咨询师|心理咨询师|健身教练|教练|翻译员|律师助理|法务|财务|出纳|审计师?|人事|HR|hr|采购"
    r"|客服|前台|行政|助理|秘书|策划|文案|博士后|大[一二三四](?:学生)?|研[一二三](?:学生)?"
    r"|高[一二三]学生|(?:前端|后端|全栈|算法|测试|运维|嵌入式|安卓|iOS)(?:工程师|开发|程序员)?"
    r"|(?:front-?end|back-?end|full-?stack|devops|data|software|qa|test|ml|ai) ?(?:engineer|developer"
    r"|dev)|engineer|developer|designer|pm|data scientist|product manager)"
)


class Form(NamedTuple):
    pattern: re.Pattern[str]
    predicate: str
    reason: str
    content_type: str = "fact"


def form(pattern: str, predicate: str, reason: str, content_type: str = "fact") -> Form:
    """A form whose pattern must fit the whole clause."""
    return Form(re.compile(rf"^{pattern}$", re.IGNORECASE), predicate, reason, content_type)


SELF = "the user said it about themselves"


TASTE = "the user stated a liking"


NAME = r"[\u4e00-\u9fffA-Za-z·. ]{1,20}"


WE = r"(?:我们|咱们?|我们团队|我们项目(?:组)?|我们组|咱们组|我们公司|我们部门|团队|大家|项目组|公司|我司)"


PROJECT = (
    r"(?:(?:这个|我们的?|本|该|咱们?的?|我的)?(?:项目|仓库|代码库|服务|后端|前端|接口|系统|应用|平台"
    r"|工程|网站|数据库|流水线|产品|小程序|官网|后台|客户端|服务端|技术栈|生产环境|测试环境|线上|生产"
    r"|预发环境|开发环境|脚手架|库|App|APP|app|API|api|SDK))"
)


REASON = re.compile(r"[，,]?\s*(?:因为|由于|理由是|原因是).+$")


TAIL = 40
"""Characters at the end of a clause that may be thanks and particles."""


def bare(clause: str) -> str:
    """The clause without what leads up to it and what trails behind it."""
    stripped = OPENING.sub("", clause.strip()).rstrip(" 。！!；;.~～：:")
    return f"{stripped[:-TAIL]}{TRAILING.sub('', stripped[-TAIL:])}" or stripped


def project_name(project: str | None) -> str:
    """What stands for "we" and "the project"."""
    return f"项目 {project}" if project else "用户的项目"


def third_person(clause: str) -> str:
    """What the user says of themselves, said of the user: 我喜欢茶 -> 用户喜欢茶."""
    return re.sub(r"我(?!们)", "用户", clause)
