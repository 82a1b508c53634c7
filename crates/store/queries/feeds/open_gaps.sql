-- $1 text: feed
-- $2 timestamptz: time that they start after
-- $3 timestamptz: time that they end before
SELECT id, start_time FROM feed_gaps
WHERE feed = $1 AND fill_time IS NULL AND start_time > $2 AND end_time < $3
