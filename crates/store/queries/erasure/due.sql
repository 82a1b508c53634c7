-- $1 text: platform
-- $2 bigint: most posts
SELECT post_id FROM missing_posts
WHERE platform = $1 AND first_time <= clock_timestamp() - interval '1 hour'
ORDER BY first_time, post_id LIMIT $2
