-- Serves retention, which purges old keys by the time in their ids.
CREATE INDEX CONCURRENTLY IF NOT EXISTS post_keys_time_idx ON post_keys (id);
