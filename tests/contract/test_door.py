"""What no backend can hold or count with is refused at the door, in the same words by each, and nothing is written."""

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.records import create, learnt, said_by, write

from everthread import Identity
from everthread.errors import UsageError
from everthread.stores import MemoryStore
from everthread.stores.door import ANY_TEXT
from everthread.stores.record import Relation

PARTS = ("artifacts", "inbox", "jobs", "tasks", "transcripts")
NUL, HALF = "a\0b", "a\ud800b"


def methods(store: MemoryStore) -> Iterator[tuple[str, Callable[..., Any], dict[str, str]]]:
    """Every public method of a store and its parts that takes anything, with what its arguments are said to be."""
    for part, owner in (("store", store), *((each, getattr(store, each)) for each in PARTS)):
        for name, method in inspect.getmembers(type(owner), inspect.isfunction):
            if name.startswith("_") or method.__module__.split(".")[1:3] != ["stores", "tables"]:
                continue
            told = {each: str(parameter.annotation) for each, parameter in inspect.signature(method).parameters.items()}
            yield f"{part}.{name}", getattr(owner, name), {each: told[each] for each in list(told)[1:]}


def refused(method: Callable[..., Any], arguments: dict[str, str], name: str, value: object) -> str:
    """What is said when this argument is given so, and every other is nothing at all."""
    with pytest.raises(UsageError) as error:
        method(**{each: value if each == name else None for each in arguments})
    return str(error.value)


@pytest.mark.parametrize(("bad", "why"), [(NUL, "a NUL character"), (HALF, "a lone surrogate")])
def test_every_name_id_and_key_is_sound_text(store: MemoryStore, bad: str, why: str) -> None:
    asked = 0
    for _, method, arguments in methods(store):
        for name, kind in arguments.items():
            if name in ANY_TEXT or not re.search(r"\bstr\b|Status|Memory", kind) or "Mapping" in kind:
                continue
            listed = "Sequence" in kind or "Collection" in kind
            told = refused(method, arguments, name, [bad] if listed else bad)
            assert told.startswith(f"{name}[0]: {bad!r} has {why}" if listed else f"{name}: {bad!r} has {why}")
            asked += 1
    assert asked > 50


def test_every_number_is_one_that_can_be_counted(store: MemoryStore) -> None:
    for _, method, arguments in methods(store):
        for name, kind in arguments.items():
            if kind.startswith("int"):
                for number in (2**63, 10**20, -(10**20)):
                    assert name in refused(method, arguments, name, number)
            if name == "limit":
                assert refused(method, arguments, name, -1) == "limit: must not be negative"
            if kind == "float":
                assert name in refused(method, arguments, name, float("inf"))
                assert name in refused(method, arguments, name, float("nan"))
            if kind == "timedelta":
                assert name in refused(method, arguments, name, timedelta.max)


def test_every_time_has_a_zone(store: MemoryStore) -> None:
    for _, method, arguments in methods(store):
        for name, kind in arguments.items():
            if kind.startswith("datetime"):
                assert refused(method, arguments, name, datetime(2026, 1, 1)).startswith(f"{name} has no time zone")


def test_the_last_moment_of_the_calendar_is_a_time_like_others(store: MemoryStore, ana: Identity) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    store.jobs.enqueue(ana, "note", {})
    job = store.jobs.claim(["note"], now=last)
    assert job is not None
    store.jobs.fail(job, "broken", now=last)
    assert [each.status for each in store.jobs.of(ana, now=last)] == ["waiting"]


@pytest.mark.parametrize("bad", [NUL, HALF])
@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("record.subject", lambda bad: {"subject": bad}),
        ("record.value", lambda bad: {"subject": "s", "predicate": "p", "value": bad}),
        ("record.entities[0]", lambda bad: {"entities": (bad,)}),
        ("record.tags[1]", lambda bad: {"tags": ("a", bad)}),
        ("record.id", lambda bad: {"id": bad}),
        ("record.provenance.thread_id", lambda bad: {"provenance": said_by("ana", bad)}),
        ("record.provenance.message_ids[0]", lambda bad: {"provenance": said_by("ana", "t1", bad)}),
        ("record.relations[0].target", lambda bad: {"relations": (Relation(kind="confirms", target=bad, reason="x"),)}),
    ],
)
def test_a_change_is_refused_by_the_name_of_the_field_that_cannot_be_kept(
    store: MemoryStore, ana: Identity, field: str, given: Callable[[str], dict[str, Any]], bad: str
) -> None:
    fine, change = (create(learnt("Ana likes tea", **fields)) for fields in ({}, given(bad)))
    with pytest.raises(UsageError, match=re.escape(f"changes[1].{field}: {bad!r} has a")):
        store.commit(ana, [fine, change], key="k")
    assert store.records(ana) == []
    assert store.receipt_of(ana, "k") is None


def test_words_that_look_like_an_escaped_nul_are_words(store: MemoryStore, ana: Identity) -> None:
    write(store, ana, create(learnt(r"The escape is \u0000 in JSON")))
    assert [each.statement for each in store.records(ana)] == [r"The escape is \u0000 in JSON"]
