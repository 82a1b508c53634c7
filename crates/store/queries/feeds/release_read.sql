-- $1 text: name
-- $2 uuid: replica
-- $3 double precision: seconds until the next poll
-- $4 boolean: slow
-- $5 jsonb: cursor
-- $6 boolean: true if posts may be missing
-- $7 timestamptz: since when, or NULL for now
-- $8 double precision: posts_per_day
-- $9 timestamptz: start of the period whose posts are stored, if this is the first reading
-- $10 timestamptz: time of the newest post
-- $11 timestamptz: start of the period whose posts are still stored
-- $12 boolean: true to keep the lease
-- $13 double precision: seconds until the next search for late posts
-- $14 boolean: true if ids are noted
-- $15 jsonb: late_reading
-- $16 boolean: true to set the notice
-- $17 text: notice
-- $18 boolean: true if all posts were read
UPDATE feeds SET leased_by = CASE WHEN $12 AND watched THEN leased_by END,
    last_poll_time = clock_timestamp(), read_time = clock_timestamp(),
    next_poll_time = clock_timestamp() + $3 * interval '1 second', slow = $4,
    -- A feed that was read before without storing its posts has them stored from now on.
    kept_since = CASE WHEN $9 IS NULL THEN NULL ELSE greatest($11, CASE
        WHEN $6 THEN coalesce($7, clock_timestamp())
        WHEN cursor IS NULL THEN $9
        ELSE coalesce(kept_since, clock_timestamp()) END) END,
    ids_since = CASE WHEN $14 THEN coalesce(ids_since, CASE WHEN cursor IS NULL THEN $9 END, clock_timestamp()) END,
    late_reading = coalesce($15, late_reading),
    cursor = coalesce($5, cursor), gap_count = gap_count + $6::integer,
    posts_per_day = coalesce($8, posts_per_day),
    last_post_time = greatest(last_post_time, $10),
    late_time = coalesce(clock_timestamp() + $13 * interval '1 second', late_time),
    notice = CASE WHEN $16 THEN $17 ELSE notice END,
    rewatch_time = CASE WHEN NOT $18 THEN rewatch_time END,
    failure_count = 0, last_error = NULL, trouble = NULL,
    -- A stream is in hand at nearly each death of a scanner. What ends scanners it would read again.
    crash_count = CASE WHEN $12 THEN 0 ELSE crash_count END,
    clear_time = CASE WHEN crash_count > 0 THEN coalesce(clear_time, clock_timestamp()) END
WHERE name = $1 AND leased_by = $2 RETURNING leased_by IS NOT NULL AS kept
