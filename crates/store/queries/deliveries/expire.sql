-- $1 double precision: longest age in seconds, of disabled Connections
-- $2 double precision: longest age in seconds, with an open circuit breaker
-- $3 bigint: most deliveries
-- $4 text: last_error
-- $5 timestamptz: time by the clock of the process
UPDATE deliveries AS d SET state = 'EXHAUSTED', next_attempt_time = NULL, update_time = clock_timestamp(),
    last_error = $4, urgent = false
FROM (
    SELECT old.namespace_id, old.connection_id, old.create_time, old.id
    FROM connections AS c
    JOIN connection_lanes AS l ON l.namespace_id = c.namespace_id AND l.connection_id = c.id
    CROSS JOIN LATERAL (
        SELECT w.namespace_id, w.connection_id, w.create_time, w.id FROM deliveries AS w
        WHERE w.namespace_id = c.namespace_id AND w.connection_id = c.id
            AND w.state IN ('PENDING', 'RETRYING')
            AND CASE c.state
                WHEN 'ACTIVE' THEN greatest(w.create_time, w.reopen_time, c.update_time) + $2 * interval '1 second'
                ELSE greatest(w.create_time, w.reopen_time) + $1 * interval '1 second' END
                < least(statement_timestamp(), $5)
            AND w.create_time < least(statement_timestamp(), $5) - least($1, $2) * interval '1 second'
        LIMIT $3 FOR UPDATE SKIP LOCKED
    ) AS old
    WHERE (c.state <> 'ACTIVE' OR l.open_until IS NOT NULL) AND EXISTS (
        SELECT FROM deliveries AS w WHERE w.namespace_id = c.namespace_id AND w.connection_id = c.id
            AND w.state IN ('PENDING', 'RETRYING'))
    LIMIT $3
) AS old
WHERE d.namespace_id = old.namespace_id AND d.connection_id = old.connection_id
    AND d.create_time = old.create_time AND d.id = old.id
