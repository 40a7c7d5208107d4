-- The feed of events says which revision, and whose an erased record was.
ALTER TABLE outbox ADD COLUMN revision INTEGER;
ALTER TABLE outbox ADD COLUMN author TEXT;
CREATE INDEX outbox_by_tenant ON outbox (tenant, seq);
