-- $1 double precision: seconds of rest
-- $2 double precision: longest age in seconds of a refused post
UPDATE backfills AS b SET state = 'WAITING', before = NULL, reach_time = NULL,
    failure_count = 0, error = NULL, next_time = NULL, update_time = clock_timestamp()
FROM feed_watchers AS w
WHERE w.feed = b.feed AND w.namespace_id = b.namespace_id AND w.manager_id = b.manager_id
    AND b.state = 'FAILED' AND b.update_time < clock_timestamp() - $1 * interval '1 second'
    AND b.catch_up_since IS NOT NULL
    AND b.create_time > clock_timestamp() - $2 * interval '1 second'
