-- Whose vectors each searchable text has: another embedder takes over row by row, and can be stopped at any of them.

CREATE TABLE embedders (
    number INTEGER PRIMARY KEY,
    id     TEXT NOT NULL,
    dims   INTEGER NOT NULL,
    UNIQUE (id, dims)
) STRICT;

-- The embedder's number; 0: without its vectors, which a job adds.
ALTER TABLE search ADD COLUMN embedder INTEGER NOT NULL DEFAULT 0;

-- The dimension stands in the blob's seventh and eighth byte. Vectors that were just changing hands are made again.
DELETE FROM meta WHERE name = 'embedder' AND value LIKE 'nobody yet%';
INSERT INTO embedders (id, dims)
SELECT meta.value, (
    SELECT max(
        16 * (instr('0123456789ABCDEF', substr(hex(substr(blob, 7, 2)), 1, 1)) - 1)
        + instr('0123456789ABCDEF', substr(hex(substr(blob, 7, 2)), 2, 1)) - 1
        + 4096 * (instr('0123456789ABCDEF', substr(hex(substr(blob, 7, 2)), 3, 1)) - 1)
        + 256 * (instr('0123456789ABCDEF', substr(hex(substr(blob, 7, 2)), 4, 1)) - 1)
    ) FROM search WHERE whole
)
FROM meta WHERE meta.name = 'embedder' AND EXISTS (SELECT 1 FROM search WHERE whole);
UPDATE search SET embedder = (SELECT number FROM embedders) WHERE whole AND EXISTS (SELECT 1 FROM embedders);

DROP INDEX search_gaps;
ALTER TABLE search DROP COLUMN whole;
CREATE INDEX search_gaps ON search (space, id) WHERE embedder = 0;
