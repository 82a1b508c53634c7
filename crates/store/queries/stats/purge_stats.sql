-- $1 integer: interval
-- $2 timestamptz: before
-- $3 bigint: most points
DELETE FROM stats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM stats WHERE interval_seconds = $1 AND time < $2 ORDER BY time LIMIT $3))
