-- $1 uuid: last namespace looked at
-- $2 uuid: last Connection looked at
-- $3 integer: most Connections
WITH RECURSIVE waiting AS (
    (SELECT namespace_id, connection_id, next_attempt_time, 1 AS number FROM deliveries
     WHERE state IN ('PENDING', 'RETRYING') AND (namespace_id, connection_id) > ($1, $2)
     ORDER BY namespace_id, connection_id, next_attempt_time LIMIT 1)
    UNION ALL
    SELECT next.*, w.number + 1 FROM waiting AS w CROSS JOIN LATERAL (
        SELECT d.namespace_id, d.connection_id, d.next_attempt_time FROM deliveries AS d
        WHERE d.state IN ('PENDING', 'RETRYING')
            AND (d.namespace_id, d.connection_id) > (w.namespace_id, w.connection_id)
        ORDER BY d.namespace_id, d.connection_id, d.next_attempt_time LIMIT 1
    ) AS next WHERE w.number < $3
), found AS (
    SELECT w.namespace_id, w.connection_id, c.state IS NULL AS gone, w.number >= $3 AS last,
        coalesce(c.state = 'ACTIVE' AND coalesce(l.next_due_time, 'infinity') >
            greatest(w.next_attempt_time, l.open_until, l.probe_end_time, l.rate_time), false) AS unnoted
    FROM waiting AS w
    -- OFFSET keeps the planner, which expects many rows, from reading all Connections.
    LEFT JOIN LATERAL (SELECT state FROM connections
        WHERE namespace_id = w.namespace_id AND id = w.connection_id OFFSET 0) AS c ON true
    LEFT JOIN LATERAL (SELECT * FROM connection_lanes
        WHERE namespace_id = w.namespace_id AND connection_id = w.connection_id OFFSET 0) AS l ON true
)
SELECT * FROM found WHERE gone OR unnoted OR last
