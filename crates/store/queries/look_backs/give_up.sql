-- $1 bigint: look-back
-- $2 text: error
WITH gone AS (DELETE FROM look_backs WHERE id = $1 RETURNING id)
UPDATE backfills AS b SET state = 'FAILED', look_back_id = NULL, error = $2,
    update_time = clock_timestamp()
FROM gone WHERE b.look_back_id = gone.id
