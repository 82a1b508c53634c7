-- $1 text: platform
-- $2 timestamptz: receive_time of the last post read
-- $3 uuid: its id
-- $4 bigint: most posts
SELECT split_part(feed, ':', 1) = $1 AND erase_time IS NULL AS own, post_id, receive_time AS time, id
FROM posts WHERE (receive_time, id) > ($2, $3) ORDER BY receive_time, id LIMIT $4
