-- $1 uuid: first id of a Scan that is stored
-- $2 bigint: most deliveries
UPDATE deliveries AS d SET state = 'EXHAUSTED', last_error = 'scan_expired', next_attempt_time = NULL,
    urgent = false, update_time = clock_timestamp()
FROM (SELECT namespace_id, connection_id, create_time, id FROM deliveries
    WHERE state IN ('PENDING', 'RETRYING') AND scan_id < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) AS old
WHERE d.namespace_id = old.namespace_id AND d.connection_id = old.connection_id
    AND d.create_time = old.create_time AND d.id = old.id
