-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
-- $4 timestamptz: start of the window
-- $5 timestamptz: end of the window, or NULL for now
-- $6 text[]: states of the deliveries, or NULL for all
-- $7 timestamptz: time of the id
-- $8 bigint: most deliveries to count
-- $9 bigint: most running replays
WITH bounds AS (SELECT least(coalesce($5, clock_timestamp()), clock_timestamp()) AS end_time),
looked_at AS (
    SELECT d.state FROM deliveries AS d, bounds AS b
    WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.create_time BETWEEN $4 AND b.end_time
    LIMIT $8 + 1
), counted AS (
    SELECT count(*) FILTER (WHERE $6 IS NULL OR state = ANY ($6)) AS total, count(*) <= $8 AS counted
    FROM looked_at
)
INSERT INTO replays (namespace_id, connection_id, id, create_time, update_time, start_time, end_time, states,
    total, counted, place_time, place_id, next_batch_time)
SELECT $1, $2, $3, $7, $7, least($4, end_time), end_time, $6, total, counted, least($4, end_time),
    '00000000-0000-0000-0000-000000000000', clock_timestamp()
FROM bounds, counted
WHERE $9 > (SELECT count(*) FROM replays
    WHERE namespace_id = $1 AND connection_id = $2 AND state = 'RUNNING')
RETURNING namespace_id, connection_id, id, create_time, update_time, start_time, end_time, states, state, total, done
