-- $1 text: platform
-- $2 text[]: post_id
DELETE FROM missing_posts
WHERE platform = $1 AND post_id = ANY ($2) AND first_time <= clock_timestamp() - interval '1 hour'
RETURNING post_id
