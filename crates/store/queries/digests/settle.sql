-- $1 bigint: most digests
-- A delivery that was cancelled because its Scan or post is gone continues with the newest Scan that is left. Recipients who
-- have its mail do not get the others again.
WITH ended AS (
    SELECT g.delivery_id, g.namespace_id, g.connection_id, d.create_time,
        d.state = 'CANCELLED' AND d.last_error IN ('post_deleted', 'scan_deleted') AS continues
    FROM digests AS g
    CROSS JOIN LATERAL (
        SELECT d.create_time, d.state, d.last_error FROM deliveries AS d
        WHERE d.namespace_id = g.namespace_id AND d.connection_id = g.connection_id
            AND d.create_time = id_time(g.delivery_id) AND d.id = g.delivery_id OFFSET 0
    ) AS d
    WHERE d.state IN ('SUCCEEDED', 'EXHAUSTED', 'CANCELLED') LIMIT $1 FOR UPDATE OF g SKIP LOCKED
), next AS (
    SELECT e.namespace_id, e.connection_id, e.create_time, e.delivery_id, s.manager_id, s.scan_id
    FROM ended AS e
    CROSS JOIN LATERAL (
        SELECT d.manager_id, d.scan_id FROM digest_scans AS d
        JOIN managers AS m ON m.namespace_id = d.namespace_id AND m.id = d.manager_id
        CROSS JOIN LATERAL (
            SELECT s.post_receive_time, s.post_id FROM scans AS s
            WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id
                AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id OFFSET 0
        ) AS s
        CROSS JOIN LATERAL (
            SELECT p.erase_time FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id OFFSET 0
        ) AS p
        WHERE d.delivery_id = e.delivery_id AND p.erase_time IS NULL ORDER BY d.scan_id DESC LIMIT 1
    ) AS s
    WHERE e.continues
), forgotten AS (
    DELETE FROM digests AS g USING ended AS e
    WHERE g.delivery_id = e.delivery_id AND e.delivery_id NOT IN (SELECT delivery_id FROM next)
)
UPDATE deliveries AS d SET manager_id = next.manager_id, scan_id = next.scan_id,
    state = CASE d.attempt_count WHEN 0 THEN 'PENDING' ELSE 'RETRYING' END, next_attempt_time = clock_timestamp(),
    last_error = NULL, update_time = clock_timestamp()
FROM next WHERE d.namespace_id = next.namespace_id AND d.connection_id = next.connection_id
    AND d.create_time = next.create_time AND d.id = next.delivery_id AND d.state = 'CANCELLED'
RETURNING d.namespace_id, d.connection_id
