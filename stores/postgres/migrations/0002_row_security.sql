-- The second wall. The store itself runs as the owner of the tables and filters by identity in its queries. Any other
-- role that is let in (GRANT USAGE ON SCHEMA, GRANT SELECT ON the tables) sees the rows of one tenant, which it sets:
--     SET everthread.tenant = 'acme'
-- and none when it sets nothing. It can write nothing, and sees nothing of what is derived or the store's own: keys of
-- tombstones, the search index, plain items (which have no tenant).

CREATE FUNCTION this_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('everthread.tenant', true), '');

CREATE POLICY of_tenant ON records FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON revisions FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON relations FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON receipts FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON audit FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON audit_records FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON outbox FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON consents FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON threads FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON messages FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON artifacts FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON artifact_uses FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON tasks FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON inbox FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON jobs FOR SELECT USING (tenant = this_tenant());
CREATE POLICY of_tenant ON gates FOR SELECT USING (tenant = this_tenant());

-- A partition that is asked by its own name shows nothing: it has the wall, and no policy.
DO $$ DECLARE name text; BEGIN
    FOR name IN
        SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = current_schema()
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;
