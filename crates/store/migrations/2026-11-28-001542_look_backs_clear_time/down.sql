COMMENT ON COLUMN look_backs.crash_count IS 'replicas in a row that died while they held the lease';
ALTER TABLE look_backs DROP COLUMN clear_time;
