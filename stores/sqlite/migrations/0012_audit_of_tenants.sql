-- The audit log is a chain for each tenant, numbered from 1: it is whole, and is verified, without the others.
-- `audit_link(last, at, tenant, user, action, detail)` is the hash of an entry (stores/tables/audit.py). An entry that
-- was not whole in the one chain of before keeps its hash, which is wrong here too.

CREATE TABLE audit_of_tenants (
    tenant    TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    user      TEXT NOT NULL,
    action    TEXT NOT NULL,
    detail    TEXT NOT NULL,
    hash      BLOB NOT NULL,
    thread_id TEXT GENERATED ALWAYS AS (iif(json_valid(detail), detail ->> '$.thread_id', NULL)) VIRTUAL,
    reply_id  TEXT GENERATED ALWAYS AS (iif(json_valid(detail), detail ->> '$.reply_id', NULL)) VIRTUAL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TEMP TABLE numbered (tenant, number, seq, at, user, action, detail, hash, whole, PRIMARY KEY (tenant, number));
INSERT INTO numbered
SELECT tenant, row_number() OVER (PARTITION BY tenant ORDER BY seq), seq, at, user, action, detail, hash,
    seq = coalesce(lag(seq) OVER chain, 0) + 1
    AND hash = audit_link(coalesce(lag(hash) OVER chain, x''), at, tenant, user, action, detail)
FROM audit WINDOW chain AS (ORDER BY seq);

WITH RECURSIVE linked (tenant, number, hash) AS (
    SELECT tenant, number, iif(whole, audit_link(x'', at, tenant, user, action, detail), hash)
    FROM numbered WHERE number = 1
    UNION ALL
    SELECT next.tenant, next.number, iif(
        next.whole, audit_link(linked.hash, next.at, next.tenant, next.user, next.action, next.detail), next.hash
    )
    FROM linked JOIN numbered AS next ON next.tenant = linked.tenant AND next.number = linked.number + 1
)
INSERT INTO audit_of_tenants (tenant, seq, at, user, action, detail, hash)
SELECT tenant, number, at, user, action, detail, linked.hash FROM linked JOIN numbered USING (tenant, number);

CREATE TABLE audit_records_of_tenants (
    tenant    TEXT NOT NULL,
    record_id TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    holder    TEXT,
    PRIMARY KEY (tenant, record_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO audit_records_of_tenants (tenant, record_id, seq, holder)
SELECT numbered.tenant, record_id, numbered.number, holder FROM audit_records JOIN numbered USING (seq);

DROP TABLE temp.numbered;
DROP TABLE audit_records;
DROP TABLE audit;
ALTER TABLE audit_of_tenants RENAME TO audit;
ALTER TABLE audit_records_of_tenants RENAME TO audit_records;
CREATE INDEX audit_by_user ON audit (tenant, user, seq);
CREATE INDEX audit_by_thread ON audit (tenant, thread_id, reply_id);
CREATE INDEX audit_records_of_others ON audit_records (tenant, holder, seq) WHERE holder IS NOT NULL;
