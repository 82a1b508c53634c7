COMMENT ON COLUMN feeds.next_poll_time IS NULL;
ALTER TABLE recent_posts DROP COLUMN bytes;
