-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 uuid[]: Scans
-- A digest also has Scans of other Managers. It is cancelled when it is claimed, with the reason that makes `digests/settle`
-- continue with these.
UPDATE deliveries AS d SET state = 'CANCELLED', leased_by = NULL, next_attempt_time = NULL,
    update_time = clock_timestamp()
WHERE d.namespace_id = $1 AND d.manager_id = $2 AND d.scan_id = ANY ($3)
    AND d.state IN ('PENDING', 'RETRYING', 'IN_FLIGHT')
    AND NOT EXISTS (SELECT FROM digests AS g WHERE g.delivery_id = d.id)
