-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 timestamptz: create_time
-- $4 uuid: id
-- Sets the same as `replays/reopen`, apart from `urgent`.
UPDATE deliveries AS d SET urgent = true,
    state = CASE d.state WHEN 'IN_FLIGHT' THEN d.state ELSE 'PENDING' END,
    next_attempt_time = CASE d.state WHEN 'IN_FLIGHT' THEN NULL ELSE clock_timestamp() END,
    reopen_asked = d.state = 'IN_FLIGHT', reopen_time = clock_timestamp(),
    schedule_base = d.attempt_count, update_time = clock_timestamp()
WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.create_time = $3 AND d.id = $4
    AND (d.event IS NOT NULL
        OR EXISTS (SELECT FROM scans AS s WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id
            AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id))
RETURNING d.namespace_id, d.connection_id, d.id, d.create_time, d.update_time, d.manager_id, d.scan_id, d.event, d.state,
    d.attempt_count, d.last_attempt_time, d.next_attempt_time, d.last_status_code, d.last_error
