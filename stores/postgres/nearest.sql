-- What lets a large space be searched without reading it whole; made when the first one is there, for vectors of one
-- length. All of it is derived from the search table. {vector}, {ops} and {dims} are filled in.

CREATE TABLE search_wide (
    tenant  text NOT NULL,
    space   text NOT NULL,
    version bigint NOT NULL,        -- of the space, when it was last the same
    PRIMARY KEY (tenant, space),
    FOREIGN KEY (tenant, space) REFERENCES search_versions ON DELETE CASCADE
);
CREATE TABLE search_regions (
    tenant  text NOT NULL,
    space   text NOT NULL,
    reach   text NOT NULL,
    numbers bytea NOT NULL,         -- `keywords.Whole.numbers` of the rows of this reach
    PRIMARY KEY (tenant, space, reach),
    FOREIGN KEY (tenant, space) REFERENCES search_wide ON DELETE CASCADE
);
CREATE TABLE search_terms (
    tenant    text NOT NULL,
    space     text NOT NULL,
    reach     text NOT NULL,
    term      bigint NOT NULL,
    documents bigint NOT NULL,
    PRIMARY KEY (tenant, space, reach, term),
    FOREIGN KEY (tenant, space) REFERENCES search_wide ON DELETE CASCADE
) PARTITION BY HASH (tenant);
CREATE TABLE search_near (
    tenant text NOT NULL,
    space  text NOT NULL,
    id     text NOT NULL,
    part   int NOT NULL,            -- which of its chunks
    reach  text NOT NULL,
    since  bigint,
    until  bigint,
    terms  bigint[],                -- of the space: its number above, the term's below; with the first chunk
    vector {vector}({dims}) STORAGE PLAIN,
    PRIMARY KEY (tenant, space, id, part),
    FOREIGN KEY (tenant, space) REFERENCES search_wide ON DELETE CASCADE
) PARTITION BY HASH (tenant);

DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY ARRAY['search_terms', 'search_near'] LOOP
        FOR n IN 0 .. {partitions} - 1 LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS {partitions}, REMAINDER %s)',
                name || '_p' || to_char(n, 'FM000'), name, n
            );
        END LOOP;
    END LOOP;
    FOR name IN
        SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^search_(wide|regions|terms|near)'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;
CREATE INDEX search_near_by_terms ON search_near USING gin (terms);
CREATE INDEX search_near_by_vector ON search_near USING hnsw (vector {ops});
-- of words no samples are kept; see migration 0004
ALTER TABLE search_near ALTER COLUMN terms SET STATISTICS 0, ALTER COLUMN vector SET STATISTICS 0;
