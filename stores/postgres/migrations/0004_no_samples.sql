-- The server keeps samples of what columns hold, for its planner; an erasure does not reach them. It takes none of the
-- columns by which nothing is looked up, nor of what records are about. `samples.py` removes those that it took before.

DO $$ DECLARE place text; word text; BEGIN
    FOR place, word IN
        SELECT attrelid::regclass, quote_ident(attname) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p')
            AND NOT relispartition AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
            AND (atttypid IN ('text'::regtype, 'bytea'::regtype) OR relname = 'search_near' AND attname IN ('terms', 'vector'))
            AND (
                attname IN ('subject', 'predicate', 'terms')
                OR NOT EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND attnum = ANY (indkey))
            )
            AND relname NOT IN ('meta', 'migrations')
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %s SET STATISTICS 0', place, word);
    END LOOP;
END $$;
