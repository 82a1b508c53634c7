-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 timestamptz: first create_time
DELETE FROM scans WHERE namespace_id = $1 AND manager_id = $2 AND create_time >= $3 RETURNING id
