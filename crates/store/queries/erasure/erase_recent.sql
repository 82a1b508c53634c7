-- $1 uuid[]: post_key
-- Locked in the usual order.
DELETE FROM recent_posts WHERE (post_key, feed) IN (
    SELECT post_key, feed FROM recent_posts
    WHERE post_key = ANY ($1) AND lower(split_part(feed, ':', 2)) NOT IN ('http', 'https')
    ORDER BY post_key, feed FOR UPDATE)
