-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 text: feed
-- $4 boolean: whether Scans are delivered
-- $5 text: error
-- $6 integer: most failures
UPDATE backfills SET failure_count = failure_count + 1, error = $5,
    next_time = clock_timestamp() + least(15 * 2 ^ least(failure_count, 16), 3600) * interval '1 second',
    state = CASE WHEN failure_count + 1 >= $6 THEN 'FAILED' ELSE state END,
    look_back_id = CASE WHEN failure_count + 1 >= $6 THEN NULL ELSE look_back_id END,
    update_time = clock_timestamp()
WHERE namespace_id = $1 AND manager_id = $2 AND feed = $3 AND notify = $4
    AND state IN ('WAITING', 'READING')
RETURNING state = 'FAILED' AS failed
