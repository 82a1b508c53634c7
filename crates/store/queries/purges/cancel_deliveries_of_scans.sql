-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 uuid[]: Scans
UPDATE deliveries SET state = 'CANCELLED', leased_by = NULL, next_attempt_time = NULL,
    update_time = clock_timestamp()
WHERE namespace_id = $1 AND manager_id = $2 AND scan_id = ANY ($3)
    AND state IN ('PENDING', 'RETRYING', 'IN_FLIGHT')
