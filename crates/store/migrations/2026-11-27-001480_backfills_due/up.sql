-- Serves the scanner's look for waiting backfills, by Namespace and then by the time since when they are due.
CREATE INDEX CONCURRENTLY IF NOT EXISTS backfills_due_idx
    ON backfills (namespace_id, (coalesce(next_time, create_time))) WHERE state = 'WAITING';
