-- A Manager that begins to watch a feed again must not get all posts since its last watcher left. Written with the watchers,
-- and by the scanner.
ALTER TABLE feeds ADD COLUMN rewatch_time timestamptz;
COMMENT ON COLUMN feeds.rewatch_time IS 'when a Manager began to watch the feed again, until polls have caught up';
