-- $1 bigint: look-back
-- $2 timestamptz: time before which nothing can be read
WITH gone AS (DELETE FROM look_backs WHERE id = $1 RETURNING id, reach_time)
UPDATE backfills AS b SET state = 'DONE', look_back_id = NULL, update_time = clock_timestamp(),
    reach_time = least(b.before, greatest(b.since, gone.reach_time, $2))
FROM gone WHERE b.look_back_id = gone.id
