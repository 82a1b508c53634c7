-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
UPDATE connection_lanes AS l SET next_due_time = CASE WHEN c.state = 'ACTIVE' THEN (
    SELECT greatest(d.next_attempt_time, l.open_until, l.probe_end_time,
        l.rate_time - interval '500 milliseconds')
    FROM deliveries AS d WHERE d.namespace_id = given.namespace_id
        AND d.connection_id = given.connection_id AND d.state IN ('PENDING', 'RETRYING')
    ORDER BY d.next_attempt_time LIMIT 1) END
FROM unnest($1, $2) AS given (namespace_id, connection_id)
JOIN connections AS c ON c.namespace_id = given.namespace_id AND c.id = given.connection_id
WHERE l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
RETURNING l.namespace_id, l.connection_id, l.next_due_time IS NOT NULL AS waits,
    extract(epoch FROM l.next_due_time - clock_timestamp())::float8 AS seconds,
    l.open_until IS NOT NULL OR c.state <> 'ACTIVE'
    OR CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
        CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END IS NOT NULL AS restrained
