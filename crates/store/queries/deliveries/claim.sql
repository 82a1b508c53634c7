-- $1 uuid: replica
-- $2 uuid[]: namespaces
-- $3 uuid[]: Connections
-- $4 integer[]: most of each
WITH due AS (
    SELECT due.* FROM unnest($2, $3, $4) AS given (namespace_id, connection_id, count)
    JOIN connections AS c ON c.namespace_id = given.namespace_id AND c.id = given.connection_id
        AND c.state = 'ACTIVE'
        AND CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
            CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END IS NULL
    JOIN connection_lanes AS l ON l.namespace_id = given.namespace_id
        AND l.connection_id = given.connection_id AND l.open_until IS NULL
    -- The inner limit exceeds any requested count and exists only for the planner. For an unknown limit the planner
    -- assumes a tenth of all rows, and would sort a backlog instead of walking its index. Rows are locked as they are
    -- read.
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time
            FROM deliveries AS d
            WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id
                AND d.state IN ('PENDING', 'RETRYING') AND d.next_attempt_time <= statement_timestamp()
            ORDER BY d.next_attempt_time LIMIT 1024 FOR UPDATE SKIP LOCKED
        ) AS next LIMIT given.count
    ) AS due
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
