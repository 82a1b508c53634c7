-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bigint: most deliveries
WITH batch AS (
    SELECT create_time, id FROM deliveries
    WHERE namespace_id = $1 AND connection_id = $2 AND state IN ('PENDING', 'RETRYING')
    LIMIT $3 FOR UPDATE SKIP LOCKED
) UPDATE deliveries AS d SET state = 'CANCELLED', leased_by = NULL, next_attempt_time = NULL,
    update_time = clock_timestamp()
FROM batch WHERE d.namespace_id = $1 AND d.connection_id = $2
    AND d.create_time = batch.create_time AND d.id = batch.id
