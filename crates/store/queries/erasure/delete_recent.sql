-- $1 uuid[]: post_key
-- $2 text[]: feed of each
-- Locked in the usual order.
DELETE FROM recent_posts WHERE (post_key, feed) IN (
    SELECT post_key, feed FROM recent_posts
    WHERE (post_key, feed) IN (SELECT * FROM unnest($1, $2))
    ORDER BY post_key, feed FOR UPDATE)
