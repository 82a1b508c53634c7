-- $1 uuid: replica
-- $2 uuid[]: namespaces
-- $3 uuid[]: Connections
-- $4 uuid[]: ids
-- $5 timestamptz[]: create_time
-- $6 uuid[]: Managers
-- $7 uuid[]: Scans
-- $8 boolean[]: true for those that are leased to the replica
-- $9 text[]: traceparent
-- $10 boolean[]: true for those whose post was deleted at its source
INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id,
    state, leased_by, next_attempt_time, traceparent, last_error)
SELECT namespace_id, connection_id, id, create_time, clock_timestamp(), manager_id, scan_id,
    CASE WHEN erased THEN 'CANCELLED' WHEN leased THEN 'IN_FLIGHT' ELSE 'PENDING' END,
    CASE WHEN leased THEN $1 END, CASE WHEN NOT leased AND NOT erased THEN clock_timestamp() END, traceparent,
    CASE WHEN erased THEN 'post_deleted' END
FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10)
    AS d (namespace_id, connection_id, id, create_time, manager_id, scan_id, leased, traceparent, erased)
