-- A row of the search table says since when, and until when, the store has its text so. What records said once has
-- rows too, in spaces of their own: they are made from the histories by a job (stores/tables/reindexing.py).

ALTER TABLE search ADD COLUMN known bigint NOT NULL DEFAULT 0; -- microseconds since 1970
ALTER TABLE search ADD COLUMN gone bigint;                     -- exclusive; NULL: it still has
UPDATE search SET known = records.recorded_at FROM records
WHERE records.id = search.id AND search.space LIKE '%/records/%/%';
INSERT INTO meta (name, value) SELECT 'past', 'to be made' WHERE EXISTS (SELECT 1 FROM records);
