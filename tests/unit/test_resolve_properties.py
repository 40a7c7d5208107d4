"""What holds of resolution whatever comes, in whatever order."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.extraction import AT
from support.resolution import PlainMemory

from everthread import Authority, Record, Scope
from everthread.nodes.extract.grounding import speaks_of
from everthread.nodes.extract.sameness import fingerprint, is_same_fact, is_same_property
from everthread.nodes.extract.validate import Draft
from everthread.stores.record import Provenance

ANA = Scope(owner="user", owner_id="ana")
SCOPES = (
    ANA,
    Scope.model_validate({"owner": "user", "owner_id": "ana", "within": {"project": "billing"}}),
    Scope(owner="project", owner_id="billing"),
    Scope(owner="session", owner_id="t1"),
)
TRUSTED = (Authority.TOOL, Authority.ARTIFACT, Authority.USER_IMPLIED, Authority.USER_EXPLICIT)
SOURCES = {
    Authority.EXTERNAL: "web",
    Authority.INFERRED: "assistant",
    Authority.TOOL: "tool",
    Authority.ARTIFACT: "file",
}
ABOUT = (("user", "lives in", "fact"), ("production", "database", "fact"), ("billing", "tone", "preference"))
VALUES = ("Oslo", "Rome", "奥斯陆")


def said(
    value: str | None,
    hour: int,
    authority: Authority,
    *,
    about: tuple[str, str, Any] = ABOUT[0],
    scope: Scope = ANA,
    thread: str | None = None,
    actor: str = "ana",
    status: Any = "active",
) -> Record:
    """What somebody said in that hour; each hour in a thread and a message of its own."""
    subject, predicate, content_type = about
    return Record(
        statement=f"The {predicate} of {subject} is {value}.",
        content_type=content_type,
        subject=subject,
        predicate=predicate,
        value=value,
        scope=scope,
        temporal_scope="session" if scope.owner == "session" else "long_term",
        provenance=Provenance.model_validate(
            {
                "source": SOURCES.get(authority, "user"),
                "thread_id": thread or f"t{hour}",
                "message_ids": (f"m{hour}",),
                "actor": actor,
                "extracted_by": "test/1",
                "observed_at": AT + timedelta(hours=hour),
            }
        ),
        write_reason="test",
        authority=authority,
        status=status,
    )


def draft(record: Record, **flags: Any) -> Draft:
    return Draft(record, "accepted", "test", **flags)


def strength(record: Record) -> int:
    """As the table says: for the environment, every trusted source counts alike."""
    if record.subject != "user" and record.content_type == "fact" and record.authority in TRUSTED:
        return Authority.TOOL.rank
    return record.authority.rank


def what_stands(memory: PlainMemory) -> set[tuple[Any, ...]]:
    return {
        (str(record.scope), record.subject, record.predicate, record.value, strength(record), record.status)
        for record in memory.all("active", "contested")
    }


HOURS = st.integers(0, 30)
SAYINGS = st.builds(
    said,
    st.sampled_from(VALUES),
    HOURS,
    st.sampled_from(TRUSTED),
    about=st.sampled_from(ABOUT),
    scope=st.sampled_from(SCOPES),
)


def hour(record: Record) -> Any:
    return record.provenance.observed_at


def of_one_property(drawn: tuple[Any, list[Record]]) -> list[Record]:
    """The sayings, all about the same: what is rare when each draws its own."""
    (subject, predicate, content_type), sayings = drawn
    return [
        said(
            each.value,
            (hour(each) - AT) // timedelta(hours=1),
            each.authority,
            about=(subject, predicate, content_type),
        )
        for each in sayings
    ]


SEVERAL = st.lists(SAYINGS, min_size=2, max_size=5, unique_by=hour)
RIVALS = st.tuples(st.sampled_from(ABOUT), st.lists(SAYINGS, min_size=3, max_size=4, unique_by=hour)).map(
    of_one_property
)


@settings(deadline=None)
@given(RIVALS | SEVERAL)
def test_the_order_of_arrival_does_not_change_what_stands_when_authority_and_time_decide(said: list[Record]) -> None:
    outcomes = set()
    for order in permutations(said):
        memory = PlainMemory()
        for record in order:
            memory.take(draft(record))
        outcomes.add(frozenset(what_stands(memory)))
    assert len(outcomes) == 1


@settings(deadline=None)
@given(RIVALS | SEVERAL)
def test_what_stands_is_the_best_sourced_and_of_those_the_newest(said: list[Record]) -> None:
    memory = PlainMemory()
    for record in said:
        memory.take(draft(record))
    best: dict[Any, Record] = {}
    for record in said:
        key = (str(record.scope), record.subject, record.predicate)
        best[key] = max(record, best.get(key, record), key=lambda each: (strength(each), hour(each)))
    assert {(row[:3], row[3]) for row in what_stands(memory)} == {(key, record.value) for key, record in best.items()}


@given(st.lists(SAYINGS, min_size=1, max_size=5), SAYINGS)
def test_what_is_said_a_second_time_changes_nothing(before: list[Record], record: Record) -> None:
    memory = PlainMemory()
    for each in before:
        memory.take(draft(each))
    memory.take(draft(record))
    kept = dict(memory.records)
    change = memory.take(draft(record.model_copy(update={"id": "mem_again"})))
    assert change.action == "refuse" or (change.record is not None and change.record.status == "pending")
    assert {id: record for id, record in memory.records.items() if id != "mem_again"} == kept


ANYBODY = st.builds(
    said,
    st.sampled_from((*VALUES, None)),
    HOURS,
    st.sampled_from(list(Authority)[:-1]),
    about=st.sampled_from(ABOUT),
    scope=st.sampled_from(SCOPES),
    actor=st.sampled_from(("ana", "ben")),
    status=st.sampled_from(("active", "pending")),
)
FLAGS = st.fixed_dictionaries({"corrects": st.booleans(), "retracts": st.booleans()})
APPROVED = st.lists(
    st.builds(said, st.sampled_from(VALUES), HOURS, st.just(Authority.EXTERNAL), about=st.sampled_from(ABOUT)),
    max_size=2,
)
"""What a page said and a person approved."""
ANYTHING = st.lists(st.tuples(ANYBODY, FLAGS), min_size=1, max_size=8, unique_by=lambda each: each[0].id)


def drafts(sayings: list[tuple[Record, dict[str, bool]]]) -> list[Draft]:
    """As validation leaves them: what comes from no trusted source waits."""
    return [
        draft(
            record if record.authority >= Authority.TOOL else record.model_copy(update={"status": "pending"}),
            **flags,
        )
        for record, flags in sayings
    ]


@settings(deadline=None)
@given(ANYTHING)
def test_no_draft_touches_a_record_of_another_property_unless_it_points_to_it(sayings: Any) -> None:
    memory = PlainMemory()
    for each in drafts(sayings):
        before = dict(memory.records)
        memory.take(each)
        touched = [id for id, record in before.items() if memory.records[id] != record]
        assert all(is_same_property(each.record, before[id]) for id in touched)


@settings(deadline=None)
@given(ANYTHING, st.data())
def test_what_an_extractor_points_to_shares_the_predicate_or_a_word(sayings: Any, data: st.DataObject) -> None:
    memory = PlainMemory()
    for each in drafts(sayings):
        before = dict(memory.records)
        touches = tuple(data.draw(st.lists(st.sampled_from(sorted(before)), max_size=2))) if before else ()
        memory.take(each._replace(touches=touches))
        for id, record in before.items():
            if memory.records[id] != record:
                subjects = (each.record.subject or "", record.subject or "")
                assert each.record.predicate == record.predicate or speaks_of(
                    each.record.statement, record.statement, beside=subjects
                )


@settings(deadline=None)
@given(APPROVED, ANYTHING)
def test_a_weaker_source_never_ends_or_contests_what_a_stronger_one_said(approved: list[Record], sayings: Any) -> None:
    memory = PlainMemory(approved)
    for each in drafts(sayings):
        before = dict(memory.records)
        memory.take(each)
        for id, record in before.items():
            if memory.records[id].status != record.status:
                assert strength(each.record) >= strength(record)
                assert each.record.status != "pending"


@settings(deadline=None)
@given(ANYTHING)
def test_authority_never_rises(sayings: Any) -> None:
    memory = PlainMemory()
    given_at_first: dict[str, Authority] = {}
    heard: dict[Any, list[int]] = {}
    for each in drafts(sayings):
        record = each.record
        heard.setdefault((record.subject, record.predicate, record.value), []).append(record.authority.rank)
        memory.take(each)
        for id, known in memory.records.items():
            assert known.authority == given_at_first.setdefault(id, known.authority)
            assert known.authority.rank <= max(heard[(known.subject, known.predicate, known.value)])


@settings(deadline=None)
@given(ANYTHING)
def test_what_must_wait_never_stands(sayings: Any) -> None:
    memory = PlainMemory()
    for each in drafts(sayings):
        memory.take(each)
    assert all(record.authority >= Authority.TOOL for record in memory.all("active", "contested"))


@given(SAYINGS, SAYINGS)
def test_sameness_is_mutual(one: Record, other: Record) -> None:
    assert is_same_fact(one, other) == is_same_fact(other, one)
    assert is_same_fact(one, one)


@given(st.text(max_size=200))
def test_a_fingerprint_never_fails_and_does_not_depend_on_case(text: str) -> None:
    assert fingerprint(text.casefold()) == fingerprint(text)


@given(st.text(alphabet="0123456789零一二两十百千万亿.,- k", max_size=40))
def test_reading_numerals_never_fails(text: str) -> None:
    assert "".join(fingerprint(text)) or not text.strip()


@given(st.integers(0, 10**12))
def test_a_number_reads_the_same_with_and_without_commas(number: int) -> None:
    assert fingerprint(f"costs {number:,} euros") == fingerprint(f"costs {number} euros")


def numeral(number: int) -> str:
    """The Chinese numeral of a number below a hundred million."""
    if number >= 10_000:
        rest = number % 10_000
        return numeral(number // 10_000) + "万" + (("" if rest >= 1000 else "零") + numeral(rest) if rest else "")
    written, skipped = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // unit % 10
        if digit:
            written += ("零" if skipped and written else "") + "零一二三四五六七八九"[digit] + name
            skipped = False
        else:
            skipped = True
    return written or "零"


@given(st.integers(0, 99_999_999))
def test_a_chinese_numeral_is_the_number_that_it_writes(number: int) -> None:
    assert fingerprint(f"预算{numeral(number)}元") == fingerprint(f"预算{number}元")
