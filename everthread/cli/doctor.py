"""`everthread doctor`: is the store sound, what runs here, and what goes where."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, Model, with_home
from everthread.cli.output import print_json, print_table, say
from everthread.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from everthread.cli.reports import DoctorReport, Flow
    from everthread.stores.checkpoints import Saver
    from everthread.stores.contract import Finding, MemoryStore

__all__ = ["data_flow", "doctor"]

_PACKAGES = (
    "everthread",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langchain-core",
    "apsw",
    "sqlite-vec",
    "numpy",
    "wordllama",
    "pydantic",
)


@with_home
def doctor(
    here: Here,
    model: Model = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair from the records what can be, and say what was done.")
    ] = False,
) -> None:
    """Check the store and this installation, and say which step sends what to whom. Changes nothing without --fix.

    Ends with 1 when something is not as it should be.

    \b
    Examples:
      everthread doctor
      everthread doctor --fix
      everthread doctor --model openai:gpt-4o-mini
    """
    report = _report(here, model, fix)
    if here.json:
        print_json(report)
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


def data_flow(model: str | None) -> tuple[Flow, ...]:
    """Which step sends what to which provider (R287), with this chat model or without one."""
    from everthread.cli.reports import Flow

    here = "this machine"
    asked = f"system prompt, project instructions, recalled memories, summary, recent messages and tools, to {model}"
    rules = "nothing; rules do it, unless your code gives it a"
    return (
        Flow(step="retrieve", sends="nothing; keywords and the built-in embedder", to=here),
        Flow(
            step="reason",
            sends=asked if model else "nothing; the offline model answers from what was recalled",
            to=model.partition(":")[0] if model else here,
        ),
        Flow(step="tools", sends="arguments of the tools that you give it", to="those tools"),
        Flow(step="flush, extract", sends=f"{rules} ModelExtractor", to=here),
        Flow(step="compact", sends=f"{rules} ModelSummariser", to=here),
        Flow(step="consolidate", sends="nothing; rules do it", to=here),
        Flow(
            step="extract, worker --model",
            sends="the messages of the threads to learn from, and the memories they may touch"
            if model
            else "nothing; rules do it",
            to=model.partition(":")[0] if model else here,
        ),
        Flow(step="the other commands", sends="nothing", to=here),
    )


def environment() -> dict[str, str]:
    """Versions and abilities of this installation, by name."""
    import sqlite3

    import apsw

    from everthread.stores.embedding import resolve_embedder

    embedder = resolve_embedder(None)
    found = {"python": f"{platform.python_version()} on {platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    loads = hasattr(sqlite3.Connection, "enable_load_extension")
    return found | {
        "sqlite of the memory": apsw.sqlite_lib_version(),
        "sqlite of the threads": sqlite3.sqlite_version,
        "python's sqlite3 loads extensions": "yes" if loads else "no, and everthread does not need it to",
        "embedder": f"{embedder.id}, {embedder.dims} dimensions, on this machine" if embedder else "none",
    }


def _report(here: Here, model: str | None, fix: bool) -> DoctorReport:
    from everthread.cli.reports import DoctorReport
    from everthread.stores.open import shown

    repairs = _repairs(here) if fix else []
    findings = _findings(here)
    return DoctorReport(
        ok=all(finding.ok for finding in findings),
        store=shown(here.url),
        repairs=tuple(repairs),
        findings=tuple(findings),
        environment=environment(),
        data_flow=data_flow(model),
    )


def _findings(here: Here) -> list[Finding]:
    return [*_opened("store opens", here.open_store), *_opened("threads open", lambda: _threads(here))]


def _repairs(here: Here) -> list[Finding]:
    """What was repaired; nothing when the store cannot be opened, which the findings say."""
    try:
        with here.open_store() as store:
            return store.repair()
    except (StoreError, UsageError):
        return []


def _threads(here: Here) -> Saver:
    from everthread.stores import open_checkpointer

    return open_checkpointer(here.url)


def _opened(check: str, open: Callable[[], MemoryStore | Saver]) -> list[Finding]:
    """What a file says about itself, or why it cannot be opened."""
    from everthread.stores.contract import Finding

    try:
        with open() as opened:
            return opened.doctor()
    except (StoreError, UsageError) as error:
        return [Finding(check=check, ok=False, detail=str(error))]


def _print(report: DoctorReport) -> None:
    if report.repairs:
        done = [("done" if f.ok else "NOT DONE", f.check, f.detail, f.remedy or "") for f in report.repairs]
        print_table(("", "check", "repair", "remedy"), done, title="repairs")
        say()
    rows = [("ok" if f.ok else "NOT OK", f.check, f.detail, f.remedy or "") for f in report.findings]
    print_table(("", "check", "found", "remedy"), rows, title=report.store)
    say()
    print_table(("environment", "version"), list(report.environment.items()))
    say()
    print_table(("step", "sends", "to"), [(flow.step, flow.sends, flow.to) for flow in report.data_flow])
