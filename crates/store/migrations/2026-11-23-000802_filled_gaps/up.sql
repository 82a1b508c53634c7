-- When a gap was closed. A column without a default: no row is rewritten.
ALTER TABLE feed_gaps ADD COLUMN fill_time timestamptz;
COMMENT ON COLUMN feed_gaps.fill_time IS 'when a later reading had read the whole period; NULL while it is open';
