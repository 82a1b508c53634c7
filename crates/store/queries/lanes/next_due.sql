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
SELECT extract(epoch FROM min(l.next_due_time) - statement_timestamp())::float8 AS seconds
FROM accounts AS a
CROSS JOIN LATERAL (
    SELECT l.next_due_time FROM connection_lanes AS l
    WHERE l.account_id = a.account_id AND l.next_due_time > statement_timestamp()
    ORDER BY l.next_due_time LIMIT 1
) AS l
