COMMENT ON COLUMN managers.crash_count IS 'replicas in a row that died while they compiled compiled_generation';
ALTER TABLE managers DROP COLUMN clear_time;
