-- $1 double precision: longest age in seconds
DELETE FROM quarantined_posts WHERE quarantine_time < clock_timestamp() - $1 * interval '1 second'
