-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
UPDATE replays SET update_time = CASE state WHEN 'RUNNING' THEN clock_timestamp() ELSE update_time END,
    state = CASE state WHEN 'RUNNING' THEN 'CANCELLED' ELSE state END
WHERE namespace_id = $1 AND connection_id = $2 AND id = $3
