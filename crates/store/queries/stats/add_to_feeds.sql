-- $1 text[]: feed
-- $2 integer[]: interval_seconds
-- $3 timestamptz[]: time
-- $4 bigint[]: posts
INSERT INTO feed_stats AS f (feed, interval_seconds, time, posts)
SELECT * FROM unnest($1, $2, $3, $4)
ON CONFLICT ON CONSTRAINT feed_stats_pkey DO UPDATE SET posts = f.posts + excluded.posts
