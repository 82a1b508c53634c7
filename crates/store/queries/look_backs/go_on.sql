-- $1 bigint: look-back
-- $2 jsonb: cursor
-- $3 timestamptz: time before which nothing can be read
-- $4 double precision: seconds until the next step
UPDATE look_backs SET cursor = $2, leased_by = NULL, failure_count = 0,
    clear_time = CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END,
    reach_time = greatest(reach_time, $3),
    next_time = clock_timestamp() + $4 * interval '1 second' WHERE id = $1
