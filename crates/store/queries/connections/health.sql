-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 bigint: most deliveries to count
SELECT l.namespace_id, l.connection_id, l.recent_outcomes, l.recent_count, l.last_success_time,
    l.open_until > clock_timestamp() AS open, w.pending, w.oldest_pending_time,
    (SELECT x.error FROM leases AS x WHERE x.kind = 'digest' AND x.key = l.connection_id::text
        AND x.leased_by IS NULL AND x.next_time > clock_timestamp()) AS digest_error
FROM unnest($1, $2) AS given (namespace_id, connection_id)
JOIN connection_lanes AS l ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
CROSS JOIN LATERAL (
    SELECT count(*) AS pending, min(create_time) AS oldest_pending_time FROM (
        SELECT d.create_time FROM deliveries AS d
        WHERE d.namespace_id = l.namespace_id AND d.connection_id = l.connection_id
            AND d.state IN ('PENDING', 'RETRYING') ORDER BY d.next_attempt_time LIMIT $3
    ) AS waiting
) AS w
