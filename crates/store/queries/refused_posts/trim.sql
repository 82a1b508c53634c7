-- $1 uuid[]: namespaces
-- $2 bigint: most bytes of an account
DELETE FROM refused_posts WHERE ctid = ANY (ARRAY (
    SELECT kept.ctid FROM refused_posts AS kept JOIN (
        SELECT namespace_id, manager_id, feed, post_key,
            sum(bytes) OVER (PARTITION BY account_id ORDER BY refuse_time DESC, post_key, manager_id, feed
                ROWS UNBOUNDED PRECEDING) AS total
        FROM refused_posts
        WHERE account_id IN (SELECT account_id FROM namespaces WHERE id = ANY ($1))
    ) AS ranked USING (namespace_id, manager_id, feed, post_key)
    WHERE total > $2 FOR UPDATE OF kept SKIP LOCKED))
