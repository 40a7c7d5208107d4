"""Texts by the hash of their content, one shelf a user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, get_args

from everthread.stores.artifacts import Artifact, ArtifactKind
from everthread.stores.database import Connection, Database, one
from everthread.stores.door import guarded
from everthread.stores.identity import Identity
from everthread.stores.record import now_utc
from everthread.stores.tables.threads import bind_thread, owns_thread
from everthread.stores.tables.times import micros, moment
from everthread.stores.tables.values import as_blob, as_text

__all__ = ["Artifacts", "artifact_id", "erase_artifacts_of"]

KINDS = get_args(ArtifactKind)

FIND = """
SELECT id, kind, text, created_at,
       (SELECT nullif(thread_id, '') FROM artifact_uses
        WHERE (tenant, user, artifact_id) = (artifacts.tenant, artifacts.user, artifacts.id) ORDER BY seq LIMIT 1)
FROM artifacts WHERE tenant = ?1 AND user = ?2
"""


def artifact_id(text: str) -> str:
    """`sha256:` and the hash of the text in hex."""
    return f"sha256:{sha256(as_blob(text)).hexdigest()}"


@guarded
class Artifacts:
    """The artifacts of a store. A user sees those that were put for that user, and no others. Each method does what
    `stores/artifacts.py` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        identity: Identity,
        kind: ArtifactKind,
        text: str,
        *,
        thread_id: str | None = None,
    ) -> str:
        key = (identity.tenant, identity.user, artifact_id(text))
        with self._database.read(identity.tenant) as connection:
            if _is_used(connection, key, thread_id):
                return key[2]
        with self._database.write(identity.tenant) as connection:
            if thread_id is not None:
                bind_thread(connection, identity, thread_id)
            connection.execute(
                "INSERT INTO artifacts (tenant, user, id, kind, text, created_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (*key, kind, as_blob(text), micros(now_utc())),
            )
            connection.execute(
                "INSERT INTO artifact_uses (tenant, user, artifact_id, thread_id) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (*key, thread_id or ""),
            )
        return key[2]

    def get(self, identity: Identity, artifact_id: str) -> Artifact | None:
        with self._database.read(identity.tenant) as connection:
            row = connection.execute(f"{FIND} AND id = ?3", (identity.tenant, identity.user, artifact_id)).fetchone()
        return None if row is None else _artifact(row)

    def of_thread(
        self, identity: Identity, thread_id: str, *, kinds: Sequence[ArtifactKind] | None = None
    ) -> list[Artifact]:
        with self._database.read(identity.tenant) as connection:
            owns_thread(connection, identity, thread_id)
            rows = connection.execute(
                f"{FIND} AND id IN (SELECT artifact_id FROM artifact_uses "
                "WHERE tenant = ?1 AND user = ?2 AND thread_id = ?3) "
                "AND kind IN (SELECT value FROM json_each(?4)) ORDER BY created_at, rowid",
                (identity.tenant, identity.user, thread_id, json.dumps(KINDS if kinds is None else list(kinds))),
            ).fetchall()
        return [_artifact(row) for row in rows]

    def erase(self, identity: Identity, artifact_ids: Sequence[str]) -> int:
        with self._database.write(identity.tenant) as connection:
            connection.execute(
                "DELETE FROM artifacts WHERE tenant = ? AND user = ? AND id IN (SELECT value FROM json_each(?))",
                (identity.tenant, identity.user, json.dumps(list(artifact_ids))),
            )
            return int(connection.changes())


def erase_artifacts_of(connection: Connection, identity: Identity, thread_id: str) -> int:
    """Erase what was put in this thread alone; returns how many artifacts are gone."""
    owner = (identity.tenant, identity.user)
    released = connection.execute(
        "DELETE FROM artifact_uses WHERE tenant = ? AND user = ? AND thread_id = ? RETURNING artifact_id",
        (*owner, thread_id),
    ).fetchall()
    connection.execute(
        "DELETE FROM artifacts WHERE tenant = ?1 AND user = ?2 AND id IN (SELECT value FROM json_each(?3)) "
        "AND NOT EXISTS (SELECT 1 FROM artifact_uses WHERE tenant = ?1 AND user = ?2 AND artifact_id = artifacts.id)",
        (*owner, json.dumps([id for (id,) in released])),
    )
    return int(connection.changes())


def _is_used(connection: Connection, key: tuple[str, str, str], thread_id: str | None) -> bool:
    sql = "SELECT 1 FROM artifact_uses WHERE tenant = ? AND user = ? AND artifact_id = ? AND thread_id = ?"
    return one(connection, sql, *key, thread_id or "") is not None


def _artifact(row: tuple[Any, ...]) -> Artifact:
    id, kind, text, created_at, thread_id = row
    return Artifact(id=id, kind=kind, text=as_text(text), thread_id=thread_id, created_at=moment(created_at))
