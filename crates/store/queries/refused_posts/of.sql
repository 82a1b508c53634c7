-- $1 text: feed
-- $2 uuid[]: namespaces
-- $3 uuid[]: Managers
-- $4 bigint: most posts
SELECT post FROM (
    SELECT DISTINCT ON (post_key) time, post FROM refused_posts
    JOIN unnest($2, $3) AS given (namespace_id, manager_id) USING (namespace_id, manager_id)
    WHERE feed = $1 ORDER BY post_key
) AS waiting ORDER BY time LIMIT $4
