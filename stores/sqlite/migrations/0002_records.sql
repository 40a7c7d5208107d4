-- Long-term memory: records with their history, the search table, receipts, audit, outbox, tombstones.
-- Times are microseconds since 1970 in UTC; `body` keeps them whole, with the offset they were given in.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest revision of each record. The columns beside `body` are what queries filter by; `body` is the record.
CREATE TABLE records (
    id              TEXT PRIMARY KEY,
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
) STRICT, WITHOUT ROWID;

CREATE INDEX records_by_scope ON records (tenant, owner, owner_id, status);
CREATE INDEX records_by_key ON records (tenant, subject, predicate) WHERE subject IS NOT NULL;
CREATE INDEX records_by_thread ON records (tenant, thread_id) WHERE thread_id IS NOT NULL;

-- Every revision, the newest too.
CREATE TABLE revisions (
    id          TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    actor       TEXT NOT NULL,          -- the user whose turn wrote it
    receipt     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (id, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE relations (
    id      TEXT NOT NULL,
    kind    TEXT NOT NULL,
    target  TEXT NOT NULL,
    PRIMARY KEY (id, kind, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX relations_by_target ON relations (target);

CREATE TABLE receipts (
    id      TEXT PRIMARY KEY,
    tenant  TEXT NOT NULL,
    user    TEXT NOT NULL,
    key     TEXT NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (tenant, user, key)
) STRICT, WITHOUT ROWID;

-- What happened, by ids alone; each row's hash covers the one before it.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    tenant  TEXT NOT NULL,
    user    TEXT NOT NULL,
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL,
    hash    BLOB NOT NULL
) STRICT;

CREATE TABLE outbox (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    record_id TEXT NOT NULL
) STRICT;

-- Keyed hashes of what was erased: they block re-learning and hold no word of it.
CREATE TABLE tombstones (
    mark BLOB PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a searchable text, clustered by space (a scope's records, or a user's messages) and group (thread): a search
-- reads one contiguous range, and can read no other.
CREATE TABLE search (
    space   TEXT NOT NULL,
    grp     TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    speaker TEXT,
    blob    BLOB NOT NULL,
    whole   INTEGER NOT NULL,           -- 0: without its vectors, which a job adds
    PRIMARY KEY (space, grp, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX search_ids ON search (space, id);
CREATE INDEX search_gaps ON search (space, id) WHERE NOT whole;

-- Rises with every row put or deleted: by it another process's cache notices a write.
CREATE TABLE search_versions (
    space   TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
