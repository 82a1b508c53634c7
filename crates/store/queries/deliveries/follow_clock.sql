-- $1 bigint: most deliveries
UPDATE deliveries AS d SET update_time = clock_timestamp(),
    next_attempt_time = clock_timestamp() + greatest(d.next_attempt_time - d.update_time, interval '0')
FROM (
    SELECT namespace_id, connection_id, create_time, id FROM deliveries
    WHERE state IN ('PENDING', 'RETRYING') AND next_attempt_time > statement_timestamp()
        AND update_time > clock_timestamp() + interval '1 minute'
    LIMIT $1 FOR UPDATE SKIP LOCKED
) AS ahead
WHERE d.namespace_id = ahead.namespace_id AND d.connection_id = ahead.connection_id
    AND d.create_time = ahead.create_time AND d.id = ahead.id
