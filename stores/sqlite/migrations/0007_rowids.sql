-- Records and revisions lie in the order they were written. Clustered by their random ids, a row above a quarter of a
-- page took a page of its own (4,700 bytes for a revision of 900), and every write touched another page.

CREATE TABLE records_new (
    id              TEXT PRIMARY KEY NOT NULL,
    tenant          TEXT NOT NULL,
    owner           TEXT NOT NULL,
    owner_id        TEXT NOT NULL,
    author          TEXT NOT NULL,      -- the user whose turn created it
    revision        INTEGER NOT NULL,
    status          TEXT NOT NULL,
    subject         TEXT,               -- case-folded, as is predicate
    predicate       TEXT,
    thread_id       TEXT,               -- where it came from
    in_application  TEXT,               -- scope.within
    in_project      TEXT,
    in_agent        TEXT,
    in_thread       TEXT,
    agent_family    TEXT,
    agent_versions  TEXT,
    environment     TEXT,
    readers         TEXT,               -- JSON array; NULL when whoever reads the scope may
    valid_from      INTEGER,
    valid_to        INTEGER,
    expires_at      INTEGER,
    recorded_at     INTEGER NOT NULL,
    usage_count     INTEGER NOT NULL DEFAULT 0,
    last_used_at    INTEGER,
    body            TEXT NOT NULL
) STRICT;

INSERT INTO records_new SELECT
    id, tenant, owner, owner_id, author, revision, status, subject, predicate, thread_id, in_application, in_project,
    in_agent, in_thread, agent_family, agent_versions, environment, readers, valid_from, valid_to, expires_at,
    recorded_at, usage_count, last_used_at, body
FROM records ORDER BY recorded_at, id;
DROP TABLE records;
ALTER TABLE records_new RENAME TO records;
CREATE INDEX records_by_scope ON records (tenant, owner, owner_id, status);
CREATE INDEX records_by_key ON records (tenant, subject, predicate) WHERE subject IS NOT NULL;
CREATE INDEX records_by_thread ON records (tenant, thread_id) WHERE thread_id IS NOT NULL;

CREATE TABLE revisions_new (
    id          TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    actor       TEXT NOT NULL,          -- the user whose turn wrote it
    receipt     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (id, revision)
) STRICT;

INSERT INTO revisions_new SELECT id, revision, recorded_at, actor, receipt, reason, body
FROM revisions ORDER BY recorded_at, id;
DROP TABLE revisions;
ALTER TABLE revisions_new RENAME TO revisions;
