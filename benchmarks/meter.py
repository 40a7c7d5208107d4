"""The server's own counters, and what is read off them: bytes, log, processor, pages, statements."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.stores import milliseconds

SIZES = """
SELECT coalesce(whole.relname, part.relname), sum(pg_relation_size(part.oid)), sum(pg_indexes_size(part.oid)),
    sum(coalesce(pg_total_relation_size(nullif(part.reltoastrelid, 0)), 0))
FROM pg_class AS part LEFT JOIN pg_inherits ON inhrelid = part.oid LEFT JOIN pg_class AS whole ON whole.oid = inhparent
WHERE part.relkind = 'r' AND part.relnamespace = %s::regnamespace GROUP BY 1
"""
CHANGED = """
SELECT coalesce(whole.relname, part.relname), sum(n_tup_upd - n_tup_hot_upd + n_tup_del)::bigint
FROM pg_stat_user_tables AS part LEFT JOIN pg_inherits ON inhrelid = relid
LEFT JOIN pg_class AS whole ON whole.oid = inhparent
GROUP BY 1
"""
KEYS = """
SELECT whole.relname, array_agg(attname::text ORDER BY array_position(indkey::int2[], attnum))
FROM pg_index JOIN pg_class AS whole ON whole.oid = indrelid
JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
WHERE indisunique AND whole.relnamespace = %s::regnamespace AND NOT whole.relispartition
GROUP BY whole.relname, indexrelid ORDER BY whole.relname, 2
"""
SCHEMA = "everthread"
PARTITIONS = """
SELECT count(*) / greatest(1, count(DISTINCT inhparent))
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE relkind = 'r'
"""
RELATIONS = f"""
SELECT count(*) FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'i', 't')
"""


class Meter:
    """Reads the server's own counters, on a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.postmaster = _postmaster(self.connection)

    def one(self, sql: str) -> Any:
        """The value of a statement."""
        ((value,),) = self.connection.execute(sql.encode()).fetchall()
        return value

    def server_cpu(self) -> float | None:
        """Seconds of the processor that the server has used."""
        if self.postmaster is None:
            return None
        times = self.postmaster.cpu_times()
        total = times.user + times.system + times.children_user + times.children_system
        for process in self.postmaster.children(recursive=True):
            try:
                each = process.cpu_times()
            except psutil.NoSuchProcess:
                continue  # and is counted among the children that have ended
            total += each.user + each.system
        return float(total)

    def wal(self) -> int:
        """Bytes of the write-ahead log since the server was made."""
        return int(self.one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"))

    def transactions(self) -> int:
        """Transaction ids given out."""
        return int(self.one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"))

    def blocks(self) -> int:
        """Pages that statements of this database looked at, of sessions that have ended or rested."""
        return int(self.one("SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"))

    def sizes(self, schema: str = SCHEMA) -> dict[str, dict[str, int]]:
        """Bytes by table."""
        rows = self.connection.execute(SIZES.encode(), (schema,)).fetchall()
        return {name: {"heap": int(heap), "indexes": int(of), "toast": int(toast)} for name, heap, of, toast in rows}

    def changed(self) -> dict[str, int]:
        """Row versions by table that were left for vacuum."""
        return {name: int(count) for name, count in self.connection.execute(CHANGED.encode())}

    def log(self) -> Path | None:
        """The server's log, where it is the one that the wheel writes."""
        path = Path(self.one("SHOW data_directory")) / "log"
        return path if self.postmaster is not None and path.is_file() else None

    def spent(self, works: Sequence[Callable[[], Any]]) -> dict[str, Any]:
        """What one of these works costs: medians of the clock, means of all else."""
        wal, ids, own, theirs = self.wal(), self.transactions(), time.process_time(), self.server_cpu()
        times = [milliseconds(work) for work in works]
        n, used, after = len(works), time.process_time() - own, self.server_cpu()
        return {
            "n": n,
            "wall_ms": round(statistics.median(times), 3),
            "app_cpu_ms": round(used * 1_000 / n, 3),
            "server_cpu_ms": None if theirs is None or after is None else round((after - theirs) * 1_000 / n, 3),
            "wal_bytes": round((self.wal() - wal) / n),
            "transactions": round((self.transactions() - ids) / n, 2),
        }

    def counted(self, name: str, do: Callable[[], Any]) -> int | None:
        """Statements that the server was sent meanwhile by new sessions of this database."""
        log = self.log()
        if log is None:
            return None
        self.connection.execute(f"ALTER DATABASE {name} SET log_statement = 'all'".encode())
        before = log.stat().st_size
        do()
        self.connection.execute(f"ALTER DATABASE {name} RESET log_statement".encode())
        with log.open("rb") as file:
            file.seek(before)
            return sum(b"LOG:  statement: " in line or b"LOG:  execute " in line for line in file)


def _postmaster(connection: psycopg.Connection[Any]) -> psutil.Process | None:
    """The server's first process, if it is on this machine."""
    ((pid, address),) = connection.execute("SELECT pg_backend_pid(), inet_server_addr()").fetchall()
    if address is not None and not str(address).startswith(("127.", "::1")):
        return None
    try:
        process = psutil.Process(pid)
        return process.parent() if "postgres" in process.name() else None
    except psutil.NoSuchProcess:
        return None


def between(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], count: int) -> dict[str, Any]:
    """Bytes that each of `count` took, by table; tables that did not grow are left out."""
    grew = {
        name: {kind: round((size - before.get(name, {}).get(kind, 0)) / count, 1) for kind, size in kinds.items()}
        for name, kinds in sorted(after.items())
    }
    return {name: kinds for name, kinds in grew.items() if any(value >= 0.5 for value in kinds.values())}


def after_checkpoint(meter: Meter, works: Sequence[Callable[[], Any]]) -> int:
    """Bytes of log that each takes when every page it changes is changed for the first time since a checkpoint. What
    was written long ago has been vacuumed: a page that is only read is not logged."""
    meter.connection.execute("VACUUM")
    total = 0
    for work in works:
        meter.connection.execute("CHECKPOINT")
        before = meter.wal()
        work()
        total += meter.wal() - before
    return round(total / len(works))


def per_each(meter: Meter, name: str, work: Callable[[int], Callable[[], None]]) -> float | None:
    """Statements that each of a number takes: what ten more send more."""
    few, many = meter.counted(name, work(5)), meter.counted(name, work(15))
    return None if few is None or many is None else (many - few) / 10


def fsync() -> float:
    """Milliseconds that the disk takes to keep one page (median of 50)."""
    path = Path("page.tmp").resolve()
    with path.open("wb", buffering=0) as file:

        def keep() -> None:
            file.write(bytes(8_192))
            os.fsync(file.fileno())

        found = round(statistics.median(milliseconds(keep) for _ in range(50)), 3)
    path.unlink()
    return found
