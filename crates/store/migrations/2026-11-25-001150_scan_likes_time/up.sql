-- Serves retention, which purges old rows by their time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS scan_likes_time_idx ON scan_likes (create_time);
