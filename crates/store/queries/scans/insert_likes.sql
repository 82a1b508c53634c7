-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 timestamptz[]: create_time
-- $4 uuid[]: scan_id
-- $5 bigint[]: key
-- $6 bytea[]: sketch
-- $7 boolean: silent, of all
INSERT INTO scan_likes (namespace_id, manager_id, create_time, scan_id, key, sketch, silent)
SELECT *, $7 FROM unnest($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
