"""The story that `everthread demo` tells: offline, in a temporary home, checking itself.

Every turn that "another process" takes is really taken by one. Each step prints what it shows and raises `NotShown`
when the product did something else.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from everthread.stores.identity import Identity

if TYPE_CHECKING:
    from everthread.stores import MemoryStore

__all__ = ["NotShown", "run"]

ANA = Identity(tenant="demo", user="ana", project="billing")
BEN = Identity(tenant="demo", user="ben", project="garden")

PREFERENCE = "I prefer short reports with a table at the end."
DECISION = "We decided to use PostgreSQL for the billing database because we need row-level security."
STANDING = "From now on, write dates as 2026-11-30."
CORRECTION = "Actually, we decided to use CockroachDB for the billing database because we need several regions."
CHINESE = "请记住：我的同事叫小林，她负责支付模块。"


Step = Callable[[Path, Console], None]
"""A step of the story: what it shows is its docstring."""


class NotShown(Exception):
    """A step of the demo did not happen as it should."""


def run(console: Console, steps: Sequence[Step] | None = None) -> None:
    """Tell the whole story on `console`, or these steps of it; raises NotShown at the first that fails."""
    steps = STEPS if steps is None else steps
    with tempfile.TemporaryDirectory(prefix="everthread-demo-") as home:
        for number, step in enumerate(steps, start=1):
            console.print(f"\n[bold]{number}. {step.__doc__}[/bold]")
            step(Path(home), console)
    console.print(f"\n[bold green]All {len(steps)} steps were shown and checked.[/bold green]")


def _folding(name: str) -> Column:
    """A column for what is said: Chinese has no blanks to break at, and would be cut off."""
    return Column(name, overflow="fold")


def states_a_preference(home: Path, console: Console) -> None:
    """Thread "planning": ana states a preference, a decision and, in Chinese, a fact."""
    _talk(console, "ana", _elsewhere(home, ANA, "planning", PREFERENCE, DECISION, CHINESE))
    with _store(home) as store:
        records = store.records(ANA)
        table = Table(_folding("kept"), "type", "owner", "authority", "written because")
        for record in reversed(records):
            table.add_row(
                record.statement, record.content_type, str(record.scope), record.authority, record.write_reason
            )
        console.print(table)
        _check(len(records) == 3, f"three memories should be kept, found {len(records)}")


def survives_a_kill(home: Path, console: Console) -> None:
    """The process is killed hard in the middle of a turn and resumes from its checkpoint."""
    console.print(f"ana: {STANDING}")
    _killed_while_answering(home, ANA, "planning", STANDING)
    console.print("[red]kill -9 while the model was answering[/red]")
    (state,) = _elsewhere(home, ANA, "planning", None)
    console.print(f"resumed in another process: {state['reply'].splitlines()[0]}")
    _check(state["said"].count(STANDING) == 1, "the message that was being answered should be there once")
    _check(len(state["said"]) == 4, f"ana said four things, the thread has {len(state['said'])}")
    with _store(home) as store:
        _check(
            any("2026-11-30" in r.statement for r in store.records(ANA)), "the standing wish should have been learnt"
        )


def recalls_in_another_thread(home: Path, console: Console) -> None:
    """Thread "review", another process: what was said in "planning" is used, with source and date."""
    with _store(home) as store:
        day = f"{store.records(ANA)[0].provenance.observed_at:%Y-%m-%d}"
    wanted = {
        "How do I like my reports?": "short reports",
        "Which database did we decide on for billing?": "PostgreSQL",
        "谁负责支付模块？": "小林",
    }
    states = _elsewhere(home, ANA, "review", *wanted)
    _talk(console, "ana", states)
    for state, word in zip(states, wanted.values(), strict=True):
        _check(word in state["reply"], f"the answer should say {word!r}")
        _check(day in state["reply"] and "planning" in state["reply"], "the answer should cite thread and date")


def corrects_with_history(home: Path, console: Console) -> None:
    """A correction supersedes, and the history stays."""
    corrected, state = _elsewhere(home, ANA, "review", CORRECTION, "Which database did we decide on for billing?")
    _talk(console, "ana", [corrected])
    console.print("The turn answered from what it recalled, and learnt when it had answered. Now memory has:")
    with _store(home) as store:
        new = _one(store, "CockroachDB")
        (relation,) = [each for each in new.relations if each.kind == "supersedes"]
        history = store.history(ANA, relation.target)
        table = Table("memory", "revision", "status", _folding("statement"), "recorded")
        for record in (*history, new):
            time = f"{record.recorded_at:%H:%M:%S}"
            table.add_row(f"{record.id[:8]}…", str(record.revision), record.status, record.statement, time)
        console.print(table)
        _check(history[-1].status == "superseded", "the old decision should be superseded")
    _talk(console, "ana", [state])
    _check("CockroachDB" in state["reply"] and "PostgreSQL" not in state["reply"], "only the new decision is recalled")


def shows_nothing_to_others(home: Path, console: Console) -> None:
    """Another user sees nothing."""
    (state,) = _elsewhere(home, BEN, "review", "Which database did we decide on for billing?")
    _talk(console, "ben", [state])
    _check(state["recalled"] == 0, "ben must recall nothing")
    with _store(home) as store:
        _check(
            store.records(BEN) == [] and store.transcripts.threads(BEN)[0].messages == 2, "ben has his own thread only"
        )


def compacts_a_long_thread(home: Path, console: Console) -> None:
    """A long thread is flushed and compacted while its task runs, and no message is lost."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from pydantic import Field

    from everthread.graphs import create_memory_agent
    from everthread.nodes.reason import OfflineModel
    from everthread.nodes.state import MemoryState, visible

    @tool
    def load_test(day: int) -> str:
        """Run the load test of a day."""
        return f"Day {day}: {day * 100} users, no errors. " + "Every graph was looked at twice. " * 40

    class Tester(OfflineModel):
        days: list[int] = Field(default_factory=lambda: list(range(1, 13)))

        def _answer(self, messages: Any) -> AIMessage:
            if not self.days:
                return AIMessage(content="All twelve days were tested without errors.")
            day = self.days.pop(0)
            call = {"name": "load_test", "args": {"day": day}, "id": f"call_{day}", "type": "tool_call"}
            return AIMessage(content="", tool_calls=[call])

    config = _config(ANA, "marathon")
    with _store(home) as store, _threads(home) as saver:
        agent = create_memory_agent(Tester(), [load_test], max_tokens=3_000, keep_tokens=800).compile(
            checkpointer=saver, store=store
        )
        task = "Run the load test of each day. We decided to test twelve days because the sale lasts that long."
        seen = [
            event
            for event in agent.stream(_input(task), config, context=ANA, stream_mode="custom")
            if event["node"] in ("flush", "compact") and event["event"] in ("flushed", "compacted")
        ]
        state = agent.get_state(config).values
        summary = store.artifacts.get(ANA, state["window"]["summary"])
    console.print(f"ana: {task}", highlight=False)
    console.print("; ".join(f"{event['node']}: {event['messages']} messages" for event in seen), highlight=False)
    console.print(f"[dim]{escape(summary.text[:200]) if summary else ''}...[/dim]", highlight=False)
    results = [message for message in state["messages"] if message.type == "tool"]
    shown = sum(
        message.type == "tool" for message in visible(MemoryState(messages=state["messages"], window=state["window"]))
    )
    console.print(
        f"{len(results)} results are kept; the model sees this summary and the last {shown} of them", highlight=False
    )
    _check({event["node"] for event in seen} == {"flush", "compact"}, "the thread should be flushed and compacted")
    _check(len(results) == 12, f"compaction must not lose a message, {len(results)} results of 12 are there")
    _check(state["messages"][-1].text.startswith("All twelve"), "the task should have been finished")


def explains_a_recall(home: Path, console: Console) -> None:
    """`why`: what was considered, how it scored, and why it was kept or left out."""
    question = "How do I like my reports?"
    console.print(f"question: {question}", highlight=False)
    with _store(home) as store:
        recall = store.recall(ANA, question, explain=True)
        table = Table("", "score", _folding("statement, signals and why"))
        for mark, hits in (("kept", recall.hits), ("left out", recall.dropped)):
            for hit in hits[:3]:
                signals = ", ".join(f"{k} {v:.2f}" for k, v in hit.signals.model_dump().items() if v)
                why = hit.why.removeprefix("dropped: ")
                said = Text(hit.statement).append(f"\n{signals}\n{why}", style="dim")
                table.add_row(mark, f"{hit.score:.2f}", said)
        console.print(table)
        _check("short reports" in recall.hits[0].statement, "the preference should come first")
        _check(bool(recall.dropped), "the other candidates should be shown, with reasons")


def forgets_with_a_receipt(home: Path, console: Console) -> None:
    """`forget` erases, in memory and in the threads, and leaves a receipt."""
    from everthread.stores.display import told
    from everthread.stores.record import Selection

    with _store(home) as store, _threads(home) as saver:
        record = _one(store, "小林")
        receipt = store.erase(
            ANA, Selection(record_ids=(record.id,)), reason="ana asked", with_source=True, threads=saver
        )
        console.print(f"Erased: {record.statement}", highlight=False)
        state_of = "the files were read again, and hold none of its words" if receipt.verified else "NOT verified"
        console.print(f"{receipt.id}: {told(receipt.erased)}; {state_of}", highlight=False)
        _check(receipt.verified and receipt.record_ids == (record.id,), "the erasure should be verified")
        _check(store.record(ANA, record.id) is None, "the record should be gone")
    (state,) = _elsewhere(home, ANA, "review", "谁负责支付模块？")
    _talk(console, "ana", [state])
    _check("小林" not in state["reply"], "what was erased must not be recalled")


STEPS: tuple[Step, ...] = (
    states_a_preference,
    survives_a_kill,
    recalls_in_another_thread,
    corrects_with_history,
    shows_nothing_to_others,
    compacts_a_long_thread,
    explains_a_recall,
    forgets_with_a_receipt,
)


def _check(shown: bool, otherwise: str) -> None:
    if not shown:
        raise NotShown(otherwise)


def _talk(console: Console, who: str, states: list[dict[str, Any]]) -> None:
    for state in states:
        console.print(f"{who}: {state['said'][-1]}", highlight=False)
        console.print(f"[dim]agent: {escape(state['reply'])}[/dim]", highlight=False)


def _one(store: MemoryStore, word: str) -> Any:
    found = [record for record in store.records(ANA) if word in record.statement]
    _check(len(found) == 1, f"one memory should mention {word!r}, found {len(found)}")
    return found[0]


def _config(identity: Identity, thread: str) -> Any:
    from everthread.stores.threads import thread_config

    return thread_config(identity, thread)


def _input(said: str) -> Any:
    return {"messages": [("user", said)]}


@contextmanager
def _store(home: Path) -> Iterator[MemoryStore]:
    from everthread.stores import open_store

    with open_store(f"sqlite:{home}") as store:
        yield store


@contextmanager
def _threads(home: Path) -> Iterator[Any]:
    from everthread.stores import open_checkpointer

    with open_checkpointer(f"sqlite:{home}") as saver:
        yield saver


# Turns in processes of their own -------------------------------------------------------------------------------------


def _elsewhere(home: Path, identity: Identity, thread: str, *said: str | None) -> list[dict[str, Any]]:
    """Turns in another process, and what each led to; None resumes a turn that was interrupted."""
    ours, theirs = _spawning.Pipe()
    child = _spawning.Process(target=_turns, args=(str(home), identity, thread, said, False, theirs))
    child.start()
    theirs.close()
    try:
        return [ours.recv() for _ in said]
    except EOFError:
        raise NotShown(f"the process of thread {thread!r} ended without an answer") from None
    finally:
        child.join()
        ours.close()


def _killed_while_answering(home: Path, identity: Identity, thread: str, said: str) -> None:
    """Start a turn in another process and kill it hard once the model has been asked."""
    ours, theirs = _spawning.Pipe()
    child = _spawning.Process(target=_turns, args=(str(home), identity, thread, (said,), True, theirs))
    child.start()
    theirs.close()
    ours.recv()
    child.kill()
    child.join()
    ours.close()


def _turns(
    home: str, identity: Identity, thread: str, said: Sequence[str | None], hang: bool, answer: Connection
) -> None:
    """The other process: takes the turns and sends what each led to. With `hang` the model never answers."""
    from everthread.graphs import create_memory_agent
    from everthread.nodes.reason import OfflineModel

    class HangingModel(OfflineModel):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            answer.send("asked")
            time.sleep(600)

    with _store(Path(home)) as store, _threads(Path(home)) as saver:
        agent = create_memory_agent(HangingModel() if hang else None).compile(checkpointer=saver, store=store)
        for text in said:
            state = agent.invoke(_input(text) if text else None, _config(identity, thread), context=identity)
            answer.send(
                {
                    "reply": state["messages"][-1].text,
                    "said": [message.text for message in state["messages"] if message.type == "human"],
                    "recalled": len(state.get("recalled", [])),
                }
            )


_spawning = multiprocessing.get_context("spawn")
