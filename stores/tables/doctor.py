"""Looks at a store: is the file sound, do the tables agree, is anything left over, what was given up (R332, R336)."""

from __future__ import annotations

from typing import Any

from everthread.stores.contract import Finding
from everthread.stores.database import Connection, Database, one
from everthread.stores.tables import audit
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.jobs import Jobs
from everthread.stores.tables.reindexing import Reindexer
from everthread.stores.tables.rows import columns_of, stored_records

__all__ = ["LEFT_OVER", "RELATIONS", "TORN", "Doctor", "drifted_fields", "unreadable"]

TORN = """
SELECT records.id, records.revision FROM records WHERE (revision, revision) <> (
    SELECT count(*), coalesce(max(revisions.revision), 0) FROM revisions WHERE revisions.id = records.id
)
"""
LEFT_OVER = {
    "revisions": "id NOT IN (SELECT id FROM records)",
    "messages": "thread_id NOT IN (SELECT thread_id FROM threads)",
    "inbox": "thread_id NOT IN (SELECT thread_id FROM threads)",
    "artifact_uses": """
        NOT EXISTS (
            SELECT 1 FROM artifacts
            WHERE (artifacts.tenant, artifacts.user, artifacts.id)
                = (artifact_uses.tenant, artifact_uses.user, artifact_uses.artifact_id)
        )
    """,
    "artifacts": """
        NOT EXISTS (
            SELECT 1 FROM artifact_uses
            WHERE (artifact_uses.tenant, artifact_uses.user, artifact_uses.artifact_id)
                = (artifacts.tenant, artifacts.user, artifacts.id)
        )
    """,
    "item_vectors": "item NOT IN (SELECT id FROM items)",
}
"""Rows that nothing leads to, by table: they can neither be read nor erased."""
RELATIONS = """
SELECT records.id, json_extract(relation.value, '$.kind') AS kind, json_extract(relation.value, '$.target') AS target
FROM records JOIN revisions USING (id, revision),
    json_each(iif(json_valid(body), body, '{}'), '$.relations') AS relation
"""
"""The relations that the records themselves name."""
RELATION_DRIFT = f"""
SELECT count(*) FROM (
    SELECT * FROM (SELECT id, kind, target FROM relations EXCEPT {RELATIONS})
    UNION ALL
    SELECT * FROM ({RELATIONS} EXCEPT SELECT id, kind, target FROM relations)
)
"""
FIELDS = (
    "owner", "owner_id", "revision", "status", "subject", "predicate", "thread_id", "in_application", "in_project",
    "in_agent", "in_thread", "agent_family", "agent_versions", "environment", "readers", "valid_from", "valid_to",
    "expires_at", "recorded_at",
)  # fmt: skip
"""The columns of a record: queries filter by them."""
HAVING_VECTORS = """
SELECT embedders.id, count(*) FROM search LEFT JOIN embedders ON number = embedder GROUP BY embedders.id
"""
FIX = "everthread doctor --fix"


class Doctor:
    """`findings` looks at everything and changes nothing."""

    def __init__(self, database: Database, indexer: Indexer, reindexer: Reindexer, jobs: Jobs) -> None:
        self._database = database
        self._indexer = indexer
        self._reindexer = reindexer
        self._jobs = jobs

    def findings(self) -> list[Finding]:
        """See `MemoryStore.doctor`."""
        with self._database.read() as connection:
            found = [
                self._versions(connection),
                self._integrity(connection),
                self._history(connection),
                self._fields(connection),
                self._relations(connection),
                self._left_over(connection),
                audit.verified(connection),
                self._vectors(connection),
                *_unfinished(connection),
            ]
        return [*found, self._drift(), self._failed_jobs()]

    def _versions(self, connection: Connection) -> Finding:
        return Finding(check="versions", ok=True, detail=self._database.about(connection))

    def _integrity(self, connection: Connection) -> Finding:
        problems = self._database.damage(connection)
        return Finding(
            check="file",
            ok=not problems,
            detail="; ".join(problems) or f"{self._database.path} is sound",
            remedy="restore a backup, or export what can still be read into a new home" if problems else None,
        )

    def _history(self, connection: Connection) -> Finding:
        records = one(connection, "SELECT count(*) FROM records")
        torn = one(connection, f"SELECT count(*) FROM ({TORN})")
        return Finding(
            check="history",
            ok=not torn,
            detail=f"{records} records"
            + (f", {torn} without their whole history" if torn else ", each with its history"),
            remedy=f"{FIX} goes by the history that is left; a backup has what is lost" if torn else None,
        )

    def _fields(self, connection: Connection) -> Finding:
        damaged, drifted = unreadable(connection), drifted_fields(connection)
        problems = [f"{len(damaged)} cannot be read" * bool(damaged), f"{len(drifted)} differ" * bool(drifted)]
        return Finding(
            check="fields",
            ok=not (damaged or drifted),
            detail=", ".join(filter(None, problems)) or "what queries filter by is what the records say",
            remedy="restore a backup" if damaged else FIX if drifted else None,
        )

    def _relations(self, connection: Connection) -> Finding:
        drifted = one(connection, RELATION_DRIFT)
        return Finding(
            check="relations",
            ok=not drifted,
            detail=f"{drifted} are not what the records say" if drifted else "as the records say",
            remedy=FIX if drifted else None,
        )

    def _left_over(self, connection: Connection) -> Finding:
        counts = {
            table: one(connection, f"SELECT count(*) FROM {table} WHERE {nothing}")
            for table, nothing in LEFT_OVER.items()
        }
        found = ", ".join(f"{count} {table}" for table, count in counts.items() if count)
        return Finding(
            check="orphans",
            ok=not found,
            detail=f"nothing leads to {found}" if found else "none",
            remedy=FIX if found else None,
        )

    def _vectors(self, connection: Connection) -> Finding:
        ours, holder = self._indexer.embedder_id, self._indexer.holder(connection)
        if ours is None:
            return Finding(check="vectors", ok=True, detail="opened without an embedder: keywords only")
        having = dict(connection.execute(HAVING_VECTORS))
        others = ", ".join(f"{count} of {id}" for id, count in having.items() if id not in (None, ours))
        if others:
            detail = f"the index holds vectors of another embedder than {ours}: {others}"
        elif None in having:
            detail = f"{having[None]} texts have no vectors yet: they are found by keywords"
        elif holder not in (None, ours):
            detail = f"the index is being embedded anew by {ours}, after {holder}"
        else:
            return Finding(check="vectors", ok=True, detail=f"every text is embedded by {ours}")
        return Finding(check="vectors", ok=False, detail=detail, remedy=f"run `everthread worker`, or {FIX}")

    def _drift(self) -> Finding:
        missing, stray = map(len, self._reindexer.drift())
        with self._database.read() as connection:
            texts = one(connection, "SELECT count(*) FROM search")
        return Finding(
            check="index",
            ok=not (missing or stray),
            detail=f"{texts} texts are searchable"
            + (f"; {missing} are missing, {stray} should not be there" if missing or stray else ""),
            remedy=FIX if missing or stray else None,
        )

    def _failed_jobs(self) -> Finding:
        failed = self._jobs.failed()
        return Finding(
            check="jobs",
            ok=not failed,
            detail="; ".join(f"{job.kind} {job.id}: {job.error}" for job in failed[:5]) or "none was given up",
            remedy=f"repair the cause, then `everthread jobs --retry ID`; {FIX} replaces embed jobs"
            if failed
            else None,
        )


def _unfinished(connection: Connection) -> list[Finding]:
    """What is said of a store into which another was being copied when it was stopped."""
    if connection.kept("unfinished_copy") is None:
        return []
    detail = "another store was being copied into this one, and not all of it is here"
    return [Finding(check="copy", ok=False, detail=detail, remedy="run the same `everthread copy` again")]


def drifted_fields(connection: Connection) -> list[str]:
    """Ids of the records that a query would take for something else than they say they are."""
    found = connection.execute(f"SELECT id, {', '.join(FIELDS)} FROM records")
    rows: dict[str, tuple[Any, ...]] = {str(id): tuple(row) for id, *row in found}
    return [
        stored.record.id
        for tenant, stored in stored_records(connection, "true")
        if rows[stored.record.id] != tuple(columns_of(tenant, stored)[name] for name in FIELDS)
    ]


def unreadable(connection: Connection) -> list[str]:
    """Ids of the records whose body is damaged or lost."""
    known = {stored.record.id for _, stored in stored_records(connection, "true")}
    return [str(id) for (id,) in connection.execute("SELECT id FROM records") if id not in known]
