"""A whole store in the tables of a database, whichever it is. Its parts do the work; this puts them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, Op, Result, TTLConfig

from everthread.stores.aside import aside
from everthread.stores.contract import (
    READABLE,
    AuditEntry,
    Event,
    Finding,
    Job,
    MemoryStore,
    Noted,
    Source,
    ThreadEraser,
    Touch,
)
from everthread.stores.database import Database
from everthread.stores.door import guarded
from everthread.stores.embedding import Embedder, resolve_embedder
from everthread.stores.identity import Identity, Memory, Scope
from everthread.stores.record import Change, ErasureReceipt, Recall, Receipt, Record, Selection, Status
from everthread.stores.tables.artifacts import Artifacts
from everthread.stores.tables.audit import AuditLog
from everthread.stores.tables.consent import Consents
from everthread.stores.tables.doctor import Doctor
from everthread.stores.tables.erasure import Eraser
from everthread.stores.tables.inbox import Inbox
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.items import Items
from everthread.stores.tables.jobs import Jobs
from everthread.stores.tables.outbox import Outbox
from everthread.stores.tables.plain import PlainRecords, is_ours
from everthread.stores.tables.profile import Profiles
from everthread.stores.tables.reads import ReadLog
from everthread.stores.tables.recall import Recaller
from everthread.stores.tables.records import Records
from everthread.stores.tables.reindexing import Reindexer
from everthread.stores.tables.repair import Repair
from everthread.stores.tables.restoring import Restoring
from everthread.stores.tables.retention import Retention
from everthread.stores.tables.rows import Rows
from everthread.stores.tables.search import Nearest, SearchIndex
from everthread.stores.tables.sweeper import Sweeper, ended
from everthread.stores.tables.tasks import Tasks
from everthread.stores.tables.transcripts import Transcripts
from everthread.stores.tables.transfer import Transfer

__all__ = ["TableStore"]


@guarded
class TableStore(MemoryStore):
    """A MemoryStore in the tables of `database`; the other settings are those of `SqliteStore` and `PostgresStore`."""

    supports_ttl = True

    def __init__(
        self,
        database: Database,
        *,
        embedder: str | Embeddings | Embedder | None,
        index: IndexConfig | None,
        ttl: TTLConfig | None,
        audit_reads: bool,
        default_consent: Memory,
        clock: Callable[[], datetime],
        nearest: Callable[[str | None], Nearest] | None = None,
    ) -> None:
        super().__init__()
        self.index_config = index
        # As LangGraph's own: a read prolongs an item's life only when the config says so, or the call does.
        self.ttl_config: TTLConfig = {"refresh_on_read": False, **(ttl or {})}
        self._sweeps = ttl is not None
        self._embedder = resolve_embedder(embedder)
        embedder_id = self._embedder.id if self._embedder else None
        self._database = database
        self._reads = ReadLog(database, clock, on=audit_reads)
        self._consents = Consents(database, clock, default=default_consent)
        self._search, self._rows = SearchIndex(embedder_id, nearest=nearest(embedder_id) if nearest else None), Rows()
        self._audit = AuditLog(database, self._rows, clock)
        self._indexer = Indexer(database, self._embedder)
        self._items = Items(database, index=index, ttl=ttl, clock=clock)
        self._sweeper = Sweeper(self._items.sweep_ttl)
        self.transcripts: Transcripts = Transcripts(database, self._search, self._indexer, self._consents.of)
        self.artifacts: Artifacts = Artifacts(database)
        self.tasks: Tasks = Tasks(database)
        self.inbox: Inbox = Inbox(database)
        self.jobs: Jobs = Jobs(database)
        self._plain = PlainRecords(database, self._rows, self._search, self._indexer)
        self._records = Records(database, self._rows, self._search, self._indexer, self._consents, clock)
        self._recaller = Recaller(database, self._rows, self._search, self._indexer, self.transcripts, clock)
        self._profiles = Profiles(database, self._rows, self._search, clock)
        self._outbox = Outbox(database)
        self._retention = Retention(database, self.transcripts, clock)
        self._eraser = Eraser(database, self._rows, self._search, self.transcripts, self.artifacts, clock)
        self._reindexer = Reindexer(database, self._search, self._indexer, self.transcripts)
        self._doctor = Doctor(database, self._indexer, self._reindexer, self.jobs)
        self._repair = Repair(database, self._rows, self._indexer, self._reindexer)
        restoring = Restoring(database, self._search, self._indexer, self._items.vectors, clock)
        self.transfer: Transfer = Transfer(database, restoring, clock)
        self._reindexer.order()

    def setup(self) -> None:
        """Nothing is left to do: the tables are made when the store is opened. Here for users of LangGraph's own."""

    # ---------------------------------------------------------------------------------------------------------- items

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run LangGraph's operations, one result each, in order. Under "everthread" they read records."""
        listed = list(ops)
        results: dict[int, Result] = {n: self._plain.read(op) for n, op in enumerate(listed) if is_ours(op)}
        others = [n for n in range(len(listed)) if n not in results]
        results |= dict(zip(others, self._items.batch(listed[n] for n in others), strict=True)) if others else {}
        return [results[n] for n in range(len(listed))]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, without blocking the event loop."""
        listed = list(ops)
        if any(map(is_ours, listed)):
            return await aside(self.batch, listed)
        return await self._items.abatch(listed)

    @property
    def embeddings(self) -> Embeddings | None:
        """What embeds plain items, as `index` configured it; None without an index."""
        return self._items.embeddings

    def sweep_ttl(self) -> int:
        return self._items.sweep_ttl()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        if not self._sweeps:
            return ended()
        return self._sweeper.start(sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or 5)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        return self._sweeper.stop(timeout)

    # -------------------------------------------------------------------------------------------------------- records

    def commit(
        self, identity: Identity, changes: Sequence[Change], *, key: str, thread_id: str | None = None
    ) -> Receipt:
        return self._records.commit(identity, changes, key=key, thread_id=thread_id)

    def recall(
        self,
        identity: Identity,
        query: str,
        *,
        limit: int = 10,
        sources: Sequence[Source] | set[Source] = ("records",),
        thread_id: str | None = None,
        scopes: Sequence[Scope] | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        floor: float | None = None,
        explain: bool = False,
        asked_at: datetime | None = None,
        task: str | None = None,
    ) -> Recall:
        found = self._recaller.recall(
            identity,
            query,
            limit=limit,
            sources=sources,
            thread_id=thread_id,
            scopes=scopes,
            as_of=as_of,
            now=now,
            floor=floor,
            explain=explain,
            asked_at=asked_at,
            task=task,
        )
        self._reads.hits(identity, (*found.hits, *found.dropped))
        return found

    def record(
        self, identity: Identity, record_id: str, *, revision: int | None = None, as_of: datetime | None = None
    ) -> Record | None:
        found = self._records.record(identity, record_id, revision=revision, as_of=as_of)
        self._reads.records(identity, "record", [found])
        return found

    def records(
        self,
        identity: Identity,
        *,
        ids: Sequence[str] | None = None,
        scopes: Sequence[Scope] | None = None,
        statuses: Sequence[Status] = READABLE,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        limit: int | None = None,
    ) -> list[Record]:
        found = self._records.records(
            identity, ids=ids, scopes=scopes, statuses=statuses, thread_id=thread_id, as_of=as_of, now=now, limit=limit
        )
        self._reads.records(identity, "records", found)
        return found

    def history(self, identity: Identity, record_id: str) -> list[Record]:
        found = self._records.history(identity, record_id)
        self._reads.records(identity, "history", found)
        return found

    def current(
        self,
        identity: Identity,
        subject: str,
        predicate: str,
        *,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
    ) -> list[Record]:
        found = self._records.current(identity, subject, predicate, thread_id=thread_id, as_of=as_of, now=now)
        self._reads.records(identity, "current", found)
        return found

    def profile(
        self,
        identity: Identity,
        *,
        thread_id: str | None = None,
        as_of: datetime | None = None,
        now: datetime | None = None,
        limit: int = 10,
    ) -> list[Record]:
        found = self._profiles.profile(identity, thread_id=thread_id, as_of=as_of, now=now, limit=limit)
        self._reads.records(identity, "profile", found)
        return found

    def receipt(self, identity: Identity, receipt_id: str) -> Receipt | None:
        return self._records.receipt(identity, receipt_id)

    def receipt_of(self, identity: Identity, key: str) -> Receipt | None:
        return self._records.receipt_of(identity, key)

    def learnt_from(
        self, identity: Identity, thread_id: str, message_ids: Sequence[str], *, since: datetime | None = None
    ) -> list[Record]:
        return self._records.learnt_from(identity, thread_id, message_ids, since)

    def receipts(self, identity: Identity, record_id: str) -> list[Receipt]:
        return self._records.receipts(identity, record_id)

    def cite(self, identity: Identity, record_ids: Sequence[str]) -> None:
        self._records.cite(identity, record_ids)

    def events(self, identity: Identity, after: int = 0, *, limit: int = 100) -> list[Event]:
        return self._outbox.events(identity, after, limit)

    def audit(
        self,
        identity: Identity,
        *,
        record_id: str | None = None,
        thread_id: str | None = None,
        action: str | None = None,
        after: int = 0,
        limit: int = 1_000,
    ) -> list[AuditEntry]:
        return self._audit.entries(
            identity, record_id=record_id, thread_id=thread_id, action=action, after=after, limit=limit
        )

    def verify_audit(self, tenant: str | None = None) -> Finding:
        return self._audit.verify(tenant)

    def note(
        self,
        identity: Identity,
        thread_id: str | None,
        events: Sequence[Noted],
        *,
        reply_id: str | None = None,
        answers: str | None = None,
    ) -> bool:
        return self._audit.note(identity, thread_id, events, reply_id=reply_id, answers=answers)

    def trace(self, identity: Identity, record_id: str) -> list[Touch]:
        return self._audit.trace(identity, record_id)

    def set_consent(self, identity: Identity, memory: Memory) -> None:
        self._consents.set(identity, memory)

    def consent(self, identity: Identity) -> Memory:
        return self._consents.of(identity)

    def prune_events(self, older_than: timedelta) -> int:
        return self._retention.prune_events(older_than)

    def run_out(self, identity: Identity, *, now: datetime) -> list[Record]:
        return self._records.run_out(identity, now)

    def expire_transcripts(self, identity: Identity, older_than: timedelta) -> int:
        return self._retention.expire_transcripts(identity, older_than)

    def erase(
        self,
        identity: Identity,
        selection: Selection,
        *,
        reason: str,
        with_source: bool = False,
        threads: ThreadEraser | None = None,
        dry_run: bool = False,
        with_backups: bool = False,
    ) -> ErasureReceipt:
        return self._eraser.erase(
            identity,
            selection,
            reason=reason,
            with_source=with_source,
            threads=threads,
            dry_run=dry_run,
            with_backups=with_backups,
        )

    # ----------------------------------------------------------------------------------------------------------- care

    def handlers(self) -> Mapping[str, Callable[[Job], None]]:
        """What runs the store's own jobs: `store.jobs.drain(store.handlers())`."""
        return {"embed": self._reindexer.embed, "expire-transcripts": self._retention.expire_by_job}

    def doctor(self) -> list[Finding]:
        return self._doctor.findings()

    def repair(self) -> list[Finding]:
        return self._repair.run()

    def rebuild(self) -> int:
        return self._reindexer.rebuild()

    def close(self) -> None:
        self._sweeper.stop()
        self._database.close()
        self._search.forget()
        self._rows.forget()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.path!r}, embedder={self._indexer.embedder_id!r})"
