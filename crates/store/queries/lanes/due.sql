-- $1 bigint: most of one account
-- $2 uuid[]: Connections that are left out
WITH RECURSIVE accounts AS (
    -- Accounts with waiting deliveries, found with one index step each.
    (SELECT account_id FROM connection_lanes WHERE next_due_time IS NOT NULL
     ORDER BY account_id, next_due_time LIMIT 1)
    UNION ALL
    SELECT next.account_id FROM accounts AS a CROSS JOIN LATERAL (
        SELECT l.account_id FROM connection_lanes AS l
        WHERE l.next_due_time IS NOT NULL AND l.account_id > a.account_id
        ORDER BY l.account_id, l.next_due_time LIMIT 1
    ) AS next
)
SELECT l.namespace_id, l.connection_id, l.account_id,
    l.open_until IS NOT NULL OR c.state <> 'ACTIVE'
    OR CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
        CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END IS NOT NULL AS restrained
FROM accounts AS a
CROSS JOIN LATERAL (
    SELECT * FROM connection_lanes AS l
    WHERE l.account_id = a.account_id AND l.next_due_time <= statement_timestamp()
        AND l.connection_id <> ALL ($2)
    ORDER BY l.next_due_time LIMIT $1
) AS l
JOIN connections AS c ON c.namespace_id = l.namespace_id AND c.id = l.connection_id
