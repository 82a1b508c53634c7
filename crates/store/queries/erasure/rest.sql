-- $1 text: platform
-- $2 uuid: replica
-- $3 double precision: seconds until the next step at the earliest
UPDATE rechecks SET leased_by = NULL,
    clear_time = CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END,
    next_time = greatest(least(begin_time,
    -- When the next missing post is due. Without any it is NULL, which `least` ignores.
    (SELECT min(first_time) + interval '1 hour' FROM missing_posts WHERE platform = $1)),
    clock_timestamp() + $3 * interval '1 second')
WHERE platform = $1 AND leased_by = $2
