-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 uuid[]: ids
-- $4 uuid: replica
-- Returned by age, so that they come before newer ones. A delivery that was requested again during its lease needs no
-- result to be reopened: it already waits.
UPDATE deliveries AS d SET leased_by = NULL, next_attempt_time = least(clock_timestamp(), d.update_time),
    state = CASE WHEN d.attempt_count = 0 OR d.reopen_asked THEN 'PENDING' ELSE 'RETRYING' END, reopen_asked = false,
    schedule_base = CASE WHEN d.reopen_asked THEN d.attempt_count ELSE d.schedule_base END
FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id)
WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id
    AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4
