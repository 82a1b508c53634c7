-- Crashes are forgotten an hour after the first end that follows them (ADR 0048). Written by the scanner. A separate migration for each
-- table: one that locked several might wait for a service that waits for it.
ALTER TABLE feeds ADD COLUMN clear_time timestamptz;
COMMENT ON COLUMN feeds.clear_time IS 'first end since the last crash; NULL without any. An hour later, crash_count is void';
COMMENT ON COLUMN feeds.crash_count IS 'replicas that died while they held the lease, and rests';
