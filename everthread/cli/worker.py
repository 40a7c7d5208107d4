"""`everthread worker`: does the background jobs of a store until it is stopped."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, Model, with_home
from everthread.cli.output import print_json, say

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore
    from everthread.stores.jobs import Handlers
    from everthread.stores.worker import Done

__all__ = ["worker"]


@with_home
def worker(
    here: Here,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, and end.")] = False,
    concurrency: Annotated[int, typer.Option("--concurrency", metavar="NUMBER", help="Jobs at the same time.")] = 1,
    budget: Annotated[
        int, typer.Option("--budget", metavar="NUMBER", help="How many jobs to begin at most in any hour.")
    ] = 1_000,
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", help="How long to wait for a job when stopped.")
    ] = 20.0,
    model: Model = None,
) -> None:
    """Do the background jobs of all users of this store: embedding, extraction, consolidation.

    Run one or several; each job is done by one of them. SIGTERM or Ctrl-C lets the running job finish, within --grace
    seconds; a second one ends the worker at once. A worker that is killed loses nothing. Extraction by a
    model is done only by a worker that has that --model, and sends it the messages of those threads.

    \b
    Examples:
      everthread worker
      everthread worker --once --json
      everthread worker --concurrency 4 --model openai:gpt-4.1-mini
    """
    from everthread.cli.reports import WorkReport
    from everthread.nodes import job_handlers
    from everthread.nodes.extract import ModelExtractor, RuleExtractor
    from everthread.nodes.models import load_model
    from everthread.stores import Worker

    extractors = [ModelExtractor(load_model(model))] if model else []
    counts, stopping = Counter[str](), threading.Event()

    def report(done: Done) -> None:
        counts[done.outcome] += 1
        if not here.json:
            error = f": {done.error}" if done.error else ""
            say(f"{done.job.id} {done.job.kind} {done.outcome} in {done.seconds:.1f} s{error}")

    with here.open_store() as store:
        handlers = job_handlers(store, RuleExtractor(), *extractors)
        _mention_others(store, handlers)
        _stop_by_signal(stopping)
        working = Worker(
            store, handlers, concurrency=concurrency, budget=budget, grace=grace, report=report, stopping=stopping
        )
        if once:
            finished = working.drain()
        else:
            working.start()
            stopping.wait()
            finished = working.stop()
    if here.json:
        print_json(WorkReport(done=counts["done"], failed=counts["failed"], lost=counts["lost"], let_go=not finished))
    if counts["failed"]:
        say("what failed is tried again later; `everthread jobs` lists it", err=True)


def _stop_by_signal(stopping: threading.Event) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()
        # The next one ends the process, as it would without us.
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, stop)


def _mention_others(store: MemoryStore, handlers: Handlers) -> None:
    """Say on standard error which waiting jobs this worker does not do."""
    waiting = store.jobs.kinds()
    for kind, count in waiting.items():
        if kind not in handlers:
            name = kind.removeprefix("extract:model/")
            remedy = f"--model PROVIDER:{name}" if name != kind else "the program that left them, with its own handlers"
            say(f"{count} waiting jobs of the kind {kind} are left to {remedy}", err=True)
