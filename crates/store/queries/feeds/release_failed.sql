-- $1 text: name
-- $2 uuid: replica
-- $3 double precision: seconds until the next poll
-- $4 boolean: slow
-- $5 integer: failures to add
-- $6 text: last_error
-- $7 text: trouble
UPDATE feeds SET leased_by = NULL, last_poll_time = clock_timestamp(),
    next_poll_time = clock_timestamp() + $3 * interval '1 second', slow = $4,
    failure_count = failure_count + $5, last_error = $6, trouble = $7,
    clear_time = CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END
WHERE name = $1 AND leased_by = $2
