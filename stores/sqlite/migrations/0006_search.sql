-- A row of the search table says when and for whom it holds, and rows are clustered by the write that left them: what
-- keeps a space in memory reads what is new in it, not the whole space again.

ALTER TABLE search_versions ADD COLUMN removed INTEGER NOT NULL DEFAULT 0; -- version of the last row deleted or replaced

CREATE TABLE found (
    space    TEXT NOT NULL,
    seq      INTEGER NOT NULL,  -- the space's version when the row was written
    place    INTEGER,           -- where it stood first, when it was written again; NULL: at `seq`
    grp      TEXT NOT NULL,
    id       TEXT NOT NULL,
    speaker  TEXT,
    since    INTEGER,           -- from when it holds; NULL: always
    until    INTEGER,           -- until when, exclusive; NULL: always
    reach    TEXT,              -- for whom, as JSON; NULL: for all who read the space
    embedder INTEGER NOT NULL,  -- whose vectors it has; 0: none, a job adds them
    blob     BLOB NOT NULL,
    PRIMARY KEY (space, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO found
SELECT search.space, search.seq, NULL, search.grp, search.id, search.speaker, records.valid_from,
    min(ifnull(records.valid_to, records.expires_at), ifnull(records.expires_at, records.valid_to)),
    nullif(json_patch('{}', json_object(
        'within', json(nullif(json_patch('{}', json_object(
            'application', records.in_application, 'project', records.in_project, 'agent', records.in_agent,
            'thread', records.in_thread
        )), '{}')),
        'readers', json(records.readers), 'environment', records.environment, 'agent', records.agent_family,
        'versions', records.agent_versions, 'author', iif(records.owner = 'session', records.author, NULL)
    )), '{}'),
    search.embedder, search.blob
FROM search LEFT JOIN records ON records.id = search.id ORDER BY search.space, search.seq;

DROP TABLE search;
ALTER TABLE found RENAME TO search;
CREATE UNIQUE INDEX search_ids ON search (space, id);
CREATE INDEX search_gaps ON search (space, id) WHERE embedder = 0;
