-- $1 text: feed
-- $2 uuid[]: namespaces of the matches
-- $3 uuid[]: their Managers
-- $4 uuid[]: their posts
-- $5 uuid[]: post_key
-- $6 timestamptz[]: time
-- $7 integer[]: bytes
-- $8 jsonb[]: post
WITH done AS (
    INSERT INTO refused_posts (namespace_id, manager_id, feed, post_key, account_id, time, bytes, post)
    SELECT waits.namespace_id, waits.manager_id, $1, post_key, n.account_id, given.time, given.bytes, given.post
    FROM unnest($2, $3, $4) AS waits (namespace_id, manager_id, post_key)
    JOIN unnest($5, $6, $7, $8) AS given (post_key, time, bytes, post) USING (post_key)
    JOIN namespaces AS n ON n.id = waits.namespace_id
    ORDER BY waits.namespace_id, waits.manager_id, post_key
    ON CONFLICT (namespace_id, manager_id, feed, post_key) DO UPDATE SET refuse_time = clock_timestamp()
    -- Zero for a new row.
    RETURNING account_id, bytes, xmax::text AS replaced
)
SELECT account_id, sum(bytes) AS bytes FROM done WHERE replaced = '0' GROUP BY account_id
