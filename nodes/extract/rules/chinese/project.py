"""What Chinese sentences say of the project."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.chinese.words import EMPTY_OBJECT, PROJECT, REASON, WE, project_name
from everthread.nodes.extract.rules.sketch import PROJECT_FACT, Sketch, project_fact
from everthread.nodes.extract.rules.topics import technology

__all__ = ["choice", "project_facts"]

TEAM = re.compile(
    r"^(?:我们|咱们?)的?(?:会计|财务|设计师?|产品经理|法务|店长|教练|班主任|队长|主管|厂长|主厨|供应商|客户经理)(?:是|叫)(?P<who>(?!谁|什么|不)[^，,。]{1,6})$|"
    r"^(?:我们|咱们?)(?:的|这个)?(?:产品|项目|公司|团队|店|品牌|系统|应用|App|app|工作室|小组)(?:的)?(?:名字|名称)?(?:叫|名叫)(?P<named>[^，,。]{1,16})$"
    r"|^(?:我们|咱们?)的?(?:办公室|公司|门店|仓库|工厂|总部)(?:已经|要|刚|上个?月|去年|今年)*(?:搬到|搬去|迁到|位于)了?(?P<place>[^，,。]{2,12}?)了?$"
    r"|^(?:我们|咱们?)?的?(?:站会|周会|例会|晨会|早会|复盘会|评审会)(?:是|在|改到|改成|定在)(?P<when>[^，,。]{0,6}(?:点|周[一二三四五六日]|上午|下午)[^，,。]{0,6})$"
    r"|^(?:我们|咱们?)?的?(?:发票|工资|报表|周报|月报|备份|账单|货款)(?:都|统一|固定|是)*(?P<every>每(?:天|周|个?月|季度|年)[^，,。]{1,14})$"
    r"|^(?:我们|咱们)(?:团队|公司|小组|组|部门|店|工作室)?(?:一共|总共|目前|现在)?(?:有"
    r"|是)?(?P<what>[一两二三四五六七八九十百\d]+(?:多)?(?:个)?人(?:的?(?:小?团队|公司|创业公司))?"
    r"|(?:一)?(?:家|个)[^，,。]{2,12}(?:公司|团队|工作室|机构|学校|医院|诊所|店))$"
)


_USED = (
    r"(?:用的是|使用的是|用的都?是|用|使用|采用|跑在|跑的是|运行在|基于|部署在|托管在|放在|是用|遵循"
    r"|按照|沿用|走的是|走)"
)


USES = (
    re.compile(
        rf"^(?:{WE}|{PROJECT})(?:最低|最高|只|目前|现在|都)*(?:支持|兼容|面向|适配)(?P<what>(?=[^，,。]*[A-Za-z0-9])[^，,。]{{2,40}})$"
    ),
    re.compile(
        rf"^(?:{WE}|{PROJECT})(?:的|里|中|这边|那边)*(?:{PROJECT}|技术栈|代码|业务)?(?:目前|现在|统一|主要"
        rf"|一直|都|的|全部|是|也|里|上)*{_USED}(?P<what>(?!户|来|过|不|了|力|心|完"
        rf"|起来)[^，,。]{{2,60}}?)(?:来)?(?:写的?|开发的?|搭建的?|搭的|构建的?|部署的?|管理的?|做的|跑的"
        rf"|的)?$"
    ),
    re.compile(
        rf"^(?:{WE}|{PROJECT})?(?:的)?(?P<thing>[^，,。我你他她这那]{{2,8}}(?:系统|服务|平台|模块|网站|后台"
        rf"|小程序)|数据库|缓存|消息队列|前端|后端|日志|监控|迁移|认证|搜索|部署|测试|CI|ci|lint|linter"
        rf"|代码规范|code style|代码风格|包管理|ORM|orm|文档|队列|任务调度|配置中心|网关|基础设施)(?:这边"
        rf"|方面|那块|这块)?(?:{WE})?(?:跑)?(?:这边|目前|现在|统一|主要|都|是|的)*{_USED}(?P<what>(?!户|来"
        rf"|过|不|了)[^，,。]{{1,60}}?)(?:写的|做的|的)?$"
    ),
    re.compile(
        r"^(?:这个|本|该|我们的?|咱们的?)(?:项目|仓库|代码库|服务|工程|系统)(?:是)(?:个|一个)?(?P<what>[^，,。]{2,40})$"
    ),
    re.compile(
        rf"^(?:{WE})?(?:的)?(?:生产|测试|预发|线上|开发|staging|prod)(?:环境|服务器|集群|库)?(?:目前|现在"
        rf"|都|是|部署|跑|放|托管|用的是|用|的)*(?:在|是)?(?P<what>[^，,。]{{2,40}})$"
    ),
    re.compile(
        rf"^(?:{WE}|{PROJECT})(?:目前|现在|统一|主要|一直|都|的|这边)*(?:是|跑在|跑的是"
        rf"|在)(?P<what>[^，,。]{{2,40}}?)(?:上)?$"
    ),
)
"""The last one must name something: "is" and "in" say too little by themselves."""


IS = re.compile(
    rf"^(?:{PROJECT}|我们|这里|这边)?(?:的)?(?P<what>数据库|缓存|消息队列|默认分支|主分支|代码规范"
    rf"|许可证|部署方式|包管理器|测试框架|Python版本|lint|linter|格式化工具|ORM|CI)(?:工具)?(?:现在"
    rf"|这边|目前|统一|都)*(?:是|用的是|为|改成了|换成了|用)(?P<value>[^，,。]{{2,40}})$",
    re.IGNORECASE,
)


IS_WHAT = {
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
    "lint": "linter",
}


DEPLOY = re.compile(
    rf"^(?:{WE}|{PROJECT})?(?:目前|现在|统一|都)*(?:用|使用|通过)(?P<what>[^，,。]{{2,30}}?)(?:来)?(?:部署|发布|上线)$"
)


DEADLINE = re.compile(
    r"^(?:我们的?|咱们的?|项目的?)?(?P<what>[^，,。我你]{0,8}?(?:截止日期|截止时间|上线日期|上线时间|发布日期|发布时间|交付日期|交付时间"
    r"|封版时间|deadline|DDL|ddl))(?:就?是|定在|定为|为|改到|改成|推迟到|提前到)(?P<when>[^，,。]{0,6}[\d一二三四五六七八九十初底末]"
    r"[^，,。]{0,12})$"
)
SCHEDULE = re.compile(
    rf"^{WE}(?:的)?(?P<what>[^，,。]{{0,8}}?)(?:统一|都|一般|固定|是|定在)*(?:每[^，,。]{{0,6}}|逢|双周"
    rf"|单周|在)?(?:周|星期|礼拜|月)(?:[一二三四五六日天末初底]|的?周[一二三四五]"
    rf"|\d+[号日])[^，,。]{{0,8}}?(?:开.{{0,6}}会|例会|周会|发版|发布|上线|发|交|评审|复盘|站会|封版"
    rf"|结算|值班|团建|结束|开始|截止|封板|上班|盘点|上新|关门|开门|营业|打烊|交|发货)(?:.{{0,6}})$|^{WE}的?[^，,。]{{1,10}}?(?:都)?(?:是|定在"
    rf"|在)每(?:个)?[^，,。]{{2,16}}$|^{WE}(?:的)?(?P<year>财年|财务年度|会计年度)(?:是|从).{{2,12}}$"
)


PURPOSE = re.compile(r"(?:来|用来|用于|作为?|做)(?P<purpose>[^，,。]{1,12})$")


def names(what: str) -> bool:
    """Whether it names a technology, or something else written in Latin letters or with digits."""
    return technology(what) is not None or bool(re.search(r"[A-Za-z0-9]|云|机房|集群", what))


def choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
    chosen = re.split(r"(?:而不是|不用|代替|取代|替代)", REASON.sub("", what), maxsplit=1)[0].strip("，, ")
    found = technology(chosen)
    purpose = PURPOSE.search(chosen)
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
    return project_fact(statement, subject, predicate, value, reason=reason)


def project_facts(clause: str, project: str | None) -> list[Sketch]:
    """What the clause says of the project, apart from decisions and conventions."""
    subject = project or "project"
    statement = f"{project_name(project)}：{clause}。"
    match = IS.match(clause)
    if match:
        found = technology(match["value"])
        predicate = found.category if found else IS_WHAT.get(match["what"], match["what"])
        value = found.name if found else match["value"]
        return [project_fact(statement, subject, predicate, value)]
    match = DEADLINE.match(clause)
    if match:
        return [project_fact(statement, subject, match["what"], match["when"])]
    match = DEPLOY.match(clause)
    if match:
        found = technology(match["what"])
        predicate = found.category if found else "deploys with"
        value = found.name if found else match["what"]
        return [project_fact(statement, subject, predicate, value)]
    match = SCHEDULE.match(clause) or TEAM.match(clause)
    if match:
        return [project_fact(statement)]
    match = next((each for form in USES if (each := form.match(REASON.sub("", clause)))), None)
    if match and not (match.re is USES[-1] and not names(match["what"])) and not EMPTY_OBJECT.match(match["what"]):
        return [choice(match["what"], statement, subject, PROJECT_FACT)]
    return []
