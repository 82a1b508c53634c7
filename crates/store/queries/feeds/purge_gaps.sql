-- $1 double precision: longest age in seconds
DELETE FROM feed_gaps WHERE find_time < clock_timestamp() - $1 * interval '1 second'
