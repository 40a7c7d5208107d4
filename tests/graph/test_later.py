"""What is learnt later, by a job: the same as at once, whatever was said and decided in between."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from support.models import FakeModel

from everthread import Identity
from everthread.errors import ModelReplyError, UsageError
from everthread.graphs import create_memory_agent, create_remember_graph
from everthread.nodes import Consolidate, Extract, Flush, job_handlers
from everthread.nodes.extract import Candidate, ModelExtractor, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.extract.later import is_late, put_off
from everthread.nodes.extract.pipeline import begin
from everthread.nodes.node import Ask, runtime_for
from everthread.stores import MemoryStore, Worker, open_checkpointer, open_store

ALL: Any = ("pending", "active", "contested", "superseded", "expired", "archived", "rejected")


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as store:
        yield store


class SlowRules(RuleExtractor):
    """The rules, as if they asked a model. Remembers how many messages each window had."""

    id = "slow/1"
    calls_model = True

    def __init__(self) -> None:
        self.windows: list[int] = []

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        self.windows.append(len(window.lines))
        return (yield from super().propose(window))


class Thread:
    """A thread whose turns are learnt from by jobs."""

    def __init__(self, store: MemoryStore, identity: Identity, extractor: SlowRules, thread_id: str = "t1") -> None:
        self.state: dict[str, Any] = {"messages": []}
        self.events: list[dict[str, Any]] = []
        self.extract = Extract(extractor)
        self.runtime = runtime_for(identity, store, thread_id, stream_writer=self.events.append)

    def turn(self, said: str) -> dict[str, Any]:
        number = len(self.state["messages"])
        self.state["messages"] += [HumanMessage(said, id=f"m{number + 1}"), AIMessage("OK.", id=f"m{number + 2}")]
        update = self.extract(self.state, self.runtime)  # type: ignore[arg-type]
        assert isinstance(update, dict)
        self.state |= update
        return update


def work(store: MemoryStore, extractor: SlowRules) -> None:
    assert Worker(store, job_handlers(store, extractor)).drain()


def known(store: MemoryStore, identity: Identity, **options: Any) -> list[tuple[str, str]]:
    return sorted((record.statement, record.status) for record in store.records(identity, **options))


def test_a_turn_leaves_a_job_and_counts_as_seen(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    assert thread.turn("I prefer short reports.") == {"flushed_to": "m2", "receipts": []}
    [job] = store.jobs.of(ana)
    assert thread.events == [
        {
            "node": "extract",
            "event": "put-off",
            "reason": "a job learns from it",
            "job": job.id,
            "kind": "extract:slow/1",
        }
    ]
    assert (job.key, job.thread_id, extractor.windows, known(store, ana)) == ("extract:t1:m2", "t1", [], [])
    work(store, extractor)
    assert known(store, ana) == [("The user prefers short reports.", "active")]
    receipt = store.receipt_of(ana, "extract:t1:m2")
    assert receipt is not None
    assert [decision.outcome for decision in receipt.decisions] == ["created"]


def test_each_window_is_read_once_however_many_wait(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    for said in ("I live in Oslo.", "I prefer short reports.", "Actually, I live in Bergen."):
        thread.turn(said)
    work(store, extractor)
    work(store, extractor)
    assert extractor.windows == [2, 2, 2]
    assert known(store, ana, statuses=ALL) == [
        ("The user lives in Bergen.", "active"),
        ("The user lives in Oslo.", "superseded"),
        ("The user prefers short reports.", "active"),
    ]


def test_a_long_window_is_read_in_parts_and_each_part_once(store: MemoryStore, ana: Identity) -> None:
    class GivesUp(SlowRules):
        """Gives nothing usable for the third part, at first."""

        def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
            found = yield from super().propose(window)
            if len(self.windows) == 3:
                raise ModelReplyError("prose in 2 replies")
            return found

    extractor = GivesUp()
    said: list[AnyMessage] = []
    for number in range(200):
        long = f"I live in Oslo{number}. " + "And the weather was fine in the garden. " * 10
        said += [HumanMessage(long, id=f"u{number}"), AIMessage("OK.", id=f"a{number}")]
    work_of_all = begin(ana, store, "t1", said)
    assert work_of_all is not None
    put_off(work_of_all, store, extractor)
    work(store, extractor)
    [job] = store.jobs.of(ana, status="waiting")
    assert job.error == "ModelReplyError: prose in 2 replies"
    store.jobs.retry(ana, job.id)
    work(store, extractor)
    first, second, third, again, *others = extractor.windows
    assert again == third, "what was learnt from before it failed is not read again"
    assert first + second + again + sum(others) == 400
    assert known(store, ana) == [("The user lives in Oslo199.", "active")]
    assert [job.status for job in store.jobs.of(ana)] == ["done"]


def in_any_order(store: MemoryStore, identity: Identity, extractor: SlowRules, order: list[int]) -> None:
    """Do the waiting jobs in another order than they were left in."""
    waiting = [job.id for job in store.jobs.of(identity)]
    handlers = job_handlers(store, extractor)
    for job_id in waiting:
        store.jobs.cancel(identity, job_id)
    for number in order:
        store.jobs.retry(identity, waiting[number])
        assert store.jobs.drain(handlers) == 1


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_the_order_of_the_jobs_does_not_change_what_is_known(
    store: MemoryStore, ana: Identity, order: list[int]
) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    for said in ("I live in Oslo.", "Actually, I live in Bergen.", "I live in Trondheim."):
        thread.turn(said)
    in_any_order(store, ana, extractor, order)
    assert known(store, ana) == [("The user lives in Trondheim.", "active")]


def test_a_late_retraction_does_not_end_what_was_said_after_it(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    for said in ("I no longer work at Acme.", "I work at Acme."):
        thread.turn(said)
    in_any_order(store, ana, extractor, [1, 0])
    assert known(store, ana, statuses=ALL) == [("The user works at Acme.", "active")]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_do_not_remember_that_reaches_a_window_that_waits(store: MemoryStore, ana: Identity, order: list[int]) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    for said in ("I live in Oslo.", "Don't remember that."):
        thread.turn(said)
    in_any_order(store, ana, extractor, order)
    assert known(store, ana) == []


def test_what_was_chosen_since_holds(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    choices: list[Callable[[], object]] = [
        lambda: store.transcripts.set_memory(ana, "t0", "read"),
        lambda: store.set_consent(ana, "read"),
        lambda: store.transcripts.erase(ana, "t2", reason="asked"),
    ]
    for number, choose in enumerate(choices):
        store.set_consent(ana, "on")
        Thread(store, ana, extractor, f"t{number}").turn(f"I prefer short reports, number {number}.")
        choose()
        work(store, extractor)
    assert (extractor.windows, known(store, ana, statuses=ALL)) == ([], [])
    assert [job.status for job in store.jobs.of(ana)] == ["done"] * 3


def test_a_job_in_a_thread_whose_memory_was_off_before_reads_its_own_window_alone(
    store: MemoryStore, ana: Identity
) -> None:
    extractor = SlowRules()
    thread = Thread(store, ana, extractor)
    store.transcripts.set_memory(ana, "t1", "off")
    thread.turn("I live in Oslo.")
    store.transcripts.set_memory(ana, "t1", "on")
    thread.turn("I prefer short reports.")
    work(store, extractor)
    assert known(store, ana) == [("The user prefers short reports.", "active")]


def test_what_the_memory_tools_saved_in_the_window_is_known_to_its_job(store: MemoryStore, ana: Identity) -> None:
    said: list[AnyMessage] = [HumanMessage("I prefer tea.", id="m1"), AIMessage("OK.", id="m2")]
    work = begin(ana, store, "t1", said)
    assert work is not None
    put_off(work._replace(saves=("rcp_1",)), store, SlowRules())
    job = store.jobs.claim()
    assert job is not None
    assert job.payload == {
        "key": "extract:t1:m2",
        "identity": {"tenant": "acme", "user": "ana", "project": "billing"},
        "thread_id": "t1",
        "messages": ["m1", "m2"],
        "before": None,
        "saves": ["rcp_1"],
    }


def test_a_turn_never_does_the_jobs_of_an_extractor_that_calls_a_model(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    Thread(store, ana, extractor).turn("I prefer short reports.")
    runtime = runtime_for(ana, store, "t2")
    for consolidate in (Consolidate(extractor), Consolidate()):
        assert not consolidate.due({"messages": []}, runtime)
        assert consolidate({"messages": []}, runtime) == {}
    assert (extractor.windows, known(store, ana)) == ([], [])
    Consolidate(extractor, when="inline")({"messages": []}, runtime)
    assert known(store, ana) == [("The user prefers short reports.", "active")]


def test_before_compaction_the_transcript_and_a_job_are_enough(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    messages: list[AnyMessage] = [HumanMessage("I prefer short reports.", id="u0"), AIMessage("OK.", id="a0")]
    messages += [HumanMessage("Thanks.", id="u1"), AIMessage("You are welcome.", id="a1")]
    flush = Flush(extractor, keep_tokens=2, counter=lambda counted: len(counted))
    update = flush({"messages": messages}, runtime_for(ana, store, "t1"))
    assert update == {"flushed_to": "a0"}
    assert [line.message_id for line in store.transcripts.read(ana, "t1")] == ["u0", "a0"]
    work(store, extractor)
    assert known(store, ana) == [("The user prefers short reports.", "active")]


def test_the_remember_graph_leaves_a_job_and_ends(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    with open_checkpointer("sqlite::memory:") as saver:
        graph = create_remember_graph(extractor).compile(checkpointer=saver, store=store)
        said = [HumanMessage("I prefer short reports.", id="m1"), AIMessage("OK.", id="m2")]
        config: Any = {"configurable": {"thread_id": "t1"}}
        assert graph.invoke({"messages": said}, config, context=ana) == {"flushed_to": "m2", "receipts": []}
    work(store, extractor)
    assert known(store, ana) == [("The user prefers short reports.", "active")]


async def test_an_asynchronous_turn_leaves_the_same_job(store: MemoryStore, ana: Identity) -> None:
    extractor = SlowRules()
    with open_checkpointer("sqlite::memory:") as saver:
        agent = create_memory_agent(FakeModel(), extractor=extractor).compile(checkpointer=saver, store=store)
        config: Any = {"configurable": {"thread_id": "t1"}}
        await agent.ainvoke({"messages": [("user", "I prefer short reports.")]}, config, context=ana)
    assert extractor.windows == []
    work(store, extractor)
    assert known(store, ana) == [("The user prefers short reports.", "active")]


def test_when_is_chosen_or_follows_from_whether_a_model_is_asked() -> None:
    model = ModelExtractor(FakeModel())
    assert [is_late(each, when) for each in (RuleExtractor(), model) for when in (None, "inline", "job")] == [
        False, False, True, True, False, True,
    ]  # fmt: skip


def test_an_extractor_that_does_not_say_whether_it_calls_a_model_is_refused() -> None:
    class Silent:
        id = "silent/1"

        def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
            raise ModelReplyError("never asked")

    with pytest.raises(UsageError, match="Silent does not say whether it calls a model"):
        Extract(Silent())  # type: ignore[arg-type]  # that is what is wrong with it
