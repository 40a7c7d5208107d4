"""`everthread consolidate`: the background pass, now."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, say

__all__ = ["consolidate"]


@with_home
def consolidate(
    here: Here,
    transcript_days: Annotated[
        int | None,
        typer.Option(
            "--transcript-days", metavar="DAYS", min=1, help="Also erase what was said longer ago than this, for good."
        ),
    ] = None,
) -> None:
    """Mark what is over as expired, and merge what says the same. Made for cron; it never calls a model.

    \b
    Examples:
      everthread consolidate
      everthread consolidate --transcript-days 365 --json
    """
    from datetime import timedelta

    from everthread.nodes.consolidate.passes import expire, merge

    with here.open_store() as store:
        receipts = [receipt for receipt in (expire(here.identity, store), merge(here.identity, store)) if receipt]
        gone = 0
        if transcript_days is not None:
            gone = store.expire_transcripts(here.identity, timedelta(days=transcript_days))
    rules = Counter(decision.rule for receipt in receipts for decision in receipt.decisions)
    if here.json:
        print_json({"receipts": [r.id for r in receipts], "decisions": dict(rules), "messages_erased": gone})
        return
    done = [f"{count} by rule {rule}" for rule, count in sorted(rules.items())]
    done += [f"{gone} message{'s' * (gone != 1)} erased"] if gone else []
    say(f"done: {', '.join(done)}" if done else "there is nothing to do")
