COMMENT ON COLUMN rechecks.crash_count IS 'replicas in a row that died while they held the lease';
ALTER TABLE rechecks DROP COLUMN clear_time;
