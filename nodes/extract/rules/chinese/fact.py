"""What Chinese sentences say of the user, and names that a conversation gives."""

from __future__ import annotations

import re

from everthread.nodes.extract.rules.chinese.life import LIFE
from everthread.nodes.extract.rules.chinese.words import (
    EMPTY_OBJECT,
    NAME,
    PREDICATES,
    REASON,
    ROLE,
    SELF,
    TASTE,
    form,
    third_person,
)
from everthread.nodes.extract.rules.sketch import Sketch

__all__ = ["about_user", "is_lasting_taste", "nickname"]

NICKNAME = re.compile(
    r"^(?:那|就|咱们?|我们)*(?:先|就|来)?(?:把|将|管)(?P<what>[^，,。]{1,20}?)(?:就|简)?(?:叫做|叫作"
    r"|称为|称作|叫)[“”「」]?(?P<name>[^，,。“”「」]{1,16}?)(?:吧|好了|就行)?$|^(?:那|就|咱们?"
    r"|我们)*(?:先|就)?(?:叫|称呼)(?P<it>它|这个项目|这个任务)(?:为|做"
    r"|作)?[“”「」]?(?P<called>[^，,。“”「」]{1,16}?)(?:吧|好了|就行)?$"
)


RELATION = (
    r"(?:孩子|宝宝|小孩|室友|房东|同桌|搭档|组长|主管|上司|直属领导|项目经理|班主任|邻居|专业|学校"
    r"|学历|血型|鞋码|身高|星座|属相|英文名|中文名|小名|昵称|外号|全名|键盘布局|终端|浏览器|IDE|ide"
    r"|系统|电脑|手机|车|老婆|妻子|太太|老公|丈夫|儿子|女儿|妈妈|爸爸|母亲|父亲|哥哥|弟弟|姐姐|妹妹"
    r"|男朋友|女朋友|狗|猫|经理|老板|领导|导师|团队|部门|公司|职业|职位|工作|母语|时区|生日|家乡|老家"
    r"|爱好|编辑器|操作系统|用户名|网名|最喜欢的[^是叫]{1,12}|(?:最|平时)?常用的[^是叫]{1,12})"
)


_NOW = r"(?:现在|目前|一直|最近|如今|还是|也|是)*"


CITY = (
    r"(?:北京|上海|广州|深圳|杭州|成都|重庆|武汉|西安|南京|苏州|天津|长沙|郑州|青岛|厦门|宁波|合肥"
    r"|福州|济南|大连|沈阳|昆明|无锡|佛山|东莞|珠海|哈尔滨|长春|石家庄|太原|南昌|南宁|贵阳|兰州|海口"
    r"|三亚|乌鲁木齐|拉萨|香港|澳门|台北|高雄|台中|台南|新竹|桃园|新加坡|东京|大阪|首尔|纽约|伦敦|巴黎"
    r"|柏林|悉尼|墨尔本|温哥华|多伦多|旧金山|西雅图|洛杉矶|波士顿|慕尼黑|阿姆斯特丹|曼谷|吉隆坡)"
)


ABOUT_USER = (
    form(
        r"我(?:和|跟|们)[^，,]{0,8}?(?:都|也|全家)?(?P<value>吃素|吃纯素|不吃肉|不吃辣|不吃猪肉|吃清真)(?:的)?",
        "diet",
        SELF,
    ),
    form(r"我有(?P<value>多动症|ADHD|阅读障碍|腰椎间盘突出|颈椎病|膝盖旧伤|恐高症?|幽闭恐惧症?)", "health", SELF),
    form(
        r"我(?:看不懂|听不懂|不会说|不会讲|不懂|不会)(?P<value>(?!这|那|怎|什|为|你|做|用|再|是|让|有|说"
        r"|去)[^，,。]{1,8}?)(?:的)?",
        "does not know",
        SELF,
    ),
    form(
        r"我(?:家)?(?:儿子|女儿|孩子|弟弟|妹妹)(?:今年|明年|现在|九月|马上|刚|也|都|在)*(?:上|读"
        r"|念)(?P<value>(?:幼儿园|小学|初中|高中|大学|[一二三四五六]年级|初[一二三]|高[一二三]"
        r"|大[一二三四])[^，,。]{0,8})",
        "child's school",
        SELF,
    ),
    form(
        r"我(?:刚刚?|最近|已经|上个?月|去年|今年)*(?:跳槽到?|入职|加入"
        r"|换到)了?(?P<value>[^，,。]{1,16}?)(?:工作|上班)?了?",
        "employer",
        SELF,
    ),
    form(r"我(?:平时|从来|基本)*(?P<value>滴酒不沾|烟酒不沾|不抽烟|不喝酒|不沾酒|戒烟了|戒酒了)", "does not eat", SELF),
    form(rf"我{_NOW}在(?P<value>{CITY})(?:读博|读研|留学|出差|定居|上大学|读大学|读高中)", "lives in", SELF),
    form(
        r"我(?:正)?在(?P<value>备考[^，,。]{1,20}|(?:准备|备战)(?=[^，,。]{0,20}(?:考试|考研|考公|高考|中考|司考|法考|雅思|托福|答辩|马拉松"
        r"|证|资格|比赛))[^，,。]{2,20}|装修[^，,。]{0,8}(?:房|家)[^，,。]{0,6}|写(?:毕业|博士|硕士)?(?:论文|小说))",
        "is busy with",
        SELF,
    ),
    form(
        r"我(?:是|有|患有|得了|得过)(?P<value>糖尿病|高血压|哮喘|痛风|抑郁症|癫痫|乙肝|心脏病)(?:患者|病人)?",
        "health",
        SELF,
    ),
    form(
        rf"我(?:的名字(?:是|叫)|的?(?:全名|大名)(?:是|叫)|叫)(?P<value>(?![你他她它了这那什外滴])(?:{NAME}))",
        "name",
        SELF,
    ),
    form(
        r"我(?:就)?是(?P<value>[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易武乔贺赖龚文][\u4e00-\u9fff]{1,2})(?<!白领)(?<!高管)(?<!高手)(?<!金融)(?<!黄牛)(?<!文科)(?<!武汉)(?<!江苏)(?<!石油)(?<!人)(?:[，,].+)?",
        "name",
        SELF,
    ),
    form(
        rf"(?:请|你可以|就|你|大家都?|平时|同事都?|朋友都?|直接|以后)*(?:叫我|称呼我(?:为)?|喊我"
        rf"|管我叫)(?P<value>{NAME}?)(?:就行|就好|就可以|吧|即可|好了)*(?:了)?",
        "wants to be called",
        SELF,
        "preference",
    ),
    form(rf"我{_NOW}(?:是|做|当)(?:一?[名个位])?(?P<value>[^，,。是]{{0,12}}?{ROLE})(?:的)?", "role", SELF),
    form(
        rf"我{_NOW}在(?P<value>{CITY})(?:市|这边)?(?:工作|上班|打工|做.{{1,16}}|当.{{1,12}}|实习|读书|念书|上学|生活)",
        "lives in",
        SELF,
    ),
    form(
        rf"我{_NOW}(?:在|就职于|任职于|受雇于|供职于)(?P<value>[^，,。]{{1,20}}?)(?:工作|上班|任职|打工"
        rf"|就职|做.{{1,16}}|当.{{1,12}}|实习|读书|念书|上学)",
        "employer",
        SELF,
    ),
    form(r"我(?:就职于|任职于|供职于)(?P<value>[^，,。]{1,20})", "employer", SELF),
    form(
        rf"我{_NOW}(?:在读|读|念|上)(?P<value>(?:大[一二三四]|研[一二三]|博[一二三四]|高[一二三]|初[一二三]"
        rf"|本科|硕士|博士)[^，,。]{{0,12}})",
        "is studying",
        SELF,
    ),
    form(
        rf"我{_NOW}(?:住在|住|定居在|家在|家住|常住|常驻|人在|base在|base 在|搬回)(?P<value>(?!的|哪|这|那"
        rf"|院|酒店)[^，,。]{{1,20}}?)(?:了)?",
        "lives in",
        SELF,
    ),
    form(
        r"我(?:们)?(?:家)?(?:从[^，,。]{1,8}?)?(?:刚刚?|最近|上个?月|去年|今年|已经|前阵子|上周|年初|月初|才|也|都"
        r"|现在)*搬(?:到|去|家到|来|回)了?(?P<value>[^，,。]{1,12}?)(?:住|生活|定居)?了?",
        "lives in",
        SELF,
    ),
    form(
        r"我(?:来自|的老家在|老家是|老家在"
        r"|是)(?P<value>[^，,。是]{1,8}?)(?<!男)(?<!女)(?<!好)(?<!病)(?<!新)(?<!本)(?<!负责)(?:人)",
        "comes from",
        SELF,
    ),
    form(r"我来自(?P<value>[^，,。]{1,12})", "comes from", SELF),
    form(r"我(?:从小|一直)?(?:对)(?P<value>[^，,。]{1,20}?)(?:严重|有点|会|都)*过敏(?:的)?", "allergic to", SELF),
    form(
        r"我(?:有)(?P<value>(?:[一二12]型)?糖尿病|高血压|哮喘|偏头痛|失眠|抑郁症|焦虑症|过敏性鼻炎|鼻炎|胃病"
        r"|乳糖不耐(?:受)?|痛风|色盲|色弱|近视)(?:症)?",
        "health",
        SELF,
    ),
    form(
        r"我(?:是|有点)?(?P<value>乳糖不耐(?:受)?|麸质不耐(?:受)?|红绿色盲|色盲|色弱|左撇子|夜猫子"
        r"|独生子女?|单亲|单身|已婚|远程办公|自由职业)(?:的)?(?:者)?",
        "is",
        SELF,
    ),
    form(
        r"我(?:是|一直|平时|只|从小)*(?P<value>吃素|素食者?|素食主义者?|纯素(?:食)?者?|清真|吃清真)(?:的)?",
        "diet",
        SELF,
    ),
    form(
        r"我(?:从来|一般|平时|基本|完全|从不|都|也|不能|是)*(?:不吃|不喝|不能吃|不能喝|不太能吃|不怎么吃|很少吃|不爱吃|吃不了|喝不了"
        r"|戒了)(?P<value>[^，,。]{1,20}?)(?:的)?",
        "does not eat",
        SELF,
    ),
    form(r"我(?:会说|会讲|能说)(?P<value>[^，,。]{1,20})", "speaks", SELF),
    form(
        rf"我{_NOW}(?:正)?(?:在)?(?:学习|自学|在学|学)(?P<value>(?!会|到|了|着|校|生|期|习"
        rf"|一下)[^，,。]{{1,16}}?)(?:呢)?",
        "is learning",
        SELF,
    ),
    form(
        r"我(?:平时|一般|现在)?(?:开的(?:车)?是|开的|开着|开一[辆台部])(?P<value>(?!会|发|车)[^，,。]{2,20}?)(?:的车)?",
        "drives",
        SELF,
    ),
    form(
        r"(?:我|我们)(?:家)?(?:里)?(?:有|养了|养着"
        r"|养)(?P<value>[一两二三四五]?[个只条匹](?:[\u4e00-\u9fff]{0,4}?)(?:孩子|小孩|儿子|女儿|狗|猫"
        r"|哥哥|姐姐|弟弟|妹妹|柯基|金毛|泰迪|柴犬|哈士奇|布偶|橘猫|英短|鹦鹉|兔子|仓鼠|乌龟|宝宝|闺女|丫头|小子"
        r"|娃)[^，,。]{0,20})",
        "has",
        SELF,
    ),
    form(
        rf"我(?:们)?的?(?P<what>{RELATION})(?:的名字)?(?:现在|是叫|的)?(?:是|叫|在|换成了"
        rf"|改成了)(?P<value>(?!不|很|太|真|说|一直|什么|谁|哪|家|干)[^，,。]{{1,30}}(?<!点的))",
        "{what}",
        SELF,
    ),
    form(
        rf"我(?:现在|目前)的?(?P<what>{RELATION})(?:是|叫|在)(?P<value>(?!不|很|太|真|说|什么|谁|哪)[^，,。]{{1,30}})",
        "{what}",
        SELF,
    ),
    form(
        r"我(?:平时|一般|一直|主要|习惯|习惯于|日常|都|现在|目前|工作)*(?:使用的是|用的是|用的|使用"
        r"|用)(?P<value>(?!来|了|过|这|那|你|不)[^，,。]{1,30}?)(?:来?(?:写|做|编辑|开发|办公|记|画"
        r"|看)(?!的).{0,12})?(?:的)?",
        "uses",
        SELF,
    ),
    form(
        r"我(?:主要|平时|一般|日常)*(?:写|用)(?P<value>(?:TypeScript|JavaScript|Python|Java|Go|Rust|C\+\+"
        r"|C#|Kotlin|Swift|PHP|Ruby|Scala)(?:[、和/ ,]+\w[\w+#]*)*)(?:比较多|为主|的)?",
        "writes",
        SELF,
    ),
    form(
        r"我(?P<value>(?:每)?周[一二三四五六日末](?:和周[一二三四五六日末])?(?:都)?(?:不上班|不工作|休息"
        r"|不在|居家|远程))",
        "as a rule",
        SELF,
    ),
    form(
        r"我(?:真的|其实|个人|很|非常|特别|一直|也|最|比较|就)*(?:不喜欢|不太喜欢|不是很喜欢|不怎么喜欢"
        r"|讨厌|受不了|不爱|不太爱|不习惯|不想要|最烦|很烦|烦|怕)(?P<value>[^，,。]{1,40})",
        "dislikes",
        TASTE,
        "preference",
    ),
    form(
        r"我(?:真的|其实|个人|很|非常|特别|一直|也|最)*(?:喜欢|爱(?!人|好|情|心)|热爱|超爱)(?:(?:吃|喝|看"
        r"|玩)?的?(?:就)?是)?(?P<value>[^，,。]{1,40})",
        "likes",
        TASTE,
        "preference",
    ),
    *LIFE,
)


def nickname(clause: str, project: str | None) -> list[Sketch]:
    match = NICKNAME.match(clause)
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


def about_user(clause: str, project: str | None) -> list[Sketch]:
    bare = REASON.sub("", clause)
    for each in ABOUT_USER:
        match = each.pattern.match(bare)
        if match is None:
            continue
        value = match["value"].strip()
        if not value or EMPTY_OBJECT.match(value) or (each.reason == TASTE and not is_lasting_taste(value)):
            return []
        what = match.groupdict().get("what")
        predicate = PREDICATES.get(what, what) if what else each.predicate
        return [
            Sketch(
                f"{third_person(clause)}。",
                each.reason,
                each.content_type,
                subject="user",
                predicate=predicate,
                value=value,
                concerns="decision" if each.content_type == "preference" else None,
            )
        ]
    return []


_OF_THE_MOMENT = re.compile(r"这|那|你|他|她|它|咱|感觉|一下|去.+了$|[的了]$")


def is_lasting_taste(value: str) -> bool:
    """A liking of a kind of thing, in a few words; not of what is being looked at (R101)."""
    return len(value) <= 16 and not _OF_THE_MOMENT.search(value)
