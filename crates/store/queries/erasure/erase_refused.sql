-- $1 uuid[]: post_key
-- Locked in the usual order.
DELETE FROM refused_posts WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM refused_posts
    WHERE post_key = ANY ($1) AND lower(split_part(feed, ':', 2)) NOT IN ('http', 'https')
    ORDER BY namespace_id, manager_id, feed, post_key FOR UPDATE))
