-- $1 text: feed
-- $2 uuid[]: namespaces
-- $3 uuid[]: Managers
-- $4 uuid[]: post_key
DELETE FROM refused_posts WHERE (namespace_id, manager_id, feed, post_key) IN (
    SELECT namespace_id, manager_id, feed, post_key FROM refused_posts
    JOIN unnest($2, $3) AS given (namespace_id, manager_id) USING (namespace_id, manager_id)
    WHERE feed = $1 AND post_key = ANY ($4)
    ORDER BY namespace_id, manager_id, feed, post_key FOR UPDATE OF refused_posts)
