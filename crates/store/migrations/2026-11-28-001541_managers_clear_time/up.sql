-- Crashes are forgotten an hour after the first end that follows them (ADR 0048). Written by the compiler. See
-- 001540_feeds_clear_time.
ALTER TABLE managers ADD COLUMN clear_time timestamptz;
COMMENT ON COLUMN managers.clear_time IS 'first end since the last crash; NULL without any. An hour later, crash_count is void';
COMMENT ON COLUMN managers.crash_count IS 'replicas that died while they compiled it';
