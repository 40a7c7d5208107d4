"""Chinese decisions and conventions, and all that is said of the project."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.chinese.project import choice, project_facts
from everthread.nodes.extract.rules.chinese.words import EMPTY_OBJECT, STOP, WE, project_name
from everthread.nodes.extract.rules.sketch import Sketch, convention
from everthread.nodes.extract.rules.topics import technology

__all__ = ["about_project"]

_WHEN = (
    r"(?:(?:今天|昨天|上周|这周|刚才|刚刚|会上|开会|讨论(?:之?后|下来)?|商量下来|评审下来|会议|经过|周[一二三四五]|最后|最终"
    r"|后来)[^，,。]{0,10}[，,]?){0,3}"
)


DECIDED = (
    re.compile(rf"^{WE}(?:已经|现在|正式)*(?P<what>不再?支持[^，,。]{{2,30}}?)了?$"),
    re.compile(
        r"^(?P<thing>(?!我|你|他|她|这|那)[^，,。我你他她这那]{1,10}?)(?:我们|最后|最终|后来|还是|已经|这边)+(?:定|选|敲定|选定|定下来用|改用|换成|采用"
        r"|决定用)了?(?P<what>[^。，,]*[A-Za-z][^。]{0,80})$"
    ),
    re.compile(
        rf"^(?:因为|由于)?(?P<why>[^。]{{0,60}}?)[，,]?\s*(?:所以|因此)?{WE}(?:今天|昨天|已经|最终|最后"
        rf"|刚刚?|一致|正式|现在|都|还是|后来|上周|开会|讨论后)*(?:决定|商定|商量好|说好|约好|谈好|选定|定下来?了?|敲定"
        rf"|确定|同意|选择|选)了?(?:要|用|使用|采用|选择|选|改用|以后)*(?P<what>[^。]{{2,160}})$"
    ),
    re.compile(
        rf"^{_WHEN}(?:{WE})?(?:一致|正式)?(?:决定|商定|敲定|定下来?|定好?|确定|拍板)了?(?:[，,：:]\s*"
        rf"|下来[，,：:]?\s*|要|改用|采用|使用|用)*(?P<what>[^。]{{2,160}})$"
    ),
    re.compile(
        r"^(?:[^，,。]{0,10}?)(?:方案|选型|技术栈|规则|约定|结论|流程|规范|分工|命名|架构)(?:我们|已经"
        r"|最终|最后|也|都)*(?:定了|定下来了|敲定了?|确定了?|是)[，,：:]\s*(?P<what>[^。]{2,160})$"
    ),
    re.compile(
        rf"^{WE}(?:已经|刚刚?|最近|上周|上个?月|今年)*(?:正在|在)?(?:从[^，,。]{{1,16}}?)?(?:换成|改成|改用|换到|切换?到|迁移?到"
        rf"|升级到)了?(?P<what>[^。]{{2,160}}?)了?$"
    ),
)


CONVENTION = re.compile(
    rf"^(?:(?:在)?(?:这个|本|我们的?|咱们?的?)(?:项目|仓库|代码库|团队|组)(?:里|中|的|规定|约定|要求"
    rf"|内)*{STOP}(?P<what>[^。]*(?:(?:变量名?|函数名?|类名|文件名|分支名?|注释|缩进|提交信息|接口|日志"
    rf"|时间|金额|错误码|命名)(?:都|全部?)?(?:用|写|按|以)|必须|禁止|不能|不准|不允许|不许|都要|一律"
    rf"|统一|要先|先|不要|需要|应该|只能|得|不得|约定|规定)[^。]{{1,80}})|{WE}(?:的)?(?:约定|规范|惯例"
    rf"|规矩|规定|要求)(?:是|里)?{STOP}(?P<rule>[^。]{{2,80}})|(?P<before>(?:合并|上线|发布|提交|部署|发版|推送|改表|下单|发货|报销)(?:代码|PR)?之?[前后](?:都)?(?:必须|一定要|都要|要先|需要|得先)[^。]{{2,40}})"
    rf"|{WE}(?:都|一律|一般)?(?P<by>按[^，,。]{{1,10}}(?:结算|计价|报价|收费|付款))"
    rf"|{WE}(?:从来|一直|都)?(?P<not>不(?:用(?!着急|担心|急|怕|管|再|太|这|那|考虑|去|写|做|想|等)|支持|接|招|开放|提供)(?=[^，,。了]{{2,10}}$).*)"
    rf"|(?:周[一二三四五六日末天]|节假日|月底|半夜)?{WE}(?:的)?[^，,。我你他]{{0,8}}?(?:这边|这里)?(?P<habit>(?:一律|只[用发收做招]|统一"
    rf"|必须|从来不|从不|不允许|禁止|不许|不准|不能|不得|(?:节假日|周末|周[一二三四五六日天]|晚上|月底|年底|半夜)(?:都|从来|一律|一般|绝)*(?:不|只)(?=上线|发版|发布|部署|加班|开会|上班|接单|发货|营业)).{{2,80}})|(?:{WE}的?)?(?P<all>(?:所有|每个|每次|任何|全部"
    rf"|凡是)(?:的)?[^，,。我你]{{1,16}}(?:都)?(?:必须|都要|都得|一律|统一|禁止|不能|不得"
    rf"|需要).{{2,60}}))$"
)


def about_project(clause: str, project: str | None) -> list[Sketch]:
    subject = project or "project"
    statement = f"{project_name(project)}：{clause}。"
    match = next((each for form in DECIDED if (each := form.match(clause))), None)
    if match and not EMPTY_OBJECT.match(match["what"]) and _is_lasting_choice(clause):
        return [choice(match["what"], statement, subject, "a decision that was made")]
    found = project_facts(clause, project)
    if found:
        return found
    match = CONVENTION.match(clause)
    if match:
        return [convention(statement, subject)]
    return []


def _is_lasting_choice(clause: str) -> bool:
    """A decision about how the project is done, or one with its reason."""
    return bool(
        technology(clause)
        or re.search(
            r"因为|由于|理由|用|采用|统一|一律|走|不再|迁移|迁到|换到|切到|改成|换成|支持|放弃|部署|拆分"
            r"|合并到|发布|每[周天月]|必须|不许",
            clause,
        )
    )
