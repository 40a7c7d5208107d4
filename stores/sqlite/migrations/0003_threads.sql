-- What a thread leaves behind: whose it is, what was said, texts by hash, tasks, admitted inputs, jobs.
-- Times are microseconds since 1970 in UTC; an `_offset` beside one is the time zone it was given in, in seconds.
-- Texts are BLOBs of UTF-8 that also lets lone surrogates and NUL through: SQLite's TEXT would refuse or cut them.

CREATE TABLE threads (
    thread_id TEXT NOT NULL PRIMARY KEY,
    tenant    TEXT NOT NULL,
    user      TEXT NOT NULL,
    name      TEXT,
    memory    TEXT NOT NULL DEFAULT 'on' CHECK (memory IN ('on', 'read', 'off')),
    bound_at  INTEGER NOT NULL,
    erased_at INTEGER,
    erased_because TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_user ON threads (tenant, user);

-- An erased message keeps its row and loses everything but its ids, so that it is not appended again.
CREATE TABLE messages (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id  TEXT NOT NULL REFERENCES threads,
    message_id TEXT NOT NULL,
    role       TEXT NOT NULL DEFAULT '',
    source     TEXT NOT NULL DEFAULT '',
    speaker    BLOB,
    text       BLOB NOT NULL DEFAULT x'',
    payload    BLOB,
    at         INTEGER NOT NULL DEFAULT 0,
    at_offset  INTEGER NOT NULL DEFAULT 0,
    erased_at  INTEGER,
    UNIQUE (thread_id, message_id)
) STRICT;
CREATE INDEX messages_in_order ON messages (thread_id, seq);
CREATE INDEX messages_in_time ON messages (thread_id, at) WHERE erased_at IS NULL;

CREATE TABLE artifacts (
    tenant     TEXT NOT NULL,
    user       TEXT NOT NULL,
    id         TEXT NOT NULL,
    kind       TEXT NOT NULL,
    text       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user, id)
) STRICT;

-- Which threads an artifact was put in; '' is none. The artifact goes when its last use goes.
CREATE TABLE artifact_uses (
    seq         INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    user        TEXT NOT NULL,
    artifact_id TEXT NOT NULL,
    thread_id   TEXT NOT NULL,
    UNIQUE (tenant, user, artifact_id, thread_id),
    FOREIGN KEY (tenant, user, artifact_id) REFERENCES artifacts ON DELETE CASCADE
) STRICT;
CREATE INDEX artifact_uses_by_thread ON artifact_uses (thread_id);

CREATE TABLE tasks (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    user       TEXT NOT NULL,
    key        TEXT,
    text       BLOB NOT NULL,
    thread_id  TEXT,
    due_at     INTEGER,
    due_offset INTEGER,
    status     TEXT NOT NULL,
    result     BLOB,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, user, key)
) STRICT;
CREATE INDEX tasks_by_thread ON tasks (thread_id);
-- Read at the start of every turn.
CREATE INDEX tasks_awaiting_notice ON tasks (tenant, user) WHERE status NOT IN ('delivered', 'cancelled');

-- A promoted input keeps its row and loses its text: the thread has it now, and it is admitted once.
CREATE TABLE inbox (
    seq        INTEGER PRIMARY KEY,
    thread_id  TEXT NOT NULL REFERENCES threads,
    message_id TEXT NOT NULL,
    delivery   TEXT NOT NULL CHECK (delivery IN ('queue', 'steer')),
    text       BLOB,
    UNIQUE (thread_id, message_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (thread_id) WHERE text IS NOT NULL;

CREATE TABLE jobs (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    tenant   TEXT NOT NULL,
    user     TEXT NOT NULL,
    key      TEXT,
    kind     TEXT NOT NULL,
    payload  TEXT NOT NULL,
    status   TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'leased', 'done', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    token    INTEGER NOT NULL DEFAULT 0,
    due_at   INTEGER NOT NULL,  -- while leased: when the lease runs out
    error    TEXT,
    UNIQUE (tenant, user, key)
) STRICT;
CREATE INDEX jobs_open ON jobs (status, due_at) WHERE status IN ('ready', 'leased');
