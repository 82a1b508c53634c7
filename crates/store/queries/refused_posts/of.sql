-- $1 text: feed
-- $2 uuid[]: namespaces
-- $3 uuid[]: Managers
-- $4 bigint: most posts
-- $5 bigint: bytes of posts after which none follows
SELECT post, bytes FROM (
    SELECT post, bytes, time, post_key,
        sum(bytes) OVER (ORDER BY time, post_key ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
    FROM (
        SELECT DISTINCT ON (post_key) post_key, time, bytes, post FROM refused_posts
        JOIN unnest($2, $3) AS given (namespace_id, manager_id) USING (namespace_id, manager_id)
        WHERE feed = $1 ORDER BY post_key
    ) AS waiting
) AS sized WHERE bytes_before < $5 ORDER BY time, post_key LIMIT $4
