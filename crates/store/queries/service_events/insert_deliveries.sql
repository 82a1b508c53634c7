-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 uuid[]: ids
-- $4 timestamptz[]: create_time
-- $5 jsonb[]: events
INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, state, next_attempt_time, event)
SELECT namespace_id, connection_id, id, create_time, clock_timestamp(), 'PENDING', clock_timestamp(), event
FROM unnest($1, $2, $3, $4, $5) AS d (namespace_id, connection_id, id, create_time, event)
