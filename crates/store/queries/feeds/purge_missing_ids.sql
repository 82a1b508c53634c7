-- $1 double precision: longest age in seconds
DELETE FROM feed_missing_ids WHERE miss_time < clock_timestamp() - $1 * interval '1 second'
