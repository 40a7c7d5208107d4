"""From what a record, a turn and a search cost to shards, memory, log and limits: arithmetic, and nothing is run."""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

DAY, HOUR = 86_400, 3_600
PAGE = 8_192
LARGE = 1_000
"""Records of the larger scopes that were measured."""
CACHE = 128 * 2**20
"""What a process keeps of spaces (`stores/tables/search.py`)."""
POOLS = 21
"""Sessions that a process opens at most: a pool of ten for memory, one for threads, and one for leases."""
FREEZE = 200_000_000
"""PostgreSQL's autovacuum_freeze_max_age."""

Costs = Mapping[str, Any]


class Load(NamedTuple):
    """Who uses it, and how much."""

    users: int = 10_000_000
    records: int = 200
    """Records a user."""
    tenant_users: int = 1_000
    """Users of one tenant."""
    active: float = 0.1
    """Share of the users who talk on a day."""
    turns: float = 8.0
    """Turns of such a user on that day."""
    sitting: int = 4
    """Turns without a long pause."""
    pause: float = 60.0
    """Seconds between two of them."""
    peak: float = 3.0
    """The busiest hour against the mean."""
    learnt: float = 0.2
    """Records that a turn teaches."""
    replaced: float = 0.5
    """Share of those that take the place of another."""
    erasures: float = 0.01
    """Erasures a user a year."""
    message_days: int = 90
    """How long transcripts are kept."""
    thread_days: int = 30
    """How long threads are kept."""
    audit_days: int = 365
    """How long the audit log has been written."""


class Node(NamedTuple):
    """A server that is bought."""

    cores: int = 32
    memory: float = 256e9
    disk: float = 8e12
    filled: float = 0.6
    """Share of the disk that is used."""
    busy: float = 0.5
    """Share of the cores, and of a tenant's lane, that is used in the busiest hour."""
    cached: float = 0.7
    """Share of the memory that holds pages."""
    reading: float = 500e6
    """Bytes a second that a backup or a vacuum reads beside the work."""
    round_trip: float = 0.5
    """Milliseconds from an application to the server and back."""
    durable: float = 1.0
    """Milliseconds until a commit is on the disk, and on a synchronous standby if there is one."""


# ------------------------------------------------------------------------------------------------------------- rates


def turns_a_day(load: Load) -> float:
    """Turns of all users."""
    return load.users * load.active * load.turns


def turns_at_peak(load: Load) -> float:
    """Turns a second in the busiest hour."""
    return turns_a_day(load) / DAY * load.peak


def commits_at_peak(load: Load) -> float:
    """Commits of records a second in the busiest hour."""
    return turns_at_peak(load) * load.learnt


def of_a_turn(costs: Costs, load: Load, what: str) -> float:
    """What a turn costs in the mean: those that teach something, and those that do not."""
    quiet, learning = costs["turn"]["quiet"][what], costs["turn"]["learning"][what]
    share = min(1.0, load.learnt / max(costs["turn"]["learning"]["records"], 0.01))
    return float(quiet + share * (learning - quiet))


def cores(costs: Costs, load: Load, node: Node) -> tuple[float, float]:
    """Cores of servers and of applications for the busiest hour."""
    rate = turns_at_peak(load) / 1_000 / node.busy
    return rate * of_a_turn(costs, load, "server_cpu_ms"), rate * of_a_turn(costs, load, "app_cpu_ms")


def held(costs: Costs, node: Node) -> float:
    """Seconds of a turn in which a session works for it, waits for the next statement or for the disk."""
    quiet = costs["turn"]["quiet"]
    waits = costs["turn"]["statements"] * node.round_trip + quiet["transactions"] * node.durable
    return float(quiet["server_cpu_ms"] + waits) / 1_000


def busy_sessions(costs: Costs, load: Load, node: Node) -> float:
    """Sessions in use in the busiest hour: as many as arrive while one is held (Little's law)."""
    return turns_at_peak(load) * held(costs, node)


def log_at_peak(costs: Costs, load: Load, *, packed: bool = False) -> float:
    """Bytes of write-ahead log a second in the busiest hour. In a store that is larger than what changes between two
    checkpoints nearly every page is changed for the first time since the last one, and is logged whole."""
    quiet = costs["turn"]["quiet"]
    first = quiet["wal_bytes_first_packed" if packed else "wal_bytes_first"] - quiet["wal_bytes"]
    return turns_at_peak(load) * (of_a_turn(costs, load, "wal_bytes") + first)


# ----------------------------------------------------------------------------------------------------------- storage


def taken(tables: Mapping[str, Mapping[str, float]], *, without: Sequence[str] = ()) -> float:
    """Bytes in these tables, with their indexes and what lies outside their rows."""
    return sum(sum(kinds.values()) for name, kinds in tables.items() if name not in without)


MESSAGES = ("messages", "search", "search_versions", "threads")
"""What a turn leaves that goes with its transcript; the rest of it stays."""


def storage(costs: Costs, load: Load) -> dict[str, float]:
    """Bytes on disk, by what they are for."""
    of_turn = costs["turn"]["bytes"]
    return {
        "records": load.users * load.records * taken(costs["bytes"]["record"]),
        "records that were replaced": turns_a_day(load)
        * load.learnt
        * load.replaced
        * load.audit_days
        * taken(costs["bytes"]["record"]),
        "transcripts": turns_a_day(load) * load.message_days * 2 * taken(costs["bytes"]["message"]),
        "audit log of turns": turns_a_day(load) * load.audit_days * taken(of_turn, without=MESSAGES),
        "threads": turns_a_day(load) * load.thread_days * taken(costs["turn"]["threads"]),
    }


# ------------------------------------------------------------------------------------------------------------ memory


def pages_of(costs: Costs, records: int) -> float:
    """Pages that the first search of a scope looks at and later ones do not, in proportion to its records: its rows lie
    where they were written, as good as each on a page of its own."""
    scope = costs["recall"]["200"]
    return float((scope["cold"]["pages"] - scope["warm"]["pages"]) / 200 * records)


def working_set(costs: Costs, load: Load) -> float:
    """Bytes of the pages that the users of the busiest hour search."""
    return sittings_at_peak(load) * HOUR * pages_of(costs, load.records) * PAGE


def packed_set(costs: Costs, load: Load) -> float:
    """The same if the rows of a user lay side by side."""
    return sittings_at_peak(load) * HOUR * load.records * taken({"": costs["bytes"]["record"]["search"]})


def sittings_at_peak(load: Load) -> float:
    """Users a second who begin to talk in the busiest hour."""
    return turns_at_peak(load) / load.sitting


def reads_at_peak(costs: Costs, load: Load) -> float:
    """Pages a second that come from the disk in the busiest hour: the first search of who begins to talk."""
    return sittings_at_peak(load) * pages_of(costs, load.records)


def hit_rate(load: Load, processes: int, spaces: int, *, same: bool, seconds: int = 2_400, seed: int = 4711) -> float:
    """Share of a process's recalls whose user's space it still keeps, simulated: users drawn by Zipf's law begin to
    talk as they do in the busiest hour, each for a sitting. `same` sends all turns of a user to one process, else each
    goes to any. The process keeps the spaces that it used last; the first half fills them and is not counted."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = asked = 0
    for at, user in sorted(arriving(load, processes, same, seconds, random.Random(seed))):
        known = user in cache
        cache[user] = None
        cache.move_to_end(user)
        if len(cache) > spaces:
            cache.popitem(last=False)
        if seconds / 2 <= at < seconds:
            hits, asked = hits + known, asked + 1
    return hits / max(1, asked)


def arriving(
    load: Load, processes: int, same: bool, seconds: int, chance: random.Random
) -> Iterator[tuple[float, int]]:
    """When turns arrive at one of the processes, and whose they are. Where a user has a process, one of so many users
    has this one."""
    rate, users, share = sittings_at_peak(load), load.users, 1 / processes
    if same:
        rate, users, share = rate / processes, max(1, load.users // processes), 1.0
    at = 0.0
    while at < seconds:
        at += chance.expovariate(rate)
        user, turn = drawn(chance.random(), users), at
        for _ in range(load.sitting):
            if share == 1 or chance.random() < share:
                yield turn, user
            turn += chance.expovariate(1 / load.pause)


def drawn(uniform: float, users: int, skew: float = 0.8) -> int:
    """The user at this place of Zipf's law: the first ones talk more often, the n-th n^-skew times as often."""
    return int(((users ** (1 - skew) - 1) * uniform + 1) ** (1 / (1 - skew))) - 1


def spaces_kept(costs: Costs, size: float = CACHE) -> int:
    """Users whose spaces a process keeps."""
    return max(1, int(size / costs["recall"]["200"]["cached_bytes"]))


# ------------------------------------------------------------------------------------------------------------ limits


def lane_of_a_turn(costs: Costs, node: Node) -> float:
    """Seconds of a turn in which its tenant's other writers wait: each writing transaction of the store as long as an
    append works on the server, waits for its next statement and for the disk."""
    append = costs["append"]["server_cpu_ms"] + costs["statements"]["append"] * node.round_trip + node.durable
    return float(costs["turn"]["store"]["transactions"] * append) / 1_000


def tenant_turns(costs: Costs, node: Node) -> float:
    """Turns a second that one tenant can have."""
    return node.busy / lane_of_a_turn(costs, node)


def tenant_users(costs: Costs, load: Load, node: Node) -> float:
    """Users that one tenant can have, in the busiest hour."""
    return tenant_turns(costs, node) / turns_at_peak(load) * load.users


def erasure_seconds(costs: Costs, rows: float) -> float:
    """Seconds of an erasure in a tenant of so many records: it looks at every row of it again, and vacuums."""
    small, large = costs["erase_small"], costs["erase"]
    work = [one["server_cpu_ms"] + one["app_cpu_ms"] for one in (small, large)]
    return float(work[0] + max(0.0, work[1] - work[0]) / large["rows"] * rows) / 1_000


def ids_a_day(costs: Costs, load: Load) -> float:
    """Transaction ids that are used up in a day."""
    return turns_a_day(load) * of_a_turn(costs, load, "transactions")


def dead_a_day(costs: Costs, load: Load) -> float:
    """Row versions left for vacuum in a day: by what is replaced, and by transcripts and threads whose time is over."""
    replaced = turns_a_day(load) * load.learnt * load.replaced * sum(costs["dead"]["left"].values())
    return replaced + turns_a_day(load) * 4  # two messages, and two rows of the index


def vacuum_rate(costs: Costs) -> float:
    """Bytes a second that vacuum gets through."""
    return float(costs["vacuum"]["bytes"] / (costs["vacuum"]["wall_ms"] / 1_000))


def largest_table(costs: Costs, load: Load) -> tuple[str, float]:
    """The table of the store that takes most, and its bytes."""
    kept = {name: load.users * load.records * taken({"": each}) for name, each in costs["bytes"]["record"].items()}
    messages = turns_a_day(load) * load.message_days * 2
    for name, each in costs["bytes"]["message"].items():
        kept[name] = kept.get(name, 0.0) + messages * taken({"": each})
    return max(kept.items(), key=lambda table: table[1])


def partitions(total: float, *, largest: float = 20e9) -> int:
    """Partitions of a table of so many bytes, a power of two, so that none is larger than `largest`."""
    return int(2 ** max(0, math.ceil(math.log2(max(1.0, total / largest)))))


def bounds(costs: Costs, load: Load, node: Node) -> dict[str, float]:
    """How many shards each resource asks for."""
    return {
        "disk": sum(storage(costs, load).values()) / (node.disk * node.filled),
        "cores": cores(costs, load, node)[0] / node.cores,
        "memory": working_set(costs, load) / (node.memory * node.cached),
        "a backup in 4 hours": sum(storage(costs, load).values()) / (node.reading * 4 * HOUR),
    }


def shards(costs: Costs, load: Load, node: Node) -> int:
    """Servers that hold a part of the tenants each; a copy of each comes on top."""
    return max(1, math.ceil(max(bounds(costs, load, node).values())))


def stale(load: Load, lag: float) -> float:
    """Share of recalls that miss what their user's turn before has taught, when a replica is so many seconds behind."""
    return load.learnt * (1 - 1 / load.sitting) * (1 - math.exp(-lag / load.pause))
