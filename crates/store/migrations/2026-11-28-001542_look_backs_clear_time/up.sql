-- Crashes are forgotten an hour after the first end that follows them (ADR 0048). Written by the scanner. See
-- 001540_feeds_clear_time.
ALTER TABLE look_backs ADD COLUMN clear_time timestamptz;
COMMENT ON COLUMN look_backs.clear_time IS 'first end since the last crash; NULL without any. An hour later, crash_count is void';
COMMENT ON COLUMN look_backs.crash_count IS 'replicas that died while they held the lease';
