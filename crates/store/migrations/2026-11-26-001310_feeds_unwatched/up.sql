-- Serves the scanner's deletion of feeds that no Manager has watched for long. Their next_poll_time is about when the
-- last watcher left.
CREATE INDEX CONCURRENTLY IF NOT EXISTS feeds_unwatched_idx ON feeds (next_poll_time) WHERE NOT watched;
