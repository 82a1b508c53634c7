-- Serves retention, which purges old rows by their time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS scan_keys_time_idx ON scan_keys (create_time);
