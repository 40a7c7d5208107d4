"""What a store on PostgreSQL costs: bytes, log, processor, time, by what is done. `benchmarks.scale --measure` runs it,
and reckons with what it wrote.

Memory grows as it does in life: users take turns, one exchange and one record at a time, so that what belongs to one
user lies apart on the disk. A record is a sentence of 200 characters with one vector of 256 numbers; an exchange is two
messages of 200 characters.

The processor's time of the server is that of its processes and is known where it runs on this machine; so is the number
of statements, read from its log. Elsewhere they are null.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil
import psycopg

from benchmarks.lives import RECORDS, TENANTS, Life, grown, living, settle, settled
from benchmarks.meter import KEYS, PARTITIONS, RELATIONS, SCHEMA, Meter, after_checkpoint, between, fsync, per_each
from benchmarks.postgres import database, server
from benchmarks.stores import BATCH, DIMS, made, milliseconds

__all__ = ["measured"]

LARGE = 1_000
"""Records of the larger scopes."""
WHOLE = 20
"""Users with such a scope in the tenant that erasures are measured in."""


# ------------------------------------------------------------------------------------------------------------- agents


def turns(url: str, meter: Meter, count: int) -> dict[str, Any]:
    """Whole turns of an agent with memory, some that teach nothing and some that do: threads kept on the same server,
    and threads kept in this process, which leaves what the store does."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from everthread import Identity
    from everthread.graphs import create_memory_agent
    from everthread.stores import PostgresStore, open_checkpointer
    from everthread.stores.threads import thread_config

    plain = [text[:200] for text in made(10**6, 6 * count)[0]]
    agent = create_memory_agent(FakeListChatModel(responses=plain[:50]), recall="automatic")
    found: dict[str, Any] = {}
    with PostgresStore(url) as store, open_checkpointer(url) as saver:
        own, alone = (agent.compile(checkpointer=each, store=store) for each in (saver, InMemorySaver()))

        def turn(graph: Any, number: int, text: str) -> Any:
            who = Identity(tenant="turns", user=f"user-{number % 5}")
            return graph.invoke({"messages": [HumanMessage(text)]}, thread_config(who, "t"), context=who)

        def quiet(graph: Any, first: int) -> list[Callable[[], Any]]:
            return [lambda n=n: turn(graph, n, plain[n]) for n in range(first, first + count)]  # type: ignore[misc]

        def learning(graph: Any, first: int) -> list[Callable[[], Any]]:
            said = [text.split() for text in plain[first : first + count]]
            texts = [f"Please remember that my {word[0]} is called {word[1]}." for word in said]
            return [lambda n=n, text=text: turn(graph, n, text) for n, text in enumerate(texts)]  # type: ignore[misc]

        for work in learning(own, 0)[:25]:  # five records for each of five users
            work()
        before = meter.sizes()
        found["store"] = meter.spent(quiet(alone, count))
        found["bytes"] = between(before, meter.sizes(), count)
        threads = meter.sizes("public")
        found["quiet"] = meter.spent(quiet(own, 2 * count))
        found["threads"] = between(threads, meter.sizes("public"), count)
        learnt = meter.one(f"SELECT count(*) FROM {SCHEMA}.records")
        found["learning"] = meter.spent(learning(own, 3 * count))
        learnt = meter.one(f"SELECT count(*) FROM {SCHEMA}.records") - learnt
        found["learning"]["records"] = round(learnt / count, 2)
        found["quiet"]["wal_bytes_first"] = after_checkpoint(meter, quiet(own, 4 * count)[:15])
        found["sessions"] = meter.one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        found["session_mb"] = session_megabytes(meter)
    name = str(meter.one("SELECT current_database()"))

    def again(number: int, own: bool) -> Callable[[], None]:
        def work() -> None:
            with PostgresStore(url) as store, open_checkpointer(url) as saver:
                graph = agent.compile(checkpointer=saver if own else InMemorySaver(), store=store)
                for n in range(number):
                    turn(graph, 0, plain[5 * count + n])

        return work

    found["statements"] = per_each(meter, name, lambda number: again(number, True))
    found["store"]["statements"] = per_each(meter, name, lambda number: again(number, False))
    meter.connection.execute(f"ALTER DATABASE {name} SET wal_compression = 'pglz'".encode())
    with PostgresStore(url) as store, open_checkpointer(url) as saver:
        graph = agent.compile(checkpointer=saver, store=store)
        turn(graph, 0, plain[0])
        works = [lambda n=n: turn(graph, n, plain[5 * count + 20 + n]) for n in range(15)]  # type: ignore[misc]
        found["quiet"]["wal_bytes_first_packed"] = after_checkpoint(meter, works)
    return found


def session_megabytes(meter: Meter) -> float | None:
    """Memory of its own that a session of the store has, the largest one."""
    if meter.postmaster is None:
        return None
    rows = meter.connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    sizes = [psutil.Process(pid).memory_full_info().uss for (pid,) in rows]
    return round(max(sizes) / 2**20, 1) if sizes else None


# -------------------------------------------------------------------------------------------------- PostgreSQL's parts


def vacuum(meter: Meter) -> dict[str, Any]:
    """What vacuum takes to remove a tenth of the rows of a table."""
    rows = 100_000
    run = meter.connection.execute
    run("CREATE TABLE swept (tenant text, id bigint, body text, PRIMARY KEY (tenant, id))")
    run(
        "INSERT INTO swept SELECT 't' || n %% 100, n, repeat(md5(n::text), 28) FROM generate_series(1, %s::int) AS n",
        (rows,),
    )
    run("VACUUM (FREEZE, ANALYZE) swept")
    run("DELETE FROM swept WHERE id % 10 = 0")
    size = meter.one("SELECT pg_total_relation_size('swept')")
    took = meter.spent([lambda: run("VACUUM swept")])
    run("DROP TABLE swept")
    return {"rows": rows, "dead": rows // 10, "bytes": int(size), **took}


def partitions(meter: Meter, counts: Sequence[int]) -> list[dict[str, Any]]:
    """Milliseconds to plan a read of one row, with its tenant and without, and a session's memory after all partitions
    were planned once."""
    found = []
    run = meter.connection.execute
    for count in counts:
        run("CREATE TABLE parts (tenant text, id text, body text, PRIMARY KEY (tenant, id)) PARTITION BY HASH (tenant)")
        run("CREATE INDEX ON parts (tenant, body)")
        for number in range(count):
            of = f"PARTITION OF parts FOR VALUES WITH (MODULUS {count}, REMAINDER {number})"
            run(f"CREATE TABLE parts_{number} {of}".encode())
        with psycopg.connect(meter.url, autocommit=True) as session:
            one = [planned(session, f"SELECT body FROM parts WHERE tenant = 't{n}' AND id = 'x'") for n in range(50)]
            every = [planned(session, "SELECT body FROM parts WHERE id = 'x'") for _ in range(20)]
            memory = psutil.Process(session.info.backend_pid).memory_full_info().uss if meter.postmaster else None
        found.append(
            {
                "partitions": count,
                "with_tenant_ms": round(statistics.median(one[10:]), 3),
                "without_tenant_ms": round(statistics.median(every[5:]), 3),
                "session_mb": None if memory is None else round(memory / 2**20, 1),
            }
        )
        run("DROP TABLE parts")
    return found


def planned(session: psycopg.Connection[Any], sql: str) -> float:
    """Milliseconds to plan a statement."""
    ((plan,),) = session.execute(f"EXPLAIN (SUMMARY, FORMAT JSON) {sql}".encode()).fetchall()
    return float(plan[0]["Planning Time"])


NEAREST = "SELECT id FROM points ORDER BY vector <=> %s::halfvec LIMIT 10"


def vectors(meter: Meter, counts: Sequence[int]) -> list[dict[str, Any]]:
    """pgvector on vectors of 256 numbers in half precision, one scope: bytes, build, exact scan and HNSW."""
    run = meter.connection.execute
    run("CREATE EXTENSION IF NOT EXISTS vector")
    run("SET max_parallel_workers_per_gather = 0")
    found = []
    for count in counts:
        run("CREATE TABLE points (id bigint PRIMARY KEY, vector halfvec(256) STORAGE PLAIN NOT NULL)")
        chunks = [made(10**7 + n, min(count, BATCH))[1] for n in range(max(1, count // BATCH))]
        with meter.connection.cursor().copy("COPY points FROM STDIN") as copy:
            for number, vector in enumerate(row for chunk in chunks for row in chunk.tolist()):
                copy.write_row((number, json.dumps(vector)))
        run("VACUUM (ANALYZE) points")
        chance = np.random.default_rng(count)
        asked = [json.dumps((chunks[n % len(chunks)][n] + 0.04 * chance.normal(size=DIMS)).tolist()) for n in range(20)]
        exact = [run(NEAREST, (text,)).fetchall() for text in asked]
        scan = meter.spent([nearest(meter, text) for text in asked])
        build = milliseconds(lambda: run("CREATE INDEX points_near ON points USING hnsw (vector halfvec_cosine_ops)"))
        run("SET enable_seqscan = off")
        near = [run(NEAREST, (text,)).fetchall() for text in asked]
        search = meter.spent([nearest(meter, text) for text in asked])
        run("RESET enable_seqscan")
        whole = np.concatenate(chunks)
        best = [np.argsort(-(whole @ np.array(json.loads(text), np.float32)))[:10] for text in asked]
        halved = [len({n for (n,) in one} & set(other.tolist())) / 10 for one, other in zip(exact, best, strict=True)]
        shared = [len(set(one) & set(other)) / 10 for one, other in zip(exact, near, strict=True)]
        found.append(
            {
                "vectors": count,
                "heap_bytes": round(meter.one("SELECT pg_relation_size('points')") / count),
                "hnsw_bytes": round(meter.one("SELECT pg_relation_size('points_near')") / count),
                "build_ms_each": round(build / count, 3),
                "exact_ms": scan["wall_ms"],
                "hnsw_ms": search["wall_ms"],
                "recall@10": round(statistics.mean(shared), 3),
                "halfvec@10": round(statistics.mean(halved), 3),
            }
        )
        run("DROP TABLE points")
    return found


def nearest(meter: Meter, vector: str) -> Callable[[], Any]:
    """A search that waits to be made."""
    return lambda: meter.connection.execute(NEAREST, (vector,)).fetchall()


# ------------------------------------------------------------------------------------------------------------ measure


def measured(url: str | None, *, users: int = 40, last: int = 300) -> dict[str, Any]:
    """All costs, on this server or on one of its own."""
    warnings.simplefilter("ignore")
    with server(url) as place, database(place) as own:
        meter = Meter(own)
        try:
            costs = _measured(own, meter, users, last)
        finally:
            meter.connection.close()
        told("turns")
        with database(place) as other:
            meter = Meter(other)
            try:
                costs["turn"] = turns(other, meter, 80)
            finally:
                meter.connection.close()
        told("erasures")
        with database(place) as fourth:
            meter = Meter(fourth)
            try:
                costs |= erasures(fourth, meter)
            finally:
                meter.connection.close()
        told("a large scope")
        with database(place) as third:
            meter = Meter(third)
            try:
                return costs | {"wide": wide(third, meter)}
            finally:
                meter.connection.close()


def told(what: str) -> None:
    """Say how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _measured(own: str, meter: Meter, users: int, last: int) -> dict[str, Any]:
    name = str(meter.one("SELECT current_database()"))
    count = users * RECORDS
    costs: dict[str, Any] = {
        "setting": {
            "server": meter.one("SHOW server_version"), "cores": os.cpu_count(), "fsync_ms": fsync(),
            "load": round(os.getloadavg()[0], 1), "users": users, "records": count, "tenants": TENANTS,
            "characters": 200, "dims": 256,
        }
    }  # fmt: skip
    texts = {user: made(user, RECORDS)[0] for user in range(users)}
    with living(own, users) as life:
        costs["setting"]["schema"] = meter.one(f"SELECT max(number) FROM {SCHEMA}.migrations")
        costs["setting"]["partitions"] = int(meter.one(PARTITIONS))
        costs["setting"]["relations"] = meter.one(RELATIONS)
        costs["setting"]["keys_without_tenant"] = keys_without_tenant(meter)
        empty = meter.sizes()
        told("appends")
        costs["append"] = grown(life, meter, lambda u, n: life.append(u, n, [texts[u][n], texts[u][n - 1]]), last)
        talked = meter.sizes()
        said = meter.sizes()
        told("commits")
        costs["commit"] = grown(life, meter, lambda u, n: life.commit(u, n, texts[u][n]), last)
        costs["bytes"] = {
            "message": between(empty, talked, 2 * count),
            "record": between(said, meter.sizes(), count),
        }
        told("checkpoints")
        more = made(10**5, 200)[0]
        costs["append"]["wal_bytes_first"] = after_checkpoint(
            meter,
            [lambda n=n: life.append(n % users, 1_000 + n, more[2 * n : 2 * n + 2]) for n in range(20)],  # type: ignore[misc]
        )
        costs["commit"]["wal_bytes_first"] = after_checkpoint(
            meter,
            [lambda n=n: life.commit(n % users, 1_000 + n, more[50 + n]) for n in range(20)],  # type: ignore[misc]
        )
        costs["dead"] = dead(life, meter, more[100:], users)
    told("recalls")
    costs["recall"] = recalls(own, meter, users, name)
    costs["statements"] = statements(own, meter, users, name, made(10**5 + 1, 40)[0])
    told("vacuum, partitions, vectors")
    costs["vacuum"] = vacuum(meter)
    costs["partitions"] = partitions(meter, (1, 16, 64, 256))
    costs["vectors"] = vectors(meter, (200, 1_000, 10_000, 50_000))
    return costs


def keys_without_tenant(meter: Meter) -> list[str]:
    """Unique keys of the schema that hold no tenant, as `table (columns)`: a database that is divided by tenant among
    several servers cannot keep them unique. The parts of a divided table are left out."""
    rows = meter.connection.execute(KEYS.encode(), (SCHEMA,)).fetchall()
    return [f"{table} ({', '.join(columns)})" for table, columns in rows if "tenant" not in columns]


def erasures(own: str, meter: Meter) -> dict[str, Any]:
    """Erasures of a record in a tenant that has few, and in one that has many: what they take grows with its tenant's.
    Another tenant has as many."""
    from everthread.stores.record import Change

    texts = made(10**6 + 11, LARGE)[0]
    with living(own, WHOLE * TENANTS) as life:
        small = erased(life, meter, 0, 8)
        for user in (*range(0, WHOLE * TENANTS, TENANTS), *range(1, WHOLE * TENANTS, TENANTS)):
            changes = [
                Change(action="create", record=life.record(user, n, text), rule="new", reason="nothing like it")
                for n, text in enumerate(texts)
            ]
            life.store.commit(life.who(user), changes, key=f"{user}/all")
        meter.connection.execute(f"ANALYZE {SCHEMA}.revisions")
        large = erased(life, meter, 1, 8)
        rows = meter.one(f"SELECT count(*) FROM {SCHEMA}.revisions WHERE tenant = 'tenant-0'")
    return {"erase_small": small, "erase": large | {"rows": int(rows)}}


def erased(life: Life, meter: Meter, kind: int, count: int) -> dict[str, Any]:
    """Erasures of one record each that was just written, by users of one tenant."""
    users = [TENANTS * n for n in range(count)]
    texts = made(2 * 10**5 + kind, count)[0]
    ids = [
        life.commit(user, 2_000 + 100 * kind + user, text).decisions[0].record_id
        for user, text in zip(users, texts, strict=True)
    ]
    before = settled(life, meter)
    spent = meter.spent([erasing(life, user, id) for user, id in zip(users, ids, strict=True)])
    return spent | {"left": left(before, settled(life, meter), count)}


def erasing(life: Life, user: int, id: str | None) -> Callable[[], Any]:
    """An erasure that waits to be called."""
    from everthread.stores.record import Selection

    return lambda: life.store.erase(life.who(user), Selection(record_ids=(str(id),)), reason="asked for")


def dead(life: Life, meter: Meter, texts: Sequence[str], users: int) -> dict[str, Any]:
    """Row versions, by table, that a record which replaces another leaves for vacuum."""
    count = min(100, len(texts))
    pairs = []
    for n, text in enumerate(texts[: count // 2]):
        made_ = life.commit(n % users, 3_000 + n, text).decisions[0].record_id
        pairs.append((n % users, life.store.record(life.who(n % users), made_)))
    before = settled(life, meter)
    spent = meter.spent(
        [
            lambda n=n, pair=pair: life.supersede(pair[0], 4_000 + n, pair[1], texts[count // 2 + n])  # type: ignore[misc]
            for n, pair in enumerate(pairs)
        ]
    )
    return {"supersede": spent, "left": left(before, settled(life, meter), len(pairs))}


def left(before: dict[str, int], after: dict[str, int], count: int) -> dict[str, float]:
    """Row versions that each has left for vacuum, by table."""
    each = {name: round((after[name] - before.get(name, 0)) / count, 2) for name in sorted(after)}
    return {name: value for name, value in each.items() if value > 0}


def recalls(own: str, meter: Meter, users: int, name: str) -> dict[str, Any]:
    """Recalls of spaces that the process does not keep, and of such as it does."""
    found: dict[str, Any] = {}
    large = made(10**6 + 7, LARGE)[0]
    with living(own, users) as life:
        for user in range(users, users + 10):
            from everthread.stores.record import Change

            changes = [
                Change(action="create", record=life.record(user, n, text), rule="new", reason="nothing like it")
                for n, text in enumerate(large)
            ]
            life.store.commit(life.who(user), changes, key=f"{user}/all")
    for size, who in ((RECORDS, range(TENANTS, users)), (LARGE, range(users, users + 10))):
        texts = made(0, RECORDS)[0] if size == RECORDS else large
        words = [" ".join(text.split()[3:8]) for text in texts[:8]]
        with living(own, users) as life:
            for user in 2 * [*range(TENANTS)]:
                life.recall(user, words[0])  # what follows finds a session that knows the partition of every tenant
            rest = life.store._search.nbytes  # type: ignore[attr-defined]
            found[str(size)] = {
                "cold": looked(life, meter, [asking(life, user, words[0]) for user in who]),
                "cached_bytes": round((life.store._search.nbytes - rest) / len(who)),  # type: ignore[attr-defined]
                "warm": looked(life, meter, [asking(life, user, text) for text in words[1:] for user in who]),
            }
    return found


WIDE = ("search_near", "search_terms", "search_regions", "search_wide")


def wide(own: str, meter: Meter, count: int = 10_000) -> dict[str, Any]:
    """A large scope, searched by the indexes of its partition and searched whole."""
    from everthread.stores.record import Change

    texts = made(3 * 10**5, count)[0]
    words = [" ".join(text.split()[3:8]) for text in texts[:20]]
    with living(own, 1, exact_up_to=count // 2, half_precision=True) as life:
        for start in range(0, count, BATCH):
            changes = [
                Change(action="create", record=life.record(0, n, texts[n]), rule="new", reason="nothing like it")
                for n in range(start, start + BATCH)
            ]
            life.store.commit(life.who(0), changes, key=f"all/{start}")
        build = meter.spent([lambda: life.store.jobs.drain(life.store.handlers())])
    found: dict[str, Any] = {"records": count, "build": build}
    sizes = {name: kinds for name, kinds in meter.sizes().items() if name in WIDE}
    found["bytes"] = between({}, sizes, count)
    for name, limit in (("indexed", count // 2), ("whole", 2 * count)):
        with living(own, 1, exact_up_to=limit, half_precision=True) as life:
            life.recall(1, words[0])
            first = looked(life, meter, [asking(life, 0, words[0])])
            found[name] = {
                "first": first,
                "following": looked(life, meter, [asking(life, 0, text) for text in words[1:]]),
            }
            found[name]["cached_bytes"] = life.store._search.nbytes  # type: ignore[attr-defined]
    return found


def asking(life: Life, user: int, text: str) -> Callable[[], Any]:
    """A recall that waits to be called."""
    return lambda: life.recall(user, text)


def looked(life: Life, meter: Meter, works: Sequence[Callable[[], Any]]) -> dict[str, Any]:
    """What each takes, and how many pages the server looked at for it, in memory or not."""
    settle(life)
    before = meter.blocks()
    spent = meter.spent(works)
    settle(life)
    return spent | {"pages": round((meter.blocks() - before) / len(works), 1)}


def statements(own: str, meter: Meter, users: int, name: str, texts: Sequence[str]) -> dict[str, Any]:
    """Statements that are sent for one commit, append, cold recall and warm recall."""
    kinds: dict[str, Callable[[Life, int], Any]] = {
        "commit": lambda life, n: life.commit(n % users, 5_000 + n, texts[n]),
        "append": lambda life, n: life.append(n % users, 5_000 + n, texts[n : n + 2]),
        "recall_cold": lambda life, n: life.recall(n, texts[0]),
        "recall_warm": lambda life, n: life.recall(0, texts[0]),
    }

    def times(do: Callable[[Life, int], Any], count: int) -> Callable[[], None]:
        def work() -> None:
            with living(own, users) as life:
                for n in range(count):
                    do(life, n)

        return work

    return {kind: per_each(meter, name, lambda count, do=do: times(do, count)) for kind, do in kinds.items()}  # type: ignore[misc]
