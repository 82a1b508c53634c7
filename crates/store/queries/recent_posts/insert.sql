-- $1 text: feed
-- $2 uuid[]: post_key
-- $3 timestamptz[]: time
-- $4 uuid[]: url_key
-- $5 jsonb[]: post
-- $6 integer[]: bytes
INSERT INTO recent_posts (feed, post_key, time, url_key, post, bytes)
SELECT $1, * FROM unnest($2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
