-- What a task's state is and whether notice of it was given are two things; a task may wait for others; and it says in
-- which messages it was made, so that it goes when they go.

ALTER TABLE tasks ADD COLUMN after TEXT NOT NULL DEFAULT '[]';     -- ids of the tasks that must be completed first
ALTER TABLE tasks ADD COLUMN said_in TEXT;                         -- the thread
ALTER TABLE tasks ADD COLUMN message_ids TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN told_at INTEGER;                      -- notice was given
ALTER TABLE tasks ADD COLUMN told_in TEXT;                         -- the thread that gives it
ALTER TABLE tasks ADD COLUMN told_until INTEGER;                   -- until when no other does; NULL: none ever
ALTER TABLE tasks ADD COLUMN rung_at INTEGER;                      -- the feed says that it is due

UPDATE tasks SET
    told_at = coalesce(due_at, created_at),
    status = iif(result IS NULL, 'scheduled', 'completed')
WHERE status = 'delivered';

DROP INDEX tasks_awaiting_notice;
-- Read at the start of every turn.
CREATE INDEX tasks_awaiting_notice ON tasks (tenant, user) WHERE told_at IS NULL AND status <> 'cancelled';
CREATE INDEX tasks_to_ring ON tasks (due_at) WHERE rung_at IS NULL AND told_at IS NULL AND due_at IS NOT NULL;
CREATE INDEX tasks_said_in ON tasks (said_in) WHERE said_in IS NOT NULL;
