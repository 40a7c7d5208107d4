"""What the door costs a candidate: validate, resolve and commit, without model and embedder.

    python -m benchmarks.writing [--records 10000] [--candidates 300] [--json]

The user's scope holds 10,000 records, each with a property of its own. Candidates come one a window, as turns bring
them, half of them new, a quarter confirming, a quarter superseding; the transcript is written before the clock starts.
The thread is short at first and has 300 records at the end.
Each candidate is one durable commit (`synchronous=FULL`), so the disk's own speed is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everthread import Identity, Record, Scope
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.pipeline import Work, commit, resolve_all, validate_all, work_of
from everthread.stores import MemoryStore, open_store
from everthread.stores.record import Change, Evidence, Provenance

ANA = Identity(tenant="acme", user="ana")
THEN = datetime(2026, 5, 8, 12, tzinfo=UTC)
TARGET = 5.0
BATCH = 500


def milliseconds(work: Callable[[], Any]) -> float:
    """How long `work` takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1_000


def known(number: int) -> Record:
    """A record about a property of its own."""
    return Record(
        statement=f"The user's setting {number} is value {number}.",
        subject="user",
        predicate=f"setting {number}",
        value=f"value {number}",
        scope=Scope(owner="user", owner_id="ana"),
        provenance=Provenance(
            source="user", thread_id="old", message_ids=(f"m{number}",), actor="ana", extracted_by="bench/1",
            observed_at=THEN,
        ),
        write_reason="the user said so",
        authority="user_explicit",
    )  # fmt: skip


def fill(store: MemoryStore, records: int) -> None:
    """Give the user so many records."""
    for first in range(0, records, BATCH):
        batch = [known(number) for number in range(first, min(first + BATCH, records))]
        changes = [Change(action="create", record=record, rule="new", reason="it is new") for record in batch]
        store.commit(ANA, changes, key=f"fill:{first}")


def windows(store: MemoryStore, records: int, candidates: int) -> Iterator[Work]:
    """Windows of one candidate, in the transcript already."""
    for number in range(candidates):
        kind = number % 4
        about = records + number if kind < 2 else number * 7 % records
        value = f"value {about}" if kind < 3 else f"other value {number}"
        statement = f"The user's setting {about} is {value}."
        line = Evidence(
            thread_id="new", message_id=f"n{number}", role="user", source="user", speaker="ana",
            text=f"My setting {about} is {value}.", at=datetime.now(UTC),
        )  # fmt: skip
        store.transcripts.append(ANA, [line])
        work = work_of(ANA, "new", [line])
        assert work is not None
        candidate = Candidate(
            statement=statement, subject="user", predicate=f"setting {about}", value=value, messages=(1,),
            write_reason="the user said so",
        )  # fmt: skip
        yield work._replace(candidates=(candidate,), extracted_by="bench/1")


def through_the_door(work: Work, store: MemoryStore) -> None:
    """One window: judged, decided, written."""
    receipt = commit(resolve_all(validate_all(work), store), store)
    assert receipt is not None
    assert receipt.decisions[0].outcome in ("created", "confirmed", "superseded"), receipt.decisions


def fsync(home: str) -> float:
    """Milliseconds that the disk takes to keep one page (median of 50)."""
    with (Path(home) / "page").open("wb", buffering=0) as file:

        def keep() -> None:
            file.write(bytes(4_096))
            os.fsync(file.fileno())

        return statistics.median(milliseconds(keep) for _ in range(50))


def measure(records: int, candidates: int) -> dict[str, Any]:
    """Median, 95th percentile and the steps' medians, in milliseconds a candidate."""
    with tempfile.TemporaryDirectory() as home, open_store(f"sqlite:{home}", embedder="none") as store:
        fill(store, records)
        waiting = list(windows(store, records, candidates + 20))
        for work in waiting[:20]:  # caches
            through_the_door(work, store)
        took: dict[str, list[float]] = {"validate": [], "resolve": [], "commit": []}
        for work in waiting[20:]:
            start = time.perf_counter()
            judged = validate_all(work)
            validated = time.perf_counter()
            decided = resolve_all(judged, store)
            resolved = time.perf_counter()
            commit(decided, store)
            times = (start, validated, resolved, time.perf_counter())
            for step, since, until in zip(took, times[:-1], times[1:], strict=True):
                took[step].append((until - since) * 1_000)
        whole = sorted(map(sum, zip(*took.values(), strict=True)))
        return {
            "records": records,
            "candidates": candidates,
            "commits": candidates,
            "median_ms": round(statistics.median(whole), 2),
            "p95_ms": round(whole[int(len(whole) * 0.95)], 2),
            "steps_ms": {step: round(statistics.median(times), 2) for step, times in took.items()},
            "disk_ms": round(fsync(home), 2),
            "target_ms": TARGET,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.records, options.candidates)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['candidates']} candidates, {found['commits']} commits, {found['records']} records in the scope")
    print(f"  through the door  {found['median_ms']:6.2f} ms median   {found['p95_ms']:6.2f} ms p95   target {TARGET}")
    for step, median in found["steps_ms"].items():
        print(f"    {step:<15} {median:6.2f} ms")
    print(f"  one page on this disk {found['disk_ms']:.2f} ms")


if __name__ == "__main__":
    main()
