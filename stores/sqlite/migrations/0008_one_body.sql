-- What a record says is kept once: in its history, to which the record's row leads by its revision.

INSERT INTO revisions (id, revision, recorded_at, actor, receipt, reason, body)
SELECT id, revision, recorded_at, author, '', 'its revision was missing', body FROM records WHERE true
ON CONFLICT DO NOTHING;

UPDATE revisions SET body = records.body FROM records
WHERE records.id = revisions.id AND records.revision = revisions.revision AND records.body <> revisions.body
    AND json_valid(records.body);

ALTER TABLE records DROP COLUMN body;
