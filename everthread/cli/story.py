"""The story that `everthread demo` tells: offline, in a temporary home, checking itself.

Every turn that "another process" takes is really taken by one. Each step prints what it shows and raises `NotShown`
when the product did something else.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

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


class NotShown(Exception):
    """A step of the demo did not happen as it should."""


def run(console: Console) -> None:
    """Tell the whole story on `console`; raises NotShown at the first step that fails."""
    with tempfile.TemporaryDirectory(prefix="everthread-demo-") as home:
        for number, step in enumerate(STEPS, start=1):
            console.print(f"\n[bold]{number}. {step.__doc__}[/bold]")
            step(Path(home), console)
    console.print(f"\n[bold green]All {len(STEPS)} steps were shown and checked.[/bold green]")


def states_a_preference(home: Path, console: Console) -> None:
    """Thread "planning": ana states a preference, a decision and, in Chinese, a fact."""
    for said in (PREFERENCE, DECISION, CHINESE):
        _shown(console, "ana", said, _elsewhere(home, ANA, "planning", said))
    with _store(home) as store:
        records = store.records(ANA)
        table = Table("kept", "type", "owner", "authority", "written because")
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
    state = _elsewhere(home, ANA, "planning", None)
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
    for asked, wanted in (
        ("How do I like my reports?", "short reports"),
        ("Which database did we decide on for billing?", "PostgreSQL"),
        ("谁负责支付模块？", "小林"),
    ):
        state = _elsewhere(home, ANA, "review", asked)
        _shown(console, "ana", asked, state)
        _check(wanted in state["reply"], f"the answer should say {wanted!r}")
        _check(day in state["reply"] and "planning" in state["reply"], "the answer should cite thread and date")


def corrects_with_history(home: Path, console: Console) -> None:
    """A correction supersedes, and the history stays."""
    _shown(console, "ana", CORRECTION, _elsewhere(home, ANA, "review", CORRECTION))
    with _store(home) as store:
        new = _one(store, "CockroachDB")
        (relation,) = [each for each in new.relations if each.kind == "supersedes"]
        history = store.history(ANA, relation.target)
        table = Table("revision", "status", "statement", "recorded")
        for record in (*history, new):
            table.add_row(str(record.revision), record.status, record.statement, f"{record.recorded_at:%H:%M:%S}")
        console.print(table)
        _check(history[-1].status == "superseded", "the old decision should be superseded")
    state = _elsewhere(home, ANA, "review", "Which database did we decide on for billing?")
    _check("CockroachDB" in state["reply"] and "PostgreSQL" not in state["reply"], "only the new decision is recalled")


def shows_nothing_to_others(home: Path, console: Console) -> None:
    """Another user sees nothing."""
    state = _elsewhere(home, BEN, "review", "Which database did we decide on for billing?")
    _shown(console, "ben", "Which database did we decide on for billing?", state)
    _check(state["recalled"] == 0, "ben must recall nothing")
    with _store(home) as store:
        _check(
            store.records(BEN) == [] and store.transcripts.threads(BEN)[0].messages == 2, "ben has his own thread only"
        )


def compacts_a_long_thread(home: Path, console: Console) -> None:
    """A long thread is flushed and compacted, and no message is lost."""
    from everthread.graphs import create_memory_agent

    with _store(home) as store, _threads(home) as saver:
        agent = create_memory_agent(max_tokens=2_000, keep_tokens=700).compile(checkpointer=saver, store=store)
        config = _config(ANA, "marathon")
        seen: list[str] = []
        for day in range(1, 15):
            said = f"Day {day}: the load test ran with {day * 100} users. " + "We looked at every graph twice. " * 12
            for event in agent.stream(_input(said), config, context=ANA, stream_mode="custom"):
                if event["node"] in ("flush", "compact"):
                    seen.append(f"day {day}: {event['node']} {event['event']}")
        state = agent.get_state(config).values
    console.print("; ".join(seen[:4]) + (" ..." if len(seen) > 4 else ""))
    humans = [message for message in state["messages"] if message.type == "human"]
    console.print(
        f"{len(state['messages'])} messages kept, the model's view starts at {state['window']['cut'][:13]}..."
    )
    _check(len(humans) == 14, "compaction must not lose a message")
    _check(bool(state["window"].get("summary")), "the thread should have a summary")


def explains_a_recall(home: Path, console: Console) -> None:
    """`why`: what was considered, how it scored, and why it was kept or left out."""
    with _store(home) as store:
        recall = store.recall(ANA, "How do I like my reports?", explain=True)
        table = Table("", "statement", "score", "signals", "why")
        for mark, hits in (("kept", recall.hits), ("left out", recall.dropped)):
            for hit in hits[:3]:
                signals = ", ".join(f"{k} {v:.2f}" for k, v in hit.signals.model_dump().items() if v)
                table.add_row(mark, hit.statement, f"{hit.score:.2f}", signals, hit.why)
        console.print(table)
        _check("short reports" in recall.hits[0].statement, "the preference should come first")
        _check(bool(recall.dropped), "the other candidates should be shown, with reasons")


def forgets_with_a_receipt(home: Path, console: Console) -> None:
    """`forget` erases, in memory and in the threads, and leaves a receipt."""
    from everthread.stores.record import Selection

    with _store(home) as store, _threads(home) as saver:
        record = _one(store, "小林")
        receipt = store.erase(
            ANA, Selection(record_ids=(record.id,)), reason="ana asked", with_source=True, threads=saver
        )
        console.print(f"{receipt.id}: {receipt.erased}, verified: {receipt.verified}, remains: {list(receipt.remains)}")
        _check(receipt.verified and receipt.record_ids == (record.id,), "the erasure should be verified")
        _check(store.record(ANA, record.id) is None, "the record should be gone")
    state = _elsewhere(home, ANA, "review", "谁负责支付模块？")
    _check("小林" not in state["reply"], "what was erased must not be recalled")


STEPS: tuple[Callable[[Path, Console], None], ...] = (
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


def _shown(console: Console, who: str, said: str, state: dict[str, Any]) -> None:
    console.print(f"{who}: {said}", highlight=False)
    console.print(f"[dim]agent: {state['reply']}[/dim]", highlight=False)


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


def _elsewhere(home: Path, identity: Identity, thread: str, said: str | None) -> dict[str, Any]:
    """One turn in another process; `said` None resumes a turn that was interrupted. What the turn led to."""
    ours, theirs = _spawning.Pipe()
    child = _spawning.Process(target=_turn, args=(str(home), identity, thread, said, False, theirs))
    child.start()
    theirs.close()
    try:
        state: dict[str, Any] = ours.recv()
    except EOFError:
        raise NotShown(f"the process of thread {thread!r} ended without an answer") from None
    finally:
        child.join()
        ours.close()
    return state


def _killed_while_answering(home: Path, identity: Identity, thread: str, said: str) -> None:
    """Start a turn in another process and kill it hard once the model has been asked."""
    ours, theirs = _spawning.Pipe()
    child = _spawning.Process(target=_turn, args=(str(home), identity, thread, said, True, theirs))
    child.start()
    theirs.close()
    ours.recv()
    child.kill()
    child.join()
    ours.close()


def _turn(home: str, identity: Identity, thread: str, said: str | None, hang: bool, answer: Connection) -> None:
    """The other process: opens the home, takes the turn, sends what it led to. With `hang` it never gets an answer."""
    from everthread.graphs import create_memory_agent
    from everthread.nodes.reason import OfflineModel

    class HangingModel(OfflineModel):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            import time

            answer.send("asked")
            time.sleep(600)

    with _store(Path(home)) as store, _threads(Path(home)) as saver:
        agent = create_memory_agent(HangingModel() if hang else None).compile(checkpointer=saver, store=store)
        state = agent.invoke(_input(said) if said else None, _config(identity, thread), context=identity)
        answer.send(
            {
                "reply": state["messages"][-1].text,
                "said": [message.text for message in state["messages"] if message.type == "human"],
                "recalled": len(state.get("recalled", [])),
            }
        )


_spawning = multiprocessing.get_context("spawn")
