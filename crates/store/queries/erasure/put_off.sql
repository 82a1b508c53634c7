-- $1 text: platform
-- $2 text[]: post_id
UPDATE missing_posts SET first_time = clock_timestamp() WHERE platform = $1 AND post_id = ANY ($2)
