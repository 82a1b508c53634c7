-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
-- $4 double precision: seconds
UPDATE replays SET next_batch_time = clock_timestamp() + $4 * interval '1 second'
WHERE namespace_id = $1 AND connection_id = $2 AND id = $3
