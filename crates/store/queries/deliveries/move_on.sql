-- $1 uuid[]: namespaces
-- $2 uuid[]: Connections
-- $3 timestamptz[]: create_time
-- $4 uuid[]: ids
-- $5 text[]: next state
-- $6 timestamptz[]: time of the attempt
-- $7 double precision[]: seconds until the next attempt
-- $8 smallint[]: status_code
-- $9 text[]: error
-- $10 uuid: replica
UPDATE deliveries AS d SET state = CASE WHEN d.reopen_asked THEN 'PENDING' ELSE r.state END, leased_by = NULL,
    attempt_count = d.attempt_count + 1, last_attempt_time = r.attempt_time,
    next_attempt_time = CASE WHEN d.reopen_asked THEN clock_timestamp()
        ELSE clock_timestamp() + r.wait * interval '1 second' END,
    -- The schedule does not count attempts that our own limit delayed.
    schedule_base = CASE WHEN d.reopen_asked THEN d.attempt_count + 1 WHEN r.error = 'too_many_mails'
        THEN d.schedule_base + 1 ELSE d.schedule_base END,
    urgent = d.urgent AND d.reopen_asked, reopen_asked = false, update_time = clock_timestamp(),
    last_status_code = r.status_code, last_error = r.error, crash_count = 0
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
    AS r (namespace_id, connection_id, create_time, id, state, attempt_time, wait, status_code, error)
WHERE d.namespace_id = r.namespace_id AND d.connection_id = r.connection_id
    AND d.create_time = r.create_time AND d.id = r.id AND d.leased_by = $10
RETURNING d.id, d.namespace_id, d.connection_id, coalesce(d.scan_id, d.id) AS begin_id,
    d.state = 'PENDING' AS reopened
