-- $1 uuid: replica
-- $2 uuid[]: Connections with as many deliveries in hand as allowed
-- $3 uuid[]: accounts that are left out
-- $4 uuid[]: other Connections with deliveries in hand
-- $5 bigint[]: number of each
-- $6 uuid[]: accounts with deliveries in hand
-- $7 bigint[]: number of each
-- $8 bigint: most of one Connection
-- $9 bigint: free capacity
WITH due AS (
    SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time
    FROM (SELECT * FROM (
        SELECT by_account.*, row_number() OVER (ORDER BY account_rank, next_attempt_time, id) AS turn
        FROM (
            SELECT by_connection.*, coalesce(holders.count, 0) + row_number() OVER (
                PARTITION BY account_id ORDER BY next_attempt_time, id) AS account_rank
            FROM (
                SELECT next.*, coalesce(held.count, 0) + row_number() OVER (
                    PARTITION BY next.connection_id ORDER BY next.next_attempt_time, next.id) AS rank,
                    (SELECT account_id FROM namespaces WHERE id = next.namespace_id) AS account_id
                FROM (
                    SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time
                    FROM deliveries AS d WHERE d.urgent AND d.state IN ('PENDING', 'RETRYING')
                        AND d.next_attempt_time <= statement_timestamp() AND d.connection_id <> ALL ($2)
                        AND d.namespace_id NOT IN (SELECT id FROM namespaces WHERE account_id = ANY ($3))
                        AND EXISTS (SELECT FROM connections AS c WHERE c.namespace_id = d.namespace_id
                            AND c.id = d.connection_id AND c.state = 'ACTIVE')
                    ORDER BY d.next_attempt_time LIMIT 1024
                ) AS next LEFT JOIN unnest($4, $5) AS held (connection_id, count) USING (connection_id)
            ) AS by_connection LEFT JOIN unnest($6, $7) AS holders (account_id, count) USING (account_id)
            WHERE rank <= $8
        ) AS by_account
    ) AS in_turn WHERE account_rank + turn <= $9 + 1) AS share
    JOIN deliveries AS d ON d.namespace_id = share.namespace_id AND d.connection_id = share.connection_id
        AND d.create_time = share.create_time AND d.id = share.id
    -- Written so that only the primary key can serve them: by the other index each row of the share would be compared
    -- with all requested deliveries.
    WHERE coalesce(d.urgent, false) AND d.state || '' IN ('PENDING', 'RETRYING')
        AND d.next_attempt_time + interval '0' <= statement_timestamp()
    ORDER BY d.next_attempt_time FOR UPDATE OF d SKIP LOCKED
), leased AS (
    UPDATE deliveries AS d SET state = 'IN_FLIGHT', leased_by = $1, next_attempt_time = NULL,
        update_time = clock_timestamp()
    FROM due WHERE d.namespace_id = due.namespace_id AND d.connection_id = due.connection_id
        AND d.create_time = due.create_time AND d.id = due.id
    RETURNING d.namespace_id, d.connection_id, d.id, d.manager_id, d.scan_id, d.event, d.attempt_count,
        d.schedule_base, d.last_status_code, d.reopen_time, d.urgent, d.traceparent, due.due_time
)
SELECT l.namespace_id, l.connection_id, l.id, l.manager_id, l.scan_id, l.event, l.attempt_count,
    l.schedule_base, l.last_status_code, l.reopen_time, l.urgent, l.traceparent, n.account_id,
    p.erase_time IS NOT NULL AS erased, statement_timestamp() AS now,
    c.url AS connection_url, c.url_sealed, c.update_time AS connection_update_time, c.method, c.headers_sealed,
    c.format, c.max_per_second, c.signing_secrets_sealed,
    p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, p.subforum_id,
    p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url
FROM leased AS l
JOIN connections AS c ON c.namespace_id = l.namespace_id AND c.id = l.connection_id
JOIN namespaces AS n ON n.id = l.namespace_id
LEFT JOIN managers AS m ON m.namespace_id = l.namespace_id AND m.id = l.manager_id
-- OFFSET makes the planner look up each Scan and post by its whole key. For partitions without statistics, for
-- example of a new week, it would otherwise read all Scans of a Manager for each delivery.
LEFT JOIN LATERAL (
    SELECT s.post_receive_time, s.post_id FROM scans AS s
    WHERE s.namespace_id = l.namespace_id AND s.manager_id = l.manager_id
        AND s.create_time = id_time(l.scan_id) AND s.id = l.scan_id OFFSET 0
) AS s ON true
LEFT JOIN LATERAL (
    SELECT p.* FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id OFFSET 0
) AS p ON true
WHERE l.event IS NOT NULL OR m.id IS NOT NULL AND p.id IS NOT NULL
ORDER BY l.due_time
