-- When a feed is next read further back, for posts that became visible late. Written by the scanner with the cursor. A
-- column without a default: no row is rewritten.
ALTER TABLE feeds ADD COLUMN late_time timestamptz;
COMMENT ON COLUMN feeds.late_time IS 'NULL before the first reading, and where a platform has no late posts';
