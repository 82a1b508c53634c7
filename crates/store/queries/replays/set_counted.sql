-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
UPDATE replays SET counted = true, update_time = clock_timestamp()
WHERE namespace_id = $1 AND connection_id = $2 AND id = $3
