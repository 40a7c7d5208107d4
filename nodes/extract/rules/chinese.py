"""What Chinese sentences say that is worth keeping. The same forms as the English rules, and as conservative."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from everthread.nodes.extract import wording
from everthread.nodes.extract.rules.chinese_forms import (
    ABOUT_USER,
    ASKS_WHETHER,
    CONVENTION,
    CORRECTION,
    DECIDED,
    DEPLOY,
    EMPTY_OBJECT,
    GOES_ON,
    HABIT,
    IMPERATIVE,
    IS,
    IS_WHAT,
    LIKE_THIS,
    NEVER_AGAIN,
    NICKNAME,
    NO_MORE,
    NOT_OTHER,
    OF_TROUBLE,
    OPENING,
    PREDICATES,
    PREFER,
    PROJECT,
    PURPOSE,
    RATHER,
    REASON,
    REMEMBER,
    REMINDER,
    RETRACTION,
    SCHEDULE,
    SHORT_LIVED,
    STANDING,
    STANDING_AMID,
    STANDING_LATE,
    SWAP,
    SWAP_BACK,
    TASTE,
    TEAM,
    TO_DO,
    TOPIC_FIRST,
    TRAILING,
    USES,
    WE,
)
from everthread.nodes.extract.rules.sketch import Sketch, passing_limit, standing_wish
from everthread.nodes.extract.rules.topics import preference, technology
from everthread.nodes.extract.rules.when import due
from everthread.nodes.extract.script import as_written, simplified

__all__ = ["read", "third_person"]


def read(sentence: str, said_at: datetime, project: str | None, *, listed: bool = False) -> list[Sketch]:
    """What the sentence says; most say nothing. The sentence is the speaker's own, without quotations. `listed`: it
    stands in a list of preferences, so a plain imperative is meant for every time.

    Traditional characters are read as simplified ones, and what is kept has the speaker's. A sentence is read whole,
    and when that says nothing, part by part: Chinese strings what it says together by commas.
    """
    read_as = _ONESELF.sub("我", simplified(sentence))
    found = _read(read_as, said_at, project, listed=listed)
    if _SPACED.search(read_as):
        closed = _read(_SPACED.sub("", read_as), said_at, project, listed=listed)
        loose = all(sketch.subject is None and sketch.replaces for sketch in found)
        found = closed if len(closed) > len(found) or (loose and closed) else found
    return [
        sketch._replace(
            statement=as_written(sketch.statement, sentence),
            value=sketch.value and as_written(sketch.value, sentence),
            replaces=sketch.replaces and as_written(sketch.replaces, sentence),
        )
        for sketch in found
    ]


_SPACED = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])\s+(?=[\u4e00-\u9fff])")
"""The spaces that some set between Chinese and other words, and the forms do not."""
_ONESELF = re.compile(r"(?:本人|俺|(?<![自])个人(?=比较|更|不|喜欢|习惯|偏))")


def _read(sentence: str, said_at: datetime, project: str | None, *, listed: bool) -> list[Sketch]:
    clause = _bare(sentence)
    corrected = CORRECTION.sub("", clause)
    corrects = corrected != clause and bool(corrected)
    clause = corrected or clause
    reminder = REMINDER.match(clause) or TO_DO.match(clause)
    if reminder:
        return _reminders(reminder, said_at)
    asked = REMEMBER.sub("", clause)
    weak = re.match(r"(?:请|麻烦|你|您)*(?:别忘了|别忘记|请注意|记得)", clause)
    explicit = asked != clause
    clause = asked.strip()
    if wording.is_guess(clause) or wording.is_reported(clause) or wording.is_past(clause):
        return []
    asks = wording.is_question(sentence) and not (wording.is_request(sentence) and wording.is_lasting(sentence))
    found = [] if asks else _retraction(clause, project) or _one(clause, project, listed=listed)
    if not found or any(sketch.retracts or (sketch.replaces and not sketch.subject) for sketch in found):
        found = _by_parts(clause, project, listed=listed) or found
    if weak and not _SAYS_WHOSE.search(clause):
        return found
    if not found and not asks and explicit and len(clause) > 2:
        found = [_told_to_keep(clause, project)]
    return [sketch._replace(corrects=True) if corrects and not sketch.retracts else sketch for sketch in found]


_SAYS_WHOSE = re.compile(r"我|咱|项目|团队|公司|客户|必须|都要|一律|每[天周月次]|\d")
"""What makes "don't forget" more than a saying."""


TAIL = 40
"""Characters at the end of a clause that may be thanks and particles."""


def _bare(clause: str) -> str:
    """The clause without what leads up to it and what trails behind it."""
    stripped = OPENING.sub("", clause.strip()).rstrip(" 。！!；;.~～：:")
    return f"{stripped[:-TAIL]}{TRAILING.sub('', stripped[-TAIL:])}" or stripped


def _one(clause: str, project: str | None, *, listed: bool = False) -> list[Sketch]:
    readers: tuple[Callable[[str, str | None], list[Sketch]], ...] = (
        _swap,
        _nickname,
        _short_lived,
        _standing,
        _about_project,
        _preferred,
        _about_user,
        _as_a_rule,
    )
    for reader in readers:
        found = reader(clause, project)
        if found:
            return found
    if listed and IMPERATIVE.search(clause):
        return [_wished(clause, project)]
    return []


def _by_parts(clause: str, project: str | None, *, listed: bool) -> list[Sketch]:
    """What the parts say, one by one. A part without a subject has that of the part before it."""
    parts = [_bare(REMEMBER.sub("", CORRECTION.sub("", part))) for part in wording.clauses(clause)]
    if len(parts) < 2 or ASKS_WHETHER.match(wording.clauses(clause)[-1].strip(" ？?。")):
        return []
    found: list[Sketch] = []
    who = ""
    for part in parts:
        if who and GOES_ON.match(part):
            part = f"{who}{part}"
        elif match := re.match(rf"我(?!们)|(?:这个|本|该|我们的?)(?:{_OURS})|我们|咱们", part):
            who = match[0]
        if wording.is_question(part) or wording.is_task_text(part):
            continue
        found += _retraction(part, project) or _one(part, project, listed=listed)
    ended = {(sketch.subject, sketch.predicate) for sketch in found if not sketch.retracts}
    # "I don't live in Beijing any more, I live in Suzhou" is one correction, not an end and a beginning.
    return [
        sketch._replace(corrects=True) if (sketch.subject, sketch.predicate) in _retracted(found) else sketch
        for sketch in found
        if not (sketch.retracts and (sketch.subject, sketch.predicate) in ended) and not _is_loose(sketch, found)
    ]


_OURS = r"项目|仓库|代码库|服务|系统|工程|网站|平台"


def _retracted(found: list[Sketch]) -> set[tuple[str | None, str | None]]:
    return {(sketch.subject, sketch.predicate) for sketch in found if sketch.retracts}


def _is_loose(sketch: Sketch, found: list[Sketch]) -> bool:
    """A swap without a subject, beside something that has one."""
    return sketch.subject is None and sketch.replaces is not None and len(found) > 1


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
    if not NO_MORE.search(clause):
        return []
    for pattern in RETRACTION:
        match = pattern.match(clause)
        if match:
            held = f"{match['who']}{match['rest']}"
            before = _about_project(held, project) or _preferred(held, project) or _about_user(held, project)
            return [sketch._replace(retracts=True, reason="the user says that it no longer holds") for sketch in before]
    return []


def _swap(clause: str, project: str | None) -> list[Sketch]:
    match = SWAP.match(clause) or SWAP_BACK.match(clause)
    if match is None:
        return []
    head, new, old = match["head"].strip(" ，,"), match["new"].strip(), match["old"].strip()
    said = _about_project(f"{head}是{new}", project) or _about_user(f"{head}是{new}", project) if head else []
    if said:
        return [sketch._replace(replaces=old, corrects=True) for sketch in said]
    return [Sketch(clause, "the user corrected it", value=new, replaces=old, corrects=True)]


def _nickname(clause: str, project: str | None) -> list[Sketch]:
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


def _short_lived(clause: str, project: str | None) -> list[Sketch]:
    reach = wording.limits_reach(clause)
    if reach is None:
        return []
    core = wording.without_limit(clause)
    if len(core) > 30 or not SHORT_LIVED.match(core):
        return [sketch._replace(reach=reach) for sketch in _about_user(clause, project)]
    statement = f"仅限当前{'对话' if reach == 'session' else '任务'}：{clause}。"
    return [passing_limit(statement, preference(clause), reach)]


def _standing(clause: str, project: str | None) -> list[Sketch]:
    again = NEVER_AGAIN.match(clause) or LIKE_THIS.match(clause)
    if again and not re.search(r"这个|那个|这里|那里|上面", again["what"]):
        return [_wished(again["what"], project)]
    amid = STANDING_AMID.match(clause)
    if amid:
        return [_wished(clause, project)]
    match = STANDING.match(clause) or STANDING_LATE.match(clause)
    if match is None:
        return []
    groups = match.groupdict()
    what = groups["what"].strip()
    if groups.get("when"):
        what = f"{groups['when']}{what}"
    elif clause.startswith("每次") and not re.match(r"(?:都|请|用|给|先)", what):
        what = f"每次{what}"
    inner = _about_project(what, project) or _preferred(what, project)
    if inner:
        return inner
    called = next((sketch for sketch in _about_user(what, project) if sketch.predicate == "wants to be called"), None)
    if called:
        return [called]
    if OF_TROUBLE.search(what) or not IMPERATIVE.search(what) or re.match(r"我(?!的)|你(?!给|在)|他|她|它|大家", what):
        return []
    return [_wished(what, project)]


def _wished(what: str, project: str | None) -> Sketch:
    """A wish for every time: the user's, or the project's when it says so."""
    of_project = bool(re.match(r"^(?:在)?(?:这个|本|我们的?)(?:项目|仓库|代码库)", what))
    statement = f"{_project_name(project)}：{what}。" if of_project else f"用户希望以后都这样：{what}。"
    return standing_wish(statement, what, preference(what), project=(project or "project") if of_project else None)


def _as_a_rule(clause: str, project: str | None) -> list[Sketch]:
    """What the user wants, or does, as a rule."""
    match = HABIT.match(clause)
    if match is None:
        return []
    statement = f"{third_person(clause)}。"
    return [
        Sketch(statement, "a habit of the user", subject="user", predicate="as a rule", value=match["what"].strip())
    ]


def _preferred(clause: str, project: str | None) -> list[Sketch]:
    topic_first = TOPIC_FIRST.match(clause)
    if topic_first and not EMPTY_OBJECT.match(topic_first["what"]) and _is_lasting_taste(topic_first["what"]):
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


def _about_user(clause: str, project: str | None) -> list[Sketch]:
    bare = REASON.sub("", clause)
    for form in ABOUT_USER:
        match = form.pattern.match(bare)
        if match is None:
            continue
        value = match["value"].strip()
        if not value or EMPTY_OBJECT.match(value) or (form.reason == TASTE and not _is_lasting_taste(value)):
            return []
        what = match.groupdict().get("what")
        predicate = PREDICATES.get(what, what) if what else form.predicate
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
    match = next((each for form in DECIDED if (each := form.match(clause))), None)
    if match and not EMPTY_OBJECT.match(match["what"]) and _is_lasting_choice(clause):
        return [_choice(match["what"], statement, subject, "a decision that was made")]
    match = IS.match(clause)
    if match:
        found = technology(match["value"])
        predicate = found.category if found else IS_WHAT.get(match["what"], match["what"])
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
    match = DEPLOY.match(clause)
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
    match = SCHEDULE.match(clause) or TEAM.match(clause)
    if match:
        return [Sketch(statement, "a fact about the project", owner="project")]
    match = next((each for form in USES if (each := form.match(REASON.sub("", clause)))), None)
    if match and not (match.re is USES[-1] and not _names(match["what"])) and not EMPTY_OBJECT.match(match["what"]):
        return [_choice(match["what"], statement, subject, "a fact about the project")]
    match = CONVENTION.match(clause)
    if match:
        return [
            Sketch(
                statement, "a convention of the project", "procedural", "procedural", subject=subject, owner="project"
            )
        ]
    return []


def _names(what: str) -> bool:
    """Whether it names a technology, or something else written in Latin letters or with digits."""
    return technology(what) is not None or bool(re.search(r"[A-Za-z0-9]|云|机房|集群", what))


def _is_lasting_choice(clause: str) -> bool:
    """A decision about how the project is done, or one with its reason."""
    return bool(
        technology(clause)
        or re.search(
            r"因为|由于|理由|用|采用|统一|一律|走|不再|迁移|迁到|换到|切到|改成|换成|支持|放弃|部署|拆分"
            r"|合并到|发布",
            clause,
        )
    )


def _choice(what: str, statement: str, subject: str, reason: str) -> Sketch:
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
    return Sketch(statement, reason, subject=subject, predicate=predicate, value=value, owner="project")


def _told_to_keep(clause: str, project: str | None) -> Sketch:
    reach = wording.limits_reach(clause) or "lasting"
    about_project = bool(re.match(rf"^(?:{WE}|{PROJECT})", clause))
    statement = f"{_project_name(project)}：{clause}。" if about_project else f"{third_person(clause)}。"
    return Sketch(statement, "the user asked to remember it", owner="project" if about_project else "user", reach=reach)


def _project_name(project: str | None) -> str:
    return f"项目 {project}" if project else "用户的项目"


def third_person(clause: str) -> str:
    """What the user says of themselves, said of the user: 我喜欢茶 -> 用户喜欢茶."""
    return re.sub(r"我(?!们)", "用户", clause)
