-- $1 text: name
-- $2 uuid: replica
-- $3 double precision: seconds until the next poll
-- $4 text: last_error
UPDATE feeds SET leased_by = NULL,
    crash_count = crash_count + CASE WHEN crash_count >= 3 THEN crash_count % 2 ELSE 0 END,
    last_poll_time = clock_timestamp(), next_poll_time = clock_timestamp() + $3 * interval '1 second',
    failure_count = failure_count + 1, last_error = $4, trouble = 'FAILING'
WHERE name = $1 AND leased_by = $2
