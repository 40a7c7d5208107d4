-- Plain items: everything a LangGraph store holds outside our own namespaces.
-- Times are microseconds since 1970-01-01 UTC.

CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,    -- each label followed by ".", which no label may contain: ("acme", "ana") is "acme.ana."
    key TEXT NOT NULL,
    value TEXT NOT NULL,        -- JSON
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ttl_minutes REAL,
    expires_at INTEGER,
    UNIQUE (namespace, key)
) STRICT;

CREATE INDEX items_namespaces ON items (namespace, expires_at);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE item_vectors (
    item INTEGER NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    field TEXT NOT NULL,        -- the path of the index config that the text was found at
    part INTEGER NOT NULL,      -- counts the texts that one path found
    vector BLOB NOT NULL,       -- float32, little-endian
    UNIQUE (item, field, part)
) STRICT;
