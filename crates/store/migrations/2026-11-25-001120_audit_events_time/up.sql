-- Serves retention, which purges old rows by their time. It is on an expression, so that PostgreSQL never reads the list
-- of one account from it, through the events of all others.
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_events_time_idx ON audit_events ((create_time AT TIME ZONE 'UTC'));
