-- $1 text: platform
-- $2 uuid: replica
-- $3 double precision: seconds from the start of this walk to the next
-- $4 double precision: seconds until the next step at the earliest
-- $5 boolean: true if the step is set aside
UPDATE rechecks SET leased_by = NULL,
    crash_count = CASE WHEN $5 THEN
        crash_count + CASE WHEN crash_count >= 3 THEN crash_count % 2 ELSE 0 END ELSE crash_count END,
    clear_time = CASE WHEN $5 THEN clear_time ELSE
        CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END END,
    stage = 'POSTS', place_time = 'epoch', place_id = '00000000-0000-0000-0000-000000000000',
    next_time = greatest(clock_timestamp() + $4 * interval '1 second', least(begin_time + $3 * interval '1 second',
        -- When the next missing post is due. Without any it is NULL, which `least` ignores.
        (SELECT min(first_time) + interval '1 hour' FROM missing_posts WHERE platform = $1))),
    begin_time = greatest(begin_time + $3 * interval '1 second', clock_timestamp())
WHERE platform = $1 AND leased_by = $2
