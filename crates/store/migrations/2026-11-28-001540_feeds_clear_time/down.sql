COMMENT ON COLUMN feeds.crash_count IS 'replicas in a row that died while they held the lease';
ALTER TABLE feeds DROP COLUMN clear_time;
