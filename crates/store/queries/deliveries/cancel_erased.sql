-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 uuid[]: ids
-- $4 uuid: replica
UPDATE deliveries AS d SET state = 'CANCELLED', leased_by = NULL, last_error = 'post_deleted', urgent = false,
    reopen_asked = false, update_time = clock_timestamp()
FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id)
WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id
    AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4
