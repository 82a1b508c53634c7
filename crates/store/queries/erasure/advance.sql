-- $1 text: platform
-- $2 uuid: replica
-- $3 text: stage
-- $4 timestamptz: place_time
-- $5 uuid: place_id
-- $6 double precision: seconds until the next step
-- $7 boolean: true if the step is set aside
UPDATE rechecks SET leased_by = NULL,
    crash_count = CASE WHEN $7 THEN
        crash_count + CASE WHEN crash_count >= 3 THEN crash_count % 2 ELSE 0 END ELSE crash_count END,
    clear_time = CASE WHEN $7 THEN clear_time ELSE
        CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END END,
    stage = $3, place_time = $4, place_id = $5, next_time = clock_timestamp() + $6 * interval '1 second'
WHERE platform = $1 AND leased_by = $2
