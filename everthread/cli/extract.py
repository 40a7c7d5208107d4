"""`everthread extract`: learn from threads again, from their transcripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, Model, with_home
from everthread.cli.output import counted, print_json, print_table, say
from everthread.errors import EverthreadError, ModelReplyError, UsageError

if TYPE_CHECKING:
    from everthread.nodes.extract.rereading import Reading
    from everthread.stores.contract import MemoryStore

__all__ = ["extract"]


@with_home
def extract(
    here: Here,
    threads: Annotated[
        list[str] | None, typer.Argument(metavar="THREAD", help="Threads, by name or id.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All your threads.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Read also what this extractor has read before.")] = False,
    model: Model = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be learnt, and write nothing.")] = False,
) -> None:
    """Learn from the transcripts of threads: of those that were read in, or with another extractor.

    Run it as often as you like: what was learnt before, erased, taken back, or not to be remembered is not learnt
    again. With --model, each part of a thread is sent to it; a part that it has read is not sent again without --again.

    \b
    Examples:
      everthread extract monday
      everthread extract --all --dry-run
      everthread extract monday --again --model openai:gpt-4.1-mini
    """
    from everthread.cli.chat import is_the_models
    from everthread.nodes.extract import ModelExtractor, RuleExtractor
    from everthread.nodes.extract.rereading import read_again
    from everthread.nodes.models import load_model
    from everthread.nodes.node import drive

    if bool(threads) == everything:
        raise UsageError("name the threads to learn from, or give --all; `everthread threads` lists them")
    extractor = ModelExtractor(load_model(model)) if model else RuleExtractor()
    readings: list[Reading] = []
    with here.open_store() as store:
        try:
            for thread_id in _chosen(here, store, threads or []):
                reading = read_again(here.identity, store, thread_id, extractor, again=again, dry_run=dry_run)
                readings.append(drive(reading))
        except Exception as error:  # a provider's errors have no type in common
            if isinstance(error, EverthreadError) or not is_the_models(error):
                raise
            remedy = "what was learnt so far is kept, and the same command goes on"
            raise ModelReplyError(f"{model} did not answer: {error}; {remedy}") from error
    if here.json:
        print_json(readings)
    else:
        _print(readings, dry_run)
    if any(reading.failed for reading in readings):
        raise typer.Exit(1)


def _chosen(here: Here, store: MemoryStore, names: list[str]) -> list[str]:
    """The ids of the threads that are meant; UsageError for one that does not exist."""
    if not names:
        return [info.thread_id for info in store.transcripts.threads(here.identity)]
    return list(dict.fromkeys(here.known_thread(store, name) for name in names))


def _print(readings: list[Reading], dry_run: bool) -> None:
    rows = [
        (
            reading.thread_id,
            str(reading.messages),
            str(reading.learnt),
            str(reading.waiting),
            str(reading.confirmed),
            str(reading.ended),
            ", ".join(f"{rule} {count}" for rule, count in reading.refused.items()),
            _note(reading),
        )
        for reading in readings
    ]
    columns = ("thread", "messages", "learnt", "waiting", "confirmed", "ended", "refused by rule", "note")
    print_table(columns, rows, under=columns[4:], named=("confirmed", "ended", "refused by rule"))
    if dry_run:
        say("nothing was written; this is what would be learnt at most")


def _note(reading: Reading) -> str:
    if reading.skipped:
        return reading.skipped
    if reading.failed:
        return f"{counted(len(reading.failed), 'part')} could not be read: {reading.failed[0]}"
    return "read before; --again reads it again" if reading.passed_over and not reading.windows else ""
