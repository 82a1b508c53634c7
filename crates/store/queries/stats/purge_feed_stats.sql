-- $1 integer: interval
-- $2 timestamptz: before
-- $3 bigint: most points
DELETE FROM feed_stats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM feed_stats WHERE interval_seconds = $1 AND time < $2 ORDER BY time LIMIT $3))
