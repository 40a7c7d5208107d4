"""What a kill, and a crowd, cost: a process that writes is killed with -9 at random points, and four processes of four
threads write and read one file.

    python -m benchmarks.crash [--rounds 200] [--seconds 60] [--json]

The writer acknowledges each write on a pipe after it has returned. After each kill the store is opened again: every
acknowledged write must be there, each commit whole or not at all, and `doctor` must find nothing to repair. In the
crowd, each revision of one shared record must have exactly one winner, and no other error may reach a caller.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everthread import Authority, Evidence, Identity, Record, Scope
from everthread.errors import Conflict
from everthread.stores import MemoryStore, open_store
from everthread.stores.record import Change, Provenance, Selection

ROUNDS, SECONDS, PROCESSES, THREADS = 200, 60.0, 4, 4
ROUNDS_PER_HOME = 10
"""Then a new file: `doctor` reads all of it after each kill."""
ANA = Identity(tenant="crash", user="ana", project="shared", roles=frozenset({"curator"}))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COUNTER = "mem_counter"


def record(statement: str, *, id: str | None = None, owner: str = "user", owner_id: str = "ana") -> Record:
    fields: dict[str, Any] = {"id": id} if id else {}
    return Record(
        statement=statement,
        scope=Scope.model_validate({"owner": owner, "owner_id": owner_id}),
        provenance=Provenance(source="user", actor="ana", extracted_by="crash", observed_at=NOON),
        write_reason="crash",
        authority=Authority.USER_EXPLICIT,
        **fields,
    )


def create(new: Record) -> Change:
    return Change(action="create", record=new, rule="crash", reason="crash")


def supersede(target: str, new: Record) -> Change:
    return Change(action="supersede", target=target, expected=1, record=new, rule="crash", reason="crash")


# ------------------------------------------------------------------------------------------------------------- killing


def write(home: str, run: str) -> None:
    """The load: commits of two records, one of which may supersede, messages, now and then an erasure. Each is printed
    when it is done."""
    chance, last = random.Random(run), ""
    with open_store(f"sqlite:{home}") as store:
        store.recall(ANA, "ready")  # the embedder is loaded before: what is killed is writing
        print(json.dumps(["ready", run]), flush=True)
        for n in range(1_000_000):
            name = f"{run}-{n}"
            if chance.random() < 0.3:
                said = Evidence(
                    thread_id=run, message_id=name, role="user", text=f"said {name}", at=NOON, source="user"
                )
                store.transcripts.append(ANA, [said])
                print(json.dumps(["said", name]), flush=True)
            elif chance.random() < 0.05 and last:
                print(json.dumps(["erasing", last]), flush=True)
                store.erase(ANA, Selection(record_ids=(last,)), reason="crash")
                print(json.dumps(["erased", last]), flush=True)
                last = ""
            else:
                two = [record(f"one of {name}"), record(f"two of {name}")]
                changes = [create(two[0]), supersede(last, two[1]) if last else create(two[1])]
                store.commit(ANA, changes, key=name)
                print(json.dumps(["kept", name, two[0].id, two[1].id]), flush=True)
                last = two[0].id


def killed(home: str, run: str, after: float) -> list[list[str]]:
    """Let the load run, kill it, and return what it had acknowledged."""
    command = [sys.executable, "-m", "benchmarks.crash", "--write", home, run]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent) as writer:
        assert writer.stdout is not None
        acknowledged = [json.loads(writer.stdout.readline())]
        time.sleep(after)
        writer.send_signal(signal.SIGKILL)
        acknowledged += [json.loads(line) for line in writer.stdout if line.endswith("\n")]
    return acknowledged[1:]


def lost(store: MemoryStore, acknowledged: list[list[str]]) -> list[str]:
    """What was acknowledged and is not there, or was erased and is."""
    there = {known.id for known in all_records(store)}
    threads = [info.thread_id for info in store.transcripts.threads(ANA)]
    said = {message.message_id for thread in threads for message in store.transcripts.read(ANA, thread)}
    erasing, erased = named(acknowledged, "erasing"), named(acknowledged, "erased")
    missing = [id for kind, _, *ids in acknowledged if kind == "kept" for id in ids if id not in there | erasing]
    return [*missing, *(named(acknowledged, "said") - said), *(erased & there)]


def halves(store: MemoryStore, acknowledged: list[list[str]]) -> list[str]:
    """Commits of which only a part is there, although none was erased."""
    parts = Counter(known.statement.split(" of ")[1] for known in all_records(store))
    erasing = named(acknowledged, "erasing")
    halved = {name for kind, name, *ids in acknowledged if kind == "kept" and erasing & set(ids)}
    return [name for name, count in parts.items() if count != 2 and name not in halved]


def named(acknowledged: list[list[str]], kind: str) -> set[str]:
    return {name for each, name, *_ in acknowledged if each == kind}


def all_records(store: MemoryStore) -> list[Record]:
    return store.records(ANA, statuses=("active", "contested", "superseded"))


def kill_rounds(rounds: int, seed: int) -> dict[str, Any]:
    """Kill the load so many times; counts of what was acknowledged, lost, half written and in need of repair."""
    chance = random.Random(seed)
    totals: dict[str, Any] = Counter(rounds=0, acknowledged=0, lost=0, half_written=0, repairs=0)
    opening: list[float] = []
    for first in range(0, rounds, ROUNDS_PER_HOME):
        with tempfile.TemporaryDirectory() as home:
            known: list[list[str]] = []
            for number in range(first, min(rounds, first + ROUNDS_PER_HOME)):
                acknowledged = killed(home, f"run{seed}x{number}", chance.uniform(0.0, 0.6))
                known += acknowledged
                start = time.perf_counter()
                with open_store(f"sqlite:{home}") as store:
                    opening.append(time.perf_counter() - start)
                    totals["rounds"] += 1
                    totals["acknowledged"] += sum(kind != "erasing" for kind, *_ in acknowledged)
                    totals["lost"] += len(lost(store, known))
                    totals["half_written"] += len(halves(store, known))
                    totals["repairs"] += sum(not finding.ok for finding in store.doctor())
    return dict(totals) | {"reopened_ms": round(statistics.median(opening) * 1_000, 1) if opening else None}


# --------------------------------------------------------------------------------------------------------------- crowd


def crowd_member(home: str, name: str, seconds: float) -> None:
    """One process of the crowd: its threads share a store; prints what they did."""
    with open_store(f"sqlite:{home}") as store, ThreadPoolExecutor(THREADS) as pool:
        ends = time.monotonic() + seconds
        done = list(pool.map(lambda n: mingle(store, f"{name}-{n}", ends), range(THREADS)))
    wins = [revision for each in done for revision in each["wins"]]
    print(json.dumps({"wins": wins, "errors": [error for each in done for error in each["errors"]]} | counts(done)))


def counts(done: list[dict[str, Any]]) -> dict[str, int]:
    names = ("writes", "reads", "conflicts")
    return {name: sum(each[name] for each in done) for name in names}


def mingle(store: MemoryStore, name: str, ends: float) -> dict[str, Any]:
    """One thread: writes of its own, one shared record that all contend for, and reads that must see what it wrote."""
    me = Identity(tenant="crash", user=name, project="shared", roles=frozenset({"curator"}))
    wins: list[int] = []
    errors: list[str] = []
    tally: Counter[str] = Counter(writes=0, reads=0, conflicts=0)
    n = 0
    while time.monotonic() < ends:
        n += 1
        try:
            own = record(f"{name} wrote number {n}", owner_id=name)
            store.commit(me, [create(own)], key=f"{name}-{n}")
            said = Evidence(thread_id=name, message_id=str(n), role="user", text=f"said {n}", at=NOON, source="user")
            store.transcripts.append(me, [said])
            tally["writes"] += 2
            if store.record(me, own.id) is None:
                errors.append(f"{own.id} was acknowledged and cannot be read")
            if not store.recall(me, f"wrote number {n}", limit=3).hits:
                errors.append(f"{own.id} was acknowledged and nothing is recalled")
            tally["reads"] += 2
            wins += contend(store, me, tally)
        except Exception as error:  # whatever reaches a caller is what is counted here
            errors.append(f"{type(error).__name__}: {error}")
    return {"wins": wins, "errors": errors} | tally


def contend(store: MemoryStore, me: Identity, tally: Counter[str]) -> Iterator[int]:
    """Revise the shared record once; yields the revision that was won."""
    seen = store.record(me, COUNTER)
    assert seen is not None
    tally["reads"] += 1
    new = seen.model_copy(update={"statement": f"counted to {seen.revision + 1}"})
    change = Change(
        action="revise", target=COUNTER, expected=seen.revision, record=new, rule="crash", reason="count on"
    )
    try:
        (decision,) = store.commit(me, [change], key=f"{me.user}-count-{seen.revision}").decisions
    except Conflict:
        tally["conflicts"] += 1
    else:
        tally["writes"] += 1
        yield decision.revision or 0


def crowd(seconds: float) -> dict[str, Any]:
    """The processes of the crowd at one file; what they did, and what went wrong."""
    with tempfile.TemporaryDirectory() as home:
        with open_store(f"sqlite:{home}") as store:
            shared = record("counted to 1", id=COUNTER, owner="project", owner_id="shared")
            store.commit(ANA, [create(shared)], key="counter")
        members = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.crash", "--join", home, f"p{n}", str(seconds)],
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parent.parent,
            )
            for n in range(PROCESSES)
        ]
        told = [member.communicate()[0] for member in members]
        done = [json.loads(text) for text in told if text]
        wins = sorted(revision for each in done for revision in each["wins"])
        with open_store(f"sqlite:{home}") as store:
            last = store.record(ANA, COUNTER)
            repairs = sum(not finding.ok for finding in store.doctor())
    assert last is not None
    errors = [error for each in done for error in each["errors"]]
    return {
        "processes": PROCESSES,
        "threads": PROCESSES * THREADS,
        "seconds": seconds,
        **counts(done),
        "errors": len(errors) + sum(member.returncode != 0 for member in members),
        "first_error": next(iter(errors), None),
        "revisions": last.revision,
        "one_winner_per_revision": wins == list(range(2, last.revision + 1)),
        "repairs": repairs,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--seconds", type=float, default=SECONDS)
    options.add_argument("--seed", type=int, default=4711)
    options.add_argument("--json", action="store_true")
    options.add_argument("--write", nargs=2, metavar=("HOME", "RUN"), help=argparse.SUPPRESS)
    options.add_argument("--join", nargs=3, metavar=("HOME", "NAME", "SECONDS"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.write:
        return write(*chosen.write)
    if chosen.join:
        home, name, seconds = chosen.join
        return crowd_member(home, name, float(seconds))
    found = {
        "cores": os.cpu_count(),
        "kill": kill_rounds(chosen.rounds, chosen.seed),
        "crowd": crowd(chosen.seconds) if chosen.seconds else None,
    }
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    for name, part in found.items():
        print(
            name
            + ": "
            + (", ".join(f"{key} {value}" for key, value in part.items()) if isinstance(part, dict) else f"{part}")
        )


if __name__ == "__main__":
    main()
