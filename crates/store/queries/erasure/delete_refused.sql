-- $1 uuid[]: post_key
-- $2 text[]: feed of each
-- Locked in the usual order.
DELETE FROM refused_posts WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM refused_posts
    WHERE (post_key, feed) IN (SELECT * FROM unnest($1, $2))
    ORDER BY namespace_id, manager_id, feed, post_key FOR UPDATE))
