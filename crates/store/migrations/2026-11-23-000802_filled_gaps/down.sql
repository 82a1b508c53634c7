ALTER TABLE feed_gaps DROP COLUMN fill_time;
