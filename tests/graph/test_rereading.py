"""A thread is learnt from again: the same is not learnt twice, and nothing that has ended comes back."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from support.records import NOON

from everthread import Identity
from everthread.errors import AccessDenied, ModelReplyError
from everthread.nodes.extract import Candidate, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.extract.later import in_window
from everthread.nodes.extract.pipeline import commit, propose, resolve_all, validate_all
from everthread.nodes.extract.rereading import Reading, read_again
from everthread.nodes.extract.sequence import windows
from everthread.nodes.node import Ask, drive
from everthread.stores import MemoryStore, open_store
from everthread.stores.record import Evidence, Record, Selection

ALL: Any = ("pending", "active", "contested", "superseded", "expired", "archived", "rejected")


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as store:
        yield store


def conversation(*said: str, thread_id: str = "t1", apart: timedelta = timedelta(minutes=1)) -> list[Evidence]:
    """What the user said, with an answer to each."""
    lines: list[Evidence] = []
    for text in said:
        for role, words in (("user", text), ("assistant", "OK.")):
            line = {"role": role, "source": role, "text": words, "at": NOON + apart * len(lines)}
            lines.append(Evidence.model_validate({"thread_id": thread_id, "message_id": f"m{len(lines) + 1}", **line}))
    return lines


def read(store: MemoryStore, identity: Identity, thread_id: str = "t1", **options: Any) -> Reading:
    reading = drive(read_again(identity, store, thread_id, options.pop("extractor", RuleExtractor()), **options))
    assert isinstance(reading, Reading)
    return reading


def everything(store: MemoryStore, identity: Identity) -> list[list[Record]]:
    """Every revision of every record."""
    return [store.history(identity, record.id) for record in store.records(identity, statuses=ALL)]


def known(store: MemoryStore, identity: Identity) -> list[str]:
    return sorted(record.statement for record in store.records(identity))


LIFE = (
    "I work at Acme.",
    "I prefer short reports.",
    "I live in Oslo. Actually, I live in Bergen.",
    "I no longer work at Acme.",
    "Remember that my password is hunter2.",
    "I prefer tea over coffee.",
    "I live in Trondheim.",
    "I work at Acme.",
)
NOW = ["The user lives in Trondheim.", "The user prefers short reports.", "The user prefers tea over coffee."]


@pytest.mark.parametrize("apart", [timedelta(minutes=1), timedelta(0)], ids=["in time", "all at once"])
@pytest.mark.parametrize("window_tokens", [1, 20, 6_000])
def test_a_thread_that_was_only_read_in_is_learnt_from_once(
    store: MemoryStore, ana: Identity, window_tokens: int, apart: timedelta
) -> None:
    store.transcripts.append(ana, conversation(*LIFE, apart=apart))
    first = read(store, ana, window_tokens=window_tokens)
    assert (first.messages, first.failed, first.learnt) == (16, (), 7)
    assert known(store, ana) == sorted([*NOW, "The user works at Acme."])
    before = everything(store, ana)
    again = read(store, ana, window_tokens=window_tokens, again=True)
    assert (again.learnt, again.confirmed, again.ended, again.waiting) == (0, 0, 0, 0)
    assert everything(store, ana) == before
    assert read(store, ana, window_tokens=window_tokens, again=True) == again


def test_other_parts_of_the_same_thread_teach_nothing_new_either(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, conversation(*LIFE))
    read(store, ana, window_tokens=1)
    before = everything(store, ana)
    for tokens in (6_000, 30, 1):
        read(store, ana, window_tokens=tokens, again=True)
    assert everything(store, ana) == before


def test_without_again_what_was_read_is_passed_over(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, conversation("I prefer short reports.", "What time is it?"))
    assert read(store, ana, window_tokens=1).windows == 2
    assert read(store, ana, window_tokens=1) == Reading(thread_id="t1", messages=4, passed_over=2)


def test_what_was_erased_stays_erased(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, conversation("I prefer short reports.", "I live in Oslo."))
    read(store, ana)
    [home] = [record for record in store.records(ana) if "Oslo" in record.statement]
    store.erase(ana, Selection(record_ids=(home.id,)), reason="asked")
    readings = [read(store, ana, again=True) for _ in range(3)]
    assert [reading.refused for reading in readings] == [{"already-known": 1, "tombstone": 1}] * 3
    assert [reading.learnt for reading in readings] == [0, 0, 0]
    assert known(store, ana) == ["The user prefers short reports."]


@pytest.mark.parametrize("window_tokens", [1, 6_000])
def test_what_was_not_to_be_remembered_is_not(store: MemoryStore, ana: Identity, window_tokens: int) -> None:
    store.transcripts.append(ana, conversation("I live in Oslo.", "Don't remember that.", "I prefer short reports."))
    read(store, ana, window_tokens=window_tokens)
    assert known(store, ana) == ["The user prefers short reports."]
    assert store.records(ana, statuses=("rejected", "archived", "pending")) == []


def test_what_the_thread_says_later_is_not_undone_by_what_it_said_before(store: MemoryStore, ana: Identity) -> None:
    said = conversation("I live in Oslo.", "I live in Bergen.", apart=timedelta(0))
    store.transcripts.append(ana, said)
    work = in_window(ana, "t1", said, 2, 4, before="m1")
    assert work is not None
    commit(resolve_all(validate_all(drive(propose(work, RuleExtractor(), store))), store), store)
    before = everything(store, ana)
    assert read(store, ana, window_tokens=1).refused == {"older": 1, "already-known": 1}
    assert everything(store, ana) == before


def test_a_dry_run_writes_nothing(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, conversation(*LIFE, "Remind me tomorrow at 9 to call Bob."))
    tried = read(store, ana, dry_run=True)
    assert tried.learnt > 0
    assert (everything(store, ana), store.tasks.of(ana)) == ([], [])
    read(store, ana)
    assert known(store, ana) == sorted([*NOW, "The user works at Acme."])


def test_a_reminder_of_long_ago_is_over_and_one_to_come_is_set_once(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, conversation("Remind me on 2020-01-05 at 9:00 to call Bob."))
    long = conversation("Remind me on 2099-01-05 at 9:00 to call Bob.", "Thanks.", thread_id="t2")
    store.transcripts.append(ana, long)
    for tokens in (1, 6_000, 1):
        read(store, ana, again=True, window_tokens=tokens)
        read(store, ana, "t2", again=True, window_tokens=tokens)
    assert [task.due_at.year for task in store.tasks.of(ana) if task.due_at] == [2099]


def test_a_thread_whose_memory_is_off_and_a_user_who_does_not_consent_teach_nothing(
    store: MemoryStore, ana: Identity
) -> None:
    store.transcripts.append(ana, conversation("I prefer short reports."))
    store.transcripts.set_memory(ana, "t1", "read")
    skipped = Reading(thread_id="t1", messages=2, skipped="memory is not on for this thread or user")
    assert read(store, ana) == skipped
    store.transcripts.set_memory(ana, "t1", "on")
    store.set_consent(ana, "read")
    assert read(store, ana) == skipped
    assert known(store, ana) == []


def test_another_users_thread_is_not_read(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.append(ana, conversation("I prefer short reports."))
    with pytest.raises(AccessDenied):
        read(store, ben)


class SometimesUnwell:
    """The rules, behind a model that has no answer to one of the messages."""

    id = "unwell/1"
    calls_model = True

    def __init__(self, unreadable: str) -> None:
        self.unreadable = unreadable

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        if any(self.unreadable in line.text for line in window.lines):
            raise ModelReplyError("prose in 2 replies")
        return (yield from RuleExtractor().propose(window))


def test_a_part_that_fails_costs_the_others_nothing_and_is_read_the_next_time(
    store: MemoryStore, ana: Identity
) -> None:
    said = ("I live in Oslo.", "I prefer short reports.", "I prefer tea over coffee.")
    store.transcripts.append(ana, conversation(*said))
    extractor = SometimesUnwell("short")
    first = read(store, ana, window_tokens=1, extractor=extractor)
    assert (first.learnt, first.failed) == (2, ("prose in 2 replies",))
    extractor.unreadable = "nothing"
    second = read(store, ana, window_tokens=1, extractor=extractor)
    assert (second.windows, second.passed_over, second.learnt) == (1, 2, 1)


def test_a_year_old_limit_of_a_task_does_not_hold_today(store: MemoryStore, ana: Identity) -> None:
    lines = [
        line.model_copy(update={"at": line.at - timedelta(days=365)}) for line in conversation("这次报告写短一点。")
    ]
    store.transcripts.append(ana, lines)
    for _ in range(3):
        read(store, ana, again=True)
    found = store.records(ana, thread_id="t1", statuses=ALL)
    assert [record.expires_at and record.expires_at < NOON for record in found] == [True]
    assert store.recall(ana, "报告", thread_id="t1").hits == ()


class TestWindows:
    """Where a thread is cut."""

    def test_they_cover_the_thread_without_gaps_and_begin_with_turns(self) -> None:
        said = conversation(*["word " * 30] * 9)
        cut = list(windows(said, 100))
        assert [first for first, _ in cut] == [0, *[end for _, end in cut[:-1]]]
        assert cut[-1][1] == len(said)
        assert {said[first].source for first, _ in cut} == {"user"}
        assert len(cut) > 1

    def test_a_long_turn_stands_alone(self) -> None:
        said = conversation("short", "word " * 500, "short")
        assert list(windows(said, 50)) == [(0, 2), (2, 4), (4, 6)]

    def test_one_side_alone_is_cut_between_messages(self) -> None:
        said = [line for line in conversation(*["word " * 30] * 9) if line.source == "user"]
        assert len(list(windows(said, 100))) > 2

    def test_an_empty_thread_has_none(self) -> None:
        assert list(windows([])) == []
