-- The audit log can be asked: by record, by thread, by user. All of it is derived from the chained rows.

ALTER TABLE audit ADD COLUMN thread_id TEXT
    GENERATED ALWAYS AS (iif(json_valid(detail), detail ->> '$.thread_id', NULL)) VIRTUAL;
ALTER TABLE audit ADD COLUMN reply_id TEXT
    GENERATED ALWAYS AS (iif(json_valid(detail), detail ->> '$.reply_id', NULL)) VIRTUAL;
CREATE INDEX audit_by_user ON audit (tenant, user);
CREATE INDEX audit_by_thread ON audit (thread_id, reply_id);

-- Which entries are about which record. `holder` is the user whose record it was, when somebody else acted.
CREATE TABLE audit_records (
    record_id TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    holder    TEXT,
    PRIMARY KEY (record_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_records_of_others ON audit_records (holder, seq) WHERE holder IS NOT NULL;

INSERT INTO audit_records (record_id, seq)
SELECT record_id, seq FROM (
    SELECT decision.value ->> '$[2]' AS record_id, seq
    FROM audit, json_each(iif(json_valid(detail), detail, '{}'), '$.decisions') AS decision
    UNION
    SELECT decision.value ->> '$[4]', seq
    FROM audit, json_each(iif(json_valid(detail), detail, '{}'), '$.decisions') AS decision
    UNION
    SELECT named.value, seq
    FROM audit, json_each(iif(json_valid(detail), detail, '{}'), '$.records') AS named
    WHERE action IN ('read', 'erase')
)
WHERE record_id IS NOT NULL;

-- What each user has agreed to (R289); who is not here has what the store was opened with.
CREATE TABLE consents (
    tenant TEXT NOT NULL,
    user   TEXT NOT NULL,
    memory TEXT NOT NULL CHECK (memory IN ('on', 'read', 'off')),
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, user)
) STRICT, WITHOUT ROWID;

-- Why a thread's memory is not on, when it was not the user's own choice.
ALTER TABLE threads ADD COLUMN memory_because TEXT;
