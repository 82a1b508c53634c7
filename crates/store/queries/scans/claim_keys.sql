-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 uuid[]: post_key
-- $4 timestamptz: create_time
INSERT INTO scan_keys (namespace_id, manager_id, post_key, create_time)
SELECT namespace_id, manager_id, post_key, $4
FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key)
ON CONFLICT DO NOTHING RETURNING namespace_id, manager_id, post_key
