-- $1 bigint: look-back
-- $2 uuid: replica
-- $3 integer: failures
-- $4 double precision: seconds until the next step
UPDATE look_backs SET leased_by = NULL, failure_count = failure_count + $3,
    clear_time = CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END,
    next_time = clock_timestamp() + $4 * interval '1 second' WHERE id = $1 AND leased_by = $2
