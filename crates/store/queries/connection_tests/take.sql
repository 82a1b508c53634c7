-- $1 uuid: replica
-- $2 double precision: seconds until no one waits
-- $3 bigint: most tests
UPDATE connection_tests AS t SET taken_by = $1
FROM (
    SELECT id FROM connection_tests
    WHERE taken_by IS NULL AND create_time > clock_timestamp() - $2 * interval '1 second'
    ORDER BY create_time LIMIT $3 FOR UPDATE SKIP LOCKED
) AS waiting
WHERE t.id = waiting.id
RETURNING t.id, t.namespace_id, t.connection_id
