"""`everthread jobs`: what is still to be done in the background, and what could not be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, print_table, say, when
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore
    from everthread.stores.jobs import JobStatus

__all__ = ["jobs", "mention"]


@with_home
def jobs(
    here: Here,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only those that are waiting, running, failed, done or cancelled."
        ),
    ] = None,
    retry: Annotated[
        list[str] | None, typer.Option("--retry", metavar="ID", help="Let this job begin at once; may be repeated.")
    ] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="Let every failed job begin at once.")] = False,
    cancel: Annotated[
        list[str] | None, typer.Option("--cancel", metavar="ID", help="Cancel this job; may be repeated.")
    ] = None,
) -> None:
    """List your background jobs: what waits, what runs, what failed and why. `everthread worker` does them.

    A job fails for good after five attempts, and then waits for you. No error here repeats what was said.

    \b
    Examples:
      everthread jobs
      everthread jobs --status failed --json
      everthread jobs --retry job_3f0c --cancel job_91ab
      everthread jobs --retry-all
    """
    wanted = _status(status)
    with here.open_store() as store:
        failed = [job.id for job in store.jobs.of(here.identity, status="failed")] if retry_all else []
        for job_id in [*(retry or []), *failed]:
            store.jobs.retry(here.identity, job_id)
        for job_id in cancel or []:
            store.jobs.cancel(here.identity, job_id)
        found = store.jobs.of(here.identity, status=wanted)
    if wanted is None:
        found = [job for job in found if job.status != "done"]
    if here.json:
        print_json(found)
    elif not found:
        say(f"no jobs are {status}" if status else "no jobs; nothing waits and nothing failed")
    else:
        rows = [
            (
                job.kind,
                job.status,
                str(job.attempts),
                when(job.created_at),
                when(job.due_at),
                job.error or "",
                job.thread_id or "",
                job.id,
            )
            for job in found
        ]
        columns = ("kind", "status", "attempts", "since", "next try", "last error", "thread", "id")
        print_table(columns, rows, under=columns[3:], named=("since", "next try", "last error", "thread"))


def mention(here: Here, store: MemoryStore) -> None:
    """Say on standard error what failed."""
    failed = len(store.jobs.of(here.identity, status="failed"))
    if failed:
        counted = "1 job" if failed == 1 else f"{failed} jobs"
        say(f"{counted} failed; `everthread jobs --status failed` says why", err=True)


def _status(text: str | None) -> JobStatus | None:
    from everthread.stores.jobs import JobStatus

    known: dict[str, JobStatus] = {each: each for each in get_args(JobStatus)}
    if text is not None and text not in known:
        raise UsageError(f"--status {text!r} is none of {', '.join(known)}")
    return known[text] if text else None
