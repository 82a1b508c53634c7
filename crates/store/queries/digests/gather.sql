-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 uuid[]: Managers
-- $4 uuid[]: Scans
INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time)
SELECT namespace_id, connection_id, manager_id, scan_id, clock_timestamp()
FROM unnest($1, $2, $3, $4) AS given (namespace_id, connection_id, manager_id, scan_id)
ON CONFLICT DO NOTHING
