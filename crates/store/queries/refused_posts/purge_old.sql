-- $1 double precision: longest age in seconds
-- $2 bigint: most posts
DELETE FROM refused_posts WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM refused_posts WHERE refuse_time < clock_timestamp() - $1 * interval '1 second'
    LIMIT $2 FOR UPDATE SKIP LOCKED))
