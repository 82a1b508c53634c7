-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bigint: most deliveries
UPDATE deliveries AS d SET state = 'CANCELLED', next_attempt_time = NULL, update_time = clock_timestamp(),
    last_error = 'connection_deleted', urgent = false
FROM (
    SELECT namespace_id, connection_id, create_time, id FROM deliveries
    WHERE namespace_id = $1 AND connection_id = $2 AND state IN ('PENDING', 'RETRYING')
    ORDER BY next_attempt_time LIMIT $3 FOR UPDATE SKIP LOCKED
) AS waiting
WHERE d.namespace_id = waiting.namespace_id AND d.connection_id = waiting.connection_id
    AND d.create_time = waiting.create_time AND d.id = waiting.id
