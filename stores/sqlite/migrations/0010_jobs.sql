-- Jobs say when they were made, one may be called off, and those of one lane wait for each other. Gates let something
-- through once in a while, for all processes.

CREATE TABLE jobs_new (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    user       TEXT NOT NULL,
    key        TEXT,
    kind       TEXT NOT NULL,
    lane       TEXT,
    payload    TEXT NOT NULL,
    status     TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'leased', 'done', 'failed', 'cancelled')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    token      INTEGER NOT NULL DEFAULT 0,
    due_at     INTEGER NOT NULL,  -- while leased: when the lease runs out
    error      TEXT,
    created_at INTEGER NOT NULL DEFAULT 0,  -- 0: before this was noted
    UNIQUE (tenant, user, key)
) STRICT;
INSERT INTO jobs_new (seq, id, tenant, user, key, kind, payload, status, attempts, token, due_at, error)
SELECT seq, id, tenant, user, key, kind, payload, status, attempts, token, due_at, error FROM jobs;
DROP TABLE jobs;
ALTER TABLE jobs_new RENAME TO jobs;
CREATE INDEX jobs_open ON jobs (status, due_at) WHERE status IN ('ready', 'leased');
CREATE INDEX jobs_in_lanes ON jobs (tenant, user, lane) WHERE status = 'leased' AND lane IS NOT NULL;
-- Read at the start of every turn.
CREATE INDEX jobs_of_user ON jobs (tenant, user, status) WHERE status IN ('ready', 'leased', 'failed');

CREATE TABLE gates (
    tenant    TEXT NOT NULL,
    user      TEXT NOT NULL,
    name      TEXT NOT NULL,
    passed_at INTEGER NOT NULL,
    passed_by TEXT NOT NULL,
    PRIMARY KEY (tenant, user, name)
) STRICT, WITHOUT ROWID;
